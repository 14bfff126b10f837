//! The option `--profile`: one profile, or each.

use std::fmt;
use std::str::FromStr;

use onesided_sim::Profile;

/// What `--profile` asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "one profile, or all of them")]
pub enum Profiles {
    /// This one.
    One(Profile),
    /// Each, one after the other.
    All,
}

impl Profiles {
    /// The profiles that are asked for.
    pub fn each(self) -> Vec<Profile> {
        match self {
            Profiles::One(profile) => vec![profile],
            Profiles::All => Profile::ALL.to_vec(),
        }
    }
}

/// What each profile is like, for help texts.
pub fn in_words() -> String {
    Profile::ALL.map(|profile| format!("{profile} is {}", profile.about())).join("; ")
}

impl FromStr for Profiles {
    type Err = String;

    fn from_str(name: &str) -> Result<Profiles, String> {
        match name {
            "all" => Ok(Profiles::All),
            one => one.parse().map(Profiles::One).map_err(|why: String| format!("{why}, and all of them: all")),
        }
    }
}

impl fmt::Display for Profiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Profiles::One(profile) => profile.fmt(f),
            Profiles::All => f.write_str("all"),
        }
    }
}

//! [`Key`]: the secret of a job.

use std::fmt;

use crate::problem::Problem;

/// A secret that all PEs of a job know, and no other process. PEs that meet prove to each other that they know it; they do not
/// send it (see `rendezvous.rs`).
///
/// `onesided launch` makes one for each job. It is passed in the environment, which only the same user can read, and never in
/// arguments, which everybody can read. Neither `Debug` nor an error shows it.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    /// The environment variable with the key.
    pub const VARIABLE: &str = "ONESIDED_KEY";

    /// A shorter text could be guessed.
    const SHORTEST: usize = 16;
    const RANDOM_BYTES: usize = 32;

    /// A key that nobody can guess.
    ///
    /// # Errors
    /// [`Problem::Failed`] if the system has no random numbers.
    pub fn random() -> Result<Key, Problem> {
        random::<{ Key::RANDOM_BYTES }>().map(|bytes| Key(bytes.map(|byte| format!("{byte:02x}")).concat()))
    }

    /// The key as text, for the environment of PEs and for nothing else.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// A key that a user chose.
    pub(crate) fn from_user(text: String) -> Result<Key, Problem> {
        let characters = text.chars().count();
        if characters >= Key::SHORTEST {
            return Ok(Key(text));
        }
        let (variable, least) = (Key::VARIABLE.to_string(), Key::SHORTEST);
        let why = format!("it has {characters} characters, and could be guessed: {least} at least, all of them random");
        Err(Problem::Variable { variable, why })
    }

    /// The key that Open MPI's launcher makes for a job: 128 random bits, as `234e8008136622ea-96fd945f23984785`. If another
    /// launcher started the processes, Open MPI's library sets the same variable from the number of the job, which anyone can
    /// guess. Half of the digits of such a value are 0. It is not a key.
    pub(crate) fn of_open_mpi(text: &str) -> Option<Key> {
        let (first, second) = text.split_once('-')?;
        let is_random = |half: &str| {
            let is_word = half.len() == 16 && half.bytes().all(|digit| digit.is_ascii_hexdigit());
            is_word && !half.starts_with("00000000") && !half.ends_with("00000000")
        };
        (is_random(first) && is_random(second)).then(|| Key(text.to_string()))
    }
}

/// Random bytes that nobody can guess.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], Problem> {
    let mut bytes = [0; N];
    let failed = |why: getrandom::Error| Problem::Failed { call: "random numbers".to_string(), why: why.to_string() };
    getrandom::fill(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// Shows that there is a key.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_keys_differ_and_are_shown_to_nobody() {
        let [one, other] = [Key::random().unwrap(), Key::random().unwrap()];
        assert_ne!(one, other);
        assert_eq!(one.reveal().len(), 2 * Key::RANDOM_BYTES);
        assert_eq!(format!("{one:?} {:#?}", Some(&one)), "Key(…) Some(\n    Key(…),\n)");
        assert_eq!(Key::from_user(one.reveal().to_string()), Ok(one));
    }

    #[test]
    fn a_key_that_could_be_guessed_is_refused_and_not_repeated() {
        for short in ["", "secret", "fifteen letters"] {
            let why = Key::from_user(short.to_string()).unwrap_err().to_string();
            assert!(why.starts_with("ONESIDED_KEY: it has ") && why.contains("16 at least"), "{why}");
            assert!(short.is_empty() || !why.contains(short), "{why}");
        }
        assert!(Key::from_user("sixteen letters.".to_string()).is_ok());
    }

    #[test]
    fn of_open_mpis_variable_only_random_numbers_are_a_key() {
        assert!(Key::of_open_mpi("234e8008136622ea-96fd945f23984785").is_some());
        // The number of a job as Open MPI's library writes it, with the words in one order and in the other.
        for guessable in ["000003ca00000000-0000000100000000", "017569a900000000-017569a900000000"] {
            assert_eq!(Key::of_open_mpi(guessable), None);
        }
        for other in ["", "-", "234e8008136622ea", "234e8008136622ea-96fd", "234e8008136622ea-g6fd945f23984785"] {
            assert_eq!(Key::of_open_mpi(other), None, "{other}");
        }
    }
}

//! What of a command line is the program's own: its options, as the user gave them, and as they are in effect.

use std::ffi::OsString;

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};

use crate::tool::invocation::quoted;

/// Adds the program's options to a command.
pub(super) type Augment = fn(Command) -> Command;

/// The program's own options.
#[derive(Clone, Debug, Default)]
pub(super) struct Own {
    /// Those that were given, as they would be typed again.
    pub(super) given: Vec<OsString>,
    /// All that are in effect, defaults included: what tells one input of the program from others. Empty if it has none.
    pub(super) in_effect: String,
}

impl Own {
    /// Those in a command line that was read.
    pub(super) fn of(augment: Augment, matches: &ArgMatches) -> Own {
        let command = augment(Command::new("own"));
        let (mut own, mut positional) = (Own::default(), Vec::new());
        for arg in command.get_arguments() {
            let id = arg.get_id().as_str();
            let texts: Vec<_> = values(matches, id).collect();
            own.in_effect += &format!("{id} {texts:?}\n");
            if matches.value_source(id).is_some_and(|source| source != ValueSource::DefaultValue) {
                match arg.is_positional() {
                    true => positional.extend(values(matches, id).flatten()),
                    false => own.given.extend(typed(arg, matches)),
                }
            }
        }
        if !positional.is_empty() {
            own.given.push("--".into()); // one of them may begin with a dash
            own.given.extend(positional);
        }
        own
    }

    /// Those that were given, as a person types them, with a blank before each.
    pub(super) fn typed(&self) -> String {
        quoted(&self.given)
    }
}

/// The values of an option, by occurrence.
fn values<'a>(matches: &'a ArgMatches, id: &str) -> impl Iterator<Item = Vec<OsString>> + 'a {
    let occurrences = matches.get_raw_occurrences(id).into_iter().flatten();
    occurrences.map(|values| values.map(OsString::from).collect())
}

/// An option with its values, as it is typed.
fn typed(arg: &Arg, matches: &ArgMatches) -> Vec<OsString> {
    let id = arg.get_id().as_str();
    let name = match (arg.get_long(), arg.get_short()) {
        (Some(long), _) => format!("--{long}"),
        (None, short) => short.map(|short| format!("-{short}")).unwrap_or_default(),
    };
    match arg.get_action() {
        ArgAction::SetTrue | ArgAction::SetFalse => vec![name.into()],
        ArgAction::Count => vec![name.into(); usize::from(matches.get_count(id))],
        _ => values(matches, id).flat_map(|values| with_name(&name, values)).collect(),
    }
}

fn with_name(name: &str, values: Vec<OsString>) -> Vec<OsString> {
    match &values[..] {
        // `--shift -3` would be read as two options.
        [one] if one.as_encoded_bytes().starts_with(b"-") => {
            let mut word = OsString::from(name);
            word.push("=");
            word.push(one);
            vec![word]
        }
        _ => std::iter::once(name.into()).chain(values).collect(),
    }
}

/// Refuses a program whose options cannot be told from those that all programs have.
pub(super) fn check_names(own: &Command, shared: &Command) {
    for arg in own.get_arguments() {
        let same = |other: &&Arg| {
            let id = other.get_id() == arg.get_id();
            id || (other.get_long().is_some() && other.get_long() == arg.get_long())
                || (other.get_short().is_some() && other.get_short() == arg.get_short())
        };
        if let Some(other) = shared.get_arguments().find(same) {
            let (program, name, other) = (own.get_name(), arg.get_id(), other.get_long().unwrap_or_default());
            panic!("{program}: its option {name} has the name of --{other}, which all programs have; rename it");
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Args;

    use super::*;

    #[derive(Args)]
    struct Many {
        #[arg(long, default_value_t = 3)]
        rounds: u32,
        #[arg(long, allow_hyphen_values = true)]
        shift: Option<i64>,
        #[arg(long)]
        name: Option<String>,
        #[arg(long, num_args = 2)]
        size: Vec<u32>,
        #[arg(short)]
        fast: bool,
        #[arg(short, action = ArgAction::Count)]
        verbose: u8,
        files: Vec<String>,
    }

    fn own(arguments: &[&str]) -> Own {
        let command = Many::augment_args(Command::new("many"));
        let matches = command.try_get_matches_from(std::iter::once(&"many").chain(arguments)).unwrap();
        Own::of(Many::augment_args, &matches)
    }

    #[test]
    fn what_was_given_is_typed_again_and_read_the_same() {
        for (arguments, typed) in [
            (&[][..], ""),
            (&["--rounds", "5"], " --rounds 5"),
            (&["--rounds=5", "--shift", "-2"], " --rounds 5 '--shift=-2'"),
            (&["--name", "a b", "-f", "-vv"], " --name 'a b' -f -v -v"),
            (&["--size", "1", "2", "--size", "3", "4"], " --size 1 2 --size 3 4"),
            (&["--size", "1", "2", "--", "-x", "y"], " --size 1 2 -- -x y"),
        ] {
            let first = own(arguments);
            assert_eq!(first.typed(), typed);
            let words: Vec<&str> = first.given.iter().map(|word| word.to_str().unwrap()).collect();
            let again = own(&words);
            assert_eq!((again.given, again.in_effect), (first.given.clone(), first.in_effect.clone()), "{typed}");
        }
    }

    #[test]
    fn only_what_is_in_effect_tells_inputs_apart() {
        let in_effect = |arguments: &[&str]| own(arguments).in_effect;
        assert_eq!(in_effect(&[]), in_effect(&["--rounds", "3"]));
        for other in [&["--rounds", "4"][..], &["-f"], &["-v"], &["--name", ""], &["x"]] {
            assert_ne!(in_effect(&[]), in_effect(other), "{other:?}");
        }
        assert_ne!(in_effect(&["a", "b"]), in_effect(&["ab"]));
    }

    #[test]
    #[should_panic(expected = "its option rounds has the name of --rounds")]
    fn a_name_that_is_taken_is_refused() {
        let shared = Command::new("shared").arg(Arg::new("times").long("rounds").value_name("N"));
        check_names(&Many::augment_args(Command::new("many")), &shared);
    }
}

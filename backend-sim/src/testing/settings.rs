//! [`Settings`]: what the environment asks of tests.

use std::env;
use std::str::FromStr;
use std::time::Duration;

use onesided::Error;

use crate::schedule::Schedule;

/// What the environment asks for.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Settings {
    pub(super) schedules: Option<u64>,
    pub(super) time: Option<Duration>,
    pub(super) seed: u64,
    pub(super) replay: Option<Schedule>,
}

/// What the environment of this process has for a variable.
pub(super) fn from_environment(variable: &str) -> Option<String> {
    env::var_os(variable).map(|value| value.to_string_lossy().into_owned())
}

/// The value of ONESIDED_TIME.
fn seconds(text: &str) -> std::result::Result<Duration, String> {
    let time = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    time.ok_or_else(|| format!("ONESIDED_TIME is {text:?} in the environment; expected a number of seconds"))
}

impl Settings {
    /// What the variables ask for, or what is wrong with one of them.
    pub(super) fn new(variable: &dyn Fn(&str) -> Option<String>) -> std::result::Result<Settings, String> {
        fn number<T: FromStr>(name: &str, text: Option<String>) -> std::result::Result<Option<T>, String> {
            let Some(text) = text else { return Ok(None) };
            let wrong = |_| format!("{name} is {text:?} in the environment; expected a whole number");
            text.parse().map(Some).map_err(wrong)
        }
        let get = |name: &str| number::<u64>(name, variable(name));
        let replay = variable("ONESIDED_REPLAY")
            .map(|text| text.parse().map_err(|error: Error| format!("ONESIDED_REPLAY: {}", error.message())));
        let (schedules, time) = (get("ONESIDED_SCHEDULES")?, variable("ONESIDED_TIME").map(|text| seconds(&text)));
        match schedules {
            Some(0) => Err("ONESIDED_SCHEDULES is 0 in the environment; expected at least 1".to_string()),
            _ => {
                let (time, seed) = (time.transpose()?, get("ONESIDED_SEED")?.unwrap_or(0));
                Ok(Settings { schedules, time, seed, replay: replay.transpose()? })
            }
        }
    }

    /// How many schedules to visit, if `usual` is the usual number. With a time and no number there is no limit, so that all of the time is used.
    pub(super) fn schedules(&self, usual: u64) -> u64 {
        self.schedules.unwrap_or(if self.time.is_some() { u64::MAX } else { usual })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The settings of an environment with these variables.
    pub(crate) fn settings(variables: &[(&str, &str)]) -> std::result::Result<Settings, String> {
        Settings::new(&|name| variables.iter().find(|(other, _)| *other == name).map(|(_, value)| value.to_string()))
    }

    #[test]
    fn the_environment_is_read_and_what_is_wrong_in_it_named() {
        let usual = Settings { schedules: None, time: None, seed: 0, replay: None };
        assert_eq!(settings(&[]), Ok(usual.clone()));
        let given = [("ONESIDED_SCHEDULES", "7"), ("ONESIDED_TIME", "60"), ("ONESIDED_SEED", "3")];
        let time = Some(Duration::from_secs(60));
        assert_eq!(settings(&given), Ok(Settings { schedules: Some(7), time, seed: 3, ..usual.clone() }));
        let short = Settings { time: Some(Duration::from_millis(500)), ..usual.clone() };
        assert_eq!(settings(&[("ONESIDED_TIME", "0.5")]), Ok(short));
        let replay = settings(&[("ONESIDED_REPLAY", "os2.2x1.spec.p4.r2a.none")]).unwrap();
        assert_eq!(replay.replay.unwrap().to_string(), "os2.2x1.spec.p4.r2a.none");
        for (variable, value, why) in [
            ("ONESIDED_SCHEDULES", "1e6", "ONESIDED_SCHEDULES is \"1e6\" in the environment; expected a whole number"),
            ("ONESIDED_SCHEDULES", "0", "ONESIDED_SCHEDULES is 0 in the environment; expected at least 1"),
            ("ONESIDED_TIME", "", "ONESIDED_TIME is \"\" in the environment; expected a number of seconds"),
            ("ONESIDED_TIME", "-1", "ONESIDED_TIME is \"-1\" in the environment; expected a number of seconds"),
            ("ONESIDED_SEED", "-1", "ONESIDED_SEED is \"-1\" in the environment; expected a whole number"),
            ("ONESIDED_REPLAY", "os2", "ONESIDED_REPLAY: \"os2\" is not a schedule: it has 1 parts, and not 6"),
        ] {
            let error = settings(&[(variable, value)]).unwrap_err();
            assert!(error.starts_with(why), "{error}");
        }
    }

    #[test]
    fn a_time_replaces_the_usual_number_of_schedules() {
        let schedules = |variables: &[(&str, &str)]| settings(variables).unwrap().schedules(50);
        assert_eq!(schedules(&[]), 50);
        assert_eq!(schedules(&[("ONESIDED_TIME", "1")]), u64::MAX);
        assert_eq!(schedules(&[("ONESIDED_TIME", "1"), ("ONESIDED_SCHEDULES", "8")]), 8);
    }
}

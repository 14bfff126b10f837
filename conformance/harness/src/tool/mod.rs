//! Small tools for command lines. None of them knows about programs or cases.

pub mod command;
pub mod finding;
pub mod interrupt;
pub mod invocation;
pub mod number;
pub mod output;
mod outside;
pub mod profiles;
pub mod progress;
pub mod say;
pub mod stall;
pub mod terminal;

use std::io::Read as _;
use std::time::Duration;
use std::{fs, io};

use onesided_sim::Schedule;
use serde_json::Value;

/// Parses a schedule, or reads it from a file that is named behind an `@`: its text, or the JSON that a program has written
/// of a run. An argument cannot be longer than 128 KiB on Linux. The error is without its source line, which would be one of
/// this crate.
pub fn schedule(text: &str) -> Result<Schedule, String> {
    let parse = |text: &str| {
        let (quoted, shorter) = (format!("{text:?}"), format!("{:?}", shortened(text)));
        text.parse().map_err(|error: onesided::Error| error.message().replace(&quoted, &shorter))
    };
    let Some(file) = text.strip_prefix('@') else { return parse(text) };
    if file.is_empty() {
        return Err("the name of a file is missing behind @".to_string());
    }
    let said = read(file).map_err(|why| format!("cannot read {file}: {why}"))?;
    if !said.trim_start().starts_with('{') {
        let line = said.trim();
        return match line.contains('\n') {
            true => Err(format!("{file} has several lines, and a schedule is one")),
            false => parse(line).map_err(|why| format!("{file}: {why}")),
        };
    }
    let json: Value = serde_json::from_str(&said).map_err(|why| format!("{file} is broken JSON: {why}"))?;
    let places = ["/schedule", "/finding/schedule", "/run/schedule", "/differing/schedule"]; // of files, of summaries
    match places.into_iter().find_map(|place| json.pointer(place)?.as_str()) {
        Some(schedule) => parse(schedule).map_err(|why| format!("{file}: {why}")),
        None => Err(format!("{file} has no schedule: --finding FILE of a program writes a file that has one")),
    }
}

/// The text of a file, up to a size that no schedule has: there are files without an end.
fn read(file: &str) -> io::Result<String> {
    const MOST: u64 = 1 << 28;
    let mut text = String::new();
    match fs::File::open(file)?.take(MOST).read_to_string(&mut text)? as u64 {
        MOST => Err(io::Error::other("it has 256 MiB or more")),
        _ => Ok(text),
    }
}

/// A text for a message: without its end if it fills more than a few lines.
pub fn shortened(text: &str) -> String {
    match text.char_indices().nth(400) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_string(),
    }
}

/// How long something took, as a person writes it: `0.8 ms`, `12 ms`, `3.4 s`, `250 s`.
pub fn duration(time: Duration) -> String {
    match time.as_secs_f64() {
        short @ ..0.01 => format!("{:.1} ms", short * 1e3),
        short @ ..1.0 => format!("{:.0} ms", short * 1e3),
        long @ ..100.0 => format!("{long:.1} s"),
        long => format!("{long:.0} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_is_read_from_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let line = "os2.2x1.spec.p4.o.none";
        let read = |text: &str| {
            let file = folder.path().join("file");
            fs::write(&file, text).unwrap();
            schedule(&format!("@{}", file.display())).map(|schedule| schedule.to_string())
        };
        let of = |schedule: &str| format!(r#"{{ "schema": "s", "schedule": {schedule} }}"#);
        let quoted = format!("\"{line}\"");
        for text in [format!("{line}\n"), of(&quoted), format!(r#"{{ "finding": {} }}"#, of(&quoted))] {
            assert_eq!(read(&text).unwrap(), line);
        }
        for (text, why) in [
            ("nonsense", "is not a schedule"),
            ("{", "is broken JSON"),
            (&of("null"), "has no schedule"),
            ("a letter\nof two lines", "has several lines, and a schedule is one"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(why) && error.contains("file"), "{error}");
        }
        for long in ["x", "\t"] {
            assert!(read(&format!("x{}x", long.repeat(1_000_000))).unwrap_err().len() < 1500);
        }
        assert!(schedule("@").unwrap_err().starts_with("the name of a file is missing"));
        assert!(schedule("@/no/such/file").unwrap_err().starts_with("cannot read /no/such/file: "));
    }

    #[test]
    fn durations_have_two_or_three_digits() {
        let micros = [84, 800, 12_400, 999_000, 3_440_000, 250_000_000].map(Duration::from_micros);
        assert_eq!(micros.map(duration), ["0.1 ms", "0.8 ms", "12 ms", "999 ms", "3.4 s", "250 s"]);
    }
}

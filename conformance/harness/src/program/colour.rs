//! Colours of a report on a terminal that shows them: what begins a line, and the lines of source files that it names.

use onesided_show::{Look, Terminal};

/// What begins a line of a report, and how it looks.
const BEGINNINGS: [(&str, Look); 13] = [
    ("FINDING", Look::Wrong),
    ("GIVEN UP", Look::Wrong),
    ("It matters:", Look::Wrong),
    ("Fix: none", Look::Heading),
    ("Fix:", Look::Right),
    ("Critical step:", Look::Heading),
    ("Other than in order:", Look::Heading),
    ("Replay it:", Look::Heading),
    ("Next:", Look::Heading),
    ("note:", Look::Heading),
    ("    nothing orders them; missing:", Look::Heading),
    ("    missing:", Look::Heading),
    ("    the other:", Look::Heading),
];

/// What a summary says of the result. The first that it says is painted: what is not proved says besides that nothing was wrong so far.
const RESULTS: [(&str, Look); 4] = [
    (": proved for ", Look::Right),
    (": not proved for ", Look::Wrong),
    (": fails for ", Look::Wrong),
    (": nothing wrong in ", Look::Right),
];

/// The text as this terminal shows it.
pub(super) fn coloured(text: &str, to: Terminal) -> String {
    if !to.colours {
        return text.to_string();
    }
    text.lines().map(|line| coloured_line(line, to)).collect::<Vec<_>>().join("\n")
}

fn coloured_line(line: &str, to: Terminal) -> String {
    if let Some((words, look)) = BEGINNINGS.iter().find(|(words, _)| line.starts_with(words)) {
        return to.paint(*look, words) + &places(&line[words.len()..], to);
    }
    match RESULTS.iter().find_map(|(words, look)| Some((line.find(words)?, words, look))) {
        Some((at, words, look)) => {
            let (before, rest) = line.split_at(at);
            let (colon, words) = (&words[..2], words[2..].trim_end());
            format!("{before}{colon}{}{}", to.paint(*look, words), places(&rest[2 + words.len()..], to))
        }
        None => places(line, to),
    }
}

/// Paints lines of source files: `ring.rs:12`.
fn places(line: &str, to: Terminal) -> String {
    let is_between = |letter: char| letter.is_whitespace() || "(),;".contains(letter);
    let words = line.split_inclusive(is_between).map(|word| {
        let (text, between) = word.split_at(word.trim_end_matches(is_between).len());
        let text_without_colon = text.trim_end_matches([':', '.']);
        match is_place(text_without_colon) {
            true => to.paint(Look::Place, text_without_colon) + &text[text_without_colon.len()..] + between,
            false => word.to_string(),
        }
    });
    words.collect()
}

/// Whether it is a file, a colon and a number.
fn is_place(word: &str) -> bool {
    let Some((file, line)) = word.rsplit_once(':') else { return false };
    let ending = file.rsplit_once('.').map_or("", |(_, ending)| ending);
    let is_ending = (1..=4).contains(&ending.len()) && ending.bytes().all(|letter| letter.is_ascii_alphabetic());
    is_ending && !line.is_empty() && line.bytes().all(|digit| digit.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLOURED: Terminal = Terminal { colours: true, columns: 100 };

    /// Escapes, as they can be read.
    fn shown(line: &str) -> String {
        coloured(line, COLOURED).replace('\u{1b}', "^")
    }

    #[test]
    fn a_report_is_painted() {
        let found = shown(
            "FINDING in order: data race: write at src/ring.rs:12 by PE 0 (made at ring.cu:3),\n    missing: a fence",
        );
        assert_eq!(
            found,
            "^[1m^[31mFINDING^[0m in order: data race: write at ^[36msrc/ring.rs:12^[0m by PE 0 (made at ^[36mring.cu:3^[0m),\n\
             ^[1m    missing:^[0m a fence"
        );
        assert_eq!(shown("ring: proved for 4 PEs under spec"), "ring: ^[1m^[32mproved for^[0m 4 PEs under spec");
        let bounded = "ring: not proved for 4 PEs: nothing wrong in 4 classes";
        assert_eq!(shown(bounded), "ring: ^[1m^[31mnot proved for^[0m 4 PEs: nothing wrong in 4 classes");
        assert_eq!(shown("    at ring.rs:12:"), "    at ^[36mring.rs:12^[0m:");
    }

    #[test]
    fn other_words_are_left_alone() {
        for line in ["os2.4x1.spec.p4.adb4343da.o.88104293", "buf0+0..8", "1.5 s: 12", "a:b.c:d", "", "http://a.b/c:1x"]
        {
            assert_eq!(shown(line), line);
        }
        let plain = Terminal { colours: false, columns: 100 };
        assert_eq!(coloured("FINDING at a.rs:1", plain), "FINDING at a.rs:1");
    }
}

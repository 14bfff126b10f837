//! The page in a browser: what is drawn, what keys do, how long frames take, and pictures of it.
//!
//! `ONESIDED_PICTURES=FOLDER` writes the pictures of the README there. Without Chromium, nothing is tested, and the test says so.
//! Frame times are printed and not judged: a machine may be busy.

use std::env;
use std::fs;
use std::path::PathBuf;

use onesided_show::{Finding, html};
use serde_json::Value;

mod chromium;
#[path = "../common/mod.rs"]
mod common;
mod large;

use chromium::{Browser, save};
use common::small;

const SIZE: (u32, u32) = (1440, 860);

/// A browser, or a line that says why there is none.
fn browser() -> Option<Browser> {
    let Some(program) = Browser::find() else {
        println!("not run: no chromium on PATH (CHROMIUM can name it)");
        return None;
    };
    Some(Browser::start(&program, SIZE.0, SIZE.1).unwrap())
}

/// The finding as a page in a folder.
fn page(finding: &Finding) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("page.html");
    fs::write(&file, html(finding)).unwrap();
    (folder, file)
}

/// Where pictures are wanted.
fn pictures() -> Option<PathBuf> {
    env::var_os("ONESIDED_PICTURES").map(PathBuf::from)
}

fn open(browser: &mut Browser, finding: &Finding) -> tempfile::TempDir {
    let (folder, file) = page(finding);
    browser.open(&file).unwrap();
    folder
}

#[test]
fn a_small_finding_is_drawn_and_stepped_through() {
    let Some(mut browser) = browser() else { return };
    let finding = small();
    let _page = open(&mut browser, &finding);
    let counts = ["lanes", "total", "allTransfers", "races", "chosen"].map(|name| browser.fact(name));
    assert_eq!(counts, [2.0, 40.0, 5.0, 1.0, 34.0], "lanes, events, transfers, races, the access that is chosen");
    assert_eq!([browser.fact("events"), browser.fact("transfers")], [40.0, 5.0], "all of it is seen");
    assert!(browser.fact("labels") > 8.0);

    browser.press("ArrowRight");
    assert_eq!(browser.fact("chosen"), 35.0);
    browser.press("ArrowLeft");
    browser.press("ArrowLeft");
    assert_eq!(browser.fact("chosen"), 33.0);
    browser.press("ArrowUp");
    assert_eq!(browser.fact("chosen"), 36.0, "the nearest event of PE 0");
    browser.press("r");
    assert_eq!(browser.fact("chosen"), 35.0, "the delivery, which is the first access");
    browser.press("Enter");
    assert_eq!(browser.fact("chosen"), 35.0, "the diagram has not the focus");
    browser.ask("document.getElementById('view').focus()").unwrap();
    browser.press("Enter");
    assert_eq!(browser.fact("chosen"), 19.0, "the put that was delivered");
    browser.press("End");
    browser.press("ArrowRight");
    assert_eq!(browser.fact("chosen"), 39.0, "there is nothing behind the last");
    browser.press("Home");
    assert_eq!(browser.fact("chosen"), 0.0);

    let said = browser.ask("document.getElementById('said').textContent").unwrap();
    assert!(said.as_str().unwrap().starts_with("Event 0, PE 0: init"), "{said}");
}

#[test]
fn the_lines_of_the_program_stand_beside_it() {
    let Some(mut browser) = browser() else { return };
    let _page = open(&mut browser, &small());
    let lines = |browser: &mut Browser, which: &str| {
        let ask = format!("[...document.querySelectorAll('#lines .{which}')].map((row) => row.innerText.trim())");
        let texts = browser.ask(&ask).unwrap();
        texts.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_string()).collect::<Vec<_>>()
    };
    let wrong = lines(&mut browser, "wrong");
    assert!(
        wrong.len() == 2 && wrong[0].contains("put(&dst, &src, 1)") && wrong[1].contains("pe.read(&dst)"),
        "{wrong:?}"
    );
    let fix = lines(&mut browser, "fix");
    assert!(fix.len() == 1 && fix[0].ends_with("+ fence"), "{fix:?}");
    let behind = browser.ask("document.querySelector('#lines .fix').previousElementSibling.dataset.line").unwrap();
    assert_eq!(behind, "34");
    assert!(lines(&mut browser, "chosen")[0].contains("pe.read(&dst)"));

    // a line leads to its events, one after the other
    let click = |browser: &mut Browser, what: &str| {
        browser.ask(&format!("document.querySelector('{what}').click()")).unwrap();
        browser.drawn();
    };
    click(&mut browser, "#lines [data-line=\"36\"] button");
    assert_eq!(browser.fact("chosen"), 28.0);
    assert!(lines(&mut browser, "chosen")[0].contains("signal_op"));
    click(&mut browser, "#lines [data-line=\"36\"] button");
    assert_eq!(browser.fact("chosen"), 30.0, "its delivery");
    click(&mut browser, ".side");
    assert_eq!(browser.fact("chosen"), 35.0, "the first access of the race");
}

#[test]
fn every_call_of_a_fix_stands_in_the_source() {
    let Some(mut browser) = browser() else { return };
    let mut finding = small();
    let fix = finding.fix.as_mut().unwrap();
    let mut other = fix.edits[0].clone();
    (other.call, other.after.line, other.stream) = ("quiet".into(), 36, true);
    fix.edits.push(other);
    let _page = open(&mut browser, &finding);
    let rows = "[...document.querySelectorAll('#lines .fix')].map((row) => row.innerText.replace(/\\s+/g, ' ').trim())";
    assert_eq!(browser.ask(rows).unwrap(), serde_json::json!(["+ + fence", "+ + quiet on the stream"]));
    let said = browser.ask("document.getElementById('fix').innerText").unwrap();
    assert_eq!(said, "Fix: insert fence after missing_fence.rs:34: proved; nothing weaker is enough");
}

/// The middle of an event on the screen.
fn point(browser: &mut Browser, number: usize) -> (f64, f64) {
    browser.press("Home");
    for _ in 0..number {
        browser.press("ArrowRight");
    }
    let at =
        browser.ask("[document.documentElement.dataset.x, document.documentElement.dataset.y].map(Number)").unwrap();
    (at[0].as_f64().unwrap(), at[1].as_f64().unwrap())
}

/// What the canvas has at a point of the screen: red, green, blue.
fn pixel(browser: &mut Browser, (x, y): (f64, f64)) -> [f64; 3] {
    let ask = format!(
        "(() => {{
          const canvas = document.getElementById('canvas'), box = canvas.getBoundingClientRect();
          return [...canvas.getContext('2d').getImageData({x} - box.left, {y} - box.top, 1, 1).data];
        }})()"
    );
    let pixel = browser.ask(&ask).unwrap();
    [0, 1, 2].map(|i| pixel[i].as_f64().unwrap())
}

/// Transfers are lines from where they leave to where they arrive, accesses of a race have rings, waits are bars.
#[test]
fn the_canvas_has_what_it_says() {
    let Some(mut browser) = browser() else { return };
    browser.media("light").unwrap();
    let _page = open(&mut browser, &small());
    let [(x1, y1), (x2, y2), (x3, y3)] = [26, 35, 17].map(|event| point(&mut browser, event));
    browser.press("Home");
    // the line is thin: look across it
    let across = |browser: &mut Browser, x: f64, y: f64| {
        let each = (-3..=3).map(|by| pixel(browser, (x, y + f64::from(by)))).collect::<Vec<_>>();
        each.into_iter().max_by(|one, other| (one[2] - one[0]).total_cmp(&(other[2] - other[0]))).unwrap()
    };
    for part in [0.3, 0.5, 0.7] {
        let line = across(&mut browser, x1 + (x2 - x1) * part, y1 + (y2 - y1) * part);
        assert!(line[2] - line[0] > 60.0, "the put's last piece is a blue line: {line:?} after {part}");
    }
    for (x, y) in [(x2 + 8.5, y2), (x2, y2 + 8.5)] {
        let ring = pixel(&mut browser, (x, y));
        assert!(ring[0] - ring[2] > 60.0, "the access has a red ring: {ring:?}");
    }
    let wait = pixel(&mut browser, (x3 + 60.0, y3 + 4.0));
    assert!(wait[0] - wait[2] > 20.0, "the wait is an amber bar: {wait:?}");
    let nothing = pixel(&mut browser, (x3 + 60.0, y3 + 45.0));
    assert!((nothing[0] - nothing[2]).abs() < 8.0, "beside it is nothing: {nothing:?}");
}

#[test]
fn the_pointer_shows_and_chooses() {
    let Some(mut browser) = browser() else { return };
    let _page = open(&mut browser, &small());
    let (x, y) = point(&mut browser, 18);
    browser.press("End");
    let pointer = |browser: &mut Browser, kind: &str| {
        let button = if kind == "mouseMoved" { "none" } else { "left" };
        let event = serde_json::json!({ "type": kind, "x": x, "y": y, "button": button, "clickCount": 1 });
        browser.call("Input.dispatchMouseEvent", event).unwrap();
    };
    pointer(&mut browser, "mouseMoved");
    browser.drawn();
    let tip = browser.ask("document.getElementById('tip').innerText").unwrap();
    let tip = tip.as_str().unwrap();
    assert!(
        tip.contains("write<u32>") && tip.contains("missing_fence.rs:33") && tip.contains("pe.write(&src, &DATA)?;"),
        "{tip}"
    );
    pointer(&mut browser, "mousePressed");
    pointer(&mut browser, "mouseReleased");
    browser.drawn();
    assert_eq!(browser.fact("chosen"), 18.0);
}

#[test]
fn pes_are_folded_by_pointer_and_keys() {
    let Some(mut browser) = browser() else { return };
    let _page = open(&mut browser, &large::large(6, 300));
    let folded = |browser: &mut Browser| {
        browser.ask("document.querySelectorAll('#names [aria-expanded=\"false\"]').length").unwrap().as_u64().unwrap()
    };
    assert_eq!(folded(&mut browser), 0, "few PEs are all shown");
    browser.press("o");
    assert_eq!(folded(&mut browser), 4, "a race has two PEs");
    browser.press("u");
    browser.ask("document.querySelector('#names [data-pe=\"3\"]').click()").unwrap();
    browser.drawn();
    assert_eq!(folded(&mut browser), 1);
    let focused = browser.ask("document.activeElement.dataset.pe").unwrap();
    assert_eq!(focused, "3", "the name keeps the focus");
}

/// A finding about no PE leaves nothing to fold: neither the button nor its key does.
#[test]
fn nothing_is_folded_where_the_finding_is_about_no_pe() {
    let Some(mut browser) = browser() else { return };
    let mut finding = large::large(6, 300);
    finding.races.clear();
    (finding.verdict.outcome, finding.verdict.pe) = ("step limit".to_string(), None);
    let _page = open(&mut browser, &finding);
    assert!(browser.ask("document.getElementById('fold').disabled").unwrap().as_bool().unwrap());
    assert_eq!(browser.ask("document.getElementById('status').textContent").unwrap(), "given up");
    browser.press("o");
    let folded = browser.ask("document.querySelectorAll('#names [aria-expanded=\"false\"]').length").unwrap();
    assert_eq!(folded.as_u64(), Some(0));
}

/// Text that is read needs a contrast of 4.5 to what is behind it, what is only seen 3.
#[test]
fn colours_have_contrast_by_day_and_by_night() {
    let Some(mut browser) = browser() else { return };
    for scheme in ["light", "dark"] {
        browser.media(scheme).unwrap();
        let _page = open(&mut browser, &small());
        let contrast = |browser: &mut Browser, front: &str, back: &str| {
            let ask = format!(
                "(() => {{
                  const of = (name) => {{
                    const probe = document.createElement('i');
                    probe.style.color = `var(--${{name}})`;
                    document.body.append(probe);
                    const parts = getComputedStyle(probe).color.match(/[\\d.]+/g).slice(0, 3).map((part) => part / 255);
                    probe.remove();
                    const linear = parts.map((part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
                    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
                  }};
                  const [one, other] = [of('{front}'), of('{back}')].sort((a, b) => b - a);
                  return (one + 0.05) / (other + 0.05);
                }})()"
            );
            browser.ask(&ask).unwrap().as_f64().unwrap()
        };
        let mut seen = Vec::new();
        for (front, back, least) in [
            ("ink", "panel", 7.0),
            ("ink", "page", 7.0),
            ("faint", "panel", 4.5),
            ("faint", "page", 4.5),
            ("wrong", "panel", 4.5),
            ("wrong", "wrong-tint", 4.5),
            ("right", "right-tint", 4.5),
            ("put", "panel", 4.5),
            ("signal", "band", 4.5),
            ("get", "band", 4.5),
            ("meet", "band", 4.5),
            ("order", "band", 4.5),
            ("local", "band", 4.5),
        ] {
            let found = contrast(&mut browser, front, back);
            seen.push(found);
            assert!(found >= least, "{scheme}: {front} on {back} has {found:.2}");
        }
        let background = browser.ask("getComputedStyle(document.documentElement).backgroundColor").unwrap();
        let is_dark = background.as_str().unwrap().contains("19, 22, 25");
        assert_eq!(is_dark, scheme == "dark", "{background}");
    }
}

/// Whatever a program says is text: nothing of it becomes a tag, ends the script, or is loaded.
#[test]
fn what_comes_from_the_program_is_text() {
    let Some(mut browser) = browser() else { return };
    let mut finding = small();
    let evil = "</script><script>window.broken = 1</script><img src=x onerror='window.broken = 2'>&amp;{{data}}";
    finding.program = evil.into();
    finding.verdict.text = format!("PE 1 panicked: {evil}");
    finding.events[34].text = evil.into();
    finding.events[34].values = vec![evil.into()];
    finding.agents[0].text = evil.into();
    finding.races[0].missing.text = evil.into();
    finding.fix.as_mut().unwrap().text = evil.into();
    finding.replay = evil.into();
    let source = finding.sources[0].text.as_mut().unwrap();
    *source = source.replace("// BUG", evil);
    let _page = open(&mut browser, &finding);
    browser.ask("document.querySelector('details').open = true").unwrap();
    assert_eq!(browser.ask("window.broken ?? 0").unwrap(), 0);
    assert_eq!(browser.ask("document.images.length + document.querySelectorAll('script').length").unwrap(), 2);
    for place in ["verdict", "facts", "finding", "event", "lines"] {
        let text = browser.ask(&format!("document.getElementById('{place}').textContent")).unwrap();
        assert!(text.as_str().unwrap().contains(evil), "{place}: {text}");
    }
    assert_eq!(browser.ask("document.title").unwrap(), evil);
    let loaded = browser.ask("performance.getEntriesByType('resource').length").unwrap();
    assert_eq!(loaded, 0, "nothing is loaded");
}

#[test]
fn it_prints_on_paper() {
    let Some(mut browser) = browser() else { return };
    browser.media("dark").unwrap();
    let _page = open(&mut browser, &small());
    let paper = browser.paper();
    assert!(paper.starts_with(b"%PDF") && paper.len() > 20_000, "{} bytes", paper.len());
    let rows = browser.ask("document.querySelectorAll('#paper canvas').length").unwrap();
    assert_eq!(rows, 1, "40 events are one row");
    let ask = "[...document.querySelector('#paper canvas').getContext('2d').getImageData(300, 30, 1, 1).data]";
    assert_eq!(browser.ask(ask).unwrap(), serde_json::json!([255, 255, 255, 255]), "paper is white by night too");
    let _page = open(&mut browser, &large::large(4, 3000));
    browser.paper();
    let rows = browser.ask("document.querySelectorAll('#paper canvas').length").unwrap();
    assert_eq!(rows, 10, "of a long run, what is around the finding");
}

/// Milliseconds between frames while something is scrolled, in the order of their length.
fn scrolling(browser: &mut Browser, by: f64) -> Vec<f64> {
    let ask = format!(
        "new Promise((done) => {{
          const view = document.getElementById('view'), times = [];
          let last = performance.now();
          const frame = () => {{
            const now = performance.now();
            times.push(now - last);
            last = now;
            view.scrollLeft += {by};
            times.length < 90 ? requestAnimationFrame(frame) : done(times.slice(2).sort((a, b) => a - b));
          }};
          requestAnimationFrame(frame);
        }})"
    );
    let times: Value = browser.ask(&ask).unwrap();
    times.as_array().unwrap().iter().map(|time| time.as_f64().unwrap()).collect()
}

#[test]
fn a_large_finding_is_drawn_in_parts() {
    let Some(mut browser) = browser() else { return };
    for (pes, events) in [(4, 500), (64, 20_000)] {
        let finding = large::large(pes, events);
        assert!(finding.events.len() >= events);
        let page = open(&mut browser, &finding);
        let size = fs::metadata(page.path().join("page.html")).unwrap().len();
        let first = browser.fact("first");
        let all = ["lanes", "total"].map(|name| browser.fact(name));
        assert_eq!(all, [pes as f64, finding.events.len() as f64]);
        let folded = browser.ask("document.querySelectorAll('#names [aria-expanded=\"false\"]').length").unwrap();
        assert_eq!(folded, if pes == 64 { 62 } else { 0 }, "of many PEs those of the finding are open");
        assert_eq!(browser.fact("races"), 1.0, "the race is seen");
        assert!(browser.fact("events") < 2000.0, "what is not seen is not drawn: {}", browser.fact("events"));
        if let (Some(folder), 64) = (pictures(), pes) {
            browser.size(1200, 700).unwrap();
            browser.drawn();
            save(&folder, "large.png", &browser.picture());
            browser.size(SIZE.0, SIZE.1).unwrap();
        }
        let report = |browser: &mut Browser, what: &str, by: f64| {
            let times = scrolling(browser, by);
            let (middle, longest) = (times[times.len() / 2], times[times.len() - 1]);
            let [drawn, transfers, painted] = ["events", "transfers", "milliseconds"].map(|name| browser.fact(name));
            println!(
                "{pes} PEs, {} events ({size} bytes): first picture after {first:.0} ms; {what}: frames of {middle:.0} ms, longest \
                 {longest:.0} ms; the last one painted {drawn} events and {transfers} transfers in {painted} ms",
                finding.events.len()
            );
        };
        report(&mut browser, "as opened", 40.0);
        browser.press("u");
        (0..5).for_each(|_| browser.press("-"));
        report(&mut browser, "unfolded, from far", 40.0);
        browser.press("0");
        let (seen, all) = (browser.fact("events"), finding.events.len() as f64);
        assert!(
            if pes == 4 { seen == all } else { seen > all / 5.0 },
            "from the first event to the last: {seen} of {all}"
        );
        browser.press("+");
        report(&mut browser, "most of the run", 3.0);
    }
}

/// Pictures for the README.
#[test]
fn pictures_are_written_where_they_are_wanted() {
    let Some(mut browser) = browser() else { return };
    browser.size(1200, 700).unwrap();
    for scheme in ["light", "dark"] {
        browser.media(scheme).unwrap();
        let _page = open(&mut browser, &small());
        let picture = browser.picture();
        assert!(picture.starts_with(b"\x89PNG") && picture.len() > 20_000, "{} bytes", picture.len());
        if let Some(folder) = pictures() {
            save(&folder, &format!("{scheme}.png"), &picture);
        }
    }
}

#[test]
fn a_page_needs_nothing_but_itself() {
    let page = html(&small());
    for word in ["http:", "https:", "src=", "@import", "url("] {
        assert!(!page.contains(word), "{word}");
    }
    assert!(page.contains("default-src 'none'"));
    assert_eq!(page.matches("</script>").count(), 2);
}

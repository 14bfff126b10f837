//! A finding as one HTML page that shows itself: it loads nothing, and needs no network.
//!
//! Rust decides what is shown (`data.rs`). The page decides where and how:
//!
//! | file | what it holds |
//! |---|---|
//! | `page.html`, `page.css` | the page without its data; sizes and colours |
//! | `model.js` | the data, read once into arrays |
//! | `layout.js` | where lanes and events are; zoom and folded PEs |
//! | `draw.js`, `marks.js` | the diagram on a canvas: what is visible, and no more |
//! | `source.js`, `panel.js` | what stands beside it: the program's lines, the finding, the event that was chosen |
//! | `app.js` | keys, pointer, scrolling, printing |

mod data;

use crate::diagram::Diagram;
use crate::finding::Finding;
use crate::terminal::{Terminal, terminal};

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPTS: [&str; 7] = [
    include_str!("model.js"),
    include_str!("layout.js"),
    include_str!("draw.js"),
    include_str!("marks.js"),
    include_str!("source.js"),
    include_str!("panel.js"),
    include_str!("app.js"),
];

/// The finding as a page.
///
/// Whatever comes from the program is text there: no name, message or source can end its place or become a command.
pub fn html(finding: &Finding) -> String {
    let data = data::data(&Diagram::new(finding)).to_string();
    let script = format!("(() => {{\n\"use strict\";\n{}}})();\n", SCRIPTS.concat());
    let plain = terminal(finding, Terminal { colours: false, columns: 120 });
    let mut page = String::new();
    let mut rest = PAGE;
    // what is inserted is not searched again: it may have the marks in it
    while let Some((before, (mark, after))) =
        rest.split_once("{{").and_then(|(before, rest)| Some((before, rest.split_once("}}")?)))
    {
        page += before;
        page += &match mark {
            "title" => text(&finding.program),
            "style" => STYLE.to_string(),
            "plain" => text(&plain),
            "data" => data.replace('<', "\\u003c"),
            "script" => script.clone(),
            other => unreachable!("the page has no place {other}"),
        };
        rest = after;
    }
    page + rest
}

/// Text between tags.
fn text(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

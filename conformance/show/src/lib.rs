#![doc = include_str!("../README.md")]
//!
//! # Module map
//!
//! | file | what it holds |
//! |---|---|
//! | `finding.rs`, `event.rs` | [`Finding`]: a run as a file; [`Event`]: something that happened in it |
//! | `diagram.rs` | what every picture shows: lanes, transfers, waits, races |
//! | `terminal/` | [`terminal`](fn@terminal), [`events`]: for people, on a terminal |
//! | `perfetto.rs`, `shiviz.rs`, `sarif.rs` | for other tools |
//! | `html/` | [`html`](fn@html): one page that shows itself |

mod count;
mod diagram;
mod event;
mod finding;
mod html;
mod perfetto;
mod sarif;
mod shiviz;
mod terminal;

pub use event::{Does, Event, Kind, Place};
pub use finding::{
    Access, Agent, Cluster, Critical, Edit, Finding, Fix, Lint, Matters, Missing, Part, Race, SCHEMA, Side, Source,
    Standing, Undelivered, Verdict,
};
pub use html::html;
pub use perfetto::perfetto;
pub use sarif::sarif;
pub use shiviz::{EXPRESSION, shiviz};
pub use terminal::{Look, Terminal, events, terminal};

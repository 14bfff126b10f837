//! `onesided show`: draws a finding that a program has written, and converts it for other tools.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use onesided_harness::say;
use onesided_harness::tool::command::failed;
use onesided_harness::tool::output::{Output, each_its_own, is_standard, none_is_read};
use onesided_harness::tool::terminal::terminal;
use onesided_show::Finding;

/// What `onesided show` takes.
#[derive(Debug, clap::Args)]
pub(super) struct Options {
    /// A finding, as `--finding FILE` of a program writes it; - is standard input
    file: PathBuf,
    /// Print every event instead
    #[arg(long)]
    events: bool,
    #[command(flatten)]
    files: Files,
}

/// What the finding is converted to. With one of these, nothing is drawn on the terminal.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Write it to a file instead (- is standard output)")]
struct Files {
    /// One page with a space-time diagram, which needs no network
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// A trace for Perfetto and chrome://tracing
    #[arg(long, value_name = "FILE")]
    perfetto: Option<PathBuf>,
    /// A log with vector clocks for ShiViz
    #[arg(long, value_name = "FILE")]
    shiviz: Option<PathBuf>,
    /// SARIF 2.1.0, for code hosts
    #[arg(long, value_name = "FILE")]
    sarif: Option<PathBuf>,
}

/// Writes a finding in another format.
type Convert = fn(&Finding) -> String;

impl Files {
    /// The files that were asked for, each with its option and what is written to it.
    fn given(&self) -> Vec<(&'static str, &Path, Convert)> {
        let Files { html, perfetto, shiviz, sarif } = self;
        let all: [(&str, &Option<PathBuf>, Convert); 4] = [
            ("--html", html, onesided_show::html),
            ("--perfetto", perfetto, onesided_show::perfetto),
            ("--shiviz", shiviz, onesided_show::shiviz),
            ("--sarif", sarif, onesided_show::sarif),
        ];
        all.into_iter().filter_map(|(option, file, convert)| Some((option, file.as_deref()?, convert))).collect()
    }
}

pub(super) fn run(options: &Options) -> ExitCode {
    show(options).unwrap_or_else(failed)
}

fn show(options: &Options) -> Result<ExitCode, String> {
    let files = options.files.given();
    each_its_own(files.iter().map(|(option, file, _)| (*option, *file)))?;
    none_is_read(&options.file, files.iter().map(|(option, file, _)| (*option, *file)))?;
    let finding = read(&options.file)?;
    for (_, file, convert) in &files {
        Output::prepare(file)?.finish(|out| out.write_all(convert(&finding).as_bytes()))?;
        if !is_standard(file) {
            say!("Wrote {}.", file.display());
        }
    }
    if !files.is_empty() && !options.events {
        return Ok(ExitCode::SUCCESS);
    }
    let text = match options.events {
        true => onesided_show::events(&finding.events, terminal()),
        false => onesided_show::terminal(&finding, terminal()),
    };
    say!("{}", text.trim_end());
    Ok(ExitCode::SUCCESS)
}

/// Reads a finding from a file or from standard input.
fn read(file: &Path) -> Result<Finding, String> {
    let (name, text) = match file == Path::new("-") {
        true => ("standard input".to_string(), io::read_to_string(io::stdin())),
        false => (file.display().to_string(), fs::read_to_string(file)),
    };
    Finding::read(&name, &text.map_err(|why| format!("cannot read {name}: {why}"))?)
}

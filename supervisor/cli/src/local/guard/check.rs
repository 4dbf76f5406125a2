//! `talon guard check`.

use std::path::{Path, PathBuf};

use anstyle::AnsiColor;
use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use talon_guard::{EnvelopeMode, Guard, GuardSettings, Report, Sanitized};
use talon_sanitize::{Raw, sanitized};
use talon_supervisor::host::report_on_wire;

use crate::exit;
use crate::failure::Failure;
use crate::input::{InputError, InputSource};
use crate::json;
use crate::line::Line;
use crate::output::Output;

/// The largest text to read. Web pages and tool results have megabytes at most; this keeps a wrong file,
/// such as a device, from filling the memory.
const MAX_BYTES: u64 = 64 << 20;

/// The plugin name in the envelope.
const SOURCE: &str = "check";

/// Neutralize the control syntax in a text, as the guard does with a plugin's answer.
///
/// Reads FILE or stdin and writes the text to stdout, byte for byte the same if nothing was found. The exit
/// code says whether anything was neutralized: 0 no, 1 yes.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  curl -s https://example.org | talon guard check > page.txt
  talon guard check --report json answer.txt >/dev/null
  talon guard check --json result.json
  some-tool | talon guard check --envelope quoted")]
pub(crate) struct CheckArgs {
    /// The text; stdin if left out or `-`.
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Report on stderr what was done: in words, or as one line of JSON.
    #[arg(long, value_enum, value_name = "FORMAT")]
    report: Option<ReportFormat>,
    /// Treat the text as JSON and keep its structure; invalid JSON is treated as plain text.
    #[arg(long)]
    json: bool,
    /// Wrap the result in the envelope that a model gets. Text above the size limit of an answer is cut.
    #[arg(long, value_enum, value_name = "MODE", conflicts_with = "json")]
    envelope: Option<Mode>,
    /// A regular expression whose matches are replaced by a notice; may be given several times.
    #[arg(long = "pattern", value_name = "REGEX")]
    patterns: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ReportFormat {
    /// In words.
    Text,
    /// One line of JSON.
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// [plugin_output] … [/plugin_output].
    Plain,
    /// The same with a random number in both delimiters.
    Nonce,
    /// The same, with a marker at the start of each line.
    Quoted,
}

impl From<Mode> for EnvelopeMode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Plain => Self::Plain,
            Mode::Nonce => Self::Nonce,
            Mode::Quoted => Self::Quoted,
        }
    }
}

impl CheckArgs {
    pub(super) fn run(self, out: &mut Output) -> Result<u8, Failure> {
        let settings = GuardSettings {
            forbidden_patterns: self.patterns.clone(),
            envelope: self.envelope.map(Into::into).unwrap_or_default(),
            ..GuardSettings::default()
        };
        let guard = Guard::new(settings).map_err(|error| Failure::usage(error.to_string()))?;
        let text = read(self.file.as_deref())?;
        let report = if self.envelope.is_some() {
            self.wrap(&guard, text, out)
        } else {
            self.sanitize(&guard, &text, out)
        };
        self.write_report(&report, out);
        Ok(if report.neutralised_any() { exit::TOOL_ERROR } else { exit::OK })
    }

    fn sanitize(&self, guard: &Guard, text: &str, out: &mut Output) -> Report {
        let as_json = self.json.then(|| guard.json(text)).flatten();
        let (text, report) = as_json.unwrap_or_else(|| {
            let (text, mut report) = guard.text(text);
            report.structured_as_text = self.json;
            (text, report)
        });
        self.write(&text, &report, out);
        report
    }

    fn write(&self, text: &Sanitized, report: &Report, out: &mut Output) {
        if out.is_json() {
            out.json(&json!({ "text": text.as_str(), "report": report_json(report) }));
        } else {
            out.exact(text);
        }
    }

    fn wrap(&self, guard: &Guard, text: String, out: &mut Output) -> Report {
        let answer = guard.answer("", SOURCE, "", talon_guard::Answer::from_tool(text));
        let report = answer.report().clone();
        if out.is_json() {
            let value = json!({ "report": report_json(&report) });
            out.json_with_block(&value, json::BLOCK, answer.block());
        } else {
            out.block(answer.block());
        }
        report
    }

    fn write_report(&self, report: &Report, out: &mut Output) {
        match self.report {
            Some(ReportFormat::Json) => out.err_json(&report_json(report)),
            Some(ReportFormat::Text) => print_report(report, out),
            None => {}
        }
    }
}

/// The report as JSON, as the host API has it.
fn report_json(report: &Report) -> Value {
    json::report(&report_on_wire(report.clone()))
}

/// Prints the report for people.
fn print_report(report: &Report, out: &mut Output) {
    let head = || Line::styled(AnsiColor::Yellow.on_default(), "talon:").and(" ");
    if report.neutralised.is_empty() {
        out.err_line(head().and("nothing to neutralize"));
    }
    for ((family, kind), count) in &report.kinds {
        out.err_line(head().and(sanitized!("neutralized: {} × {} ({})", count, *family, *kind)));
    }
    for flag in &report.flags {
        out.err_line(head().and(sanitized!("left as it is: text in {}", *flag)));
    }
    if report.structured_as_text {
        out.err_line(head().and("it is no JSON that could be kept in shape, and was taken as text"));
    }
    if report.truncated() {
        out.err_line(head().and(sanitized!("{} bytes left out", report.bytes_left_out)));
    }
}

/// Replaces invalid UTF-8 by U+FFFD, as everywhere for text.
fn read(file: Option<&Path>) -> Result<String, Failure> {
    let source = file.map_or(InputSource::Stdin, InputSource::of);
    let bytes = source.read(MAX_BYTES).map_err(|error| match error {
        InputError::Open { .. } => Failure::usage(error.to_string()),
        InputError::Read { .. } => Failure::failed(error.to_string()),
        InputError::TooLarge { name } => Failure::usage(format!(
            "{name} has more than {MAX_BYTES} bytes: check it in pieces, or leave out what no model needs"
        )),
    })?;
    Ok(match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => Raw::from_bytes(error.as_bytes()).expose().to_owned(),
    })
}

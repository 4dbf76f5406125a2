//! `talon audit verify`: verifies the hash chain of the log.

use std::path::PathBuf;
use std::str::FromStr;

use anstyle::AnsiColor;
use clap::Args;
use serde_json::json;
use talon_audit::{BrokenChain, ChainStart, Hash, VerifiedChain, VerifyError, VerifyRequest};
use talon_sanitize::sanitized;

use super::find;
use crate::exit;
use crate::failure::Failure;
use crate::global::Global;
use crate::line::{Line, sanitized_line};
use crate::output::Output;

/// Check that no record of the audit log was changed, removed, inserted or moved.
///
/// Reports the first place where the chain is broken and what should be there; the exit code is then 1.
/// Records that were cut off at the very end are only noticed with --anchor, given a hash that was stored
/// before (`talon audit head`). Works with and without a running supervisor.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon audit verify
  talon audit verify /var/log/talon/audit --anchor 4711:9c1185a5…
  talon audit verify --since 1d
  talon audit verify /mnt/backup/audit-00000000000?.jsonl")]
pub(crate) struct VerifyArgs {
    /// The log's directory, or some of its files in order; otherwise the supervisor's directory.
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Start with the file that was being written then: 1d ago, or a time such as 2026-11-22T08:00:00Z.
    #[arg(long, value_name = "TIME", value_parser = find::since)]
    since: Option<u64>,
    /// A record that has to be there, as printed by `talon audit head`.
    #[arg(long, value_name = "NUMBER:HASH")]
    anchor: Option<Anchor>,
}

/// A stored record number and hash.
#[derive(Debug, Clone, Copy)]
struct Anchor(u64, Hash);

impl FromStr for Anchor {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let anchor =
            text.split_once(':').and_then(|(seq, hash)| Some(Self(seq.parse().ok()?, hash.parse().ok()?)));
        anchor.ok_or("a number and a hash with a colon between them, as `talon audit head` prints them")
    }
}

impl VerifyArgs {
    pub(super) async fn run(self, global: &Global, out: &mut Output) -> Result<u8, Failure> {
        let paths = find::resolve_paths(self.paths, global).await?;
        let (files, all) = find::files(&paths)?;
        let (files, all) = match self.since {
            Some(since) => (find::files_since(files, since), false),
            None => (files, all),
        };
        let anchor = self.anchor.map(|Anchor(seq, hash)| (seq, hash));
        match talon_audit::verify(&VerifyRequest { files, all, anchor }) {
            Ok(verified) => {
                print_intact(&verified, out);
                Ok(exit::OK)
            }
            Err(VerifyError::Broken(broken)) => {
                print_broken(&broken, out);
                Ok(exit::TOOL_ERROR)
            }
            Err(error) => Err(Failure::failed(error.to_string())),
        }
    }
}

fn print_intact(verified: &VerifiedChain, out: &mut Output) {
    let (seq, hash) = verified.head;
    let (begins, first) = match verified.start {
        ChainStart::FirstRecord => ("at_the_beginning", 1),
        ChainStart::AfterDeleted(seq) => ("after_deleted", seq),
        ChainStart::FirstGivenFile(seq) => ("with_first_given", seq),
    };
    if out.is_json() {
        out.json(&json!({
            "whole": true,
            "begins": begins,
            "first_seq": first,
            "records": verified.records,
            "files": verified.files,
            "lost": verified.lost,
            "head": { "seq": seq, "hash": hash.to_string() },
            "notes": verified.notes,
        }));
        return;
    }
    let from = match verified.start {
        ChainStart::FirstRecord => sanitized!("from its very beginning"),
        ChainStart::AfterDeleted(seq) => {
            sanitized!("from record {}; what came before was deleted by rotation, as the log says", seq)
        }
        ChainStart::FirstGivenFile(seq) => {
            sanitized!("from record {}; what came before was not looked at", seq)
        }
    };
    let (records, files) = (verified.records, verified.files);
    out.line(Line::styled(AnsiColor::Green.on_default(), "whole").and(sanitized!(
        ": {} records in {} files, {}",
        records,
        files,
        from
    )));
    out.line(sanitized!("head {}:{}", seq, sanitized_line(hash)));
    if verified.lost > 0 {
        out.line(sanitized!(
            "{} records are lost: they could not be written, or were removed; the log says where",
            verified.lost
        ));
    }
    for note in &verified.notes {
        out.line(sanitized!("note: {}", sanitized_line(note)));
    }
}

fn print_broken(broken: &BrokenChain, out: &mut Output) {
    let BrokenChain { file, line, fault, expected, found, records_before } = broken;
    if out.is_json() {
        out.json(&json!({
            "whole": false,
            "file": file.display().to_string(),
            "line": line,
            "fault": fault.word(),
            "expected": expected,
            "found": found,
            "records_before": records_before,
        }));
        return;
    }
    out.line(Line::styled(AnsiColor::Red.on_default().bold(), "broken").and(sanitized!(
        ": {}:{}: {}",
        sanitized_line(file.display()),
        *line,
        fault.word()
    )));
    out.line(sanitized!("  expected {}", sanitized_line(expected)));
    out.line(sanitized!("  found    {}", sanitized_line(found)));
    out.line(sanitized!("{} records before it are as they were written", *records_before));
}

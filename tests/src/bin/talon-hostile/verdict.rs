//! The verdict on an attack, from its output and its exit status.

use nix::sys::signal::Signal;

use crate::attack::End;
use crate::expected::Verdict;
use crate::record::Record;

/// Judges an attack that reports its own result. One that was killed before its report was blocked.
pub(crate) fn judge_reported(record: &mut Record, line: Option<&str>, end: Option<End>) {
    let line = line.unwrap_or_default();
    let (word, rest) = line.split_once(": ").unwrap_or((line, ""));
    match word {
        "open" => (record.verdict, record.detail) = (Verdict::Open, rest.into()),
        "contained" => (record.verdict, record.detail) = (Verdict::Contained, rest.into()),
        "untried" => (record.verdict, record.detail) = (Verdict::Untried, rest.into()),
        "blocked" => {
            let (by, detail) = rest.split_once(' ').unwrap_or((rest, ""));
            (record.verdict, record.by, record.detail) = (Verdict::Blocked, by.into(), detail.into());
        }
        _ => match end {
            Some(End::Signal { number, .. }) => {
                (record.verdict, record.by) = (Verdict::Blocked, name(number));
                record.detail = "killed before it was through".into();
            }
            Some(End::OutOfMemory) => {
                (record.verdict, record.by) = (Verdict::Blocked, OUT_OF_MEMORY.into());
                record.detail = "killed before it was through".into();
            }
            other => {
                record.verdict = Verdict::Untried;
                record.trouble.push(format!("it said {line:?} and ended with {other:?}"));
            }
        },
    }
}

/// The table's text for a program that was killed because of its memory limit.
const OUT_OF_MEMORY: &str = "memory limit";

/// Judges an attack on its own end by what it leaves behind.
pub(crate) fn judge_lifecycle(
    record: &mut Record,
    line: Option<&str>,
    stopped: Option<End>,
    left: &[String],
) {
    if line != Some("open: under way") {
        record.trouble.push(format!("it was not under way: {line:?}"));
    }
    let open = match stopped {
        None => Some("it lives on".to_owned()),
        Some(End::Lost) => Some("its monitor was lost".to_owned()),
        Some(End::Signal { core: true, .. }) => Some("a core was dumped".to_owned()),
        Some(_) => left.first().map(|what| format!("it left {what}")),
    };
    if let Some(what) = open {
        (record.verdict, record.detail) = (Verdict::Open, what);
        return;
    }
    record.verdict = Verdict::Blocked;
    (record.by, record.detail) = match stopped {
        Some(End::Signal { number, .. }) => (name(number), "nothing is left".into()),
        _ => ("ended".into(), "nothing is left".into()),
    };
}

fn name(signal: i32) -> String {
    Signal::try_from(signal).map_or_else(|_| format!("signal {signal}"), |signal| signal.as_str().to_owned())
}

//! The table: the result of each attack in each column.

use std::fmt::Write as _;

use crate::column::{Column, Net};
use crate::evidence::Evidence;
use crate::expected::{Attack, Expectation, Expected, Verdict};
use crate::record::Record;

/// Above the tables.
const INTRODUCTION: &str = "\
# The hostile suite

Programs that try to get out of the jail, one thing each, and what came of it. This page is written by the suite itself
(`make hostile`); the attacks are in `tests/jail/attacks/`, and what must come of them in `tests/jail/expected.toml`.

Each attack runs as an ordinary uid without any jail, in bubblewrap's (`bwrap --unshare-all --ro-bind / /`, one directory
writable), and in ours with the profile `strict`: started by root, where the plugin has a uid of its own, and by an
ordinary user; each with no network, a loopback of its own, the host's network (`full`), and the host's network with TCP
to one granted port (`ports`). The first two columns show that the checks can fail: every file and socket that is aimed
at is open to everybody, so that nothing but a jail stands in the way.

**open**: it succeeded. *held*: it succeeded, and what came of it is shown to be held as before. A word in capitals is
the error that refused it, or the signal that ended it. `–`: not run there. While each attack runs, another plugin in
a jail of its own has to answer all the time; after it, no process, mount, file, socket or control group may be left.
";

pub(crate) fn markdown(expected: &Expected, columns: &[Column], told: &Evidence) -> String {
    let mut text = INTRODUCTION.to_owned();
    for theme in &expected.theme {
        let _ = write!(text, "\n## {}\n\n| attack |", theme.name);
        for column in columns {
            let _ = write!(text, " {} |", column.name);
        }
        text.push_str("\n|---|");
        text.push_str(&"---|".repeat(columns.len()));
        text.push('\n');
        let mut notes = String::new();
        for attack in &theme.attack {
            let _ = write!(text, "| {} |", attack.name);
            for column in columns {
                let _ = write!(text, " {} |", cell(attack, column, told));
            }
            text.push('\n');
            let note = if attack.note.is_empty() { String::new() } else { format!(" {}", attack.note) };
            let _ = writeln!(notes, "- {}: {}.{note}", attack.name, attack.what);
        }
        let _ = write!(text, "\n{notes}");
    }
    text.push_str(&reports(told));
    text
}

/// The reports of this run's jails: which protections are active differs from machine to machine.
fn reports(told: &Evidence) -> String {
    let mut text = "\n## What the jails of this run reported\n\n".to_owned();
    for (column, lines) in told.reports.iter().filter(|(column, _)| column.ends_with(Net::None.name())) {
        let _ = writeln!(text, "`{column}`:\n");
        for (protection, status) in lines {
            let _ = writeln!(text, "- {protection}: {status}");
        }
        text.push('\n');
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

fn cell(attack: &Attack, column: &Column, told: &Evidence) -> String {
    if attack.expectation(column, told.grouped(column)) == Expectation::Skip {
        return "–".into();
    }
    told.record(attack, column).map_or_else(|| "not run".into(), shown)
}

fn shown(record: &Record) -> String {
    match record.verdict {
        Verdict::Open => "**open**".into(),
        Verdict::Contained => "*held*".into(),
        Verdict::Untried => "untried".into(),
        Verdict::Blocked => record.by.clone(),
    }
}

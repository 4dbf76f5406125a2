//! Runs everything in a throw-away namespace and compares the results with the expected ones.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use anyhow::{Context, bail, ensure};
use talon_tests::{is_root, skip};

use crate::choice::Choice;
use crate::column::{Column, Confinement, Side};
use crate::evidence::Evidence;
use crate::expected::{self, Attack, Expectation, Verdict};
use crate::record::Line;
use crate::table;

pub(crate) fn run(choice: &Choice) -> anyhow::Result<()> {
    let expected = expected::load()?;
    let mut told = collect(choice)?;
    let columns = choice.columns();
    if !is_root() {
        for column in columns.iter().filter(|column| column.side == Side::Root) {
            told.skipped.insert(column.name.clone(), "only root can give a plugin its own uid".into());
        }
    }
    for (column, reason) in &told.skipped {
        skip(&format!("column {column}"), reason);
    }
    let text = table::markdown(&expected, &columns, &told);
    if let Some(path) = &choice.table {
        std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    let mut wrong = Vec::new();
    let mut tried = 0;
    for attack in expected.attacks().filter(|attack| choice.wants(&attack.name)) {
        for column in columns.iter().filter(|column| !told.skipped.contains_key(&column.name)) {
            if attack.expectation(column, told.grouped(column)) == Expectation::Skip {
                continue;
            }
            tried += 1;
            wrong.extend(deviation(attack, column, &told));
        }
    }
    ensure!(tried > 0, "nothing was tried");
    println!("{tried} attempts, {} not as expected", wrong.len());
    if !wrong.is_empty() {
        bail!("{}", wrong.join("\n"));
    }
    Ok(())
}

/// One line about each deviation from the expected result.
fn deviation(attack: &Attack, column: &Column, told: &Evidence) -> Option<String> {
    let wanted = attack.expectation(column, told.grouped(column));
    let place = format!("{} | {}", attack.name, column.name);
    let Some(record) = told.record(attack, column) else {
        return Some(format!("{place} | expected {wanted:?} | it was not run"));
    };
    let found = format!("{:?} {} {}", record.verdict, record.by, record.detail);
    if !record.trouble.is_empty() {
        return Some(format!("{place} | {found} | {}", record.trouble.join("; ")));
    }
    // What cannot be tried even without a jail cannot be tried in one.
    if record.verdict == Verdict::Untried
        && (column.held == Confinement::Unconfined || untried_without_jail(attack, told))
    {
        return None;
    }
    (!wanted.met_by(record.verdict)).then(|| format!("{place} | expected {wanted:?} | {found}"))
}

fn untried_without_jail(attack: &Attack, told: &Evidence) -> bool {
    told.records
        .get(&(attack.name.clone(), "no jail".to_owned()))
        .is_some_and(|record| record.verdict == Verdict::Untried)
}

/// Runs the rest of the suite in new namespaces and reads its output.
fn collect(choice: &Choice) -> anyhow::Result<Evidence> {
    let mut unshare = Command::new("unshare");
    if !is_root() {
        unshare.args(["--user", "--map-root-user"]);
    }
    let own = std::env::current_exe().context("a running program has a path")?;
    let mut child = unshare
        .args(["--mount", "--pid", "--net", "--ipc", "--uts", "--cgroup", "--propagation", "private"])
        .args(["--fork", "--kill-child", "--mount-proc"])
        .arg(own)
        .arg("outer")
        .args(choice.arguments())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start unshare (install util-linux)")?;
    let mut told = Evidence::default();
    let lines = BufReader::new(child.stdout.take().context("its output is a pipe")?).lines();
    for line in lines {
        let line = line?;
        match serde_json::from_str(&line).with_context(|| format!("not a line of ours: {line:.200}"))? {
            Line::Record(record) => {
                told.records.insert((record.attack.clone(), record.column.clone()), record);
            }
            Line::Skipped { column, reason } => {
                told.skipped.insert(column, reason);
            }
            Line::Report { column, lines } => told.reports.push((column, lines)),
        }
    }
    let status = child.wait()?;
    ensure!(status.success(), "the attacks could not be run: {status} (see above)");
    Ok(told)
}

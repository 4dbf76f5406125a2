//! A page of tables after a run of some suites alone: what these measured takes the place of what stood there, and all else stays.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::document::Document;
use crate::goals::GOALS;
use crate::machine::NOISY;
use crate::table::{self, NOTE};

/// The head of the table of goals.
const GOALS_HEAD: &str = "| what ";
/// What a section begins with.
const SECTION: &str = "\n## ";

/// The tables of a page with those of a run in their places. `tables` is what stands below the page's line.
#[must_use]
pub fn merged(tables: &str, run: &Document) -> String {
    let measured = sections(&table::whole(run));
    let mut suites: Vec<&str> = Vec::new();
    for figure in &run.figures {
        let suite = figure.key.case.split_once('/').map_or(figure.key.case.as_str(), |(suite, _)| suite);
        if !suites.contains(&suite) {
            suites.push(suite);
        }
    }
    let mut old = sections(tables);
    let head = old.first_mut().map(|(_, text)| std::mem::take(text)).unwrap_or_default();
    let mut out = head_with(&head, run, &suites);
    let mut left = suites.clone();
    for (name, text) in &old[1.min(old.len())..] {
        left.retain(|suite| suite != name);
        let text = if suites.contains(&name.as_str()) { of(&measured, name) } else { text };
        let _ = write!(out, "{SECTION}{}", text.trim_end_matches('\n'));
        out.push('\n');
    }
    for suite in left {
        let _ = write!(out, "{SECTION}{}", of(&measured, suite).trim_end_matches('\n'));
        out.push('\n');
    }
    out
}

/// The text before the first section, and each section with its name.
fn sections(text: &str) -> Vec<(String, String)> {
    let name = |part: &str| part.lines().next().unwrap_or_default().trim().to_owned();
    let mut parts = text.split(SECTION);
    let head = (String::new(), parts.next().unwrap_or_default().to_owned());
    std::iter::once(head).chain(parts.map(|part| (name(part), part.to_owned()))).collect()
}

fn of<'s>(sections: &'s [(String, String)], wanted: &str) -> &'s str {
    sections.iter().find(|(name, _)| name == wanted).map_or("", |(_, text)| text)
}

/// The suite that a note begins with.
fn suite_of(note: &str) -> Option<&str> {
    note.strip_prefix('`')?.split_once('`').map(|(suite, _)| suite)
}

/// Where the tables are from, and the goals: rows of what the run did not measure keep what they said, unless their goal is another.
fn head_with(head: &str, run: &Document, suites: &[&str]) -> String {
    let (intro, rest) = head.split_once(GOALS_HEAD).unwrap_or((head, ""));
    let kept: BTreeMap<&str, Vec<&str>> = rest
        .lines()
        .filter(|line| line.starts_with('|'))
        .map(|line| line.trim().trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>())
        .map(|cells| (cells[0], cells))
        .collect();
    let mut out = String::new();
    let replaced = |line: &str| suites.iter().any(|suite| line.starts_with(&format!("`{suite}` alone: ")));
    let left = intro.trim_end().lines().filter(|line| !replaced(line));
    let (notes, lines): (Vec<&str>, Vec<&str>) = left.partition(|line| line.starts_with(NOTE));
    for line in lines {
        // What stood between notes is left out with them.
        if !(line.is_empty() && out.ends_with("\n\n")) {
            let _ = writeln!(out, "{line}");
        }
    }
    out.truncate(out.trim_end().len());
    if !out.is_empty() {
        out.push('\n');
    }
    let origin = &run.origin;
    for suite in suites {
        let _ =
            write!(out, "`{suite}` alone: commit {}, {}, {}; ", origin.commit, origin.date, origin.machine);
        let _ = write!(out, "{} run", if origin.quick { "a short" } else { "a full" });
        match origin.noise.get(*suite).filter(|noise| **noise > NOISY) {
            Some(noise) => {
                let _ = writeln!(
                    out,
                    " beside other work: **too noisy ({:.0} %)**, measure again.",
                    noise * 100.0
                );
            }
            None => out.push_str(".\n"),
        }
    }
    // What a suite could not measure before it may have measured now.
    let noted: Vec<&str> = run.notes.iter().filter_map(|note| suite_of(note)).collect();
    for line in notes {
        let suite = line.strip_prefix(NOTE).and_then(suite_of);
        if !suite.is_some_and(|suite| suites.contains(&suite) || noted.contains(&suite)) {
            let _ = writeln!(out, "\n{line}");
        }
    }
    for note in &run.notes {
        let _ = writeln!(out, "\n{NOTE}{note}");
    }
    out.push('\n');
    let rows = GOALS.iter().map(|goal| {
        let is_new = run.goals.iter().any(|of| of.id == goal.id);
        match kept.get(goal.what).filter(|cells| !is_new && cells.len() == 4 && cells[1] == goal.target()) {
            Some(cells) => [cells[0], cells[1], cells[2], cells[3]].map(str::to_owned),
            None => table::goal_row(goal, run),
        }
    });
    table::write_table(&mut out, &table::GOALS_COLUMNS, rows);
    // What stands below the table and above the first section.
    let below = rest.rsplit_once("|\n").map_or("", |(_, below)| below.trim());
    if !below.is_empty() {
        let _ = writeln!(out, "\n{below}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::{Figures, Unit};
    use crate::machine::{Probe, RunOrigin};

    fn run(figures: &[(&str, &str, &str, Unit, f64)]) -> Document {
        let mut book = Figures::default();
        for (case, contender, metric, unit, value) in figures {
            book.case(*case, None).add(contender, metric, *unit, *value);
        }
        let mut origin = RunOrigin::of_here(false, std::time::Duration::ZERO, &Probe::new("gateway"));
        origin.noise.insert("watch".to_owned(), 0.5);
        Document::new(book, origin)
    }

    #[test]
    fn a_note_stands_until_its_suite_is_measured_again() {
        let noted = |suite: &str, notes: &[&str]| {
            let mut book = Figures::default();
            book.case(format!("{suite}/one"), None).add("Talon", "p50", Unit::Milliseconds, 1.0);
            book.set_suite(suite);
            notes.iter().for_each(|note| book.note(*note));
            Document::new(book, RunOrigin::of_here(false, std::time::Duration::ZERO, &Probe::new("gateway")))
        };
        let page = table::whole(&noted("gateway", &["LiteLLM: it is not installed"]));
        assert!(page.contains("Not measured: `gateway`: LiteLLM: it is not installed"), "{page}");
        let start = noted("start", &["bwrap: there is none", "bwrap: there is none"]);
        let twice = merged(&merged(&page, &start), &start);
        assert_eq!(twice, merged(&page, &start), "the same again changes nothing");
        let of = |page: &str, suite: &str| page.matches(&format!("{NOTE}`{suite}`: ")).count();
        assert_eq!((of(&twice, "gateway"), of(&twice, "start")), (1, 1), "{twice}");
        let measured = merged(&twice, &noted("gateway", &[]));
        assert_eq!((of(&measured, "gateway"), of(&measured, "start")), (0, 1), "{measured}");
        let above = measured.split(GOALS_HEAD).next().expect("what stands above the table");
        assert!(!above.contains("\n\n\n"), "{above}");
    }

    fn row<'t>(text: &'t str, goal: &str) -> &'t str {
        let what = GOALS.iter().find(|of| of.id == goal).expect("a goal").what;
        text.lines().find(|line| line.starts_with(&format!("| {what} "))).expect("every goal has a row")
    }

    // Promises: SPEED-10
    #[test]
    fn what_was_not_measured_again_stays() {
        let first = [
            ("gateway/start", "gateway", "ready", Unit::Milliseconds, 500.0),
            ("restart/one", "Talon", "known", Unit::Milliseconds, 1.0),
        ];
        let page = table::whole(&run(&first));
        let second = [
            ("gateway/start", "gateway", "ready", Unit::Milliseconds, 20.0),
            ("watch/100,000 files", "talon-watch", "memory", Unit::Mebibytes, 12.0),
        ];
        let once = merged(&page, &run(&second));
        assert!(
            row(&once, "gateway-ready").contains("20.0 ms") && row(&once, "gateway-ready").contains("yes"),
            "{once}"
        );
        assert!(row(&once, "killed-known").contains("1.00 ms"), "{once}");
        assert!(row(&once, "jail").contains(table::NOT_MEASURED));
        assert!(once.contains("`watch` alone: ") && once.contains("too noisy (50 %)"), "{once}");
        for section in ["## Beside busy neighbours", "## restart", "## gateway", "## watch"] {
            assert_eq!(once.matches(section).count(), 1, "{section}: {once}");
        }
        assert!(!once.contains("500 ms"), "{once}");
        assert_eq!(once.matches("Below, `~`").count(), 1, "{once}");
        assert_eq!(merged(&once, &run(&second)), once, "the same again changes nothing");
    }
}

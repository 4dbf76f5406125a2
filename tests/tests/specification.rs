//! `SPECIFICATION.md` lists every promise with the tests that enforce it. The promises are written by hand;
//! the tests are not: a test names the promises it enforces in a comment right above its attributes,
//!
//! ```text
//! // Promises: LAUNCH-3, LAUNCH-7
//! #[test]
//! ```
//!
//! and the last column of the tables is generated from these comments:
//! `TALON_REWRITE_DOCS=1 cargo test -p talon-tests --test specification` writes it anew. A promise without a
//! test says "doc test" with the file that holds it, or "test pending" and may say why.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use talon_tests::repository;

const PAGE: &str = "SPECIFICATION.md";

/// Set to write the page anew instead of comparing it.
const REWRITE: &str = "TALON_REWRITE_DOCS";

/// Fewer promises than this mean that the page, or this reader, has lost its tables.
const FEWEST_PROMISES: usize = 600;

/// What a comment begins with that names promises.
const MARK: &str = "// Promises: ";

/// The tests of each promise, by file.
type Enforced = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

struct Promise<'a> {
    id: &'a str,
    text: &'a str,
    tests: &'a str,
}

fn page() -> String {
    std::fs::read_to_string(repository().join(PAGE)).expect("the page is there")
}

/// The promise in a line of a table, if there is one.
fn promise(line: &str) -> Option<Promise<'_>> {
    let mut cells = line.strip_prefix('|')?.strip_suffix('|')?.split('|').map(str::trim);
    let (id, text, tests) = (cells.next()?, cells.next()?, cells.next()?);
    assert!(cells.next().is_none(), "a promise has three cells: {line}");
    let heading = id == "id" || id.starts_with('-');
    (!heading).then_some(Promise { id, text, tests })
}

/// Whether a person says here why no test is listed.
fn is_by_hand(tests: &str) -> bool {
    tests.starts_with("doc test") || tests.starts_with("test pending")
}

/// The Rust files of the repository that git knows or that were added.
fn sources() -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut open: Vec<PathBuf> =
        ["deploy", "plugins", "plugins-examples", "proto", "sdk", "supervisor", "tests"]
            .map(|dir| repository().join(dir))
            .into();
    while let Some(path) = open.pop() {
        if path.is_dir() {
            let entries = path.read_dir().unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            open.extend(entries.map(|entry| entry.expect("the entry is readable").path()));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// The name of the test that begins at the first of these lines: a function with a test attribute, or an
/// entry of a macro that makes one test of each entry, `name: "…" …;`.
fn test_name<'a>(lines: &[&'a str]) -> Option<&'a str> {
    let mut is_marked = false;
    for line in lines.iter().map(|line| line.trim()) {
        is_marked |= line.starts_with("#[test]") || line.starts_with("#[tokio::test");
        if let Some((name, _)) = line.split_once(": \"").filter(|(name, _)| is_identifier(name)) {
            return Some(name);
        }
        let function = line.strip_prefix("async ").unwrap_or(line).strip_prefix("fn ");
        if let Some((name, _)) = function.and_then(|rest| rest.split_once('(')) {
            return is_marked.then_some(name);
        }
    }
    None
}

fn is_identifier(text: &str) -> bool {
    !text.is_empty()
        && text.chars().all(|char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '_')
}

/// Reads the marks of one file into `enforced`; what is wrong with them is returned.
fn read_marks(file: &str, source: &str, enforced: &mut Enforced) -> Vec<String> {
    let mut wrong = Vec::new();
    let lines: Vec<&str> = source.lines().collect();
    for (index, line) in lines.iter().enumerate() {
        let Some(ids) = line.trim().strip_prefix(MARK) else { continue };
        let Some(test) = test_name(&lines[index + 1..]) else {
            wrong.push(format!("{file}:{}: no test follows", index + 1));
            continue;
        };
        for id in ids.split(", ") {
            enforced
                .entry(id.to_owned())
                .or_default()
                .entry(file.to_owned())
                .or_default()
                .insert(test.to_owned());
        }
    }
    wrong
}

fn enforced() -> Enforced {
    let (mut enforced, mut wrong) = (Enforced::new(), Vec::new());
    for path in sources() {
        let source =
            std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let file = path.strip_prefix(repository()).unwrap_or(&path).display().to_string();
        wrong.extend(read_marks(&file, &source, &mut enforced));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    enforced
}

/// The last cell of a promise: each file with its tests.
fn cell(files: &BTreeMap<String, BTreeSet<String>>) -> String {
    let file = |(file, tests): (&String, &BTreeSet<String>)| {
        let tests: Vec<String> = tests.iter().map(|test| format!("`{test}`")).collect();
        format!("`{file}` {}", tests.join(", "))
    };
    files.iter().map(file).collect::<Vec<_>>().join("; ")
}

/// The page with its last column made from the marks, and what is wrong with them.
fn generated(page: &str, mut enforced: Enforced) -> (String, Vec<String>) {
    let mut wrong = Vec::new();
    let mut lines = Vec::new();
    for line in page.lines() {
        let Some(Promise { id, text, tests }) = promise(line) else {
            lines.push(line.to_owned());
            continue;
        };
        match (enforced.remove(id), is_by_hand(tests)) {
            (Some(_), true) => wrong.push(format!("{id} has a test and says {tests:?}")),
            (None, false) => wrong.push(format!("no test names {id}; say \"test pending\" if there is none")),
            (None, true) => lines.push(line.to_owned()),
            (Some(files), false) => lines.push(format!("| {id} | {text} | {} |", cell(&files))),
        }
    }
    for (id, files) in enforced {
        wrong.push(format!("{id} is no promise of {PAGE}: {}", cell(&files)));
    }
    lines.push(String::new());
    (lines.join("\n"), wrong)
}

#[test]
fn the_tests_of_each_promise_are_those_that_name_it() {
    let page = page();
    let (generated, wrong) = generated(&page, enforced());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    if std::env::var_os(REWRITE).is_some() {
        std::fs::write(repository().join(PAGE), generated).expect("the page can be written");
        return;
    }
    let differs = page.lines().zip(generated.lines()).find(|(page, generated)| page != generated);
    assert!(differs.is_none(), "{PAGE} is stale, run this test with {REWRITE}=1: {differs:?}");
}

#[test]
fn every_id_is_there_once_and_belongs_to_an_area() {
    let page = page();
    let promises: Vec<Promise<'_>> = page.lines().filter_map(promise).collect();
    assert!(promises.len() >= FEWEST_PROMISES, "only {} promises were found", promises.len());
    let mut seen = BTreeSet::new();
    for Promise { id, text, .. } in &promises {
        let well_formed = id.rsplit_once('-').is_some_and(|(area, number)| {
            !area.is_empty()
                && area.chars().all(|char| char.is_ascii_uppercase())
                && number.parse::<u32>().is_ok_and(|number| number > 0)
        });
        assert!(well_formed, "{id:?} is no id; write it as AREA-7");
        assert!(seen.insert(*id), "{id} stands there a second time");
        assert!(text.ends_with('.'), "{id} is a sentence and ends with a full stop");
    }
}

#[test]
fn every_doc_test_that_is_named_exists() {
    let page = page();
    let mut named = 0;
    for Promise { id, tests, .. } in
        page.lines().filter_map(promise).filter(|promise| promise.tests.starts_with("doc test"))
    {
        let file = tests.split('`').nth(1).unwrap_or_else(|| panic!("{id} names the file of its doc test"));
        let source = std::fs::read_to_string(Path::new(&repository()).join(file))
            .unwrap_or_else(|error| panic!("{id}: {file}: {error}"));
        assert!(source.lines().any(|line| line.starts_with("//! ```")), "{id}: {file} has no doc test");
        named += 1;
    }
    assert!(named > 0, "no promise names a doc test any more");
}

#[test]
fn a_mark_belongs_to_the_test_below_it() {
    let source = "// Promises: A-1, B-2\n#[test]\nfn first() {}\n// Promises: A-1\n#[tokio::test(\n    start_paused = true\n)]\n/// \
                  Why.\nasync fn second() {}\n    // Promises: C-3\n    crashes: \"crash\" says [];\n";
    let mut enforced = Enforced::new();
    assert!(read_marks("a.rs", source, &mut enforced).is_empty());
    let table = "| id | promise | tests |\n|---|---|---|\n| A-1 | One. | old |\n| B-2 | Two. | |\n| C-3 | Three. | x |\n| D-4 | \
                 Four. | test pending: why |\n";
    let (page, wrong) = generated(table, enforced);
    assert!(wrong.is_empty(), "{wrong:?}");
    assert!(page.contains("| A-1 | One. | `a.rs` `first`, `second` |\n"), "{page}");
    assert!(
        page.contains("| C-3 | Three. | `a.rs` `crashes` |\n| D-4 | Four. | test pending: why |\n"),
        "{page}"
    );
}

#[test]
fn marks_that_cannot_be_right_are_reported() {
    let mut enforced = Enforced::new();
    let wrong = read_marks("a.rs", "// Promises: A-1\nfn helper() {}\n", &mut enforced);
    assert_eq!(wrong, ["a.rs:1: no test follows"]);
    read_marks("a.rs", "// Promises: GONE-1, PENDING-1\n#[test]\nfn one() {}\n", &mut enforced);
    let (_, wrong) = generated("| LONELY-1 | It. | |\n| PENDING-1 | It. | test pending |\n", enforced);
    assert_eq!(wrong.len(), 3, "{wrong:?}");
}

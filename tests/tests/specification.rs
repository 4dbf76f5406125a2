//! `SPECIFICATION.md` names for every promise the test that enforces it. Such a page becomes outdated: tests are
//! renamed and removed, and the page is forgotten. So this test reads it, and every test that it names has to exist.
//!
//! A line of its tables reads `| LAUNCH-3 | the promise | tests |`. The last cell names files and tests,
//! `tests/tests/lifecycle.rs` `a_killed_plugin_comes_back`, where a file holds for the tests after it up to the next
//! file. Or it begins with "doc test" and names the file that holds one; or with "test pending" and may say why.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Fewer promises than this mean that the page, or this reader, has lost its tables.
const FEWEST_PROMISES: usize = 150;

struct Promise {
    line: usize,
    id: String,
    text: String,
    tests: String,
}

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ lies in the repository")
}

fn promises() -> Vec<Promise> {
    let page = std::fs::read_to_string(repository().join("SPECIFICATION.md")).expect("the page is there");
    page.lines().enumerate().filter_map(|(index, line)| promise(index + 1, line)).collect()
}

fn promise(line: usize, text: &str) -> Option<Promise> {
    let mut cells = text.strip_prefix('|')?.strip_suffix('|')?.split('|').map(str::trim);
    let (id, text, tests) = (cells.next()?, cells.next()?, cells.next()?);
    assert!(cells.next().is_none(), "line {line}: a promise has three cells");
    let heading = id == "id" || id.starts_with('-');
    (!heading).then(|| Promise { line, id: id.to_owned(), text: text.to_owned(), tests: tests.to_owned() })
}

/// What stands between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Whether the source holds a test of that name: a function with a test attribute, or an entry of a macro that
/// makes one test of each entry, `name: "…" …;`.
fn has_test(source: &str, name: &str) -> bool {
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let function = format!("fn {name}(");
    let entry = format!("{name}: \"");
    lines.iter().enumerate().any(|(index, line)| {
        let is_function =
            line.split_once(&function).is_some_and(|(before, _)| matches!(before, "" | "async "));
        let attributes = lines[..index].iter().rev().take_while(|line| {
            line.starts_with("#[") || line.starts_with("//") || line.ends_with(")]") || line.ends_with("\",")
        });
        let marked =
            attributes.copied().any(|line| line.starts_with("#[test]") || line.starts_with("#[tokio::test"));
        (is_function && marked) || (line.starts_with(&entry) && source.contains("macro_rules!"))
    })
}

#[test]
fn every_id_is_there_once_and_belongs_to_an_area() {
    let promises = promises();
    assert!(promises.len() >= FEWEST_PROMISES, "only {} promises were found", promises.len());
    let mut seen = BTreeSet::new();
    for Promise { line, id, text, .. } in &promises {
        let well_formed = id.rsplit_once('-').is_some_and(|(area, number)| {
            !area.is_empty()
                && area.chars().all(|c| c.is_ascii_uppercase())
                && number.parse::<u32>().is_ok_and(|number| number > 0)
        });
        assert!(well_formed, "SPECIFICATION.md:{line}: {id:?} is no id; write it as AREA-7");
        assert!(seen.insert(id.as_str()), "SPECIFICATION.md:{line}: {id} stands here a second time");
        assert!(text.ends_with('.'), "SPECIFICATION.md:{line}: {id} is a sentence and ends with a full stop");
    }
}

#[test]
fn every_test_that_is_named_exists() {
    let mut sources: BTreeMap<&str, String> = BTreeMap::new();
    let mut wrong = Vec::new();
    let promises = promises();
    for Promise { line, id, tests, .. } in &promises {
        if tests.starts_with("test pending") {
            continue;
        }
        let (mut file, mut named) = (None, 0);
        for word in quoted(tests) {
            if word.ends_with(".rs") {
                if !sources.contains_key(word) {
                    let Ok(source) = std::fs::read_to_string(repository().join(word)) else {
                        wrong.push(format!("SPECIFICATION.md:{line}: {id}: there is no file {word}"));
                        continue;
                    };
                    sources.insert(word, source);
                }
                file = Some(word);
                continue;
            }
            named += 1;
            let source = file.and_then(|file| sources.get(file));
            if !source.is_some_and(|source| has_test(source, word)) {
                let place = file.unwrap_or("no file");
                wrong.push(format!("SPECIFICATION.md:{line}: {id}: there is no test {word} in {place}"));
            }
        }
        if tests.starts_with("doc test") {
            let source = file.and_then(|file| sources.get(file));
            if !source.is_some_and(|source| source.lines().any(|line| line.starts_with("//! ```"))) {
                wrong.push(format!("SPECIFICATION.md:{line}: {id}: there is no doc test"));
            }
        } else if named == 0 {
            wrong.push(format!(
                "SPECIFICATION.md:{line}: {id} names no test; say \"test pending\" if there is none"
            ));
        }
    }
    assert!(wrong.is_empty(), "rename them there too, or write the test:\n{}", wrong.join("\n"));
}

#[test]
fn the_reader_tells_tests_from_other_functions() {
    let source = "#[test]\nfn a_test() {}\nfn a_helper() {}\n#[tokio::test(start_paused = true)]\n/// Why.\nasync fn \
                  waits() {}\nfn a_test_not() {}";
    assert!(has_test(source, "a_test") && has_test(source, "waits"));
    assert!(!has_test(source, "a_helper") && !has_test(source, "a_test_not") && !has_test(source, "gone"));
    assert!(has_test("macro_rules! faults { }\nfaults! {\n    crashes: \"crash\" says [];\n}", "crashes"));
}

//! `test`: a script's own tests, as TAP or JUnit.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use talon_lua_engine::{Library, Limits, LoadError, TestResult, TestSuite};

use super::files::{ENDING, TESTS_ENDING, name, read, scripts};
use super::script_options::ScriptOptions;
use super::watchdog::Watchdog;

#[derive(Debug, Args)]
pub(super) struct TestArgs {
    /// Scripts, and directories of scripts. One without a file NAME_test.lua beside it is passed over.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// How the results are written.
    #[arg(long, value_enum, default_value_t = Format::Tap)]
    format: Format,
    #[command(flatten)]
    options: ScriptOptions,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// The Test Anything Protocol.
    Tap,
    /// JUnit's XML.
    Junit,
    /// One JSON value.
    Json,
}

/// What has a limit of its own when a script is loaded with its tests: the script, `expect` and its like, the tests.
const CALLS_OF_LOAD: u32 = 3;

/// The tests of one script.
struct Suite {
    script: String,
    results: Vec<TestResult>,
}

/// Whether all tests pass.
pub(super) fn run(args: &TestArgs) -> Result<bool, String> {
    let watchdog = Watchdog::start()?;
    let mut suites = Vec::new();
    for path in scripts(&args.paths)? {
        let tests = tests_of(&path);
        if !tests.exists() {
            continue;
        }
        let (source, tests_source) = (read(&path)?, read(&tests)?);
        let script = name(&path);
        let tests_name = name(&tests);
        let (limits, libraries) = (args.options.limits(&path), args.options.libraries(&path));
        let results =
            results((&script, &source), (&tests_name, &tests_source), (&limits, &libraries), &watchdog)
                .unwrap_or_else(|error| {
                    vec![TestResult { name: "load".to_owned(), failure: Some(error.to_string()) }]
                });
        suites.push(Suite { script, results });
    }
    if suites.is_empty() {
        return Err(format!("there are no tests: write them into NAME{TESTS_ENDING} beside NAME{ENDING}"));
    }
    let text = match args.format {
        Format::Tap => tap(&suites),
        Format::Junit => junit(&suites),
        Format::Json => json(&suites),
    };
    print!("{text}");
    Ok(suites.iter().flat_map(|suite| &suite.results).all(|result| result.failure.is_none()))
}

fn results(
    script: (&str, &[u8]),
    tests: (&str, &[u8]),
    (limits, libraries): (&Limits, &[Library]),
    watchdog: &Watchdog,
) -> Result<Vec<TestResult>, LoadError> {
    watchdog.begin(tests.0, limits.execution.saturating_mul(CALLS_OF_LOAD));
    let suite = TestSuite::load(script, tests, limits, libraries)?;
    let run = |name: &String| {
        let limit = limits.execution.saturating_mul(CALLS_OF_LOAD + 1);
        watchdog.begin(&format!("{}: {name}", tests.0), limit);
        suite.run(name)
    };
    suite.names().iter().map(run).collect()
}

fn tests_of(script: &Path) -> PathBuf {
    let file = name(script);
    let stem = file.strip_suffix(ENDING).unwrap_or(&file);
    script.with_file_name(format!("{stem}{TESTS_ENDING}"))
}

fn tap(suites: &[Suite]) -> String {
    let results = suites.iter().flat_map(|suite| suite.results.iter().map(move |result| (suite, result)));
    let mut text = String::from("TAP version 14\n");
    let mut count = 0;
    for (suite, result) in results {
        count += 1;
        let (script, name) = (&suite.script, &result.name);
        match &result.failure {
            None => drop(writeln!(text, "ok {count} - {script} {name}")),
            Some(failure) => {
                let _ = writeln!(text, "not ok {count} - {script} {name}");
                for line in failure.lines() {
                    let _ = writeln!(text, "# {line}");
                }
            }
        }
    }
    let _ = writeln!(text, "1..{count}");
    text
}

fn json(suites: &[Suite]) -> String {
    let results = suites.iter().flat_map(|suite| suite.results.iter().map(move |result| (suite, result)));
    let tests: Vec<serde_json::Value> = results
        .map(|(suite, TestResult { name, failure })| {
            serde_json::json!({ "script": suite.script, "name": name, "passed": failure.is_none(), "failure": failure })
        })
        .collect();
    format!("{:#}\n", serde_json::json!({ "tests": tests }))
}

fn junit(suites: &[Suite]) -> String {
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
    for Suite { script, results } in suites {
        let failures = results.iter().filter(|result| result.failure.is_some()).count();
        let script = escaped(script);
        let _ = writeln!(
            text,
            "  <testsuite name=\"{script}\" tests=\"{}\" failures=\"{failures}\">",
            results.len()
        );
        for TestResult { name, failure } in results {
            let name = escaped(name);
            match failure {
                None => drop(writeln!(text, "    <testcase classname=\"{script}\" name=\"{name}\"/>")),
                Some(failure) => drop(writeln!(
                    text,
                    "    <testcase classname=\"{script}\" name=\"{name}\"><failure>{}</failure></testcase>",
                    escaped(failure)
                )),
            }
        }
        text.push_str("  </testsuite>\n");
    }
    text.push_str("</testsuites>\n");
    text
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_tap_and_xml() {
        let result = |name: &str, failure: Option<&str>| TestResult {
            name: name.to_owned(),
            failure: failure.map(str::to_owned),
        };
        let results = vec![result("test_a", None), result("test_b", Some("1 < 2\nline"))];
        let suites = [Suite { script: "s.lua".to_owned(), results }];
        let expected =
            "TAP version 14\nok 1 - s.lua test_a\nnot ok 2 - s.lua test_b\n# 1 < 2\n# line\n1..2\n";
        assert_eq!(tap(&suites), expected);
        let xml = junit(&suites);
        assert!(
            xml.contains("tests=\"2\" failures=\"1\"") && xml.contains("1 &lt; 2\nline</failure>"),
            "{xml}"
        );
        let value: serde_json::Value = serde_json::from_str(&json(&suites)).expect("it is JSON");
        assert_eq!(value["tests"][1]["failure"], "1 < 2\nline", "{value}");
        assert_eq!((&value["tests"][0]["passed"], &value["tests"][0]["failure"]), (&true.into(), &().into()));
    }
}

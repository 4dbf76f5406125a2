//! A script's own tests: functions `test_*` in a file beside it.

use serde::{Deserialize, Serialize};

use crate::error::LoadError;
use crate::machine::Machine;
use crate::{Library, Limits, source_text};

const PRELUDE: &str = include_str!("testing.lua");

/// What a file of tests said.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestReport {
    /// Each test, by name.
    pub results: Vec<TestResult>,
}

/// What one test said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestResult {
    /// The function's name.
    pub name: String,
    /// Why it failed; `None` if it passed.
    pub failure: Option<String>,
}

impl TestReport {
    /// The first test that failed.
    #[must_use]
    pub fn first_failure(&self) -> Option<&TestResult> {
        self.results.iter().find(|result| result.failure.is_some())
    }
}

/// Runs the tests of a script, each in a machine of its own.
///
/// # Errors
/// [`LoadError`] of either file, and of tests that define no function `test_*`.
pub fn run_tests(
    (name, source): (&str, &[u8]),
    (test_name, tests): (&str, &[u8]),
    limits: &Limits,
    libraries: &[Library],
) -> Result<TestReport, LoadError> {
    let (source, tests) = (source_text(source)?, source_text(tests)?);
    let load = || {
        let machine = Machine::load(name, source, limits, libraries)?;
        machine.add("testing.lua", PRELUDE, libraries)?;
        machine.add(test_name, tests, libraries)?;
        Ok(machine)
    };
    let names = load()?.functions_named("test_");
    if names.is_empty() {
        return Err(LoadError::Points(
            "it defines no test: define functions named test_…, without `local`".to_owned(),
        ));
    }
    let mut report = TestReport::default();
    for name in names {
        let failure = load()?.run_function(&name).err().map(|error| error.message);
        report.results.push(TestResult { name, failure });
    }
    Ok(report)
}

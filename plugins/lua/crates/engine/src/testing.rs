//! A script's own tests: functions `test_*` in a file beside it.

use serde::{Deserialize, Serialize};

use crate::error::LoadError;
use crate::machine::Machine;
use crate::{Library, Limits, source_text};

pub(crate) const PRELUDE: &str = concat!(include_str!("shown.lua"), "\n", include_str!("testing.lua"));

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

/// A script, and its tests.
pub struct TestSuite<'s> {
    script: (&'s str, &'s str),
    tests: (&'s str, &'s str),
    limits: &'s Limits,
    libraries: &'s [Library],
    names: Vec<String>,
}

impl<'s> TestSuite<'s> {
    /// Loads both, each with its name.
    ///
    /// # Errors
    /// [`LoadError`] of either file, and of tests that define no function `test_*`.
    pub fn load(
        (name, source): (&'s str, &'s [u8]),
        (test_name, tests): (&'s str, &'s [u8]),
        limits: &'s Limits,
        libraries: &'s [Library],
    ) -> Result<Self, LoadError> {
        let (script, tests) = ((name, source_text(source)?), (test_name, source_text(tests)?));
        let mut suite = Self { script, tests, limits, libraries, names: Vec::new() };
        suite.names = suite.machine()?.functions_named("test_");
        if suite.names.is_empty() {
            return Err(LoadError::Points(
                "it defines no test: define functions named test_…, without `local`".to_owned(),
            ));
        }
        Ok(suite)
    }

    /// The names of its tests, in order.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Runs one of them in a machine of its own.
    ///
    /// # Errors
    /// [`LoadError`], as [`load`](Self::load).
    pub fn run(&self, name: &str) -> Result<TestResult, LoadError> {
        let failure = self.machine()?.run_function(name).err().map(|error| error.message);
        Ok(TestResult { name: name.to_owned(), failure })
    }

    fn machine(&self) -> Result<Machine, LoadError> {
        let machine = Machine::load(self.script.0, self.script.1, self.limits, self.libraries)?;
        machine.add("testing.lua", PRELUDE, self.libraries)?;
        machine.add(self.tests.0, self.tests.1, self.libraries)?;
        Ok(machine)
    }
}

/// Runs the tests of a script, each in a machine of its own.
///
/// # Errors
/// [`LoadError`] of either file, and of tests that define no function `test_*`.
pub fn run_tests(
    script: (&str, &[u8]),
    tests: (&str, &[u8]),
    limits: &Limits,
    libraries: &[Library],
) -> Result<TestReport, LoadError> {
    let suite = TestSuite::load(script, tests, limits, libraries)?;
    let results = suite.names().iter().map(|name| suite.run(name)).collect::<Result<_, _>>()?;
    Ok(TestReport { results })
}

//! A script that runs, and how it comes to.

use std::path::Path;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use talon_lua_engine::{CallError, FailureKind, LoadError};
use tokio::task::spawn_blocking;

use super::directory::{self, ReadError, Texts};
use crate::counters::EndCounters;
use crate::message::{Definition, ScriptSource};
use crate::pool::{Machine, Pool};
use crate::settings::Settings;

/// A script that runs.
pub(crate) struct Loaded {
    pub(crate) machine: Arc<Machine>,
    pub(crate) definition: Definition,
    /// Of its source.
    pub(crate) sha256: String,
    /// How many tests it passed.
    pub(crate) tests: usize,
    texts: Texts,
}

/// Why a script is not loaded.
pub(super) struct LoadFailure {
    /// With line and traceback where there are.
    pub(super) message: String,
    /// Whether the script is not to blame, so that the same files may load later.
    pub(super) is_transient: bool,
}

impl From<ReadError> for LoadFailure {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Changing(message) => Self { message, is_transient: true },
            ReadError::Refused(message) => Self { message, is_transient: false },
        }
    }
}

impl LoadFailure {
    fn of(error: &LoadError, message: String) -> Self {
        let is_transient = matches!(error, LoadError::Run(CallError { kind: FailureKind::Worker, .. }));
        Self { message, is_transient }
    }
}

/// Loads a script as its files are now; `None` if it is what runs already.
///
/// # Errors
/// [`LoadFailure`]
pub(super) async fn load(
    dir: &Path,
    name: &str,
    has_tests: bool,
    (running, ends): (Option<&Loaded>, &Arc<EndCounters>),
    settings: &Settings,
    pool: &Pool,
) -> Result<Option<Loaded>, LoadFailure> {
    let (dir, script) = (dir.to_owned(), name.to_owned());
    let read = spawn_blocking(move || directory::read(&dir, &script, has_tests)).await;
    let texts = read.map_err(|error| LoadFailure { message: error.to_string(), is_transient: true })??;
    if running.is_some_and(|running| running.texts == texts) {
        return Ok(None);
    }
    let source = ScriptSource {
        name: format!("{name}.lua"),
        source: texts.source.clone(),
        limits: settings.limits_of(name),
        libraries: settings.libraries_of(name),
    };
    let (machine, definition) =
        pool.load(source.clone(), ends).await.map_err(|error| LoadFailure::of(&error, error.to_string()))?;
    let mut tests = 0;
    if let Some(text) = &texts.tests {
        let tests_name = format!("{name}_test.lua");
        let report = pool.test(source, tests_name.clone(), text.clone()).await;
        let report = report.map_err(|error| LoadFailure::of(&error, format!("{tests_name}: {error}")))?;
        if let Some(failed) = report.first_failure() {
            let why = failed.failure.as_deref().unwrap_or_default();
            let message = format!("its test {} fails: {why}", failed.name);
            return Err(LoadFailure { message, is_transient: false });
        }
        tests = report.results.len();
    }
    let sha256 = hex::encode(Sha256::digest(texts.source.as_bytes()));
    Ok(Some(Loaded { machine, definition, sha256, tests, texts }))
}

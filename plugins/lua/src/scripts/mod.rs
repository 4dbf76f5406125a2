//! The scripts that are loaded, and what replaces them.
//!
//! A changed file is loaded beside the one that runs, and takes its place when it has compiled, its top level has run, and its own
//! tests have passed. Otherwise the one that runs goes on, and the failure is kept. Calls under way end on the machine that they began
//! on.

mod directory;
mod loaded;
mod retry;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::RwLock;
use talon_sdk::tracing;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::Instant;

use crate::counters::{Counters, EndCounters};
use crate::pool::Pool;
use crate::settings::Settings;
use directory::{Listing, ScriptFiles};
use loaded::LoadFailure;
pub(crate) use loaded::Loaded;
use retry::Retry;

/// All scripts of a directory.
pub(crate) struct Scripts {
    dir: PathBuf,
    settings: Arc<Settings>,
    pool: Pool,
    counters: Arc<Counters>,
    table: RwLock<ScriptTable>,
    /// One look at the directory at a time.
    looking: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct ScriptTable {
    scripts: BTreeMap<String, Entry>,
    refused: Vec<String>,
    /// Why the directory could not be read, last time.
    failure: Option<String>,
}

/// One script.
#[derive(Clone, Default)]
pub(crate) struct Entry {
    files: ScriptFiles,
    /// The one that runs.
    pub(crate) loaded: Option<Arc<Loaded>>,
    /// Why a newer one does not.
    pub(crate) failure: Option<String>,
    /// How many versions were loaded.
    pub(crate) loads: u64,
    /// Calls of all its versions that passed their time limit.
    pub(crate) ends: Arc<EndCounters>,
    /// When it is tried again although its files are the same.
    retry: Option<Retry>,
}

/// A script to load.
struct Load {
    name: String,
    files: ScriptFiles,
    /// The one that runs.
    running: Option<Arc<Loaded>>,
    ends: Arc<EndCounters>,
}

impl Load {
    /// Of these files, and of what is known of the script.
    fn of(name: &str, files: &ScriptFiles, entry: Option<&Entry>) -> Self {
        Self {
            name: name.to_owned(),
            files: files.clone(),
            running: entry.and_then(|entry| entry.loaded.clone()),
            ends: entry.map(|entry| Arc::clone(&entry.ends)).unwrap_or_default(),
        }
    }
}

impl Scripts {
    pub(crate) fn new(settings: Arc<Settings>, pool: Pool, counters: Arc<Counters>) -> Self {
        let dir = settings.scripts_dir.clone();
        Self {
            dir,
            settings,
            pool,
            counters,
            table: RwLock::default(),
            looking: tokio::sync::Mutex::default(),
        }
    }

    /// A script by its name.
    pub(crate) fn get(&self, name: &str) -> Option<Entry> {
        self.table.read().scripts.get(name).cloned()
    }

    /// All of them, in the order of their names.
    pub(crate) fn all(&self) -> Vec<(String, Entry)> {
        self.table.read().scripts.iter().map(|(name, entry)| (name.clone(), entry.clone())).collect()
    }

    /// What is wrong beside single scripts.
    pub(crate) fn problems(&self) -> Vec<String> {
        let table = self.table.read();
        table.failure.iter().chain(&table.refused).cloned().collect()
    }

    /// Looks at the directory, and loads what is new or has changed. Returns whether what the scripts offer has changed.
    pub(crate) async fn look(&self) -> bool {
        let _one = self.looking.lock().await;
        let dir = self.dir.clone();
        let listed = spawn_blocking(move || directory::list(&dir)).await;
        let Listing { scripts, refused } = match listed {
            Ok(Ok(listing)) => listing,
            // What runs goes on: a directory that cannot be read for a moment takes no protection away.
            Ok(Err(error)) => {
                self.keep_failure(error);
                return false;
            }
            Err(error) => {
                self.keep_failure(format!("cannot look at the directory of scripts: {error}"));
                return false;
            }
        };
        self.keep_refused(refused);
        let changed: Vec<Load> = {
            let table = self.table.read();
            let of = |name: &str| table.scripts.get(name);
            let other =
                scripts.iter().filter(|(name, files)| of(name).is_none_or(|entry| entry.files != **files));
            other.map(|(name, files)| Load::of(name, files, of(name))).collect()
        };
        self.load(changed).await | self.forget(&scripts)
    }

    /// Loads again what failed for another reason than the script's, and is due. Returns whether what the scripts offer has changed.
    pub(crate) async fn retry(&self) -> bool {
        let _one = self.looking.lock().await;
        let now = Instant::now();
        let due: Vec<Load> = {
            let table = self.table.read();
            let due =
                table.scripts.iter().filter(|(_, entry)| entry.retry.is_some_and(|retry| retry.is_due(now)));
            due.map(|(name, entry)| Load::of(name, &entry.files, Some(entry))).collect()
        };
        self.load(due).await
    }

    async fn load(&self, changed: Vec<Load>) -> bool {
        let mut loading = JoinSet::new();
        for load in changed {
            let (dir, settings, pool) = (self.dir.clone(), Arc::clone(&self.settings), self.pool.clone());
            let _task = loading.spawn(async move {
                let Load { name, files, running, ends } = &load;
                let known = (running.as_deref(), ends);
                let loaded = loaded::load(&dir, name, files.has_tests, known, &settings, &pool).await;
                (load, loaded)
            });
        }
        let mut offers_changed = false;
        while let Some(loaded) = loading.join_next().await {
            match loaded {
                Ok((load, loaded)) => offers_changed |= self.keep(load, loaded),
                Err(error) => {
                    tracing::error!(%error, "a script could not be loaded: this is a defect of talon-lua")
                }
            }
        }
        offers_changed
    }

    /// Takes the result of loading a script over.
    fn keep(&self, load: Load, loaded: Result<Option<Loaded>, LoadFailure>) -> bool {
        let Load { name, files, ends, .. } = load;
        let mut table = self.table.write();
        let entry = table.scripts.entry(name.clone()).or_insert_with(|| Entry { ends, ..Entry::default() });
        // Other files start anew.
        let retry = entry.retry.take().filter(|_| entry.files == files);
        entry.files = files;
        match loaded {
            Ok(None) => {
                entry.failure = None;
                false
            }
            Ok(Some(loaded)) => {
                tracing::info!(script = name, sha256 = loaded.sha256, tests = loaded.tests, "loaded");
                self.counters.reloads.add();
                entry.failure = None;
                entry.loads += 1;
                let before = entry.loaded.replace(Arc::new(loaded));
                let offers = |loaded: &Option<Arc<Loaded>>| {
                    let definition = loaded.as_ref().map(|loaded| &loaded.definition)?;
                    Some((definition.points.clone(), definition.schedule.clone()))
                };
                offers(&before) != offers(&entry.loaded)
            }
            Err(LoadFailure { message, is_transient }) => {
                entry.retry = is_transient.then(|| Retry::after(retry, Instant::now()));
                let goes_on =
                    if entry.loaded.is_some() { "the one before goes on" } else { "its hooks fail" };
                tracing::error!(script = name, "not loaded, {goes_on}: {message}");
                let is_new = entry.loaded.is_none() && entry.failure.is_none();
                entry.failure = Some(message);
                is_new
            }
        }
    }

    fn forget(&self, present: &BTreeMap<String, ScriptFiles>) -> bool {
        let mut table = self.table.write();
        let before = table.scripts.len();
        table.scripts.retain(|name, _| {
            let stays = present.contains_key(name);
            if !stays {
                tracing::info!(script = name, "removed");
            }
            stays
        });
        table.scripts.len() != before
    }

    fn keep_failure(&self, failure: String) {
        let mut table = self.table.write();
        if table.failure.as_ref() != Some(&failure) {
            tracing::error!("{failure}");
            table.failure = Some(failure);
        }
    }

    fn keep_refused(&self, refused: Vec<String>) {
        let mut table = self.table.write();
        table.failure = None;
        for problem in refused.iter().filter(|problem| !table.refused.contains(problem)) {
            tracing::error!("{problem}");
        }
        table.refused = refused;
    }
}

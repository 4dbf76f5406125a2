//! The open store, what it is for, and whether it answers.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use talon_child::chain;
use talon_proto::state::{Availability, FromState, Layers, from_state};
use talon_store::{Counters, Engine, Error, KeyValues, OpenedForRestore, Restored, Store};
use tokio::sync::Notify;
use tonic::Status;

use crate::failure::{Asker, cut, status};
use crate::gate::Rooms;
use crate::run::Starter;

/// The shortest wait between two looks at a database that does not answer. The store says how long it waits itself.
const SHORTEST_WAIT: Duration = Duration::from_millis(50);

/// What was opened.
#[derive(Debug)]
enum Opened {
    Store(Store),
    /// A file that cannot be opened, in whose place a copy can be put.
    ForRestore(OpenedForRestore),
}

/// What all who are served share.
#[derive(Debug)]
pub(crate) struct Database {
    opened: Opened,
    pub(crate) layers: Layers,
    /// The file, where the engine has one.
    pub(crate) file: Option<PathBuf>,
    /// Sockets of plugins that are served now.
    pub(crate) sockets: AtomicU32,
    /// What each plugin may ask at once.
    pub(crate) rooms: Rooms,
    /// Held by the import that is going on.
    pub(crate) imports: tokio::sync::Mutex<()>,
    /// What is wrong with it, while something is.
    problem: Mutex<Option<String>>,
    trouble: Notify,
}

impl Database {
    pub(crate) fn new(store: Store, layers: Layers, engine: &Engine) -> Self {
        Self::of(Opened::Store(store), layers, engine)
    }

    /// Where only a restore can help, and what the problem is.
    pub(crate) fn for_restore(
        place: OpenedForRestore,
        layers: Layers,
        engine: &Engine,
        problem: String,
    ) -> Self {
        let database = Self::of(Opened::ForRestore(place), layers, engine);
        *database.lock() = Some(problem);
        database
    }

    fn of(opened: Opened, layers: Layers, engine: &Engine) -> Self {
        let file = match engine {
            Engine::Sqlite { path } => Some(path.clone()),
            _ => None,
        };
        Self {
            opened,
            layers,
            file,
            sockets: AtomicU32::new(0),
            rooms: Rooms::default(),
            imports: tokio::sync::Mutex::default(),
            problem: Mutex::default(),
            trouble: Notify::new(),
        }
    }

    /// The store.
    ///
    /// # Errors
    /// FAILED_PRECONDITION if only a restore can be done.
    pub(crate) fn store(&self) -> Result<&Store, Status> {
        match &self.opened {
            Opened::Store(store) => Ok(store),
            Opened::ForRestore(_) => Err(Status::failed_precondition(cut(self.problem()))),
        }
    }

    /// Puts a copy in the place of what there is, or looks whether it could be.
    pub(crate) async fn restore(&self, from: &Path, check_only: bool) -> Result<Restored, Error> {
        match &self.opened {
            Opened::Store(store) => store.restore(from, check_only).await,
            Opened::ForRestore(place) => {
                let restored = place.restore(from, check_only).await?;
                if !check_only {
                    *self.lock() = Some("it was restored: open it again".to_owned());
                }
                Ok(restored)
            }
        }
    }

    /// The engine's name, where the database is without credentials, and its version (0: it is not one of ours).
    pub(crate) fn describe(&self) -> (&'static str, String, u32) {
        match &self.opened {
            Opened::Store(store) => (store.engine(), store.place(), store.schema_version()),
            Opened::ForRestore(_) => {
                let file = self.file.as_deref().map(|file| file.display().to_string());
                ("sqlite", file.unwrap_or_default(), 0)
            }
        }
    }

    pub(crate) fn counters(&self) -> Counters {
        self.store().map(Store::counters).unwrap_or_default()
    }

    /// Ends it; what was begun is finished.
    pub(crate) async fn close(&self) {
        if let Opened::Store(store) = &self.opened {
            store.close().await;
        }
    }

    /// The plugins' key-values.
    ///
    /// # Errors
    /// FAILED_PRECONDITION if they are not what was opened.
    pub(crate) fn key_values(&self) -> Result<Arc<dyn KeyValues>, Status> {
        match self.layers {
            Layers::KeyValues => Ok(self.store()?.key_values()),
            _ => Err(Status::failed_precondition(
                "this database was opened for sessions and memory: the plugins' key-values are in another one",
            )),
        }
    }

    /// An error on its way to whoever asked. Each is looked at: it may say that the database is gone.
    pub(crate) fn failed(&self, error: &Error, asker: Asker) -> Status {
        if matches!(error, Error::Unavailable { .. }) {
            self.is_gone(error);
        }
        status(error, asker)
    }

    /// Looks whether the database answers now, and remembers what it finds.
    pub(crate) async fn check(&self) -> Result<(), Error> {
        let Opened::Store(store) = &self.opened else { return Ok(()) };
        let checked = store.check().await;
        if let Err(error) = &checked {
            self.is_gone(error);
        }
        checked
    }

    /// What is wrong with the database; empty while it answers.
    pub(crate) fn problem(&self) -> String {
        self.lock().clone().unwrap_or_default()
    }

    /// The same, of a database that does not become better by waiting.
    pub(crate) fn lasting_problem(&self) -> String {
        match self.opened {
            Opened::Store(_) => String::new(),
            Opened::ForRestore(_) => self.problem(),
        }
    }

    fn is_gone(&self, error: &Error) {
        let mut problem = self.lock();
        if problem.is_none() {
            *problem = Some(chain(error));
            self.trouble.notify_one();
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<String>> {
        self.problem.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the starter when the database stops answering and when it answers again. Looks at it only in between.
    pub(crate) async fn watch(&self, starter: &Starter) {
        // What was wrong at the start has been told, with `Ready`.
        let mut told = !self.problem().is_empty();
        loop {
            self.trouble.notified().await;
            if !std::mem::take(&mut told) && !tell(starter, self.problem()).await {
                return;
            }
            while let Err(error) = self.check().await {
                let wait = match error {
                    Error::Closed => return,
                    Error::Unavailable { retry_in, .. } => retry_in,
                    _ => Duration::ZERO,
                };
                tokio::time::sleep(wait.max(SHORTEST_WAIT)).await;
            }
            *self.lock() = None;
            if !tell(starter, String::new()).await {
                return;
            }
        }
    }
}

/// Says whether the starter is still there.
async fn tell(starter: &Starter, problem: String) -> bool {
    let message = FromState { what: Some(from_state::What::Availability(Availability { problem })) };
    starter.send(&message, None).await.is_ok()
}

/// Counts a served socket for as long as it is.
#[derive(Debug)]
pub(crate) struct Served(Arc<Database>);

impl Served {
    pub(crate) fn by(database: &Arc<Database>) -> Self {
        database.sockets.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(database))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.0.sockets.fetch_sub(1, Ordering::Relaxed);
    }
}

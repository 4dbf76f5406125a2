//! The open store, the layers it was opened for, and whether it answers.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use talon_error_chain::error_chain;
use talon_proto::state::{Availability, Layers, from_state};
use talon_store::{Counters, Engine, Error, KeyValues, OpenedForRestore, Restored, Store};
use tokio::sync::Notify;
use tonic::Status;

use crate::control_socket::{ControlSocket, message};
use crate::failure::{Requester, status, truncate};
use crate::fullness::{CHECK_INTERVAL, Fullness};
use crate::gate::RequestBudgets;
use crate::plugin_engine::PluginKeyValues;

/// The shortest wait between two checks of a database that does not answer. The store's own wait may be
/// longer.
const MIN_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Why a copy does not take the place of what a plugin keeps.
const PLUGIN_RESTORE: &str =
    "the plugins' state is kept by a plugin: restore it with the tools of what stands behind that plugin";

/// What was opened.
#[derive(Debug)]
enum OpenState {
    Store(Store),
    /// A file that cannot be opened, which a restore can replace.
    ForRestore(OpenedForRestore),
    /// A plugin keeps it.
    Plugin(PluginKeyValues),
}

/// The database, shared by all connections.
#[derive(Debug)]
pub(crate) struct Database {
    opened: OpenState,
    pub(crate) layers: Layers,
    /// The file, where the engine has one.
    pub(crate) file: Option<PathBuf>,
    /// How many plugin sockets are served now.
    pub(crate) sockets: AtomicU32,
    /// The request budget of each plugin.
    pub(crate) request_budgets: RequestBudgets,
    /// Locked by the running import.
    pub(crate) imports: tokio::sync::Mutex<()>,
    /// The current problem of the database, if there is one.
    problem: Mutex<Option<String>>,
    problem_changed: Notify,
    fullness: Fullness,
}

impl Database {
    pub(crate) fn new(store: Store, layers: Layers, engine: &Engine) -> Self {
        Self::from_state(OpenState::Store(store), layers, engine)
    }

    /// A database that only a restore can repair, with its problem.
    pub(crate) fn for_restore(
        place: OpenedForRestore,
        layers: Layers,
        engine: &Engine,
        problem: String,
    ) -> Self {
        let database = Self::from_state(OpenState::ForRestore(place), layers, engine);
        *database.problem.lock() = Some(problem);
        database
    }

    /// The plugins' key-values in a storage backend. Its plugin starts after this process, so that it is unavailable at first.
    pub(crate) fn of_plugin(key_values: PluginKeyValues) -> Self {
        let reason = format!("{} was not asked yet", key_values.action());
        let database = Self::new_with(OpenState::Plugin(key_values), Layers::KeyValues, None);
        database.is_unavailable(&Error::Unavailable { reason, retry_in: Duration::ZERO });
        database
    }

    fn from_state(opened: OpenState, layers: Layers, engine: &Engine) -> Self {
        let file = match engine {
            Engine::Sqlite { path } => Some(path.clone()),
            _ => None,
        };
        Self::new_with(opened, layers, file)
    }

    fn new_with(opened: OpenState, layers: Layers, file: Option<PathBuf>) -> Self {
        Self {
            opened,
            layers,
            file,
            sockets: AtomicU32::new(0),
            request_budgets: RequestBudgets::default(),
            imports: tokio::sync::Mutex::default(),
            problem: Mutex::default(),
            problem_changed: Notify::new(),
            fullness: Fullness::default(),
        }
    }

    /// The store.
    ///
    /// # Errors
    /// FAILED_PRECONDITION if only a restore is possible.
    pub(crate) fn store(&self) -> Result<&Store, Status> {
        match &self.opened {
            OpenState::Store(store) => Ok(store),
            OpenState::ForRestore(_) => Err(Status::failed_precondition(truncate(self.problem()))),
            OpenState::Plugin(kept) => Err(Status::failed_precondition(format!(
                "the plugins' state is kept by {}: copy it with the tools of what stands behind that plugin",
                kept.action()
            ))),
        }
    }

    /// Replaces the database with a copy, or checks whether that is possible.
    pub(crate) async fn restore(&self, from: &Path, check_only: bool) -> Result<Restored, Error> {
        match &self.opened {
            OpenState::Store(store) => store.restore(from, check_only).await,
            OpenState::ForRestore(place) => {
                let restored = place.restore(from, check_only).await?;
                if !check_only {
                    *self.problem.lock() = Some("it was restored: open it again".to_owned());
                }
                Ok(restored)
            }
            OpenState::Plugin(_) => Err(Error::Unsupported(PLUGIN_RESTORE)),
        }
    }

    /// The engine's name, the location of the database without credentials, and its version (0: not a Talon
    /// database).
    pub(crate) fn describe(&self) -> (&'static str, String, u32) {
        match &self.opened {
            OpenState::Store(store) => (store.engine(), store.location(), store.schema_version()),
            OpenState::ForRestore(_) => {
                let file = self.file.as_deref().map(|file| file.display().to_string());
                ("sqlite", file.unwrap_or_default(), 0)
            }
            OpenState::Plugin(kept) => ("plugin", kept.action().to_owned(), 0),
        }
    }

    pub(crate) fn counters(&self) -> Counters {
        self.store().map(Store::counters).unwrap_or_default()
    }

    /// Closes it; requests that have begun are finished.
    pub(crate) async fn close(&self) {
        if let OpenState::Store(store) = &self.opened {
            store.close().await;
        }
    }

    /// The plugins' key-values.
    ///
    /// # Errors
    /// FAILED_PRECONDITION if it was not opened for them.
    pub(crate) fn key_values(&self) -> Result<Arc<dyn KeyValues>, Status> {
        match self.layers {
            Layers::KeyValues => match &self.opened {
                OpenState::Plugin(kept) => Ok(Arc::new(kept.clone())),
                OpenState::Store(_) | OpenState::ForRestore(_) => Ok(self.store()?.key_values()),
            },
            _ => Err(Status::failed_precondition(
                "this database was opened for sessions and memory: the plugins' key-values are in another one",
            )),
        }
    }

    /// Converts an error for the client. Each error is checked: it may say that the database is unavailable.
    pub(crate) fn failed(&self, error: &Error, asker: Requester) -> Status {
        match error {
            Error::Unavailable { .. } => self.is_unavailable(error),
            Error::Full(_) => self.fullness.note(error),
            _ => {}
        }
        status(error, asker)
    }

    /// Checks whether the database answers now, and remembers the result.
    pub(crate) async fn check(&self) -> Result<(), Error> {
        let checked = match &self.opened {
            OpenState::Store(store) => store.check().await,
            OpenState::Plugin(kept) => kept.check().await,
            OpenState::ForRestore(_) => Ok(()),
        };
        if let Err(error) = &checked {
            self.is_unavailable(error);
        }
        checked
    }

    /// The problem of the database; empty while it answers.
    pub(crate) fn problem(&self) -> String {
        self.problem.lock().clone().unwrap_or_default()
    }

    /// The same, for a problem that waiting does not solve.
    pub(crate) fn lasting_problem(&self) -> String {
        match self.opened {
            OpenState::Store(_) | OpenState::Plugin(_) => String::new(),
            OpenState::ForRestore(_) => self.problem(),
        }
    }

    /// Tells the starter what is wrong now; returns whether the starter is still there.
    async fn report(&self, starter: &ControlSocket) -> bool {
        let availability = Availability { problem: self.problem(), full: self.fullness.problem() };
        starter.send(&message(from_state::Kind::Availability(availability)), None).await.is_ok()
    }

    fn is_unavailable(&self, error: &Error) {
        let mut problem = self.problem.lock();
        if problem.is_none() {
            *problem = Some(self.describe_problem(error));
            self.problem_changed.notify_one();
        }
    }

    fn describe_problem(&self, error: &Error) -> String {
        match (&self.opened, error) {
            (OpenState::Plugin(kept), Error::Unavailable { reason, .. }) => {
                format!("{} does not keep state: {reason}", kept.action())
            }
            _ => error_chain(error),
        }
    }

    /// Notes what a storage backend says now; whether that is something else than before. A database's problem stays as it was
    /// first, since its texts count the time.
    fn note_other_problem(&self, error: &Error) -> bool {
        if !matches!(self.opened, OpenState::Plugin(_)) {
            return false;
        }
        let said = Some(self.describe_problem(error));
        let mut problem = self.problem.lock();
        let is_other = *problem != said;
        *problem = said;
        is_other
    }

    /// Notifies the starter when the database stops answering or taking writes, and when it does so again. It
    /// polls only in between.
    pub(crate) async fn watch(&self, starter: &ControlSocket) {
        tokio::join!(self.watch_availability(starter), self.watch_room(starter));
    }

    async fn watch_room(&self, starter: &ControlSocket) {
        if matches!(self.opened, OpenState::ForRestore(_)) {
            return;
        }
        loop {
            self.fullness.noted().await;
            tracing::warn!(
                problem = self.fullness.problem(),
                "writes are refused: there is no room for them"
            );
            if !self.report(starter).await {
                return;
            }
            loop {
                tokio::time::sleep(CHECK_INTERVAL).await;
                match self.check_room().await {
                    Ok(()) => break,
                    Err(Error::Closed) => return,
                    Err(_) => {}
                }
            }
            self.fullness.clear();
            tracing::info!("there is room for writes again");
            if !self.report(starter).await {
                return;
            }
        }
    }

    /// Whether there is room again. Of a storage backend that is not known until the next write.
    async fn check_room(&self) -> Result<(), Error> {
        match &self.opened {
            OpenState::Store(store) => store.check_room().await,
            OpenState::Plugin(_) | OpenState::ForRestore(_) => Ok(()),
        }
    }

    async fn watch_availability(&self, starter: &ControlSocket) {
        // `Ready` has reported a problem at the start.
        let mut reported = !self.problem().is_empty();
        loop {
            self.problem_changed.notified().await;
            if !std::mem::take(&mut reported) && !self.report(starter).await {
                return;
            }
            while let Err(error) = self.check().await {
                if self.note_other_problem(&error) && !self.report(starter).await {
                    return;
                }
                let wait = match error {
                    Error::Closed => return,
                    Error::Unavailable { retry_in, .. } => retry_in,
                    _ => Duration::ZERO,
                };
                tokio::time::sleep(wait.max(MIN_CHECK_INTERVAL)).await;
            }
            *self.problem.lock() = None;
            if !self.report(starter).await {
                return;
            }
        }
    }
}

/// Counts a socket while it is served.
#[derive(Debug)]
pub(crate) struct SocketGuard(Arc<Database>);

impl SocketGuard {
    pub(crate) fn new(database: &Arc<Database>) -> Self {
        database.sockets.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(database))
    }
}

impl Drop for SocketGuard {
    fn drop(&mut self) {
        self.0.sockets.fetch_sub(1, Ordering::Relaxed);
    }
}

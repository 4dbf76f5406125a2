//! The supervisor's request to open a store, and its refusal.

use talon_proto::state::{self, Layers, Refused, open};
use talon_store::{Engine, Error, OpenError, StoreOptions};

use talon_error_chain::error_chain;

/// The request is invalid.
#[derive(Debug, thiserror::Error)]
pub enum InvalidOpenError {
    /// No engine.
    #[error("it names no engine")]
    NoEngine,
    /// An engine that only `talon-state` has, for the plugins' key-values.
    #[error("it names a plugin as the engine, which keeps the plugins' key-values alone")]
    PluginEngine,
    /// No layers.
    #[error("it names no layers")]
    NoLayers,
}

/// The parsed request.
#[derive(Debug, Clone)]
pub struct OpenRequest {
    /// The storage engine.
    pub engine: Engine,
    /// The layers to use.
    pub layers: Layers,
    /// The options.
    pub open: StoreOptions,
    /// Also open a store that can only be restored.
    pub for_restore: bool,
}

/// Parses the request.
///
/// # Errors
/// [`InvalidOpenError`]
pub fn parse(message: state::Open) -> Result<OpenRequest, InvalidOpenError> {
    let layers = match message.layers() {
        Layers::Unspecified => return Err(InvalidOpenError::NoLayers),
        layers => layers,
    };
    let (engine, max_bytes) = match message.engine.ok_or(InvalidOpenError::NoEngine)? {
        open::Engine::Sqlite(sqlite) => {
            (Engine::Sqlite { path: sqlite.path.into() }, Some(sqlite.max_bytes).filter(|&bytes| bytes > 0))
        }
        open::Engine::Postgres(postgres) => (Engine::Postgres { url: postgres.url }, None),
        open::Engine::Plugin(_) => return Err(InvalidOpenError::PluginEngine),
    };
    let mut open = StoreOptions::new(engine.clone());
    if matches!(engine, Engine::Postgres { .. }) {
        open = open.even_if_unreachable();
    }
    if message.exclusive {
        open = open.exclusive();
    }
    if message.examined {
        open = open.examined();
    }
    if let Some(bytes) = max_bytes {
        open = open.max_bytes(bytes);
    }
    Ok(OpenRequest { engine, layers, open, for_restore: message.for_restore })
}

/// The message to the supervisor about a store that was not opened.
#[must_use]
pub fn refusal(error: &OpenError) -> Refused {
    // A retry only helps if another process holds the store: the supervisor reports that, and waits.
    let retryable = matches!(error, OpenError::InUse { .. } | OpenError::Store(Error::Busy(_)));
    Refused { message: error_chain(error), retryable }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_names_no_engine_or_layers_is_senseless() {
        let engine = || Some(open::Engine::Sqlite(state::Sqlite { path: "/x".into(), max_bytes: 0 }));
        let layers = Layers::KeyValues.into();
        let message = |engine, layers| state::Open { engine, layers, ..state::Open::default() };
        assert!(matches!(parse(message(None, layers)), Err(InvalidOpenError::NoEngine)));
        assert!(matches!(parse(message(engine(), 0)), Err(InvalidOpenError::NoLayers)));
        assert!(matches!(parse(message(engine(), 77)), Err(InvalidOpenError::NoLayers)));
        assert!(parse(message(engine(), layers)).is_ok());
    }

    #[test]
    fn only_what_another_process_holds_may_work_later() {
        let path = || "/x".into();
        assert!(refusal(&OpenError::InUse { path: path(), holder: None }).retryable);
        assert!(refusal(&Error::Busy(Duration::ZERO).into()).retryable);
        let full = refusal(&Error::Full("disk".into()).into());
        assert!(!full.retryable && full.message.contains("free some space"), "{full:?}");
        let damaged = refusal(&OpenError::Damaged { path: path(), detail: "cut off".into() });
        assert!(!damaged.retryable && damaged.message.contains("talon restore"), "{damaged:?}");
    }
}

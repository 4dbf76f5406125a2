//! The socket of a server under measurement.

use std::path::Path;

use anyhow::Result;
use tokio::net::UnixListener;

/// A listening socket; tells the parent that it listens.
pub(super) fn listen(socket: &Path) -> Result<UnixListener> {
    let listener = UnixListener::bind(socket)?;
    crate::worker::ready()?;
    Ok(listener)
}

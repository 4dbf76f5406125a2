//! The socket to which shells report.

use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;

use super::message::ShellMessage;
use crate::event::{CommandEvent, Event};
use crate::limits::MESSAGE_BYTES;
use crate::notice::Notices;
use crate::runtime_dir;

/// The socket cannot be served.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ListenError {
    #[error(
        "XDG_RUNTIME_DIR is not set: shells cannot report; log in through systemd, or set shadow.watchers.shell.enabled: false"
    )]
    NoRuntimeDirectory,
    #[error("another talon-watch serves {}; end it first", .0.display())]
    InUse(PathBuf),
    #[error("cannot serve {}: {error}", path.display())]
    Bind { path: PathBuf, error: io::Error },
}

/// Serves the socket in a thread. `dropped` counts messages for which there was no room.
pub(crate) fn start(
    watched: Vec<PathBuf>,
    events: SyncSender<Event>,
    dropped: Arc<AtomicU64>,
    notices: Notices,
) -> Result<PathBuf, ListenError> {
    let path = runtime_dir::shell_socket().ok_or(ListenError::NoRuntimeDirectory)?;
    let socket = bind(&path)?;
    let failed = |error| ListenError::Bind { path: path.clone(), error };
    let serve = move || {
        // One byte more than the longest message: a longer datagram is cut by the kernel, and is told by that.
        let mut buffer = vec![0; MESSAGE_BYTES + 1];
        loop {
            let length = match socket.recv(&mut buffer) {
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    notices.once(
                        "shell",
                        format!("shells cannot report any more: {error}; start talon-watch again"),
                    );
                    return;
                }
            };
            let Some(message) = ShellMessage::read(&buffer[..length]) else {
                let text = "a message was refused that is none of a shell's integration: open new shells after an upgrade";
                notices.once("message", text);
                continue;
            };
            // Opted in per directory, as everything is.
            if !watched.iter().any(|root| message.directory.starts_with(root)) {
                continue;
            }
            let event = Event::Command(CommandEvent {
                command: message.command,
                exit_code: Some(message.exit_code),
                directory: message.directory,
                duration_ms: Some(message.duration_ms),
            });
            // A shell never waits for a watcher.
            if events.try_send(event).is_err() {
                dropped.fetch_add(1, Ordering::Relaxed);
            }
        }
    };
    std::thread::Builder::new().name("shell".to_owned()).spawn(serve).map_err(failed)?;
    Ok(path)
}

fn bind(path: &Path) -> Result<UnixDatagram, ListenError> {
    let failed = |error| ListenError::Bind { path: path.to_owned(), error };
    runtime_dir::make_directory(path).map_err(failed)?;
    // Only who serves it receives on it; a socket that nobody serves is a remainder.
    let probe = UnixDatagram::unbound().map_err(failed)?;
    if probe.connect(path).is_ok() {
        return Err(ListenError::InUse(path.to_owned()));
    }
    if runtime_dir::is_own(path) {
        std::fs::remove_file(path).map_err(failed)?;
    }
    let socket = UnixDatagram::bind(path).map_err(failed)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).map_err(failed)?;
    Ok(socket)
}

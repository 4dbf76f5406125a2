//! `talon-watch report`: started by a shell after a command; sends one datagram and ends.
//!
//! The command line comes on stdin, and not as an argument, which everybody on the machine could read.

use std::io::Read as _;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;

use clap::Args;

use super::message::ShellMessage;
use crate::runtime_dir;

/// How much of stdin is read: longer command lines are cut in the message.
const STDIN_BYTES: u64 = 64 * 1024;

/// Sends one command that ended to the watcher. Used by what `talon shell-init` prints.
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Its exit code.
    #[arg(long, value_name = "CODE", allow_negative_numbers = true)]
    exit: i32,
    /// The directory in which it ran.
    #[arg(long, value_name = "PATH")]
    directory: PathBuf,
    /// How long it ran, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 0)]
    duration_ms: u64,
}

/// Sends the message. All errors are ignored: a shell must not be disturbed because no watcher runs.
pub(crate) fn report(args: ReportArgs) {
    let mut bytes = Vec::new();
    if std::io::stdin().lock().take(STDIN_BYTES).read_to_end(&mut bytes).is_err() {
        return;
    }
    let command = String::from_utf8_lossy(&bytes);
    let message = ShellMessage::new(&command, args.exit, args.directory, args.duration_ms);
    let (Some(message), Some(path)) = (message, runtime_dir::shell_socket()) else { return };
    // A socket of another user's would get what this one types.
    if !runtime_dir::is_own(&path) {
        return;
    }
    let Ok(socket) = UnixDatagram::unbound() else { return };
    if socket.set_nonblocking(true).is_ok() {
        let _ = socket.send_to(&message.bytes(), path);
    }
}

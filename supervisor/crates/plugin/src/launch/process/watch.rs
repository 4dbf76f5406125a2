//! Watches a process until none of it is left.

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::time::Duration;

use talon_jail::ExitStatus;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::watch;

use super::inner::{Exit, ProcessInner, ServedSockets};

/// How long a monitor may clean up after a program that has ended, before the kill of everything is repeated.
/// It only has to kill and wait, so this passes only if the monitor was stopped.
const CLEANUP_TIMEOUT: Duration = Duration::from_secs(5);

/// One of the monitor's descriptors; keeps the monitor alive while a task waits on it.
pub(super) struct ControlFd(pub(super) Arc<ProcessInner>);
pub(super) struct PidFd(pub(super) Arc<ProcessInner>);

impl AsRawFd for ControlFd {
    fn as_raw_fd(&self) -> RawFd {
        self.0.monitor.control().as_raw_fd()
    }
}

impl AsRawFd for PidFd {
    fn as_raw_fd(&self) -> RawFd {
        self.0.monitor.pidfd().as_raw_fd()
    }
}

#[expect(
    deprecated,
    reason = "the successor is unsafe, which this crate forbids; what it asks for holds: the descriptor belongs to \
              the monitor, which lives as long as a task waits on it"
)]
pub(super) fn readable<F: AsRawFd>(fd: F) -> io::Result<AsyncFd<F>> {
    AsyncFd::with_interest(fd, Interest::READABLE)
}

/// Watches it until none of it is left.
pub(super) async fn watch_until_gone(
    control: AsyncFd<ControlFd>,
    pidfd: AsyncFd<PidFd>,
    exit: watch::Sender<Option<Exit>>,
) {
    let inner = control.get_ref().0.clone();
    let status = wait_program_exit(&control).await;
    // The cgroup knows about memory; a monitor that was killed along with the program cannot tell.
    let status = inner.group.lock().as_ref().map_or(status, |group| group.explain(status));
    *inner.sockets.lock() = ServedSockets::default();
    exit.send_replace(Some(Exit { status }));
    if tokio::time::timeout(CLEANUP_TIMEOUT, wait_monitor_exit(&pidfd)).await.is_err() {
        inner.kill_all();
        if tokio::time::timeout(CLEANUP_TIMEOUT, wait_monitor_exit(&pidfd)).await.is_err() {
            inner.monitor.kill_monitor();
            wait_monitor_exit(&pidfd).await;
        }
    }
    let removed = tokio::task::spawn_blocking(move || {
        // This kills what may be left in the cgroup, and waits for that.
        drop(inner.group.lock().take());
        inner.dir.remove();
        drop(inner.view.lock().take());
    });
    let _ = removed.await;
}

/// Waits for the monitor's report about the program, or for the monitor's end.
async fn wait_program_exit(control: &AsyncFd<ControlFd>) -> ExitStatus {
    loop {
        let Ok(mut ready) = control.readable().await else { return ExitStatus::MonitorLost };
        match control.get_ref().0.monitor.try_exit_status() {
            Ok(Some(status)) => return status,
            Ok(None) => ready.clear_ready(),
            Err(error) => {
                tracing::warn!(%error, "a plugin's monitor cannot be understood");
                let _ = control.get_ref().0.monitor.kill_all();
                return ExitStatus::MonitorLost;
            }
        }
    }
}

/// Waits until the monitor has exited, and reaps it.
async fn wait_monitor_exit(pidfd: &AsyncFd<PidFd>) {
    loop {
        let Ok(mut ready) = pidfd.readable().await else { return };
        match pidfd.get_ref().0.monitor.reap() {
            Ok(false) => ready.clear_ready(),
            Ok(true) | Err(_) => return,
        }
    }
}

//! The service manager: messages to it, and its store of descriptors.
//!
//! Messages are those of `sd_notify(3)`. Repeated messages never wait, because the event loop sends them: if
//! the manager does not read, they are lost. Messages that are sent once (such as the end of the start) wait
//! up to a second.

use std::env;
use std::fmt::Write as _;
use std::io::{self, IoSlice, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::retry_on_intr;
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags,
    SocketType, sendmsg_addr, socket_with,
    sockopt::{Timeout, set_socket_timeout},
};
use rustix::pipe::{PipeFlags, pipe_with};
use sd_notify::NotifyState;
use talon_listen::LogThrottle;
use tokio::time::{Instant, interval};
use tokio_util::task::AbortOnDropHandle;

/// The name of the stored descriptor for the next supervisor.
pub(crate) const STORED_FD_NAME: &str = "handover";

/// Set if the unit has a descriptor store: systemd sets it from version 254 on.
const STORE_VARIABLE: &str = "FDSTORE";
/// The same, set by the unit file, for earlier versions.
const OWN_STORE_VARIABLE: &str = "TALON_FDSTORE";

/// Maximum length of the status in bytes: a line that fits on a screen. A longer one is cut, with a mark.
const MAX_STATUS_BYTES: usize = 200;

/// How long the manager may take to process all earlier messages. It reads those of all units in one loop, so
/// some seconds mean a busy machine. If it takes longer, it does not read at all, and nothing was stored.
const BARRIER_WITHIN: Duration = Duration::from_secs(10);

/// How long messages that are sent once wait for room in the manager's queue. It is full for some
/// milliseconds, or for good.
const ROOM_WITHIN: Duration = Duration::from_secs(1);

/// For messages that are sent once.
const BLOCKING: SendFlags = SendFlags::empty();

/// How much more time is requested, and how often: a supervisor that hangs is noticed after this time.
const EXTEND_BY: Duration = Duration::from_secs(20);
const EXTEND_EVERY: Duration = Duration::from_secs(5);

static NOT_SENT: LogThrottle = LogThrottle::new();

/// The service manager, if there is one. Clones share state.
#[derive(Debug, Clone, Default)]
pub(crate) struct Manager {
    inner: Option<Arc<Inner>>,
}

#[derive(Debug)]
struct Inner {
    socket: OwnedFd,
    address: SocketAddrUnix,
    has_fd_store: bool,
    watchdog: Option<Duration>,
    /// Whether the end of the start was reported.
    started: AtomicBool,
}

/// A reload in progress; its end is reported on drop.
pub(crate) struct ReloadGuard(Manager);

impl Drop for ReloadGuard {
    fn drop(&mut self) {
        self.0.ready();
    }
}

impl Manager {
    /// The manager that `$NOTIFY_SOCKET` names; none without that variable. An unusable address is logged,
    /// and then there is none either.
    pub(crate) fn of_process() -> Self {
        let Some(path) = env::var_os("NOTIFY_SOCKET").filter(|path| !path.is_empty()) else {
            return Self::default();
        };
        match Self::at(path.as_bytes()) {
            Ok(manager) => manager,
            Err(error) => {
                tracing::warn!(%error, "NOTIFY_SOCKET cannot be used: the service manager receives no notifications");
                Self::default()
            }
        }
    }

    fn at(path: &[u8]) -> io::Result<Self> {
        let address = match path.strip_prefix(b"@") {
            Some(name) => SocketAddrUnix::new_abstract_name(name)?,
            None => SocketAddrUnix::new(path)?,
        };
        let socket = socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
        set_socket_timeout(&socket, Timeout::Send, Some(ROOM_WITHIN))?;
        let number = |name| env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(0_u32);
        let stores = number(STORE_VARIABLE) > 0 || number(OWN_STORE_VARIABLE) > 0;
        let inner = Inner {
            socket,
            address,
            has_fd_store: stores,
            watchdog: sd_notify::watchdog_enabled(),
            started: AtomicBool::new(false),
        };
        Ok(Self { inner: Some(Arc::new(inner)) })
    }

    /// Whether there is a manager.
    pub(crate) fn is_present(&self) -> bool {
        self.inner.is_some()
    }

    /// Whether it stores descriptors for the next supervisor.
    pub(crate) fn has_fd_store(&self) -> bool {
        self.inner.as_ref().is_some_and(|inner| inner.has_fd_store)
    }

    /// The watchdog interval, within which [`fed`](Self::fed) must be called repeatedly; `None` without a
    /// watchdog.
    pub(crate) fn watchdog(&self) -> Option<Duration> {
        self.inner.as_ref()?.watchdog.filter(|every| !every.is_zero())
    }

    /// Reports the end of the start, or of a reload.
    pub(crate) fn ready(&self) {
        if let Some(inner) = &self.inner {
            inner.started.store(true, Ordering::Release);
        }
        self.tell(BLOCKING, &[NotifyState::Ready]);
    }

    /// Reports the start of a reload; its end is reported when the result is dropped, also if nothing
    /// changed. During the start nothing is reported, because the end of the reload would be taken for the
    /// end of the start.
    pub(crate) fn reload(&self) -> Option<ReloadGuard> {
        let started = self.inner.as_ref()?.started.load(Ordering::Acquire);
        started.then(|| {
            self.reloading();
            ReloadGuard(self.clone())
        })
    }

    fn reloading(&self) {
        match NotifyState::monotonic_usec_now() {
            Ok(now) => self.tell(BLOCKING, &[NotifyState::Reloading, now]),
            Err(error) => tracing::warn!(%error, "the service manager was not notified of the reload"),
        }
    }

    /// Reports that the supervisor stops.
    pub(crate) fn stopping(&self) {
        self.tell(BLOCKING, &[NotifyState::Stopping]);
    }

    /// Sets the text in `systemctl status`: one line, neutralized by the caller.
    pub(crate) fn status(&self, line: &str) {
        self.tell(SendFlags::DONTWAIT, &[NotifyState::Status(&one_line(line))]);
    }

    /// Feeds the watchdog.
    pub(crate) fn feed_watchdog(&self) {
        self.tell(SendFlags::DONTWAIT, &[NotifyState::Watchdog]);
    }

    /// Allows the current operation this much more time from now.
    fn extend(&self, by: Duration) {
        let by = u32::try_from(by.as_micros()).unwrap_or(u32::MAX);
        self.tell(SendFlags::DONTWAIT, &[NotifyState::ExtendTimeoutUsec(by)]);
    }

    /// Requests more time repeatedly until the handle is dropped, for at most this long.
    pub(crate) fn keep_extending(&self, limit: Duration) -> Option<AbortOnDropHandle<()>> {
        let manager = self.clone();
        self.is_present().then(|| {
            AbortOnDropHandle::new(tokio::spawn(async move {
                let began = Instant::now();
                let mut ticks = interval(EXTEND_EVERY);
                while began.elapsed() < limit {
                    ticks.tick().await;
                    manager.extend(EXTEND_BY);
                }
            }))
        })
    }

    /// Removes the stored descriptors.
    pub(crate) fn remove_stored(&self) {
        let name = format!("FDNAME={STORED_FD_NAME}");
        self.tell(BLOCKING, &["FDSTOREREMOVE=1", &name].map(NotifyState::Custom));
    }

    /// Stores a descriptor for the next supervisor, and waits until the manager has processed it, as far as
    /// that is visible. Blocks for at most ten seconds.
    ///
    /// # Errors
    /// When there is no manager, or it does not read.
    pub(crate) fn store(&self, descriptor: BorrowedFd<'_>) -> io::Result<()> {
        let inner = self.inner.as_ref().ok_or(io::ErrorKind::NotFound)?;
        // There is only one at a time.
        self.remove_stored();
        let name = format!("FDNAME={STORED_FD_NAME}");
        // The other end of this socket is closed, which the manager would take for a hangup (so no FDPOLL).
        let state = ["FDSTORE=1", &name, "FDPOLL=0"].map(NotifyState::Custom);
        inner.send(BLOCKING, &text(&state), &[descriptor])?;
        inner.barrier()
    }

    fn tell(&self, how: SendFlags, state: &[NotifyState<'_>]) {
        let Some(inner) = &self.inner else { return };
        if let Err(error) = inner.send(how, &text(state), &[])
            && let Some(unsaid) = NOT_SENT.permit()
        {
            tracing::warn!(%error, unsaid, "a notification to the service manager failed");
        }
    }
}

impl Inner {
    fn send(&self, how: SendFlags, text: &str, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() {
            let fits = ancillary.push(SendAncillaryMessage::ScmRights(descriptors));
            debug_assert!(fits, "the space is made for one descriptor");
        }
        let bytes = [IoSlice::new(text.as_bytes())];
        let flags = SendFlags::NOSIGNAL | how;
        retry_on_intr(|| sendmsg_addr(&self.socket, &self.address, &bytes, &mut ancillary, flags))?;
        Ok(())
    }

    /// The manager closes the descriptor once it has processed all earlier messages.
    fn barrier(&self) -> io::Result<()> {
        let (ours, theirs) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        self.send(BLOCKING, "BARRIER=1\n", &[theirs.as_fd()])?;
        drop(theirs);
        let mut waits = [PollFd::new(&ours, PollFlags::IN)];
        let within = BARRIER_WITHIN.try_into().map_err(io::Error::other)?;
        if retry_on_intr(|| poll(&mut waits, Some(&within)))? == 0 {
            return Err(io::ErrorKind::TimedOut.into());
        }
        // End of file, and no data.
        match std::fs::File::from(ours).read(&mut [0])? {
            0 => Ok(()),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

fn text(state: &[NotifyState<'_>]) -> String {
    state.iter().fold(String::new(), |mut text, state| {
        let _ = writeln!(text, "{state}");
        text
    })
}

/// Newlines would end the message, and start another one.
fn one_line(text: &str) -> String {
    let inert: String = text.chars().map(|char| if char.is_control() { ' ' } else { char }).collect();
    if inert.len() <= MAX_STATUS_BYTES {
        return inert;
    }
    format!("{}…", &inert[..inert.floor_char_boundary(MAX_STATUS_BYTES)])
}

#[cfg(test)]
#[path = "notify_tests.rs"]
mod tests;

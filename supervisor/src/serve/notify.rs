//! The service manager: what it is told, and what it keeps for us.
//!
//! Messages are those of `sd_notify(3)`. What is said again and again never waits, because what says it is the event loop: a
//! manager that does not read loses it. What is said once (that the start is over, say) waits for a second for room.

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
use talon_listen::Throttle;
use tokio::time::{Instant, interval};
use tokio_util::task::AbortOnDropHandle;

/// The name under which the manager keeps what the next supervisor takes over.
pub(super) const STORED: &str = "handover";

/// Says that the unit has a store for descriptors: systemd sets it from version 254 on.
const STORE_VARIABLE: &str = "FDSTORE";
/// The same from the unit file, for the versions before.
const OWN_STORE_VARIABLE: &str = "TALON_FDSTORE";

/// The longest status, in bytes: a line that fits on a screen. What is longer is cut, with a mark.
const MAX_STATUS_BYTES: usize = 200;

/// How long the manager may take to have read all that it was sent before. It reads in one loop what all units send, so
/// some seconds are a busy machine; one that takes longer does not read at all, and then nothing was stored.
const BARRIER_WITHIN: Duration = Duration::from_secs(10);

/// How long what is said once waits for room in the manager's queue. It is full for some milliseconds, or for good.
const ROOM_WITHIN: Duration = Duration::from_secs(1);

/// For what is said once.
const WAITS: SendFlags = SendFlags::empty();

/// How much more time is asked for, and how often: the manager waits for so long for one that is stuck.
const EXTEND_BY: Duration = Duration::from_secs(20);
const EXTEND_EVERY: Duration = Duration::from_secs(5);

static NOT_SENT: Throttle = Throttle::new();

/// The service manager, if there is one. Clones are the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Manager {
    inner: Option<Arc<Inner>>,
}

#[derive(Debug)]
struct Inner {
    socket: OwnedFd,
    address: SocketAddrUnix,
    stores: bool,
    watchdog: Option<Duration>,
    /// Whether it was told that the start is over.
    started: AtomicBool,
}

/// A reload that goes on; its end is told when this is dropped.
pub(crate) struct Reloading(Manager);

impl Drop for Reloading {
    fn drop(&mut self) {
        self.0.ready();
    }
}

impl Manager {
    /// The one that `$NOTIFY_SOCKET` names; none where there is no such variable. An address that cannot be used is said
    /// in the log, and then there is none either.
    pub(super) fn of_process() -> Self {
        let Some(path) = env::var_os("NOTIFY_SOCKET").filter(|path| !path.is_empty()) else {
            return Self::default();
        };
        match Self::at(path.as_bytes()) {
            Ok(manager) => manager,
            Err(error) => {
                tracing::warn!(%error, "NOTIFY_SOCKET cannot be used: the service manager is told nothing");
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
            stores,
            watchdog: sd_notify::watchdog_enabled(),
            started: AtomicBool::new(false),
        };
        Ok(Self { inner: Some(Arc::new(inner)) })
    }

    /// Whether there is one.
    pub(super) fn is_there(&self) -> bool {
        self.inner.is_some()
    }

    /// Whether it keeps descriptors for the next supervisor.
    pub(super) fn stores(&self) -> bool {
        self.inner.as_ref().is_some_and(|inner| inner.stores)
    }

    /// Within which time it has to hear [`fed`](Self::fed) again and again; `None` if it does not wait for that.
    pub(super) fn watchdog(&self) -> Option<Duration> {
        self.inner.as_ref()?.watchdog.filter(|every| !every.is_zero())
    }

    /// The start is over, or a reload.
    pub(crate) fn ready(&self) {
        if let Some(inner) = &self.inner {
            inner.started.store(true, Ordering::Release);
        }
        self.tell(WAITS, &[NotifyState::Ready]);
    }

    /// A reload begins, which ends with what is returned, also if it changes nothing. One in the middle of the start is told to
    /// nobody: its end would be taken for the end of the start.
    pub(crate) fn reload(&self) -> Option<Reloading> {
        let started = self.inner.as_ref()?.started.load(Ordering::Acquire);
        started.then(|| {
            self.reloading();
            Reloading(self.clone())
        })
    }

    fn reloading(&self) {
        match NotifyState::monotonic_usec_now() {
            Ok(now) => self.tell(WAITS, &[NotifyState::Reloading, now]),
            Err(error) => tracing::warn!(%error, "the service manager is not told of the reload"),
        }
    }

    /// The end begins.
    pub(super) fn stopping(&self) {
        self.tell(WAITS, &[NotifyState::Stopping]);
    }

    /// What `systemctl status` shows: one line, made inert by whoever wrote it.
    pub(super) fn status(&self, line: &str) {
        self.tell(SendFlags::DONTWAIT, &[NotifyState::Status(&one_line(line))]);
    }

    /// Everything that has to run does.
    pub(super) fn fed(&self) {
        self.tell(SendFlags::DONTWAIT, &[NotifyState::Watchdog]);
    }

    /// What goes on may take so much longer, from now.
    fn extend(&self, by: Duration) {
        let by = u32::try_from(by.as_micros()).unwrap_or(u32::MAX);
        self.tell(SendFlags::DONTWAIT, &[NotifyState::ExtendTimeoutUsec(by)]);
    }

    /// Asks for more time again and again until the handle is dropped, for this long at the most.
    pub(super) fn extending(&self, limit: Duration) -> Option<AbortOnDropHandle<()>> {
        let manager = self.clone();
        self.is_there().then(|| {
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

    /// Lets go of what it keeps for us.
    pub(super) fn forget_stored(&self) {
        let name = format!("FDNAME={STORED}");
        self.tell(WAITS, &["FDSTOREREMOVE=1", &name].map(NotifyState::Custom));
    }

    /// Has it keep a descriptor for the next supervisor, and waits until it does, as far as that can be known. Blocking,
    /// for at most ten seconds.
    ///
    /// # Errors
    /// When there is no manager, or it does not read.
    pub(super) fn store(&self, descriptor: BorrowedFd<'_>) -> io::Result<()> {
        let inner = self.inner.as_ref().ok_or(io::ErrorKind::NotFound)?;
        // There is one at a time.
        self.forget_stored();
        let name = format!("FDNAME={STORED}");
        // Its other end is closed, which the manager would take for its end.
        let state = ["FDSTORE=1", &name, "FDPOLL=0"].map(NotifyState::Custom);
        inner.send(WAITS, &text(&state), &[descriptor])?;
        inner.barrier()
    }

    fn tell(&self, how: SendFlags, state: &[NotifyState<'_>]) {
        let Some(inner) = &self.inner else { return };
        if let Err(error) = inner.send(how, &text(state), &[])
            && let Some(unsaid) = NOT_SENT.word()
        {
            tracing::warn!(%error, unsaid, "the service manager could not be told something");
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

    /// The manager closes what it gets here once it has dealt with all that came before.
    fn barrier(&self) -> io::Result<()> {
        let (ours, theirs) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        self.send(WAITS, "BARRIER=1\n", &[theirs.as_fd()])?;
        drop(theirs);
        let mut waits = [PollFd::new(&ours, PollFlags::IN)];
        let within = BARRIER_WITHIN.try_into().map_err(io::Error::other)?;
        if retry_on_intr(|| poll(&mut waits, Some(&within)))? == 0 {
            return Err(io::ErrorKind::TimedOut.into());
        }
        // Its end, and nothing else.
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

/// Newlines would end the message, and begin another one.
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

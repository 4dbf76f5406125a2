//! A service manager for tests: it receives what `sd_notify(3)` sends, stores descriptors, and passes them to
//! the next start.
//!
//! It does what systemd does with `NotifyAccess=main` and `FileDescriptorStoreMax=`, and nothing else: no
//! unit, no timeouts. The supervisor is started by a small program that execs it, because `LISTEN_PID` has to
//! be its own pid.

use std::io::{IoSlice, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use tokio::sync::watch;

use talon_harness::{Builder, Scratch, program};

/// Only a limit for hangs, not an expectation of speed.
const WAIT_TIMEOUT: Duration = Duration::from_secs(60);

/// The most descriptors that are passed to one start.
const MAX_DESCRIPTORS: usize = 16;

/// The manager. It runs on two threads, which end with the test's process.
#[derive(Debug)]
pub struct ServiceManager {
    scratch: Scratch,
    state: Arc<ManagerState>,
}

#[derive(Debug)]
struct ManagerState {
    messages: watch::Sender<Vec<String>>,
    /// Of the socket units.
    sockets: Mutex<Vec<(String, OwnedFd)>>,
    /// The descriptor store.
    stored: Mutex<Vec<(String, OwnedFd)>>,
    paused: AtomicBool,
    /// Descriptors received while paused: a client that waits for a barrier waits.
    unread: Mutex<Vec<OwnedFd>>,
}

impl Default for ServiceManager {
    fn default() -> Self {
        Self::new()
    }
}

impl ServiceManager {
    /// A manager without sockets and with an empty store.
    ///
    /// # Panics
    /// When the scratch directory takes no sockets.
    #[must_use]
    pub fn new() -> Self {
        let scratch = Scratch::new();
        let notify = UnixDatagram::bind(scratch.join("notify")).expect("the directory is ours");
        let hands = UnixListener::bind(scratch.join("hand")).expect("the directory is ours");
        let state = Arc::new(ManagerState {
            messages: watch::Sender::new(Vec::new()),
            sockets: Mutex::default(),
            stored: Mutex::default(),
            paused: AtomicBool::new(false),
            unread: Mutex::default(),
        });
        let hearing = state.clone();
        std::thread::spawn(move || while hearing.receive(&notify) {});
        let handing = state.clone();
        std::thread::spawn(move || {
            while let Ok((stream, _)) = hands.accept() {
                handing.send_descriptors(&stream);
            }
        });
        Self { scratch, state }
    }

    /// Passes a socket to every start, under this name.
    ///
    /// # Panics
    /// Never: no thread panics.
    pub fn socket(&self, name: &str, socket: OwnedFd) {
        self.state.sockets.lock().push((name.to_owned(), socket));
    }

    /// Makes it run a supervisor as a unit with a store.
    #[must_use]
    pub fn attach(&self, builder: Builder) -> Builder {
        let hand = self.scratch.join("hand");
        let helper = program("talon-handed");
        let wrapper =
            [helper.to_str().expect("our paths are text"), hand.to_str().expect("our paths are text")];
        builder.env("NOTIFY_SOCKET", &self.notify_socket()).env("FDSTORE", "4").wrapped(&wrapper)
    }

    /// The value of `NOTIFY_SOCKET`.
    ///
    /// # Panics
    /// When the scratch directory's path is not UTF-8.
    #[must_use]
    pub fn notify_socket(&self) -> String {
        self.scratch.join("notify").to_str().expect("our paths are text").to_owned()
    }

    /// The names in the store.
    ///
    /// # Panics
    /// Never: no thread panics.
    #[must_use]
    pub fn stored(&self) -> Vec<String> {
        self.state.stored.lock().iter().map(|(name, _)| name.clone()).collect()
    }

    /// Replaces a descriptor in the store.
    ///
    /// # Panics
    /// Never: no thread panics.
    pub fn replace_stored(&self, name: &str, descriptor: OwnedFd) {
        *self.state.stored.lock() = vec![(name.to_owned(), descriptor)];
    }

    /// Empties the store, as at a real stop.
    ///
    /// # Panics
    /// Never: no thread panics.
    pub fn drop_stored(&self) {
        self.state.stored.lock().clear();
    }

    /// Stops receiving: after a while a sender finds the socket full, and gets no answer.
    pub fn pause(&self) {
        self.state.paused.store(true, Ordering::Release);
    }

    /// All lines received so far.
    #[must_use]
    pub fn messages(&self) -> Vec<String> {
        self.state.messages.borrow().clone()
    }

    /// Clears the received lines.
    pub fn clear_messages(&self) {
        self.state.messages.send_modify(Vec::clear);
    }

    /// Waits for a line.
    ///
    /// # Panics
    /// When it does not come.
    pub async fn wait_message(&self, wanted: impl Fn(&str) -> bool) -> String {
        let mut heard = self.state.messages.subscribe();
        let found = heard.wait_for(|lines| lines.iter().any(|line| wanted(line)));
        let found = tokio::time::timeout(WAIT_TIMEOUT, found).await;
        let Ok(Ok(lines)) = found else { panic!("it was not heard: {:?}", self.messages()) };
        lines.iter().find(|line| wanted(line)).expect("it was just there").clone()
    }
}

impl ManagerState {
    /// Receives one message.
    fn receive(&self, notify: &UnixDatagram) -> bool {
        let mut bytes = [0; 4096];
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut into = [std::io::IoSliceMut::new(&mut bytes)];
        let Ok(received) = recvmsg(notify, &mut into, &mut ancillary, RecvFlags::CMSG_CLOEXEC) else {
            return false;
        };
        let rights = |message| match message {
            RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
            _ => None,
        };
        let descriptors: Vec<OwnedFd> = ancillary.drain().filter_map(rights).flatten().collect();
        if self.paused.load(Ordering::Acquire) {
            self.unread.lock().extend(descriptors);
            return true;
        }
        let text = String::from_utf8_lossy(&bytes[..received.bytes]).into_owned();
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let name = || {
            let name = lines.iter().find_map(|line| line.strip_prefix("FDNAME="));
            name.unwrap_or("stored").to_owned()
        };
        let mut stored = self.stored.lock();
        if lines.iter().any(|line| line == "FDSTOREREMOVE=1") {
            stored.retain(|(kept, _)| *kept != name());
        }
        if lines.iter().any(|line| line == "FDSTORE=1") {
            stored.extend(descriptors.into_iter().map(|descriptor| (name(), descriptor)));
        }
        drop(stored);
        // The descriptors of a barrier are closed here, after all earlier messages.
        self.messages.send_modify(|heard| heard.extend(lines));
        true
    }

    /// Sends a start its names, then the descriptors.
    fn send_descriptors(&self, mut stream: &UnixStream) {
        let (sockets, stored) = (self.sockets.lock(), self.stored.lock());
        let all: Vec<_> = sockets.iter().chain(stored.iter()).collect();
        let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
        let descriptors: Vec<_> = all.iter().map(|(_, descriptor)| descriptor.as_fd()).collect();
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() {
            assert!(ancillary.push(SendAncillaryMessage::ScmRights(&descriptors)), "too many");
        }
        let count = [u8::try_from(descriptors.len()).expect("there are few")];
        let sent = sendmsg(stream, &[IoSlice::new(&count)], &mut ancillary, SendFlags::NOSIGNAL);
        // A process that ended meanwhile needs nothing.
        let _ = sent.map_err(std::io::Error::from).and_then(|_| stream.write_all(names.join(":").as_bytes()));
    }
}

/// A listening unix socket, as a socket unit makes it.
///
/// # Panics
/// When the path takes none.
#[must_use]
pub fn listening(path: &PathBuf) -> OwnedFd {
    UnixListener::bind(path).expect("the directory is ours").into()
}

/// The two ends of a seqpacket socket pair, as in an FdBundle.
///
/// # Panics
/// When there are too many open files.
#[must_use]
pub fn seqpacket_pair() -> (OwnedFd, OwnedFd) {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
    socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).expect("there is room")
}

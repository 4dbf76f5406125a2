//! Learns which calls a program needs: calls outside its profile are allowed, and recorded here.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::retry_on_intr;

use super::compiled_profile::CompiledProfile;
use super::syscalls::Architecture;
use crate::sys::seccomp::{self, Notification};

/// The most argument combinations of one call that are recorded; further ones are allowed without a record.
/// The built-in profiles name at most some thirty values of one argument.
const ARGUMENT_SETS_MAX: usize = 64;

/// A use of a system call outside the profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedCall {
    /// The call, as the kernel names it; `None` for a number without a name.
    pub name: Option<&'static str>,
    /// Its number on this machine.
    pub number: u32,
    /// For calls that the profile opens in part: the deciding arguments (position from 0, low 32 bits).
    pub arguments: Vec<(u8, u32)>,
    /// How often it was made.
    pub times: u64,
}

/// Number of uses by call number and deciding arguments.
type UseCounts = BTreeMap<u32, BTreeMap<Vec<(u8, u32)>, u64>>;

/// Answers the filter notifications of a learning program on a separate thread, until no process is bound to
/// the filter any more. Dropping this does not end the thread: unanswered calls would fail with ENOSYS.
#[derive(Debug)]
pub struct Learner {
    counts: Arc<Mutex<UseCounts>>,
    thread: JoinHandle<()>,
}

impl Learner {
    pub(crate) fn start(listener: OwnedFd, profile: &CompiledProfile) -> io::Result<Self> {
        let counts = Arc::new(Mutex::new(UseCounts::new()));
        let (to, deciding_arguments) = (Arc::clone(&counts), profile.deciding_arguments.clone());
        let answering = thread::Builder::new().name("jail-learn".into()).spawn(move || {
            while let Some(notification) = next_notification(&listener) {
                count_use(&to, &notification, &deciding_arguments);
                // The process that made the call may have been killed by now, which does not matter.
                let _ = seccomp::allow(listener.as_fd(), notification.id);
            }
        })?;
        Ok(Self { counts, thread: answering })
    }

    /// The calls that were used so far, in the order of their numbers.
    pub fn observed(&self) -> Vec<ObservedCall> {
        observed_calls(&self.counts)
    }

    /// Waits until the last process under the filter has ended, and returns the calls that were used. Blocks
    /// as long as the program runs.
    pub fn finish(self) -> Vec<ObservedCall> {
        // The thread does not panic; if it did, what it recorded before would still be valid.
        let _ = self.thread.join();
        observed_calls(&self.counts)
    }
}

fn observed_calls(counts: &Mutex<UseCounts>) -> Vec<ObservedCall> {
    let machine = Architecture::native("").ok();
    let counts = counts.lock();
    let ways = counts.iter().flat_map(|(number, ways)| ways.iter().map(move |way| (*number, way)));
    let used = ways.map(|(number, (arguments, times))| ObservedCall {
        name: machine.and_then(|machine| machine.name(number)),
        number,
        arguments: arguments.clone(),
        times: *times,
    });
    used.collect()
}

/// The next call that waits for an answer; `None` when no process is left that could make one.
fn next_notification(listener: &OwnedFd) -> Option<Notification> {
    loop {
        let mut polled = [PollFd::new(listener, PollFlags::IN)];
        retry_on_intr(|| poll(&mut polled, None)).ok()?;
        let ready = polled[0].revents();
        if !ready.contains(PollFlags::IN) {
            return None;
        }
        match seccomp::next_notification(listener.as_fd()) {
            Ok(notification) => return Some(notification),
            // The calling process was killed or interrupted in between.
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::Interrupted) => {}
            Err(_) => return None,
        }
    }
}

fn count_use(
    counts: &Mutex<UseCounts>,
    notification: &Notification,
    deciding_arguments: &BTreeMap<u32, Vec<u8>>,
) {
    let low = |value: u64| u32::try_from(value & u64::from(u32::MAX)).expect("it was cut to 32 bits");
    let argument = |at: &u8| Some((*at, low(*notification.arguments.get(usize::from(*at))?)));
    let way = deciding_arguments
        .get(&notification.number)
        .map(|places| places.iter().filter_map(argument).collect());
    let mut counts = counts.lock();
    let ways = counts.entry(notification.number).or_default();
    if ways.len() < ARGUMENT_SETS_MAX {
        *ways.entry(way.unwrap_or_default()).or_default() += 1;
    } else if let Some(times) = ways.get_mut(&way.unwrap_or_default()) {
        *times += 1;
    }
}

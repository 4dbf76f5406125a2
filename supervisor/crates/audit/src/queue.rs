//! The bounded queue of records to write. Records that do not fit are counted at the position where they are
//! missing.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tokio::sync::{Semaphore, oneshot};

use crate::record::Body;

/// How many records may wait: a burst from all clients at once. They take some MiB of memory at the usual
/// size and 80 MiB at the largest. Beyond that, calls wait for room, and then their records are lost.
pub const QUEUE_RECORDS: usize = 1024;

/// An entry of the queue.
#[derive(Debug)]
pub(crate) enum Item {
    Record {
        body: Body,
        unix_ms: u64,
        /// Notified when the record is in the file.
        written: oneshot::Sender<()>,
    },
    /// This many records are missing here.
    Lost { count: u64, unix_ms: u64 },
}

#[derive(Debug, Default)]
struct State {
    items: VecDeque<Item>,
    /// Callers that wait for the file to be closed.
    closing: Vec<oneshot::Sender<()>>,
    abandoned: bool,
    /// The thread has work to do that is not in the queue.
    woken: bool,
}

#[derive(Debug)]
pub(crate) struct Queue {
    state: Mutex<State>,
    available: Condvar,
    /// One permit for each free place.
    permits: Semaphore,
    /// Whether a [`WakeGuard`] exists, whose holder takes care of what is queued now.
    waking: AtomicBool,
}

/// The obligation to have the queued records written. Wakes the thread when dropped.
#[derive(Debug)]
pub(crate) struct WakeGuard<'q>(&'q Queue);

impl WakeGuard<'_> {
    /// The holder writes everything that is queued from here on, so the thread need not wake up.
    pub(crate) fn disarm(self) {
        self.release();
        std::mem::forget(self);
    }

    /// Must come first: a record queued from here on must not rely on a guard that is gone.
    fn release(&self) {
        self.0.waking.store(false, Ordering::SeqCst);
    }
}

impl Drop for WakeGuard<'_> {
    fn drop(&mut self) {
        self.release();
        self.0.wake_thread();
    }
}

/// What the thread has to do next.
#[derive(Debug)]
pub(crate) enum ThreadTask {
    /// There are records in the queue, or the thread was woken.
    Write,
    /// Nothing arrived in time.
    SyncDue,
    /// The queue is empty, and these callers wait for the file to be closed.
    Close(Vec<oneshot::Sender<()>>),
    /// No handle is left that could queue a record.
    End,
}

impl Queue {
    pub(crate) fn new() -> Self {
        let permits = Semaphore::new(QUEUE_RECORDS);
        Self { state: Mutex::default(), available: Condvar::new(), permits, waking: AtomicBool::new(false) }
    }

    /// Waits for room without a time limit; callers set their own.
    pub(crate) async fn reserve(&self) -> QueuePermit<'_> {
        if let Ok(permit) = self.permits.acquire().await {
            permit.forget();
        }
        QueuePermit(self)
    }

    pub(crate) fn try_reserve(&self) -> Option<QueuePermit<'_>> {
        let permit = self.permits.try_acquire().ok()?;
        permit.forget();
        Some(QueuePermit(self))
    }

    /// The obligation to write what was queued; `None` if another holder has it and has not finished yet.
    pub(crate) fn wake_guard(&self) -> Option<WakeGuard<'_>> {
        // Created only by its holder, since dropping one ends the obligation.
        (!self.waking.swap(true, Ordering::SeqCst)).then(|| WakeGuard(self))
    }

    /// Counts a record that did not fit.
    pub(crate) fn count_lost(&self, unix_ms: u64) {
        let mut state = self.state.lock();
        match state.items.back_mut() {
            Some(Item::Lost { count, .. }) => *count += 1,
            _ => state.items.push_back(Item::Lost { count: 1, unix_ms }),
        }
        drop(state);
        self.available.notify_one();
    }

    /// Whether a note about lost records still waits to be written.
    pub(crate) fn has_lost(&self) -> bool {
        self.state.lock().items.iter().any(|item| matches!(item, Item::Lost { .. }))
    }

    /// Requests that the file is closed once everything in the queue is written.
    pub(crate) fn close(&self) -> oneshot::Receiver<()> {
        let (closed, told) = oneshot::channel();
        self.state.lock().closing.push(closed);
        self.available.notify_one();
        told
    }

    /// Called when no handle is left that could queue a record.
    pub(crate) fn abandon(&self) {
        self.state.lock().abandoned = true;
        self.available.notify_one();
    }

    /// Wakes the thread for work that is not in the queue.
    pub(crate) fn wake_thread(&self) {
        self.state.lock().woken = true;
        self.available.notify_one();
    }

    /// Takes up to `most` items, in order. The caller must write them before other items are taken.
    pub(crate) fn take_batch(&self, most: usize) -> Vec<Item> {
        let mut state = self.state.lock();
        let count = state.items.len().min(most);
        let items: Vec<Item> = state.items.drain(..count).collect();
        drop(state);
        let records = items.iter().filter(|item| matches!(item, Item::Record { .. })).count();
        self.permits.add_permits(records);
        items
    }

    /// Waits for work until `until`: queued records that no call takes care of, or a wake-up.
    pub(crate) fn next_task(&self, until: Option<Instant>) -> ThreadTask {
        let mut state = self.state.lock();
        loop {
            // Records that a call takes care of are left to it. If the thread took them, it would get all
            // later ones as well, since the next call would find the file locked. Closing and ending wait for
            // no call.
            let ending = !state.closing.is_empty() || state.abandoned;
            let seen_to = !ending && self.waking.load(Ordering::SeqCst);
            if std::mem::take(&mut state.woken) || (!state.items.is_empty() && !seen_to) {
                return ThreadTask::Write;
            }
            if !state.closing.is_empty() {
                return ThreadTask::Close(std::mem::take(&mut state.closing));
            }
            if state.abandoned {
                return ThreadTask::End;
            }
            match until {
                None => self.available.wait(&mut state),
                Some(until) if until <= Instant::now() => return ThreadTask::SyncDue,
                Some(until) => {
                    self.available.wait_until(&mut state, until);
                }
            }
        }
    }

    /// Waits until there is a record in the queue; false once no handle is left that could queue one.
    pub(crate) fn wait_for_items(&self) -> bool {
        let mut state = self.state.lock();
        while state.items.is_empty() && !state.abandoned {
            // It is closed already.
            state.closing.clear();
            self.available.wait(&mut state);
        }
        !state.items.is_empty()
    }

    /// Waits for `pause`, or less if the file is to be closed; returns whether it is.
    pub(crate) fn pause(&self, pause: Duration) -> bool {
        let mut state = self.state.lock();
        let calm = |state: &mut State| state.closing.is_empty() && !state.abandoned;
        self.available.wait_while_for(&mut state, calm, pause);
        !state.closing.is_empty() || state.abandoned
    }

    /// Takes all items, for a log that is closed without writing them.
    pub(crate) fn drain(&self) -> Vec<Item> {
        self.take_batch(usize::MAX)
    }

    /// How many records wait to be written.
    pub(crate) fn records(&self) -> u64 {
        let state = self.state.lock();
        state.items.iter().filter(|item| matches!(item, Item::Record { .. })).count() as u64
    }

    /// Releases those who wait for the file to be closed. Returns whether a handle is left that could queue a
    /// record.
    pub(crate) fn finish_close(&self) -> bool {
        let mut state = self.state.lock();
        state.closing.clear();
        !state.abandoned
    }
}

/// Room for one record; returned to the queue if it is dropped unused.
#[derive(Debug)]
pub(crate) struct QueuePermit<'q>(&'q Queue);

impl QueuePermit<'_> {
    /// Queues a record; the receiver is notified when it is in the file. The thread does not see it before it
    /// is [woken](Queue::wake).
    pub(crate) fn send(self, body: Body, unix_ms: u64) -> oneshot::Receiver<()> {
        let (written, told) = oneshot::channel();
        let queue = self.0;
        std::mem::forget(self);
        queue.state.lock().items.push_back(Item::Record { body, unix_ms, written });
        told
    }
}

impl Drop for QueuePermit<'_> {
    fn drop(&mut self) {
        self.0.permits.add_permits(1);
    }
}

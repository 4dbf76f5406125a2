//! The bounded queue of records to write. Records that do not fit are counted at the position where they are missing.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, oneshot};

use crate::record::Body;

/// How many records may wait: a burst from all clients at once. They take some MiB of memory at the usual size and 80
/// MiB at the largest. Beyond that, calls wait for room, and then their records are lost.
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
    roused: bool,
}

#[derive(Debug)]
pub(crate) struct Queue {
    state: Mutex<State>,
    more: Condvar,
    /// One permit for each free place.
    room: Semaphore,
    /// Whether a [`Wake`] exists, whose holder takes care of what is queued now.
    waking: AtomicBool,
}

/// The obligation to have the queued records written. Wakes the thread when dropped.
#[derive(Debug)]
pub(crate) struct Wake<'q>(&'q Queue);

impl Wake<'_> {
    /// The holder writes everything that is queued from here on, so the thread need not wake up.
    pub(crate) fn spare(self) {
        self.over();
        std::mem::forget(self);
    }

    /// Must come first: a record queued from here on must not rely on a guard that is gone.
    fn over(&self) {
        self.0.waking.store(false, Ordering::SeqCst);
    }
}

impl Drop for Wake<'_> {
    fn drop(&mut self) {
        self.over();
        self.0.rouse();
    }
}

/// What the thread has to do next.
#[derive(Debug)]
pub(crate) enum Next {
    /// There are records in the queue, or the thread was woken.
    More,
    /// Nothing arrived in time.
    Late,
    /// The queue is empty, and these callers wait for the file to be closed.
    Close(Vec<oneshot::Sender<()>>),
    /// No handle is left that could queue a record.
    End,
}

impl Queue {
    pub(crate) fn new() -> Self {
        let room = Semaphore::new(QUEUE_RECORDS);
        Self { state: Mutex::default(), more: Condvar::new(), room, waking: AtomicBool::new(false) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere must not take the log down.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for room without a time limit; callers set their own.
    pub(crate) async fn room(&self) -> Room<'_> {
        if let Ok(permit) = self.room.acquire().await {
            permit.forget();
        }
        Room(self)
    }

    pub(crate) fn room_at_once(&self) -> Option<Room<'_>> {
        let permit = self.room.try_acquire().ok()?;
        permit.forget();
        Some(Room(self))
    }

    /// The obligation to write what was queued; `None` if another holder has it and has not finished yet.
    pub(crate) fn wake(&self) -> Option<Wake<'_>> {
        // Created only by its holder, since dropping one ends the obligation.
        (!self.waking.swap(true, Ordering::SeqCst)).then(|| Wake(self))
    }

    /// Counts a record that did not fit.
    pub(crate) fn lose(&self, unix_ms: u64) {
        let mut state = self.lock();
        match state.items.back_mut() {
            Some(Item::Lost { count, .. }) => *count += 1,
            _ => state.items.push_back(Item::Lost { count: 1, unix_ms }),
        }
        drop(state);
        self.more.notify_one();
    }

    /// Whether a note about lost records still waits to be written.
    pub(crate) fn holds_lost(&self) -> bool {
        self.lock().items.iter().any(|item| matches!(item, Item::Lost { .. }))
    }

    /// Requests that the file is closed once everything in the queue is written.
    pub(crate) fn close(&self) -> oneshot::Receiver<()> {
        let (closed, told) = oneshot::channel();
        self.lock().closing.push(closed);
        self.more.notify_one();
        told
    }

    /// Called when no handle is left that could queue a record.
    pub(crate) fn abandon(&self) {
        self.lock().abandoned = true;
        self.more.notify_one();
    }

    /// Wakes the thread for work that is not in the queue.
    pub(crate) fn rouse(&self) {
        self.lock().roused = true;
        self.more.notify_one();
    }

    /// Takes up to `most` items, in order. The caller must write them before other items are taken.
    pub(crate) fn take(&self, most: usize) -> Vec<Item> {
        let mut state = self.lock();
        let count = state.items.len().min(most);
        let items: Vec<Item> = state.items.drain(..count).collect();
        drop(state);
        let records = items.iter().filter(|item| matches!(item, Item::Record { .. })).count();
        self.room.add_permits(records);
        items
    }

    /// Waits for work until `until`: queued records that no call takes care of, or a wake-up.
    pub(crate) fn next(&self, until: Option<Instant>) -> Next {
        let mut state = self.lock();
        loop {
            // Records that a call takes care of are left to it. If the thread took them, it would get all later ones as
            // well, since the next call would find the file locked. Closing and ending wait for no call.
            let ending = !state.closing.is_empty() || state.abandoned;
            let seen_to = !ending && self.waking.load(Ordering::SeqCst);
            if std::mem::take(&mut state.roused) || (!state.items.is_empty() && !seen_to) {
                return Next::More;
            }
            if !state.closing.is_empty() {
                return Next::Close(std::mem::take(&mut state.closing));
            }
            if state.abandoned {
                return Next::End;
            }
            state = match until.map(|until| until.saturating_duration_since(Instant::now())) {
                None => self.more.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(Duration::ZERO) => return Next::Late,
                Some(left) => self.more.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0,
            };
        }
    }

    /// Waits until there is a record in the queue; false once no handle is left that could queue one.
    pub(crate) fn wait_for_items(&self) -> bool {
        let mut state = self.lock();
        while state.items.is_empty() && !state.abandoned {
            // It is closed already.
            state.closing.clear();
            state = self.more.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        !state.items.is_empty()
    }

    /// Waits for `pause`, or less if the file is to be closed; returns whether it is.
    pub(crate) fn rest(&self, pause: Duration) -> bool {
        let state = self.lock();
        let calm = |state: &mut State| state.closing.is_empty() && !state.abandoned;
        let (state, _) =
            self.more.wait_timeout_while(state, pause, calm).unwrap_or_else(PoisonError::into_inner);
        !state.closing.is_empty() || state.abandoned
    }

    /// Gives up on closing the file in order, and releases those who wait for it.
    pub(crate) fn give_up_closing(&self) -> bool {
        let mut state = self.lock();
        state.closing.clear();
        state.abandoned
    }
}

/// Room for one record; returned to the queue if it is dropped unused.
#[derive(Debug)]
pub(crate) struct Room<'q>(&'q Queue);

impl Room<'_> {
    /// Queues a record; the receiver is notified when it is in the file. The thread does not see it before it is
    /// [woken](Queue::wake).
    pub(crate) fn put(self, body: Body, unix_ms: u64) -> oneshot::Receiver<()> {
        let (written, told) = oneshot::channel();
        let queue = self.0;
        std::mem::forget(self);
        queue.lock().items.push_back(Item::Record { body, unix_ms, written });
        told
    }
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        self.0.room.add_permits(1);
    }
}

//! What waits to be written: bounded, and what finds no room is counted at the place where it would stand.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, oneshot};

use crate::record::Body;

/// How many records may wait: a burst of all clients at once, some MiB of memory at the usual size and 80 MiB if each is as large
/// as can be. Beyond it calls wait for room, and then their records are lost.
pub const QUEUE_RECORDS: usize = 1024;

/// What whoever writes takes out.
#[derive(Debug)]
pub(crate) enum Item {
    Record {
        body: Body,
        unix_ms: u64,
        /// Told when the record is in the file.
        written: oneshot::Sender<()>,
    },
    /// Here so many are missing.
    Lost { count: u64, unix_ms: u64 },
}

#[derive(Debug, Default)]
struct State {
    items: VecDeque<Item>,
    /// Who waits for the file to be closed.
    closing: Vec<oneshot::Sender<()>>,
    abandoned: bool,
    /// The thread has something to do that is not in here.
    roused: bool,
}

#[derive(Debug)]
pub(crate) struct Queue {
    state: Mutex<State>,
    more: Condvar,
    /// One permit for each record that there is room for.
    room: Semaphore,
    /// Whether somebody will see to it that what is put in now is written.
    waking: AtomicBool,
}

/// The duty to see to it that what is in the queue is written. Wakes the thread when dropped.
#[derive(Debug)]
pub(crate) struct Wake<'q>(&'q Queue);

impl Wake<'_> {
    /// Whoever has it writes all by itself that is in the queue from here on, and the thread sleeps on.
    pub(crate) fn spare(self) {
        self.over();
        std::mem::forget(self);
    }

    /// First of all, so that whoever puts something in from here on does not rely on a duty that is over.
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
    /// There is something in here, or it was roused.
    More,
    /// Nothing came in time.
    Late,
    /// Everything was taken out, and these wait for the file to be closed.
    Close(Vec<oneshot::Sender<()>>),
    /// Nobody is left who could put anything in.
    End,
}

impl Queue {
    pub(crate) fn new() -> Self {
        let room = Semaphore::new(QUEUE_RECORDS);
        Self { state: Mutex::default(), more: Condvar::new(), room, waking: AtomicBool::new(false) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere must not take the log along.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for room without a bound of its own; whoever waits has one.
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

    /// The duty to have written what was put in; `None` if somebody else has it already, who has not done it yet.
    pub(crate) fn wake(&self) -> Option<Wake<'_>> {
        // Made only where it is had: to drop one ends the duty.
        (!self.waking.swap(true, Ordering::SeqCst)).then(|| Wake(self))
    }

    /// Counts a record that found no room.
    pub(crate) fn lose(&self, unix_ms: u64) {
        let mut state = self.lock();
        match state.items.back_mut() {
            Some(Item::Lost { count, .. }) => *count += 1,
            _ => state.items.push_back(Item::Lost { count: 1, unix_ms }),
        }
        drop(state);
        self.more.notify_one();
    }

    /// Whether word of records that were lost still waits to be written.
    pub(crate) fn holds_lost(&self) -> bool {
        self.lock().items.iter().any(|item| matches!(item, Item::Lost { .. }))
    }

    /// Has the file closed once everything that is in here was written.
    pub(crate) fn close(&self) -> oneshot::Receiver<()> {
        let (closed, told) = oneshot::channel();
        self.lock().closing.push(closed);
        self.more.notify_one();
        told
    }

    /// Nobody is left who could put anything in.
    pub(crate) fn abandon(&self) {
        self.lock().abandoned = true;
        self.more.notify_one();
    }

    /// Has the thread look at what is not in here.
    pub(crate) fn rouse(&self) {
        self.lock().roused = true;
        self.more.notify_one();
    }

    /// Up to so many items, in order. Only for whoever writes them before anybody else takes some out.
    pub(crate) fn take(&self, most: usize) -> Vec<Item> {
        let mut state = self.lock();
        let count = state.items.len().min(most);
        let items: Vec<Item> = state.items.drain(..count).collect();
        drop(state);
        let records = items.iter().filter(|item| matches!(item, Item::Record { .. })).count();
        self.room.add_permits(records);
        items
    }

    /// Waits for something to do, until `until`: something in here that nobody else writes, or that it is roused.
    pub(crate) fn next(&self, until: Option<Instant>) -> Next {
        let mut state = self.lock();
        loop {
            // What somebody else sees to is left to them: whoever took it from them would have it from then on, because
            // the next one finds the file taken, too. An end waits for nobody.
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

    /// Waits until there is something in here; false once nobody is left who could put anything in.
    pub(crate) fn wait_for_items(&self) -> bool {
        let mut state = self.lock();
        while state.items.is_empty() && !state.abandoned {
            // Closed is what it is.
            state.closing.clear();
            state = self.more.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        !state.items.is_empty()
    }

    /// Waits for a while, less if somebody wants the file closed; whether so.
    pub(crate) fn rest(&self, pause: Duration) -> bool {
        let state = self.lock();
        let calm = |state: &mut State| state.closing.is_empty() && !state.abandoned;
        let (state, _) =
            self.more.wait_timeout_while(state, pause, calm).unwrap_or_else(PoisonError::into_inner);
        !state.closing.is_empty() || state.abandoned
    }

    /// Lets go of who waits for the file to be closed, which cannot be done in order.
    pub(crate) fn give_up_closing(&self) -> bool {
        let mut state = self.lock();
        state.closing.clear();
        state.abandoned
    }
}

/// Room for one record; given back if none is put there.
#[derive(Debug)]
pub(crate) struct Room<'q>(&'q Queue);

impl Room<'_> {
    /// Puts a record in; the answer comes when it is in the file. The thread does not hear of it before it is
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

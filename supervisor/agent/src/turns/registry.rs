//! The registry of running turns, which limits them: one per session, and a number in total.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use parking_lot::Mutex;
use talon_agent_settings::LimitKeys;
use talon_proto::agent::LoopState;
use talon_store::SessionId;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::Status;
use ulid::Ulid;

use super::Hub;
use super::hub::QueuedBytes;
use crate::metrics::Metrics;

/// The message to followers of a turn that ends without a last chunk, because of a defect.
const ABORTED_MESSAGE: &str = "the turn broke off, which is a defect of the agent's: its log says more, and `talon session resume` goes on with it";
/// The message to followers of a turn when the agent ends.
const INTERRUPTED_MESSAGE: &str =
    "the agent is ending; the turn is kept as it is, and goes on when it is followed again";

/// The running turns. Clones share the registry.
#[derive(Debug, Clone)]
pub(crate) struct RunningTurns {
    inner: Arc<Inner>,
    /// Cancelled when the agent ends.
    ending: CancellationToken,
}

#[derive(Debug)]
struct Inner {
    limits: Mutex<LimitKeys>,
    running: Mutex<BTreeMap<SessionId, Arc<RunningTurn>>>,
    /// The queued bytes of all followers.
    waiting: QueuedBytes,
    tasks: TaskTracker,
}

/// A turn that runs, or is about to.
#[derive(Debug)]
pub(crate) struct RunningTurn {
    session: SessionId,
    /// The session.
    sender: String,
    /// Its number; 0 until it is known.
    turn: watch::Sender<u64>,
    /// Stands in every log line of the turn.
    pub(crate) correlation_id: String,
    /// Its client's own name of the message; empty without one.
    client_id: String,
    /// Its followers.
    pub(crate) hub: Arc<Hub>,
    /// Cancels it.
    pub(crate) cancel: CancellationToken,
}

impl RunningTurn {
    /// The session.
    pub(crate) fn session(&self) -> SessionId {
        self.session
    }

    /// Its number; 0 until it is known.
    pub(crate) fn turn(&self) -> u64 {
        *self.turn.borrow()
    }

    /// Its number, as soon as it is known; 0 if it ends before that.
    pub(crate) async fn known_turn(&self) -> u64 {
        let mut turn = self.turn.subscribe();
        tokio::select! {
            biased;
            _ = turn.wait_for(|turn| *turn != 0) => {}
            () = self.hub.wait_ended() => {}
        }
        self.turn()
    }

    /// Its client's own name of the message.
    pub(crate) fn client_id(&self) -> Option<&str> {
        Some(self.client_id.as_str()).filter(|id| !id.is_empty())
    }

    pub(crate) fn is_turn(&self, turn: u64) {
        self.turn.send_replace(turn);
    }
}

impl RunningTurns {
    /// Creates an empty registry with these limits, open until `ending`.
    pub(crate) fn new(ending: CancellationToken, limits: &LimitKeys) -> Self {
        let inner = Inner {
            limits: Mutex::new(*limits),
            running: Mutex::default(),
            waiting: QueuedBytes::default(),
            tasks: TaskTracker::new(),
        };
        Self { inner: Arc::new(inner), ending }
    }

    /// Applies other limits to later turns.
    pub(crate) fn configure(&self, limits: &LimitKeys) {
        *self.inner.limits.lock() = *limits;
    }

    /// Whether the agent ends: turns without an end go on later.
    pub(crate) fn is_ending(&self) -> bool {
        self.ending.is_cancelled()
    }

    /// Returns when the agent ends.
    pub(crate) async fn ending(&self) {
        self.ending.cancelled().await;
    }

    /// Reserves the slot of a sender's session.
    ///
    /// # Errors
    /// FAILED_PRECONDITION if the session has a turn, RESOURCE_EXHAUSTED if there are too many turns in total
    /// or of the sender, UNAVAILABLE if the agent ends.
    pub(crate) fn reserve(
        &self,
        session: SessionId,
        sender: &str,
        metrics: &Arc<Metrics>,
    ) -> Result<TurnSlot, Status> {
        self.reserve_for(session, sender, "", metrics)
    }

    /// Reserves it for a message that its client gave a name; empty without one.
    ///
    /// # Errors
    /// As [`RunningTurns::reserve`].
    pub(crate) fn reserve_for(
        &self,
        session: SessionId,
        sender: &str,
        client_id: &str,
        metrics: &Arc<Metrics>,
    ) -> Result<TurnSlot, Status> {
        if self.ending.is_cancelled() {
            return Err(Status::unavailable("the agent is ending and begins no turn: try again in a moment"));
        }
        let limits = *self.inner.limits.lock();
        let most = |limit: u32| usize::try_from(limit).unwrap_or(usize::MAX);
        let mut running = self.inner.running.lock();
        if running.contains_key(&session) {
            return Err(Status::failed_precondition(format!(
                "session {session} is in a turn already: `talon chat --session {session}` follows it; Ctrl-C there ends it"
            )));
        }
        if running.len() >= most(limits.turns) {
            return Err(Status::resource_exhausted(format!(
                "{} turns are the most at once: try again when one of them has ended, or raise agent.limits.turns",
                limits.turns
            )));
        }
        if running.values().filter(|turn| turn.sender == sender).count() >= most(limits.turns_per_sender) {
            return Err(Status::resource_exhausted(format!(
                "{} turns of one user are the most at once, and {sender} has as many: wait for one to end, end one with Cancel, or \
                 raise agent.limits.turns_per_sender",
                limits.turns_per_sender
            )));
        }
        let at = LoopState {
            phase: "planning".to_owned(),
            state: "init".to_owned(),
            session_id: session.to_string(),
            ..LoopState::default()
        };
        let turn = Arc::new(RunningTurn {
            session,
            sender: sender.to_owned(),
            turn: watch::Sender::new(0),
            correlation_id: Ulid::generate().to_string(),
            client_id: client_id.to_owned(),
            hub: Hub::new(
                at,
                Arc::clone(metrics),
                self.inner.waiting.clone(),
                most(limits.followers_per_turn),
            ),
            cancel: CancellationToken::new(),
        });
        running.insert(session, Arc::clone(&turn));
        Ok(TurnSlot { turns: self.clone(), running: turn })
    }

    /// The running turn of a session.
    pub(crate) fn get(&self, session: SessionId) -> Option<Arc<RunningTurn>> {
        self.inner.running.lock().get(&session).cloned()
    }

    /// The number of running turns, and of their followers.
    pub(crate) fn count(&self) -> (usize, usize) {
        let running = self.inner.running.lock();
        (running.len(), running.values().map(|turn| turn.hub.followers()).sum())
    }

    /// Runs a turn in a new task, until its end or that of the agent. Its slot is free before its end is
    /// sent.
    pub(crate) fn spawn(&self, slot: TurnSlot, turn: impl Future<Output = ()> + Send + 'static) {
        let ending = self.ending.clone();
        self.inner.tasks.spawn(async move {
            tokio::select! {
                // Its journal has no end, and its parked calls keep waiting.
                () = ending.cancelled() => slot.running.hub.interrupt(INTERRUPTED_MESSAGE),
                () = turn => {
                    let hub = Arc::clone(&slot.running.hub);
                    drop(slot);
                    hub.finish();
                }
            }
        });
    }

    /// Returns when no turn runs any more.
    pub(crate) async fn wait_idle(&self) {
        self.inner.tasks.close();
        self.inner.tasks.wait().await;
    }
}

/// A turn's slot, as long as it runs.
#[derive(Debug)]
pub(crate) struct TurnSlot {
    turns: RunningTurns,
    pub(crate) running: Arc<RunningTurn>,
}

impl TurnSlot {
    /// Gives the slot back without a turn, and then tells why: who waits for this end finds the slot free.
    pub(crate) fn release(self, why: &str) {
        self.free();
        self.running.hub.interrupt(why);
    }

    fn free(&self) {
        let mut all = self.turns.inner.running.lock();
        // After it was released the slot may be another turn's.
        if all.get(&self.running.session).is_some_and(|now| Arc::ptr_eq(now, &self.running)) {
            all.remove(&self.running.session);
        }
    }
}

impl Drop for TurnSlot {
    fn drop(&mut self) {
        self.free();
        let running = &self.running;
        if !running.hub.has_last() {
            running.hub.interrupt(ABORTED_MESSAGE);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt as _;
    use talon_proto::agent::chunk::Kind;
    use talon_proto::agent::{Done, Text};
    use tonic::Code;

    use super::*;
    use crate::driver::Listener as _;

    #[tokio::test]
    async fn a_session_has_one_turn_at_once_and_its_place_is_free_before_its_end_is_told() {
        let (turns, metrics) =
            (RunningTurns::new(CancellationToken::new(), &LimitKeys::default()), Arc::<Metrics>::default());
        let session = SessionId::generate();
        let slot = turns.reserve(session, "ada", &metrics).expect("room");
        let refused = turns.reserve(session, "ada", &metrics).expect_err("taken");
        assert_eq!(refused.code(), Code::FailedPrecondition);
        assert!(refused.message().contains(&format!("talon chat --session {session}")), "{refused}");
        assert!(
            turns.reserve(SessionId::generate(), "ada", &metrics).is_ok(),
            "another session has a place of its own"
        );
        let (running, mut following) =
            (Arc::clone(&slot.running), slot.running.hub.follow(|_| vec![]).expect("room"));
        turns.spawn(slot, async move {
            running.hub.on_chunk(Kind::Text(Text::default()));
            running.hub.on_chunk(Kind::Done(Done::default()));
        });
        while let Some(chunk) = following.next().await {
            if matches!(chunk.expect("no error").kind, Some(Kind::Done(_))) {
                assert!(turns.reserve(session, "ada", &metrics).is_ok());
            }
        }
        turns.wait_idle().await;
    }

    #[tokio::test]
    async fn who_waits_for_a_turns_number_gets_it_or_learns_that_there_is_none() {
        let (turns, metrics) =
            (RunningTurns::new(CancellationToken::new(), &LimitKeys::default()), Arc::<Metrics>::default());
        for number in [7, 0] {
            let slot = turns.reserve(SessionId::generate(), "ada", &metrics).expect("room");
            let running = Arc::clone(&slot.running);
            let asked = tokio::spawn(async move { running.known_turn().await });
            tokio::task::yield_now().await;
            match number {
                0 => slot.release("there is none"),
                number => slot.running.is_turn(number),
            }
            assert_eq!(asked.await.expect("it ends"), number);
        }
    }

    // Promises: AGENT-43, GW-68
    #[tokio::test]
    async fn there_are_so_many_in_all() {
        let (turns, metrics) =
            (RunningTurns::new(CancellationToken::new(), &LimitKeys::default()), Arc::<Metrics>::default());
        let slots: Vec<TurnSlot> = (0..)
            .map_while(|n| turns.reserve(SessionId::generate(), &format!("u{n}"), &metrics).ok())
            .collect();
        let most = LimitKeys::default().turns as usize;
        assert_eq!((slots.len(), turns.count().0), (most, most));
        let refused = turns.reserve(SessionId::generate(), "ada", &metrics).expect_err("no room");
        assert_eq!(refused.code(), Code::ResourceExhausted);
        drop(slots);
        assert_eq!(turns.count(), (0, 0));
    }

    // Promises: AGENT-58, GW-68
    #[tokio::test]
    async fn one_sender_cannot_take_all_places() {
        let (turns, metrics) =
            (RunningTurns::new(CancellationToken::new(), &LimitKeys::default()), Arc::<Metrics>::default());
        let slots: Vec<TurnSlot> =
            std::iter::from_fn(|| turns.reserve(SessionId::generate(), "ada", &metrics).ok()).collect();
        assert_eq!(slots.len(), LimitKeys::default().turns_per_sender as usize);
        let refused = turns.reserve(SessionId::generate(), "ada", &metrics).expect_err("no room");
        assert_eq!(refused.code(), Code::ResourceExhausted);
        assert!(refused.message().contains("of one user") && refused.message().contains("ada"), "{refused}");
        assert!(turns.reserve(SessionId::generate(), "bob", &metrics).is_ok(), "another has theirs");
        drop(slots);
        assert!(turns.reserve(SessionId::generate(), "ada", &metrics).is_ok());
    }

    #[tokio::test]
    async fn a_turn_that_the_agents_end_interrupts_tells_no_end() {
        let ending = CancellationToken::new();
        let (turns, metrics) =
            (RunningTurns::new(ending.clone(), &LimitKeys::default()), Arc::<Metrics>::default());
        let slot = turns.reserve(SessionId::generate(), "ada", &metrics).expect("room");
        let mut following = slot.running.hub.follow(|_| vec![]).expect("room");
        turns.spawn(slot, std::future::pending());
        ending.cancel();
        turns.wait_idle().await;
        let status = following.next().await.expect("a word").expect_err("no end");
        assert_eq!(status.code(), Code::Unavailable);
        assert!(turns.reserve(SessionId::generate(), "ada", &metrics).is_err(), "none begins any more");
    }

    #[tokio::test]
    async fn a_place_that_is_given_back_early_says_so() {
        let (turns, metrics) =
            (RunningTurns::new(CancellationToken::new(), &LimitKeys::default()), Arc::<Metrics>::default());
        let slot = turns.reserve(SessionId::generate(), "ada", &metrics).expect("room");
        let mut following = slot.running.hub.follow(|_| vec![]).expect("room");
        drop(slot);
        assert!(following.next().await.expect("a word").is_err());
    }
}

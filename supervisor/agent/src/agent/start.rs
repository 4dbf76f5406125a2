//! Starts and resumes turns.

use std::collections::BTreeMap;
use std::sync::Arc;

use talon_event_bus::{Payload, Subject};
use talon_proto::agent::chunk::Kind;
use talon_proto::agent::{SessionCreated, Started};
use talon_store::limits::MAX_NAME_BYTES;
use talon_store::{PageRequest, Session, SessionChange, SessionFilter, SessionId, SessionState};
use tonic::Status;
use tracing::Instrument as _;

use super::Agent;
use super::session_metadata::{CREATED, DETACHED_TURN, LOCAL_TURNS, OPEN_TURN, TITLE, title};
use super::setup::Setup;
use super::spec::{SessionPlace, TurnRequest, local_only, spec};
use crate::driver::{CallApprover as _, Caller, TurnSpec};
use crate::error_status::{journal_error_status, store_error_status};
use crate::events::LiveListener;
use crate::journal::{StoreJournal, UnfinishedTurn, close, find_request, session_position};
use crate::subagent::{delete_tasks, has_tasks};
use crate::turns::{RunningTurn, Subscription, TurnSlot};

/// How many sessions are looked at at once for turns to go on with.
const RESUME_PAGE: u32 = 200;

/// The message for a turn that was interrupted and replaced by another question.
const SUPERSEDED_MESSAGE: &str = "this turn was interrupted when the agent ended, and was not gone on with, since you asked something else; what it did stays";

impl Agent {
    /// Starts a turn, and follows it from the first chunk. An interrupted turn is closed: what it did stays
    /// in the session.
    ///
    /// # Errors
    /// As [`RunningTurns::reserve`](crate::turns::RunningTurns::reserve), and when the database cannot be
    /// read or written. ALREADY_EXISTS for a message that its client asked before, under the same name.
    pub(crate) async fn ask(
        self: &Arc<Self>,
        session: &Session,
        request: TurnRequest,
    ) -> Result<(Arc<RunningTurn>, Subscription), Status> {
        let client_id = request.origin.client_id.as_str();
        let slot = self.turns.reserve_for(session.id, &session.sender, client_id, &self.metrics)?;
        if !client_id.is_empty() {
            let found = find_request(&*self.sessions, session, client_id).await;
            if found.map_err(|error| journal_error_status(&error))?.is_some() {
                return Err(Status::already_exists(
                    "the message was asked before: its turn has its end, or goes on",
                ));
            }
        }
        let journal = Arc::new(StoreJournal::new(Arc::clone(&self.sessions), session.id));
        let before = session_position(&*self.sessions, session.id)
            .await
            .map_err(|error| journal_error_status(&error))?;
        if request.turn.is_some_and(|turn| turn != before.last_turn + 1) {
            return Err(Status::aborted("another turn began in the session meanwhile: look again"));
        }
        if let Some(interrupted) = before.unfinished {
            close(&*journal, interrupted.turn, SUPERSEDED_MESSAGE)
                .await
                .map_err(|error| journal_error_status(&error))?;
            let session = session.id.to_string();
            self.approvals.turn_ended(&Caller { session, turn: interrupted.turn, ..Caller::default() }).await;
            self.delete_tasks(slot.running.session()).await;
        }
        slot.running.is_turn(before.last_turn + 1);
        let setup = self.setup();
        self.open(session, &slot, &setup, Some(&request)).await?;
        if slot.running.turn() == 1 {
            let created = SessionCreated {
                sender: session.sender.clone(),
                channel: session.channel.clone(),
                created_unix_ms: session.created_at.as_millis().unsigned_abs(),
            };
            let subject = Subject { sender: &session.sender, session: &session.id.to_string() };
            self.bus.emit(subject, Payload::SessionCreated(created));
        }
        let place = self.place(session, journal, &slot.running);
        let spec = spec(&setup, session, &slot.running, request, place, None).await;
        let started = Kind::Started(Started {
            session_id: session.id.to_string(),
            turn: slot.running.turn(),
            correlation_id: slot.running.correlation_id.clone(),
            repeated: false,
        });
        let following = slot.running.hub.follow(|_| vec![started])?;
        Ok((self.run_turn(slot, setup, spec), following))
    }

    /// Resumes the interrupted turn of a session; `None` if there is none.
    ///
    /// # Errors
    /// As [`Agent::ask`].
    async fn resume(self: &Arc<Self>, session: &Session) -> Result<Option<Arc<RunningTurn>>, Status> {
        let slot = self.turns.reserve(session.id, &session.sender, &self.metrics)?;
        let before = session_position(&*self.sessions, session.id)
            .await
            .map_err(|error| journal_error_status(&error))?;
        let Some(interrupted) = before.unfinished else {
            if session.metadata.contains_key(OPEN_TURN) {
                self.mark_closed(session.id, None).await;
            }
            slot.release("the session is in no turn");
            return Ok(None);
        };
        let UnfinishedTurn { turn, ref request, .. } = interrupted;
        slot.running.is_turn(turn);
        let id = session.id.to_string();
        // Without tasks that go on, nothing waits for what sub-agents asked.
        if !has_tasks(&*self.sessions, &id).await.map_err(|error| store_error_status(&error))? {
            self.approvals.forget_subagents(&id, turn).await;
        }
        let setup = self.setup();
        self.open(session, &slot, &setup, None).await?;
        let journal = Arc::new(StoreJournal::new(Arc::clone(&self.sessions), session.id));
        let request = TurnRequest { text: request.clone(), ..TurnRequest::default() };
        let place = self.place(session, journal, &slot.running);
        let spec = spec(&setup, session, &slot.running, request, place, Some(interrupted)).await;
        tracing::info!(session = %session.id, turn, "an interrupted turn goes on");
        Ok(Some(self.run_turn(slot, setup, spec)))
    }

    fn place(&self, session: &Session, journal: Arc<StoreJournal>, running: &RunningTurn) -> SessionPlace {
        let hub = Arc::clone(&running.hub) as _;
        let listener = LiveListener::new(hub, &self.feed, session.id, &session.sender, running.turn());
        SessionPlace {
            journal: Some(journal),
            plan: Some(Arc::new(self.plans.of(session.id))),
            listener: Arc::new(listener),
        }
    }

    /// The running turn of a session, after resuming it if it was interrupted; and whether it was. `None` if
    /// there is none.
    ///
    /// # Errors
    /// As [`Agent::ask`].
    pub(crate) async fn turn_of(
        self: &Arc<Self>,
        session: &Session,
    ) -> Result<Option<(Arc<RunningTurn>, bool)>, Status> {
        if let Some(running) = self.turns.get(session.id) {
            return Ok(Some((running, false)));
        }
        match self.resume(session).await {
            Ok(running) => Ok(running.map(|running| (running, true))),
            // Another request was faster.
            Err(status) => match self.turns.get(session.id) {
                Some(running) => Ok(Some((running, false))),
                None => Err(status),
            },
        }
    }

    /// Resumes the interrupted turns that go on without anybody who follows them, at the agent's start.
    pub(crate) async fn resume_detached(self: &Arc<Self>) {
        let filter = SessionFilter { state: Some(SessionState::Active), ..SessionFilter::default() };
        let mut page = PageRequest::first(RESUME_PAGE);
        loop {
            let found = match self.sessions.list(&filter, &page).await {
                Ok(found) => found,
                Err(error) => {
                    let error = talon_error_chain::error_chain(&error);
                    tracing::error!(error, "turns that nobody follows are not gone on with");
                    return;
                }
            };
            let is_left = |session: &&Session| session.metadata.contains_key(DETACHED_TURN);
            for session in found.items.iter().filter(is_left) {
                // A client may have resumed it already.
                if let Err(status) = self.turn_of(session).await {
                    tracing::warn!(session = %session.id, error = status.message(), "a turn that nobody follows is not gone on with");
                }
            }
            let Some(next) = found.next else { return };
            page = PageRequest::after(next, RESUME_PAGE);
        }
    }

    /// Resumes all turns that wait for a person, at the agent's start. Other interrupted turns wait for a
    /// client.
    pub(crate) async fn resume_parked(self: &Arc<Self>) {
        let parked = self.approvals.list(false).await;
        let mut ids: Vec<SessionId> =
            parked.iter().filter_map(|approval| SessionId::new(&approval.session_id).ok()).collect();
        ids.sort_unstable();
        ids.dedup();
        for id in ids {
            let session = match self.sessions.get(id).await {
                Ok(Some(session)) => session,
                // It was deleted; its parked calls expire.
                Ok(None) => continue,
                Err(error) => {
                    tracing::error!(session = %id, error = talon_error_chain::error_chain(&error), "a turn that waits for approval cannot be gone on with");
                    continue;
                }
            };
            // A client may have resumed it already.
            if let Err(status) = self.resume(&session).await {
                tracing::warn!(session = %id, error = status.message(), "a turn that waits for approval is not gone on with");
            }
        }
    }

    /// Stores that a turn is running, and loads the session's costs into the ledger.
    async fn open(
        &self,
        session: &Session,
        slot: &TurnSlot,
        setup: &Setup,
        request: Option<&TurnRequest>,
    ) -> Result<(), Status> {
        let mut metadata = BTreeMap::from([
            (OPEN_TURN.to_owned(), Some(slot.running.turn().to_string())),
            (CREATED.to_owned(), None),
        ]);
        if let Some(request) = request.filter(|_| !session.metadata.contains_key(TITLE)) {
            metadata.insert(TITLE.to_owned(), Some(title(&request.text)));
        }
        if let Some(request) = request {
            metadata.insert(DETACHED_TURN.to_owned(), request.detached.then(|| "true".to_owned()));
        }
        if request.is_some_and(|request| request.local_only) || local_only(&setup.settings, session) {
            metadata.insert(LOCAL_TURNS.to_owned(), Some("true".to_owned()));
        }
        let change = SessionChange { metadata, ..SessionChange::default() };
        self.sessions.update(session.id, change).await.map_err(|error| store_error_status(&error))?;
        let ledgers = setup.environment.chain.ledgers();
        self.costs
            .open_session(ledgers, &session.id.to_string())
            .await
            .map_err(|error| store_error_status(&error))
    }

    /// Stores that no turn is running, and the model that answered.
    async fn mark_closed(&self, session: SessionId, model: Option<String>) {
        let metadata = BTreeMap::from([(OPEN_TURN.to_owned(), None), (DETACHED_TURN.to_owned(), None)]);
        let model = model.filter(|model| model.len() <= MAX_NAME_BYTES);
        let change = SessionChange { metadata, active_model: model.map(Some), ..SessionChange::default() };
        if let Err(error) = self.sessions.update(session, change).await {
            // It is shown as interrupted until a client resumes it.
            tracing::warn!(%session, error = talon_error_chain::error_chain(&error), "the end of a turn cannot be noted");
        }
    }

    /// Deletes what sub-agents of a turn that is over stored.
    pub(super) async fn delete_tasks(&self, session: SessionId) {
        if let Err(error) = delete_tasks(&*self.sessions, &session.to_string()).await {
            // The next turn tries it again, and so does the deletion of the session.
            tracing::warn!(%session, error = talon_error_chain::error_chain(&error), "tasks of sub-agents are not deleted");
        }
    }

    fn run_turn(self: &Arc<Self>, slot: TurnSlot, setup: Arc<Setup>, spec: TurnSpec) -> Arc<RunningTurn> {
        let running = Arc::clone(&slot.running);
        let (agent, id) = (Arc::clone(self), running.session());
        let span = tracing::info_span!(
            "turn", correlation_id = running.correlation_id, session = %id, turn = running.turn()
        );
        let turn = async move {
            let caller = spec.caller.clone();
            let end = agent.runner.run(&setup.environment, spec).await;
            setup.environment.approver.turn_ended(&caller).await;
            // Before the end is sent: what was sent is stored.
            agent.costs.flush().await;
            agent.delete_tasks(id).await;
            agent.mark_closed(id, end.model).await;
        };
        self.turns.spawn(slot, turn.instrument(span));
        running
    }
}

//! Sessions: their metadata, messages, and options that override the configuration.

use talon_agent_settings::milliseconds;
use talon_llm::route::router::Pins;
use talon_proto::agent::{
    CompactSessionRequest, CompactSessionResponse, CreateSessionRequest, DeleteSessionRequest,
    DeleteSessionResponse, GetSessionRequest, GetSessionResponse, ListSessionsRequest, ListSessionsResponse,
    ResumeSessionRequest, ResumeSessionResponse, Session, ToolList, UndoTurnsRequest, UndoTurnsResponse,
    UpdateSessionRequest,
};
use talon_store::{Error, Session as Kept, SessionFilter, SessionState, Timestamp, View};
use tonic::Status;

use super::client::Client;
use super::costs::pico;
use super::limits::{DEFAULT_SESSIONS, MAX_SESSIONS};
use super::sampling::sampling_view;
use super::service::{Service, page, token};
use super::session_change::RequestedChange;
use crate::agent::{CREATED, MAIN, OPEN_TURN, OWN_KEYS, TITLE, VERBOSE, local_only, sampling_of, tools_of};
use crate::compress::{CompactError, SummaryScope, compact};
use crate::context::{ContextPlan, Window};
use crate::error_status::{journal_error_status, store_error_status};
use crate::journal::{SessionFact, StoreJournal, client_messages, undo};
use crate::plan::plan_of;
use crate::subagent::is_task_sender;

impl Service {
    pub(super) async fn create_session(
        &self,
        client: &Client,
        request: CreateSessionRequest,
    ) -> Result<Session, Status> {
        let CreateSessionRequest {
            channel,
            model,
            thinking,
            tools,
            local_only,
            sampling,
            verbosity,
            metadata,
            verbose,
        } = request;
        let change = self.change(RequestedChange {
            model: Some(model),
            thinking: Some(thinking),
            verbosity: Some(verbosity),
            tools: Some(ToolList { tools }),
            local_only: Some(local_only),
            sampling,
            metadata,
            verbose: Some(verbose),
        })?;
        let session = self.new_session(client, &channel).await?;
        let session = self
            .agent
            .sessions
            .update(session.id, change)
            .await
            .map_err(|error| store_error_status(&error))?;
        self.view(session).await
    }

    pub(super) async fn list_sessions(
        &self,
        client: &Client,
        request: ListSessionsRequest,
    ) -> Result<ListSessionsResponse, Status> {
        let ListSessionsRequest { all, channel, page_size, page_token } = request;
        if all {
            client.require_operator("to see everybody's sessions")?;
        }
        let filter = SessionFilter {
            sender: (!all).then(|| client.sender.to_string()),
            channel: Some(channel).filter(|channel| !channel.is_empty()),
            ..SessionFilter::default()
        };
        let size = if page_size == 0 { DEFAULT_SESSIONS } else { page_size.min(MAX_SESSIONS) };
        let found = async { self.agent.sessions.list(&filter, &page(&page_token, size)?).await };
        let found = found.await.map_err(|error| store_error_status(&error))?;
        let mut sessions = Vec::new();
        // Tasks of sub-agents are parts of turns.
        for session in found.items.into_iter().filter(|session| !is_task_sender(&session.sender)) {
            sessions.push(self.view(session).await?);
        }
        Ok(ListSessionsResponse { sessions, next_page_token: token(found.next) })
    }

    pub(super) async fn get_session(
        &self,
        client: &Client,
        request: GetSessionRequest,
    ) -> Result<GetSessionResponse, Status> {
        let GetSessionRequest { session_id, all, page_size, page_token } = request;
        let session = self.session(client, &session_id).await?;
        let (id, view) = (session.id, if all { View::All } else { View::Live });
        let found = async { self.agent.sessions.messages(id, view, &page(&page_token, page_size)?).await };
        let found = found.await.map_err(|error| store_error_status(&error))?;
        let mut messages = client_messages(&found.items);
        if !client.is_operator() {
            // What hooks take away from people stays away from them.
            messages.iter_mut().for_each(|message| message.hooked = None);
        }
        Ok(GetSessionResponse {
            session: Some(self.view(session).await?),
            messages,
            next_page_token: token(found.next),
        })
    }

    pub(super) async fn update_session(
        &self,
        client: &Client,
        request: UpdateSessionRequest,
    ) -> Result<Session, Status> {
        let UpdateSessionRequest {
            session_id,
            model,
            thinking,
            tools,
            local_only,
            sampling,
            verbosity,
            metadata,
            verbose,
        } = request;
        let session = self.session(client, &session_id).await?;
        let requested =
            RequestedChange { model, thinking, verbosity, tools, local_only, sampling, metadata, verbose };
        let fields = requested.fields();
        let change = self.change(requested)?;
        let updated = async {
            let updated = self.agent.sessions.update(session.id, change).await?;
            if !fields.is_empty() {
                let fact = SessionFact::Updated { fields };
                self.agent.sessions.note(session.id, vec![fact.into_message()]).await?;
            }
            Ok(updated)
        };
        let session = updated.await.map_err(|error: Error| store_error_status(&error))?;
        self.view(session).await
    }

    pub(super) async fn resume_session(
        &self,
        client: &Client,
        request: ResumeSessionRequest,
    ) -> Result<ResumeSessionResponse, Status> {
        let session = self.session(client, &request.session_id).await?;
        let session =
            self.agent.sessions.resume(session.id).await.map_err(|error| store_error_status(&error))?;
        let continues = self.agent.turn_of(&session).await?.is_some_and(|(_, goes_on)| goes_on);
        Ok(ResumeSessionResponse { session: Some(self.view(session).await?), continues })
    }

    pub(super) async fn delete_session(
        &self,
        client: &Client,
        request: DeleteSessionRequest,
    ) -> Result<DeleteSessionResponse, Status> {
        let session = self.session(client, &request.session_id).await?;
        self.agent.delete_session(&session).await?;
        Ok(DeleteSessionResponse {})
    }

    pub(super) async fn compact_session(
        &self,
        client: &Client,
        request: CompactSessionRequest,
    ) -> Result<CompactSessionResponse, Status> {
        let session = self.session(client, &request.session_id).await?;
        let _place = self.agent.turns.reserve(session.id, &session.sender, &self.agent.metrics)?;
        let (setup, id) = (self.agent.setup(), session.id.to_string());
        let opened = self.agent.costs.open_session(setup.environment.chain.ledgers(), &id).await;
        opened.map_err(|error| store_error_status(&error))?;
        let plan = ContextPlan::from(&setup.settings.agent.context);
        let keep = match request.keep_turns {
            0 => plan.kept_turns(),
            turns => usize::try_from(turns).unwrap_or(usize::MAX),
        };
        let journal = StoreJournal::new(self.agent.sessions.clone(), session.id);
        // The summary has to suit whichever model reads it.
        let windows =
            setup.environment.chain.catalog().entries().iter().map(|entry| entry.model.context_window);
        let window = windows.min().map_or(0, |window| usize::try_from(window).unwrap_or(usize::MAX));
        let sections = plan.sections(Window(window), 0);
        let pins = Pins {
            session: session.overrides.model.clone(),
            local_only: local_only(&setup.settings, &session),
            ..Pins::default()
        };
        let pins = pins.or_model(setup.settings.models.summaries.as_ref());
        let scope = SummaryScope { session: &id, pins: &pins, deadline: None };
        let compacted = compact(&setup.environment.chain, &journal, scope, &sections, keep).await;
        self.agent.costs.flush().await;
        let compacted = compacted.map_err(|error| match &error {
            CompactError::Journal(error) => journal_error_status(error),
            CompactError::Model(_) => Status::failed_precondition(talon_child::truncate(error.to_string())),
        })?;
        Ok(CompactSessionResponse {
            messages: compacted.messages,
            tokens_before: compacted.tokens_before,
            tokens_after: compacted.tokens_after,
            summary: compacted.summary,
        })
    }

    pub(super) async fn undo_turns(
        &self,
        client: &Client,
        request: UndoTurnsRequest,
    ) -> Result<UndoTurnsResponse, Status> {
        let session = self.session(client, &request.session_id).await?;
        let _place = self.agent.turns.reserve(session.id, &session.sender, &self.agent.metrics)?;
        if session.metadata.contains_key(OPEN_TURN) {
            return Err(Status::failed_precondition(
                "the session's last turn was interrupted: continue it or ask anew, and undo it then",
            ));
        }
        let turns = usize::try_from(request.turns).unwrap_or(usize::MAX).max(1);
        let undone = undo(&*self.agent.sessions, session.id, turns).await;
        let undone = undone.map_err(|error| journal_error_status(&error))?.ok_or_else(|| {
            Status::failed_precondition(
                "there is no turn to undo: the session has none, or a summary stands for those that it has",
            )
        })?;
        Ok(UndoTurnsResponse { turns: undone.turns, text: undone.request, calls: undone.calls })
    }

    /// A session as clients are shown it.
    pub(super) async fn view(&self, session: Kept) -> Result<Session, Status> {
        let id = session.id.to_string();
        let messages = self.message_counts.of(&*self.agent.sessions, &session).await;
        let messages = messages.map_err(|error| store_error_status(&error))?;
        let spent = self.agent.costs.session_totals(&id).await.map_err(|error| store_error_status(&error))?;
        let turn = match self.agent.turns.get(session.id) {
            Some(_) if self.agent.approvals.pending(Some(&id)).await > 0 => "waiting",
            Some(_) => "running",
            None if session.metadata.contains_key(OPEN_TURN) => "interrupted",
            None => "idle",
        };
        let plan = plan_of(&session);
        let delete_after = self.agent.setup().settings.agent.sessions.delete_after;
        let delete_unix_ms = delete_after
            .map_or(0, |after| unix_ms(session.updated_at).saturating_add(milliseconds(after.get())));
        let state = match session.state {
            _ if session.metadata.contains_key(CREATED) => "created",
            SessionState::Active => "active",
            SessionState::Idle => "idle",
        };
        Ok(Session {
            tools: tools_of(&session),
            local_only: local_only(&self.agent.setup().settings, &session),
            sampling: sampling_view(sampling_of(&session)),
            title: session.metadata.get(TITLE).cloned().unwrap_or_default(),
            id,
            sender: session.sender,
            channel: session.channel,
            state: state.to_owned(),
            verbose: session.metadata.contains_key(VERBOSE),
            main: session.metadata.contains_key(MAIN),
            delete_unix_ms,
            model: session.overrides.model.unwrap_or_default(),
            thinking: session.overrides.thinking.unwrap_or_default(),
            created_unix_ms: unix_ms(session.created_at),
            updated_unix_ms: unix_ms(session.updated_at),
            messages,
            turn: turn.to_owned(),
            cost_pico_usd: pico(spent.total().cost),
            active_model: session.active_model.unwrap_or_default(),
            verbosity: session.overrides.verbosity.unwrap_or_default(),
            plan: (plan.revision > 0).then(|| plan.to_wire()),
            metadata: session
                .metadata
                .into_iter()
                .filter(|(key, _)| !OWN_KEYS.contains(&key.as_str()))
                .collect(),
        })
    }
}

pub(super) fn unix_ms(time: Timestamp) -> u64 {
    time.as_millis().unsigned_abs()
}

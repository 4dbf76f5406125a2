//! Sessions: their metadata, messages, and options that override the configuration.

use std::collections::BTreeMap;

use talon_agent_settings::{Sampling, Thinking, is_pattern};
use talon_llm::route::router::Pins;
use talon_proto::agent::{
    self, CompactSessionRequest, CompactSessionResponse, CreateSessionRequest, DeleteSessionRequest,
    DeleteSessionResponse, GetSessionRequest, GetSessionResponse, ListSessionsRequest, ListSessionsResponse,
    ResumeSessionRequest, ResumeSessionResponse, Session, ToolList, UndoTurnsRequest, UndoTurnsResponse,
    UpdateSessionRequest,
};
use talon_store::limits::MAX_METADATA_VALUE_BYTES;
use talon_store::{Session as Kept, SessionChange, SessionFilter, SessionState, Timestamp, View};
use tonic::Status;

use super::client::Client;
use super::costs::pico;
use super::limits::{DEFAULT_SESSIONS, MAX_NOTED, MAX_PATTERNS, MAX_SESSIONS};
use super::sampling::{known_sampling, sampling_view};
use super::service::{Service, page, token};
use crate::agent::{
    LOCAL_ONLY, OPEN_TURN, OWN_KEYS, SAMPLING, Setup, TITLE, TOOLS, local_only, sampling_of, thinking,
    tools_of,
};
use crate::compress::{CompactError, SummaryScope, compact};
use crate::context::{ContextPlan, Window};
use crate::error_status::{journal_error_status, store_error_status};
use crate::journal::{StoreJournal, client_messages, undo};
use crate::plan::plan_of;
use crate::prompt::Verbosity;
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
        } = request;
        let change = self.change(RequestedChange {
            model: Some(model),
            thinking: Some(thinking),
            verbosity: Some(verbosity),
            tools: Some(ToolList { tools }),
            local_only: Some(local_only),
            sampling,
            metadata,
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
        Ok(GetSessionResponse {
            session: Some(self.view(session).await?),
            messages: client_messages(&found.items),
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
        } = request;
        let session = self.session(client, &session_id).await?;
        let change = self.change(RequestedChange {
            model,
            thinking,
            verbosity,
            tools,
            local_only,
            sampling,
            metadata,
        })?;
        let session = self
            .agent
            .sessions
            .update(session.id, change)
            .await
            .map_err(|error| store_error_status(&error))?;
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

    /// The changes to a session: an absent field stays, and an empty one is reset to the configuration.
    fn change(&self, requested: RequestedChange) -> Result<SessionChange, Status> {
        let RequestedChange { model, thinking, verbosity, tools, local_only, sampling, metadata: noted } =
            requested;
        let setup = self.agent.setup();
        let model = model.map(|model| known_model(&setup, &model)).transpose()?;
        let thinking =
            thinking.map(|word| known_thinking(&word).map(|known| known.map(|_| word))).transpose()?;
        let verbosity = verbosity.map(known_verbosity).transpose()?;
        let mut metadata = client_metadata(noted)?;
        if let Some(ToolList { tools }) = tools {
            let tools = known_patterns(tools)?;
            let json = (!tools.is_empty()).then(|| serde_json::to_string(&tools).unwrap_or_default());
            if json.as_ref().is_some_and(|json| json.len() > MAX_METADATA_VALUE_BYTES) {
                return Err(Status::invalid_argument(format!(
                    "the patterns have more than {MAX_METADATA_VALUE_BYTES} bytes together: write some as plugin.*"
                )));
            }
            metadata.insert(TOOLS.to_owned(), json);
        }
        if let Some(local_only) = local_only {
            metadata.insert(LOCAL_ONLY.to_owned(), local_only.then(|| "true".to_owned()));
        }
        if sampling.is_some() {
            let sampling = known_sampling(sampling)?;
            let json = (sampling != Sampling::default())
                .then(|| serde_json::to_string(&sampling).unwrap_or_default());
            metadata.insert(SAMPLING.to_owned(), json);
        }
        Ok(SessionChange { model, thinking, verbosity, metadata, ..SessionChange::default() })
    }

    /// A session as clients are shown it.
    pub(super) async fn view(&self, session: Kept) -> Result<Session, Status> {
        let id = session.id.to_string();
        let spent = self.agent.costs.session_totals(&id).await.map_err(|error| store_error_status(&error))?;
        let turn = match self.agent.turns.get(session.id) {
            Some(_) if self.agent.approvals.pending(Some(&id)).await > 0 => "waiting",
            Some(_) => "running",
            None if session.metadata.contains_key(OPEN_TURN) => "interrupted",
            None => "idle",
        };
        let plan = plan_of(&session);
        let state = match session.state {
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
            model: session.overrides.model.unwrap_or_default(),
            thinking: session.overrides.thinking.unwrap_or_default(),
            created_unix_ms: unix_ms(session.created_at),
            updated_unix_ms: unix_ms(session.updated_at),
            messages: session.next_sequence.saturating_sub(1),
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

/// What a client wants of a session otherwise. An absent field stays, and an empty one is as configured.
struct RequestedChange {
    model: Option<String>,
    thinking: Option<String>,
    verbosity: Option<String>,
    tools: Option<ToolList>,
    local_only: Option<bool>,
    sampling: Option<agent::Sampling>,
    metadata: BTreeMap<String, String>,
}

/// Checks how detailed answers are to be; `None` for an empty word.
pub(super) fn known_verbosity(word: String) -> Result<Option<String>, Status> {
    if word.is_empty() {
        return Ok(None);
    }
    if Verbosity::parse(&word).is_none() {
        return Err(Status::invalid_argument("how detailed answers are is low or high"));
    }
    Ok(Some(word))
}

/// Checks what clients note about a session; the store has the other bounds.
fn client_metadata(noted: BTreeMap<String, String>) -> Result<BTreeMap<String, Option<String>>, Status> {
    if noted.len() > MAX_NOTED {
        return Err(Status::invalid_argument(format!(
            "{} metadata entries are more than {MAX_NOTED}: keep what belongs together in one",
            noted.len()
        )));
    }
    if let Some(own) = OWN_KEYS.iter().find(|own| noted.contains_key(**own)) {
        return Err(Status::invalid_argument(format!(
            "metadata: the key {own} is the agent's own; the session's fields set it, or choose another"
        )));
    }
    Ok(noted.into_iter().map(|(key, value)| (key, Some(value).filter(|value| !value.is_empty()))).collect())
}

pub(super) fn unix_ms(time: Timestamp) -> u64 {
    time.as_millis().unsigned_abs()
}

/// Checks the name of a model; `None` for an empty one.
pub(super) fn known_model(setup: &Setup, model: &str) -> Result<Option<String>, Status> {
    if model.is_empty() {
        return Ok(None);
    }
    match setup.environment.chain.catalog().find(model) {
        Ok(_) => Ok(Some(model.to_owned())),
        Err(unknown) => Err(Status::invalid_argument(talon_child::truncate(unknown.to_string()))),
    }
}

/// Parses how long a model thinks; `None` for the configured value.
pub(super) fn known_thinking(word: &str) -> Result<Option<Thinking>, Status> {
    if word.is_empty() {
        return Ok(None);
    }
    let unknown = || Status::invalid_argument("how long a model thinks is off, low, medium or high");
    thinking(word).map(Some).ok_or_else(unknown)
}

/// Checks that each pattern can match something.
pub(super) fn known_patterns(tools: Vec<String>) -> Result<Vec<String>, Status> {
    if tools.len() > MAX_PATTERNS {
        return Err(Status::invalid_argument(format!(
            "{} patterns are more than {MAX_PATTERNS}: what holds for all sessions belongs into agent.allow",
            tools.len()
        )));
    }
    match tools.iter().find(|pattern| !is_pattern(pattern)) {
        None => Ok(tools),
        Some(wrong) => {
            let shown: String = wrong.chars().take(80).filter(|c| !c.is_control()).collect();
            Err(Status::invalid_argument(format!("{shown:?} is no pattern: write plugin.action or plugin.*")))
        }
    }
}

//! Fakes of the host, a person, memory and the store.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use talon_agent_settings::MediaKeys;
use talon_guard::{Answer as ToolAnswer, EnvelopeMode, Guard, GuardSettings};
use talon_llm::model::{Image, ShownImages};
use talon_llm::route::router::Pins;
use talon_proto::agent;
use talon_proto::agent::chunk::Kind;
use talon_proto::host::{ExecuteResponse, Outcome};
use talon_proto::plugin::{Action, Parameter, PluginCapabilities};

use crate::context::{HistoryMessage, Summary};
use crate::driver::*;
use crate::journal::{Journal, JournalEntry, JournalError, Transcript, TurnOutcome};
use crate::media::{Attachment, AttachmentWithBytes, ImageWithBytes};
use crate::plan::{Plan, PlanChange, PlanError, SessionPlan};
use crate::question::Question;

pub(super) type Answers =
    dyn Fn(HostCall) -> BoxFuture<'static, Result<ExecuteResponse, HostError>> + Send + Sync;

/// A host with the plugins `files` and `notes`.
pub(super) struct FakeHost {
    answers: Mutex<Arc<Answers>>,
    pub(super) calls: Mutex<Vec<HostCall>>,
    pub(super) gone: Mutex<bool>,
    /// What it offers in place of its own.
    offered: Mutex<Option<Vec<(String, PluginCapabilities)>>>,
}

impl FakeHost {
    pub(super) fn new(answers: Arc<Answers>) -> Self {
        Self {
            answers: Mutex::new(answers),
            calls: Mutex::default(),
            gone: Mutex::default(),
            offered: Mutex::default(),
        }
    }

    pub(super) fn answers(
        &self,
        how: impl Fn(HostCall) -> BoxFuture<'static, Result<ExecuteResponse, HostError>> + Send + Sync + 'static,
    ) {
        *self.answers.lock() = Arc::new(how);
    }

    /// Offers these instead.
    pub(super) fn offers(&self, plugins: Vec<(&str, Vec<Action>)>) {
        let plugins = plugins.into_iter().map(|(name, actions)| {
            let capabilities =
                PluginCapabilities { name: name.to_owned(), actions, ..PluginCapabilities::default() };
            (name.to_owned(), capabilities)
        });
        *self.offered.lock() = Some(plugins.collect());
    }

    /// Calls made, as `plugin.action(arguments)`.
    pub(super) fn made(&self) -> Vec<String> {
        let shown = |call: &HostCall| {
            let args: Vec<&str> = call.args.values().map(String::as_str).collect();
            format!("{}.{}({})", call.plugin, call.action, args.join(","))
        };
        self.calls.lock().iter().map(shown).collect()
    }
}

#[async_trait]
impl Host for FakeHost {
    async fn tools(&self) -> Result<Vec<(String, PluginCapabilities)>, HostError> {
        if *self.gone.lock() {
            return Err(HostError::Unknown { why: "nobody listens".to_owned() });
        }
        if let Some(offered) = self.offered.lock().clone() {
            return Ok(offered);
        }
        let action = |name: &str, parameter: &str, read_only| Action {
            name: name.to_owned(),
            description: format!("does {name}"),
            parameters: vec![Parameter {
                name: parameter.to_owned(),
                r#type: "string".to_owned(),
                required: true,
                ..Parameter::default()
            }],
            read_only,
            ..Action::default()
        };
        let plugin = |name: &str, actions| {
            (
                name.to_owned(),
                PluginCapabilities { name: name.to_owned(), actions, ..PluginCapabilities::default() },
            )
        };
        Ok(vec![
            plugin("files", vec![action("read", "path", true), action("write", "path", false)]),
            plugin("notes", vec![action("add", "text", false)]),
        ])
    }

    async fn execute(
        &self,
        call: &HostCall,
        watch: &mut (dyn FnMut(CallUpdate) + Send),
    ) -> Result<ExecuteResponse, HostError> {
        self.calls.lock().push(call.clone());
        watch(CallUpdate::Progress(Progress { progress: 1.0, total: Some(2.0), message: "half".to_owned() }));
        watch(CallUpdate::Output(talon_proto::host::CallOutput {
            lines: vec!["a line of output".to_owned()],
            ..Default::default()
        }));
        let answers = self.answers.lock().clone();
        answers(call.clone()).await
    }
}

/// Wraps a tool's output as a host does, with the real guard.
pub(super) fn guarded(call: &HostCall, outcome: Outcome, said: &str) -> ExecuteResponse {
    let settings = GuardSettings { envelope: EnvelopeMode::Quoted, ..GuardSettings::default() };
    let guard = Guard::new(settings).expect("the defaults are in order");
    let mut answer =
        ToolAnswer::from_tool(if outcome == Outcome::Ok { said.to_owned() } else { String::new() });
    if outcome != Outcome::Ok {
        answer.error = said.to_owned().into();
    }
    let guarded = guard.answer("s", &call.plugin, "call", answer);
    ExecuteResponse {
        outcome: outcome.into(),
        block: guarded.block().as_str().to_owned(),
        content: guarded.content().to_string(),
        error: guarded.error().to_string(),
        ..ExecuteResponse::default()
    }
}

pub(super) fn says(call: &HostCall, said: &str) -> BoxFuture<'static, Result<ExecuteResponse, HostError>> {
    let response = guarded(call, Outcome::Ok, said);
    Box::pin(async move { Ok(response) })
}

pub(super) fn fails(call: &HostCall, said: &str) -> BoxFuture<'static, Result<ExecuteResponse, HostError>> {
    let response = guarded(call, Outcome::ToolError, said);
    Box::pin(async move { Ok(response) })
}

/// Approves calls, except that some actions wait or are denied.
#[derive(Default)]
pub(super) struct FakeApprover {
    /// Waits until it is emptied and notified.
    pub(super) parked: Mutex<BTreeSet<String>>,
    pub(super) denied: Mutex<BTreeMap<String, String>>,
    /// What comes of questions to the person.
    pub(super) replies: Mutex<BTreeMap<String, Reply>>,
    pub(super) told: tokio::sync::Notify,
    pub(super) asked: Mutex<Vec<String>>,
    pub(super) ended: Mutex<u32>,
}

#[async_trait]
impl CallApprover for FakeApprover {
    async fn confirm(&self, call: CallToConfirm<'_>, _: &Arc<dyn Listener>) -> Confirmation {
        let name = format!("{}.{}", call.plugin, call.action);
        self.asked.lock().push(name.clone());
        while self.parked.lock().contains(&name) {
            self.told.notified().await;
        }
        match self.denied.lock().get(&name) {
            Some(words) => Confirmation::No(words.clone()),
            None => Confirmation::Yes,
        }
    }

    async fn ask_person(&self, _: &Caller, _: &str, question: &Question, _: &Arc<dyn Listener>) -> Reply {
        self.asked.lock().push(question.text.clone());
        while self.parked.lock().contains(&question.text) {
            self.told.notified().await;
        }
        self.replies.lock().get(&question.text).cloned().unwrap_or_else(|| Reply::Declined(String::new()))
    }

    async fn turn_ended(&self, _: &Caller) {
        *self.ended.lock() += 1;
    }
}

#[derive(Default)]
pub(super) struct FakeRecall {
    pub(super) recalls: Mutex<Recollection>,
    pub(super) times: Mutex<u32>,
    pub(super) learned: Mutex<Vec<CompletedTurn>>,
}

#[async_trait]
impl Recall for FakeRecall {
    async fn recall(&self, _: &Caller, _: &str, _: &Pins) -> Recollection {
        *self.times.lock() += 1;
        self.recalls.lock().clone()
    }

    async fn learn(&self, learned: CompletedTurn) {
        self.learned.lock().push(learned);
    }
}

/// A journal in memory that fails or hangs from a given entry on.
#[derive(Default)]
pub(super) struct Memory {
    pub(super) entries: Mutex<Vec<(u64, JournalEntry)>>,
    pub(super) summary: Mutex<(usize, Summary)>,
    /// How many entries each write had.
    pub(super) writes: Mutex<Vec<usize>>,
    pub(super) hangs_after: Mutex<Option<usize>>,
    pub(super) fails_after: Mutex<Option<usize>>,
    pub(super) hangs: tokio::sync::Notify,
}

impl Memory {
    pub(super) fn of(entries: Vec<(u64, JournalEntry)>) -> Arc<Self> {
        Arc::new(Self { entries: Mutex::new(entries), ..Self::default() })
    }

    pub(super) fn entries(&self) -> Vec<(u64, JournalEntry)> {
        self.entries.lock().clone()
    }

    pub(super) fn kinds(&self) -> Vec<&'static str> {
        let kind = |(_, entry): &(u64, JournalEntry)| match entry {
            JournalEntry::Received { .. } => "received",
            JournalEntry::Asked { .. } => "asked",
            JournalEntry::Answered { .. } => "answered",
            JournalEntry::AnswerHooked(_) => "hooked",
            JournalEntry::CallStarted { .. } => "began",
            JournalEntry::CallParked { .. } => "parked",
            JournalEntry::CallFinished { .. } => "brought",
            JournalEntry::CallsFinished(_) => "executed",
            JournalEntry::Noted { .. } => "noted",
            JournalEntry::Ended(_) => "ended",
            JournalEntry::Undone { .. } => "undone",
        };
        self.entries.lock().iter().map(kind).collect()
    }

    pub(super) fn ended(&self) -> Option<TurnOutcome> {
        match self.entries.lock().last() {
            Some((_, JournalEntry::Ended(ended))) => Some(ended.clone()),
            _ => None,
        }
    }

    pub(super) fn said(&self) -> Vec<HistoryMessage> {
        let mut transcript = Transcript::default();
        for (turn, entry) in self.entries.lock().iter() {
            transcript.apply(*turn, entry);
        }
        transcript.finish()
    }
}

#[async_trait]
impl Journal for Memory {
    async fn add_all(&self, turn: u64, entries: Vec<JournalEntry>) -> Result<(), JournalError> {
        let last = self.entries.lock().len() + entries.len() - 1;
        if self.hangs_after.lock().is_some_and(|most| last >= most) {
            self.hangs.notify_one();
            std::future::pending::<()>().await;
        }
        if self.fails_after.lock().is_some_and(|most| last >= most) {
            return Err(JournalError { why: "the disk is full".to_owned() });
        }
        self.writes.lock().push(entries.len());
        self.entries.lock().extend(entries.into_iter().map(|entry| (turn, entry)));
        Ok(())
    }

    async fn past(&self) -> Result<(Vec<HistoryMessage>, Summary), JournalError> {
        let (gone, summary) = self.summary.lock().clone();
        Ok((self.said().split_off(gone), summary))
    }

    async fn originals(&self) -> Result<Vec<talon_sanitize::MarkedSpan>, JournalError> {
        let entries = self.entries.lock();
        let results = entries.iter().flat_map(|(_, entry)| match entry {
            JournalEntry::CallsFinished(results) => results.clone(),
            _ => Vec::new(),
        });
        Ok(results.flat_map(|result| result.provenance.originals).collect())
    }

    async fn summarized(&self, messages: usize, summary: Summary) -> Result<(), JournalError> {
        let mut kept = self.summary.lock();
        *kept = (kept.0 + messages, summary);
        Ok(())
    }
}

/// A built-in tool, `memory.save`.
pub(super) struct FakeBuiltinTools;

#[async_trait]
impl BuiltinTools for FakeBuiltinTools {
    fn capabilities(&self, _: &Caller) -> Option<PluginCapabilities> {
        let save =
            Action { name: "save".to_owned(), description: "keeps a fact".to_owned(), ..Action::default() };
        Some(PluginCapabilities {
            name: "memory".to_owned(),
            actions: vec![save],
            ..PluginCapabilities::default()
        })
    }

    async fn call(&self, call: BuiltinCall) -> crate::tool_result::ToolResult {
        call.listener.on_chunk(Kind::SubagentResult(agent::SubagentResult {
            agent: "A".to_owned(),
            cost_pico_usd: 5_000_000_000,
            ..agent::SubagentResult::default()
        }));
        crate::tool_result::ToolResult {
            outcome: crate::tool_result::CallOutcome::Succeeded,
            block: "kept".to_owned(),
            output: "kept".to_owned(),
            provenance: crate::tool_result::Provenance::default(),
        }
    }
}

/// Session and digest.
type ImageKey = (String, String);

/// The bytes of images.
#[derive(Default)]
pub(super) struct FakeImages(Mutex<BTreeMap<ImageKey, Arc<[u8]>>>);

/// The files of sessions, each with its bytes.
#[derive(Default)]
pub(super) struct FakeAttachments(pub(super) Mutex<Vec<(String, AttachmentWithBytes)>>);

#[async_trait]
impl AttachmentSource for FakeAttachments {
    async fn list(&self, session: &str) -> Vec<Attachment> {
        let all = self.0.lock();
        all.iter().filter(|(of, _)| of == session).map(|(_, (file, _))| file.clone()).collect()
    }

    async fn load(&self, session: &str, file: &Attachment) -> Result<Option<Vec<u8>>, AttachmentError> {
        let all = self.0.lock();
        let found = all.iter().find(|(of, (known, _))| of == session && known.digest == file.digest);
        Ok(found.map(|(_, (_, bytes))| bytes.to_vec()))
    }
}

#[async_trait]
impl ImageSource for FakeImages {
    fn limits(&self) -> MediaKeys {
        MediaKeys { images: 2, ..MediaKeys::default() }
    }

    async fn load(&self, session: &str, images: &[&Image]) -> ShownImages {
        let mut shown = ShownImages::default();
        for image in images {
            if let Some(bytes) = self.0.lock().get(&(session.to_owned(), image.digest.clone())) {
                shown.add(image.digest.clone(), bytes.clone());
            }
        }
        shown
    }

    async fn add(&self, session: &str, images: &[ImageWithBytes]) -> Result<(), ImageStoreError> {
        for (image, bytes) in images {
            self.0.lock().insert((session.to_owned(), image.digest.clone()), bytes.clone());
        }
        Ok(())
    }
}

/// A plan in memory.
#[derive(Default)]
pub(super) struct FakePlan {
    pub(super) plan: Mutex<Plan>,
}

#[async_trait]
impl SessionPlan for FakePlan {
    async fn read(&self) -> Result<Plan, PlanError> {
        Ok(self.plan.lock().clone())
    }

    async fn change(&self, change: PlanChange) -> Result<Plan, PlanError> {
        let mut plan = self.plan.lock();
        *plan = plan.with(change)?;
        Ok(plan.clone())
    }
}

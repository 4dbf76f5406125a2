//! The environment of a test turn.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use talon_agent_settings::ParallelCalls;
use talon_guard::Sanitizer;
use talon_llm::config::Timeouts;
use talon_llm::model::{Answer, ProviderError, Request, Thinking};
use talon_llm::route::Task;
use talon_llm::route::catalog::{Catalog, CatalogKeys};
use talon_llm::route::cost::{Budget, Ledgers};
use talon_llm::route::fallback::{Chain, ChainSettings};
use talon_llm::route::router::Pins;
use talon_llm::scripted::Scripted;
use talon_llm::{ChunkListener, Provider};
use talon_proto::agent;
use talon_proto::agent::chunk::Kind;
use tokio_util::sync::CancellationToken;

use super::fakes::{
    Answers, FakeApprover, FakeAttachments, FakeHost, FakeImages, FakePlan, FakeRecall, Memory, says,
};
use crate::budget::Budgets;
use crate::context::ContextPlan;
use crate::driver::*;
use crate::journal::{JournalEntry, UnfinishedTurn};
use crate::prompt::{Prompt, Workspace};

/// Two providers, the first of which is cheaper, and a cheap one for summaries alone, for it has no tools.
const CATALOG: &str = "
scripted/one: { tier: mid, context_window: 128000, tools: true, cost: { input: 1, output: 10 } }
scripted-two/two: { tier: mid, context_window: 128000, tools: true, cost: { input: 2, output: 10 } }
";

/// A scripted provider that records its requests.
pub(super) struct RecordingProvider {
    inner: Scripted,
    pub(super) asked: Mutex<Vec<Request>>,
}

impl RecordingProvider {
    fn new(name: &str, script: &str) -> Arc<Self> {
        let inner = Scripted::parse(name, "a test", script, Timeouts::default()).expect("a script");
        Arc::new(Self { inner, asked: Mutex::default() })
    }

    pub(super) fn times(&self) -> usize {
        self.asked.lock().len()
    }

    pub(super) fn last(&self) -> Request {
        self.asked.lock().last().cloned().expect("it was asked")
    }
}

#[async_trait]
impl Provider for RecordingProvider {
    fn name(&self) -> &str {
        self.inner.name()
    }

    async fn ask(&self, request: &Request, heard: &mut dyn ChunkListener) -> Result<Answer, ProviderError> {
        self.asked.lock().push(request.clone());
        self.inner.ask(request, heard).await
    }

    async fn probe(&self) -> Result<(), ProviderError> {
        self.inner.probe().await
    }
}

#[derive(Default)]
pub(super) struct RecordingListener(pub(super) Mutex<Vec<Kind>>);

impl Listener for RecordingListener {
    fn on_chunk(&self, chunk: Kind) {
        self.0.lock().push(chunk);
    }
}

impl RecordingListener {
    pub(super) fn text(&self) -> String {
        let text = |kind: &Kind| match kind {
            Kind::Text(agent::Text { text, .. }) => Some(text.clone()),
            _ => None,
        };
        self.0.lock().iter().filter_map(text).collect()
    }

    /// States and phases of all transitions.
    pub(super) fn loops(&self) -> Vec<String> {
        let shown = |kind: &Kind| match kind {
            Kind::Loop(state) => Some(format!("{} {}", state.state, state.phase)),
            _ => None,
        };
        self.0.lock().iter().filter_map(shown).collect()
    }

    pub(super) fn results(&self) -> Vec<agent::ToolResult> {
        let result = |kind: &Kind| match kind {
            Kind::ToolResult(result) => Some(result.clone()),
            _ => None,
        };
        self.0.lock().iter().filter_map(result).collect()
    }

    pub(super) fn notices(&self) -> Vec<agent::Notice> {
        let notice = |kind: &Kind| match kind {
            Kind::Notice(notice) => Some(notice.clone()),
            _ => None,
        };
        self.0.lock().iter().filter_map(notice).collect()
    }

    pub(super) fn last(&self) -> Kind {
        self.0.lock().last().cloned().expect("something was heard")
    }
}

#[derive(Default)]
pub(super) struct CountingObserver {
    pub(super) transitions: Mutex<Vec<String>>,
    pub(super) tools: Mutex<Vec<String>>,
    pub(super) ended: Mutex<u32>,
}

impl TurnObserver for CountingObserver {
    fn on_transition(&self, _: &Caller, record: &crate::machine::TransitionRecord, _: Duration) {
        self.transitions.lock().push(format!("{} {}", record.event, record.to));
    }

    fn on_tool_call(&self, _: &Caller, call: &crate::driver::FinishedCall<'_>) {
        let crate::driver::FinishedCall { plugin, action, outcome, .. } = call;
        self.tools.lock().push(format!("{plugin}.{action} {outcome:?}"));
    }

    fn on_turn_end(&self, _: &Caller, _: &TurnEnd) {
        *self.ended.lock() += 1;
    }
}

/// The whole environment.
pub(super) struct Setting {
    pub(super) images: Arc<FakeImages>,
    pub(super) attachments: Arc<FakeAttachments>,
    pub(super) tracer: Arc<crate::traces::Tracer>,
    pub(super) calibration: Arc<crate::tokens::Calibration>,
    pub(super) similarity: Option<Arc<dyn ToolSimilarity>>,
    pub(super) hooks: crate::hooks::Hooks,
    pub(super) model: Arc<RecordingProvider>,
    pub(super) second: Arc<RecordingProvider>,
    pub(super) host: Arc<FakeHost>,
    pub(super) own: Vec<Arc<dyn BuiltinTools>>,
    pub(super) confirm: Arc<FakeApprover>,
    pub(super) recall: Arc<FakeRecall>,
    pub(super) journal: Arc<Memory>,
    pub(super) session_plan: Arc<FakePlan>,
    pub(super) heard: Arc<RecordingListener>,
    pub(super) counted: Arc<CountingObserver>,
    pub(super) cancel: CancellationToken,
    pub(super) budgets: Budgets,
    pub(super) plan: ContextPlan,
    pub(super) catalog: String,
    pub(super) budget: Budget,
}

impl Setting {
    pub(super) fn new(script: &str) -> Self {
        Self::with_second(script, "answers: [{ say: 'the second one' }]")
    }

    pub(super) fn with_second(script: &str, second: &str) -> Self {
        let answers: Arc<Answers> = Arc::new(|call| {
            let said =
                format!("{} {}", call.action, call.args.values().cloned().collect::<Vec<_>>().join(","));
            says(&call, &said)
        });
        Self {
            hooks: crate::hooks::Hooks::none(),
            model: RecordingProvider::new("scripted", script),
            second: RecordingProvider::new("scripted-two", second),
            host: Arc::new(FakeHost::new(answers)),
            own: Vec::new(),
            images: Arc::default(),
            attachments: Arc::default(),
            tracer: Arc::default(),
            calibration: Arc::default(),
            similarity: None,
            confirm: Arc::default(),
            recall: Arc::default(),
            journal: Arc::default(),
            session_plan: Arc::default(),
            heard: Arc::default(),
            counted: Arc::default(),
            cancel: CancellationToken::new(),
            budgets: Budgets::default(),
            plan: ContextPlan::frugal(),
            catalog: CATALOG.to_owned(),
            budget: Budget::default(),
        }
    }

    pub(super) fn environment(&self) -> TurnEnvironment {
        let keys: CatalogKeys = serde_saphyr::from_str(&self.catalog).expect("the keys of a catalog");
        let names: BTreeSet<String> = ["scripted", "scripted-two"].map(str::to_owned).into();
        let catalog = Arc::new(Catalog::new(&keys, &names).expect("a good catalog"));
        let providers: [Arc<dyn Provider>; 2] = [self.model.clone(), self.second.clone()];
        let chain =
            Chain::new(catalog, providers, Ledgers::new(self.budget), ChainSettings::default(), Arc::new(()));
        TurnEnvironment {
            hooks: self.hooks.clone(),
            plugin_calls: Arc::default(),
            chain: Arc::new(chain),
            host: self.host.clone(),
            builtin_tools: self.own.clone(),
            recall: self.recall.clone(),
            approver: self.confirm.clone(),
            sanitizer: Arc::new(Sanitizer::default()),
            images: self.images.clone(),
            attachments: self.attachments.clone(),
            tracer: self.tracer.clone(),
            calibration: self.calibration.clone(),
            similarity: self.similarity.clone(),
        }
    }

    pub(super) fn spec(&self, request: &str) -> TurnSpec {
        TurnSpec {
            caller: Caller {
                session: "s".to_owned(),
                turn: self.journal.said().last().map_or(0, |past| past.turn) + 1,
                sender: "ada".to_owned(),
                channel: "cli".to_owned(),
                correlation_id: "c".to_owned(),
                ..Caller::default()
            },
            request: request.to_owned(),
            origin: MessageOrigin::default(),
            images: Vec::new(),
            attachments: Vec::new(),
            budgets: self.budgets.clone(),
            plan: self.plan,
            prompt: Prompt::new(vec!["be kind".to_owned()], Workspace::default()),
            task: Task::Chat,
            pins: Pins::default(),
            summaries: None,
            thinking: Thinking::default(),
            is_general_thinking: false,
            sampling: talon_agent_settings::Sampling::default(),
            schema: None,
            within: Vec::new(),
            allowed: AllowedTools::default(),
            no_tools: false,
            client: None,
            can_answer: false,
            session_plan: Some(self.session_plan.clone()),
            plans_first: false,
            parallel: ParallelCalls::default(),
            journal: Some(self.journal.clone()),
            listener: self.heard.clone(),
            cancel: self.cancel.clone(),
            resumes: None,
            trace: self.tracer.begin(None),
            outer: None,
        }
    }

    pub(super) fn driver(&self) -> Driver {
        Driver::observed(self.counted.clone())
    }

    pub(super) async fn run(&self, request: &str) -> TurnEnd {
        self.run_spec(self.spec(request)).await
    }

    pub(super) async fn run_spec(&self, spec: TurnSpec) -> TurnEnd {
        self.driver().run(&self.environment(), spec).await
    }

    /// Expects an answer.
    pub(super) async fn answer(&self, request: &str) -> String {
        self.run(request).await.outcome.expect("an answer")
    }

    /// Rebuilds an interrupted turn from a journal's entries.
    pub(super) fn interrupted(entries: &[(u64, JournalEntry)]) -> UnfinishedTurn {
        let turn = entries.first().map(|(turn, _)| *turn).expect("an entry");
        let entries = entries.iter().map(|(_, entry)| entry.clone()).collect();
        UnfinishedTurn::of(turn, entries).expect("a turn begins with what was asked")
    }
}

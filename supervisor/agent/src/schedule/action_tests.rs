use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use serde_json::json;
use talon_schedule::ScheduleEntry;
use talon_store::{
    Claim, Engine, JobTiming, NewOccurrence, OccurrenceKind, Plan, Store, StoreOptions, Timestamp,
};
use tokio::sync::Notify;

use super::*;
use crate::hooks::RoleCallError;

/// The supervisor: states in the order in which they are asked for, the last one for ever; and one answer.
struct Supervisor {
    states: Mutex<Vec<EntryState>>,
    asked: AtomicUsize,
    accepted_asked: AtomicUsize,
    answer: ExecuteResponse,
    hangs: bool,
    calls: Mutex<Vec<(RoleCall, bool)>>,
    called: Notify,
    store: Store,
}

#[async_trait]
impl EntryStates for Supervisor {
    async fn entry_state(&self, entry: &EntryKey) -> Result<EntryState, RoleCallError> {
        assert_eq!(entry.to_string(), "scheduled_task/nightly");
        self.asked.fetch_add(1, Ordering::Relaxed);
        let mut states = self.states.lock();
        Ok(if states.len() > 1 { states.remove(0) } else { states[0].clone() })
    }
}

#[async_trait]
impl AcceptedJobs for Supervisor {
    async fn accepted_job_state(&self, job: &str, action: &str) -> Result<EntryState, RoleCallError> {
        assert_eq!((job, action), ("nightly", "files.tidy"));
        self.accepted_asked.fetch_add(1, Ordering::Relaxed);
        let mut states = self.states.lock();
        Ok(if states.len() > 1 { states.remove(0) } else { states[0].clone() })
    }
}

#[async_trait]
impl RoleHost for Supervisor {
    async fn call(&self, call: &RoleCall) -> Result<ExecuteResponse, RoleCallError> {
        // What the store has when the call is made.
        let unfinished = self.store.schedule().unfinished(10).await.expect("read");
        self.calls.lock().push((call.clone(), unfinished[0].called_at.is_some()));
        self.called.notify_one();
        if self.hangs {
            std::future::pending::<()>().await;
        }
        Ok(self.answer.clone())
    }
}

struct Setting {
    _directory: tempfile::TempDir,
    supervisor: Arc<Supervisor>,
    ending: CancellationToken,
    job: Job,
    occurrence: Occurrence,
}

fn ready(declares_role: bool) -> Vec<EntryState> {
    vec![EntryState::Ready { declares_role }]
}

fn says(content: &str, structured: &str) -> ExecuteResponse {
    ExecuteResponse {
        outcome: Outcome::Ok.into(),
        content: content.to_owned(),
        structured_content: structured.to_owned(),
        ..ExecuteResponse::default()
    }
}

impl Setting {
    /// A claimed run of a job with these arguments.
    async fn new(args: &str, states: Vec<EntryState>, answer: ExecuteResponse) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("agent/agent.db");
        let store = StoreOptions::new(Engine::Sqlite { path }).open().await.expect("a store");
        let entry: ScheduleEntry =
            serde_saphyr::from_str(&format!("{{ id: nightly, every: 1d, action: files.tidy{args} }}"))
                .expect("an entry");
        let job = entry.check().expect("a job");
        let schedule = store.schedule();
        let at = Timestamp::from_millis;
        let timing = JobTiming { job: "nightly".to_owned(), timing: "t".to_owned() };
        schedule.set_jobs(vec![timing], at(0)).await.expect("written");
        let new = NewOccurrence {
            planned_at: at(86_400_000),
            begins_at: at(86_400_000),
            kind: OccurrenceKind::Planned,
            missed: None,
        };
        let plan =
            Plan { job: "nightly".to_owned(), from: at(0), to: at(86_400_000), occurrences: vec![new] };
        assert!(schedule.plan(plan).await.expect("written"));
        let claim = Claim {
            job: "nightly".to_owned(),
            planned_at: at(86_400_000),
            holder: "x".to_owned(),
            lease: Duration::from_secs(60),
            now: Timestamp::now(),
        };
        let occurrence = schedule.claim(claim).await.expect("written").expect("it is free");
        let supervisor = Arc::new(Supervisor {
            states: Mutex::new(states),
            asked: AtomicUsize::default(),
            accepted_asked: AtomicUsize::default(),
            answer,
            hangs: false,
            calls: Mutex::default(),
            called: Notify::default(),
            store,
        });
        Self { _directory: directory, supervisor, ending: CancellationToken::new(), job, occurrence }
    }

    fn target(&self) -> Arc<ActionTarget> {
        let supervisor = &self.supervisor;
        let schedule = supervisor.store.schedule();
        let hosts = ActionHosts {
            host: Arc::clone(supervisor) as _,
            entries: Arc::clone(supervisor) as _,
            accepted: Arc::clone(supervisor) as _,
        };
        ActionTarget::new(hosts, schedule, self.ending.clone())
    }

    async fn run(&self) -> RunOutcome {
        self.target().run(&self.job, &self.occurrence, &CancellationToken::new()).await
    }

    fn arguments(&self) -> Value {
        let calls = self.supervisor.calls.lock();
        assert_eq!(calls.len(), 1);
        assert!(calls[0].1, "the row says that it is called, before it is");
        serde_json::from_str(&calls[0].0.arguments_json).expect("JSON")
    }
}

fn reason(outcome: RunOutcome) -> String {
    match outcome {
        RunOutcome::Failed { reason, .. } => reason,
        other => panic!("{other:?}"),
    }
}

// Promises: EXT-85
#[tokio::test]
async fn an_action_gets_what_its_entry_gives_and_its_run_if_it_declares_the_role() {
    let args =
        ", args: { to: ops, text: 'run {{ run.id }} of {{ run.job }}', at: '{{ run.planned_unix_ms }}' }";
    for declares in [false, true] {
        let setting = Setting::new(args, ready(declares), says("tidied", r#"{"files": 3}"#)).await;
        let RunOutcome::Done(RunAnswer { kept: Some(result), .. }) = setting.run().await else { panic!() };
        assert_eq!((result.text.as_str(), result.structured), ("tidied", Some(json!({"files": 3}))));
        let arguments = setting.arguments();
        let id = run_id(&setting.occurrence).to_string();
        assert_eq!(arguments["text"], format!("run {id} of nightly"));
        assert_eq!((&arguments["to"], &arguments["at"]), (&json!("ops"), &json!(86_400_000)));
        let run = json!({"id": id, "job": "nightly", "planned_unix_ms": 86_400_000, "attempt": 1});
        assert_eq!(arguments.get("run"), declares.then_some(&run));
    }
    let setting = Setting::new("", ready(false), says("", "")).await;
    let kept = Some(RunResult::default());
    assert_eq!(setting.run().await, RunOutcome::Done(RunAnswer { kept, ..RunAnswer::default() }));
    assert_eq!(setting.arguments(), json!({}));
}

// Promises: EXT-86
#[tokio::test]
async fn what_it_answers_is_kept_within_bounds() {
    let text = "ä".repeat(MAX_RESULT_TEXT_BYTES);
    let structured = format!("{{\"x\": \"{}\"}}", "y".repeat(MAX_RESULT_JSON_BYTES));
    let setting = Setting::new("", ready(true), says(&text, &structured)).await;
    let RunOutcome::Done(RunAnswer { kept: Some(result), .. }) = setting.run().await else { panic!() };
    assert!(result.text.starts_with("[Its structured answer of 16"), "{}", &result.text[..80]);
    assert!(result.text.len() <= MAX_RESULT_TEXT_BYTES && result.structured.is_none());
    let schedule = setting.supervisor.store.schedule();
    let end = talon_store::RunEnd::Done(Some(result));
    assert!(schedule.end(&setting.occurrence.handle(), end, Timestamp::now()).await.expect("it fits"));
    for (answer, says, again) in [
        (
            ExecuteResponse {
                outcome: Outcome::ToolError.into(),
                reason: "busy".to_owned(),
                error: "later".to_owned(),
                ..Default::default()
            },
            "its action failed (busy): later",
            true,
        ),
        (
            ExecuteResponse { input_request: Some(Default::default()), ..says("", "") },
            "asks a question",
            false,
        ),
    ] {
        let setting = Setting::new("", ready(true), answer).await;
        match setting.run().await {
            RunOutcome::Failed { reason, retryable } => {
                assert!(reason.contains(says) && retryable == again, "{reason} {retryable}")
            }
            other => panic!("{other:?}"),
        }
    }
}

// Promises: EXT-87
#[tokio::test]
async fn a_plugin_that_is_not_up_is_waited_for_and_one_that_does_not_fit_fails_the_run() {
    let states = vec![EntryState::Waiting("it starts".to_owned()), EntryState::Ready { declares_role: true }];
    let setting = Setting::new("", states, says("ok", "")).await;
    assert!(matches!(setting.run().await, RunOutcome::Done(_)));
    assert_eq!(setting.supervisor.asked.load(Ordering::Relaxed), 2);

    let failing = vec![EntryState::Failing("no action tidy; did you mean tidy_up?".to_owned())];
    let setting = Setting::new("", failing, says("ok", "")).await;
    assert!(reason(setting.run().await).ends_with("did you mean tidy_up?"));

    let waiting = vec![EntryState::Waiting("its plugin is stopped".to_owned())];
    let setting = Setting::new("", waiting, says("ok", "")).await;
    let stop = CancellationToken::new();
    stop.cancel();
    let reason = reason(setting.target().run(&setting.job, &setting.occurrence, &stop).await);
    assert!(reason.contains("was waited for: its plugin is stopped"), "{reason}");
    setting.ending.cancel();
    assert_eq!(setting.run().await, RunOutcome::Interrupted);
    assert!(setting.supervisor.calls.lock().is_empty());
}

// Promises: EXT-88
#[tokio::test]
async fn a_run_that_was_interrupted_in_its_call_is_not_called_again() {
    let mut setting = Setting::new("", ready(true), says("ok", "")).await;
    Arc::get_mut(&mut setting.supervisor).expect("nobody else has it").hangs = true;
    let (called, ending) = (Arc::clone(&setting.supervisor), setting.ending.clone());
    let end = async {
        called.called.notified().await;
        ending.cancel();
    };
    let (outcome, ()) = tokio::join!(setting.run(), end);
    assert_eq!(outcome, RunOutcome::Interrupted);
    let schedule = setting.supervisor.store.schedule();
    setting.occurrence =
        schedule.get("nightly", setting.occurrence.planned_at).await.expect("read").expect("it is there");
    let after = reason(setting.run().await);
    assert!(after.contains("not known what it did"), "{after}");
    assert_eq!(setting.supervisor.calls.lock().len(), 1);
    // Another process has claimed it meanwhile.
    let lost = Occurrence { epoch: 0, called_at: None, ..setting.occurrence.clone() };
    let outcome = setting.target().run(&setting.job, &lost, &CancellationToken::new()).await;
    assert_eq!(outcome, RunOutcome::Lost);
    assert_eq!(setting.supervisor.calls.lock().len(), 1);
}

// Promises: EXT-164
#[tokio::test]
async fn an_accepted_job_is_judged_by_what_its_plugin_declares_now() {
    let mut setting = Setting::new("", ready(true), says("tidied", "")).await;
    setting.job.accepted = true;
    assert!(matches!(setting.run().await, RunOutcome::Done(_)));
    assert_eq!(setting.arguments()["run"]["job"], "nightly");
    assert_eq!(setting.supervisor.asked.load(Ordering::Relaxed), 0, "the configuration has no entry of it");
    let gone = vec![EntryState::Failing("files.tidy does not propose this job any more".to_owned())];
    let mut setting = Setting::new("", gone, says("", "")).await;
    setting.job.accepted = true;
    assert!(reason(setting.run().await).contains("does not propose this job any more"));
    assert!(setting.supervisor.calls.lock().is_empty());
}

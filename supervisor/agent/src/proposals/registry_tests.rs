use async_trait::async_trait;
use parking_lot::Mutex as SyncMutex;
use talon_proto::plugin::{Action, JobProposal as DeclaredProposal};
use talon_schedule::ScheduleEntry;
use talon_store::{Engine, Store, StoreOptions};

use super::*;
use crate::proposals::source::Declaration;

/// Plugins that declare what a test says; `None` is a supervisor that cannot be asked.
#[derive(Default)]
struct Plugins(SyncMutex<Option<Vec<Declaration>>>);

#[async_trait]
impl Declarations for Plugins {
    async fn declarations(&self) -> Result<Vec<Declaration>, RoleCallError> {
        self.0.lock().clone().ok_or_else(|| RoleCallError("it is being replaced".to_owned()))
    }
}

struct Setting {
    directory: tempfile::TempDir,
    store: Store,
    plugins: Arc<Plugins>,
    jobs: Arc<JobTable>,
    registry: Arc<ProposalRegistry>,
}

fn declares(plugin: &str, jobs: &[(&str, &str)]) -> Declaration {
    let job = |(name, every): &(&str, &str)| DeclaredProposal {
        name: (*name).to_owned(),
        every: (*every).to_owned(),
        ..DeclaredProposal::default()
    };
    let action = Action {
        name: "tidy".to_owned(),
        roles: vec!["scheduled_task".to_owned()],
        proposed_jobs: jobs.iter().map(job).collect(),
        ..Action::default()
    };
    Declaration { plugin: plugin.to_owned(), actions: Some(vec![action]) }
}

impl Setting {
    async fn new() -> Self {
        Self::on(tempfile::tempdir().expect("a directory")).await
    }

    async fn on(directory: tempfile::TempDir) -> Self {
        let path = directory.path().join("agent/agent.db");
        let store = StoreOptions::new(Engine::Sqlite { path }).open().await.expect("a store");
        let (plugins, jobs) = (Arc::<Plugins>::default(), Arc::<JobTable>::default());
        let registry = ProposalRegistry::open(ProposalParts {
            store: store.job_proposals(),
            source: Arc::clone(&plugins) as _,
            jobs: Arc::clone(&jobs),
            notifier: Notifier::new(store.outbox()),
        })
        .await
        .expect("a registry");
        Self { directory, store, plugins, jobs, registry }
    }

    async fn restarted(self) -> Self {
        self.store.close().await;
        Self::on(self.directory).await
    }

    async fn look(&self, declared: Vec<Declaration>) {
        *self.plugins.0.lock() = Some(declared);
        self.registry.look().await.expect("looked");
    }

    /// The open proposals as `job state when`.
    async fn open(&self) -> Vec<String> {
        let known = self.registry.list().await.expect("a list").open.into_iter();
        known
            .map(|one| {
                let text = Proposal::from_json(&one.proposal).expect("a proposal");
                format!("{} {} {}", one.job, one.state.word(), text.job().expect("a job").recurrence)
            })
            .collect()
    }

    async fn decide(&self, job: &str, accept: bool) -> Result<JobProposal, DecideError> {
        let known = self.registry.list().await.expect("a list");
        let open = known.open.iter().chain(known.accepted.iter().map(|(one, _)| one));
        let digest = open.filter(|one| one.job == job).map(|one| one.digest.clone()).next();
        let decision = ProposalDecision { job: job.to_owned(), digest: digest.unwrap_or_default(), accept };
        self.registry.decide(decision).await
    }

    /// What runs.
    fn runs(&self) -> Vec<String> {
        self.jobs.get().values().map(|job| format!("{} {}", job.id, job.recurrence)).collect()
    }
}

// Promises: EXT-160, EXT-161
#[tokio::test]
async fn nothing_runs_before_it_is_accepted_and_all_is_kept_over_a_restart() {
    let setting = Setting::new().await;
    setting.look(vec![declares("files", &[("", "1h"), ("weekly", "7d")])]).await;
    assert!(setting.runs().is_empty());
    assert_eq!(setting.open().await, ["files.tidy proposed every 1h", "files.weekly proposed every 7d"]);
    assert_eq!(setting.registry.waiting().await.expect("a number"), 2);
    let setting = setting.restarted().await;
    assert_eq!(setting.open().await.len(), 2, "the supervisor cannot be asked yet");
    setting.decide("files.tidy", true).await.expect("accepted");
    setting.decide("files.weekly", false).await.expect("rejected");
    assert_eq!(setting.runs(), ["files.tidy every 1h"]);
    let setting = setting.restarted().await;
    assert_eq!(setting.runs(), ["files.tidy every 1h"]);
    setting.look(vec![declares("files", &[("", "1h"), ("weekly", "7d")])]).await;
    assert_eq!(setting.open().await, ["files.weekly rejected every 7d"]);
}

// Promises: EXT-161
#[tokio::test(start_paused = true)]
async fn a_changed_proposal_is_proposed_again_and_the_accepted_one_goes_on() {
    let setting = Setting::new().await;
    setting.look(vec![declares("files", &[("", "1h"), ("weekly", "7d")])]).await;
    setting.decide("files.tidy", true).await.expect("accepted");
    setting.decide("files.weekly", false).await.expect("rejected");
    setting.look(vec![declares("files", &[("", "2h"), ("weekly", "14d")])]).await;
    assert_eq!(setting.runs(), ["files.tidy every 1h"]);
    assert_eq!(setting.open().await, ["files.tidy proposed every 2h", "files.weekly proposed every 14d"]);
    // What was rejected stays so, also after other texts.
    setting.look(vec![declares("files", &[("", "2h"), ("weekly", "7d")])]).await;
    assert_eq!(setting.open().await, ["files.tidy proposed every 2h", "files.weekly rejected every 7d"]);
    setting.decide("files.tidy", true).await.expect("accepted");
    assert_eq!(setting.runs(), ["files.tidy every 2h"]);
}

// Promises: EXT-161
#[tokio::test(start_paused = true)]
async fn a_decision_is_for_the_text_that_was_seen() {
    let setting = Setting::new().await;
    setting.look(vec![declares("files", &[("", "1h")])]).await;
    let seen = setting.registry.list().await.expect("a list").open.remove(0);
    setting.look(vec![declares("files", &[("", "1s")])]).await;
    let decision = ProposalDecision { job: seen.job.clone(), digest: seen.digest, accept: true };
    let error = setting.registry.decide(decision).await.expect_err("another text").to_string();
    assert!(error.contains("look at it again"), "{error}");
    assert!(setting.runs().is_empty());
    let error = setting.decide("files.tydi", true).await.expect_err("another job").to_string();
    assert!(error.ends_with("did you mean files.tidy?"), "{error}");
}

// Promises: EXT-164
#[tokio::test(start_paused = true)]
async fn a_plugin_that_goes_takes_its_proposals_and_leaves_accepted_jobs_with_a_problem() {
    let setting = Setting::new().await;
    setting
        .look(vec![declares("files", &[("", "1h"), ("weekly", "7d")]), declares("b", &[("", "1h")])])
        .await;
    setting.decide("files.tidy", true).await.expect("accepted");
    // It is there, and has not said anything yet.
    let silent = Declaration { plugin: "files".to_owned(), actions: None };
    setting.look(vec![silent, declares("b", &[("", "1h")])]).await;
    assert_eq!(setting.open().await, ["b.tidy proposed every 1h", "files.weekly proposed every 7d"]);
    assert!(setting.registry.list().await.expect("a list").accepted[0].1.is_none());
    setting.look(vec![declares("b", &[("", "1h")])]).await;
    assert_eq!(setting.open().await, ["b.tidy proposed every 1h"]);
    let known = setting.registry.list().await.expect("a list");
    let problem = known.accepted[0].1.as_deref().expect("a problem");
    assert!(problem.contains("talon schedule reject files.tidy"), "{problem}");
    assert_eq!(setting.runs(), ["files.tidy every 1h"], "it fails where people see it");
    setting.decide("files.tidy", false).await.expect("rejected");
    assert!(setting.runs().is_empty());
}

// Promises: EXT-163
#[tokio::test(start_paused = true)]
async fn a_job_of_the_configuration_keeps_its_name() {
    let setting = Setting::new().await;
    let entry: ScheduleEntry =
        serde_saphyr::from_str("{ id: files.tidy, every: 3h, action: files.tidy }").expect("an entry");
    setting.jobs.configure(&[entry]);
    setting.look(vec![declares("files", &[("", "1h")])]).await;
    let error = setting.decide("files.tidy", true).await.expect_err("taken").to_string();
    assert!(error.contains("the configuration has a job files.tidy"), "{error}");
    assert_eq!(setting.runs(), ["files.tidy every 3h"]);
    setting.decide("files.tidy", false).await.expect("rejected");
}

// Promises: EXT-160
#[tokio::test(start_paused = true)]
async fn a_plugin_that_changes_its_mind_all_the_time_leaves_nothing_behind() {
    let setting = Setting::new().await;
    for second in 1..200 {
        setting.look(vec![declares("files", &[("", &format!("{second}s"))])]).await;
    }
    assert_eq!(setting.open().await, ["files.tidy proposed every 3m19s"]);
    assert_eq!(setting.store.job_proposals().list().await.expect("a list").len(), 1);
}

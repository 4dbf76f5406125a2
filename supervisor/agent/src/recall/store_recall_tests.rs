use std::sync::Arc;

use talon_agent_settings::MemoryKeys;
use talon_llm::route::router::Pins;
use talon_store::{Engine, Memory, MemoryQuery, NewMemory, PageRequest, Store, StoreOptions, StoredMemory};

use super::StoreRecall;
use crate::driver::{Caller, CompletedTurn, Recall, Recollection};
use crate::tokens::{Estimate, TokenCounter as _};

struct Setting {
    _directory: tempfile::TempDir,
    store: Store,
    keys: MemoryKeys,
}

impl Setting {
    async fn new() -> Self {
        let directory = tempfile::tempdir().expect("there is room");
        let path = directory.path().join("agent/agent.db");
        let store = StoreOptions::new(Engine::Sqlite { path }).open().await.expect("a directory of our own");
        Self { _directory: directory, store, keys: MemoryKeys::default() }
    }

    fn remembering(&self) -> StoreRecall {
        StoreRecall::new(self.store.memory(), self.keys)
    }

    async fn recall(&self, request: &str) -> Recollection {
        self.remembering().recall(&caller("alice"), request, &Pins::default()).await
    }

    async fn fact(&self, content: &str, tags: &[&str]) {
        let tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
        let fact = NewMemory { content: content.to_owned(), tags, source: "test".to_owned(), workflow: None };
        self.store.memory().remember(fact).await.expect("there is room");
    }

    /// A turn that ended.
    async fn turn(&self, request: &str, calls: &[(&str, &str, bool)], success: bool) {
        self.turn_of("alice", request, calls, success).await;
    }

    async fn turn_of(&self, sender: &str, request: &str, calls: &[(&str, &str, bool)], success: bool) {
        let caller = caller(sender);
        let remembering = self.remembering();
        let followed = remembering.recall(&caller, request, &Pins::default()).await.followed;
        let calls = calls.iter().map(|(p, a, ok)| ((*p).to_owned(), (*a).to_owned(), *ok)).collect();
        let request = request.to_owned();
        remembering.learn(CompletedTurn { caller, request, calls, success, followed, confined: false }).await;
    }

    async fn workflows(&self) -> Vec<StoredMemory> {
        let query = MemoryQuery { tags: vec!["workflow".to_owned()], ..MemoryQuery::default() };
        self.store.memory().search(&query, &PageRequest::default()).await.expect("the store is open").items
    }
}

fn caller(sender: &str) -> Caller {
    let session = "01J00000000000000000000000".to_owned();
    Caller { session, turn: 1, sender: sender.to_owned(), ..Caller::default() }
}

const FOUNDING: &str = "analyze GitLab code and post issue to Jira and create PR";
const CALLS: [(&str, &str, bool); 3] =
    [("gitlab", "analyze_code", true), ("jira", "create_issue", true), ("gitlab", "create_pr", true)];

// Promises: AGENT-39
#[tokio::test]
async fn the_founding_example_is_learned_and_recalled_for_a_similar_request() {
    let setting = Setting::new().await;
    setting.turn(FOUNDING, &CALLS, true).await;
    let kept = setting.workflows().await;
    let workflow = kept[0].workflow.as_ref().expect("it is one");
    assert_eq!(workflow.trigger, "analyze code, post issue, create PR");
    assert_eq!(workflow.outcome, "success");
    let steps: Vec<(&str, &str, u32)> =
        workflow.steps.iter().map(|step| (&*step.plugin, &*step.action, step.order)).collect();
    assert_eq!(
        steps,
        [("gitlab", "analyze_code", 1), ("jira", "create_issue", 2), ("gitlab", "create_pr", 3)]
    );

    let recalled = setting.recall("please analyse the code of api, create an issue and a PR for it").await;
    assert_eq!(
        recalled.hints,
        [
            "analyze code, post issue, create PR: gitlab__analyze_code, then jira__create_issue, then gitlab__create_pr (worked)"
        ]
    );
    assert_eq!(recalled.tools, ["gitlab__analyze_code", "gitlab__create_pr", "jira__create_issue"]);
    assert_eq!(recalled.followed[0].id, kept[0].id.to_string());
    assert!(setting.recall("how do I knit a scarf?").await.hints.is_empty());
}

// Promises: AGENT-39
#[tokio::test]
async fn the_same_steps_for_a_similar_request_are_counted_and_not_kept_twice() {
    let setting = Setting::new().await;
    setting.turn(FOUNDING, &CALLS, true).await;
    setting.turn("analyze my code, create an issue for it, then a PR", &CALLS, true).await;
    let kept = setting.workflows().await;
    assert_eq!((kept.len(), kept[0].count), (1, 2));
    assert!(setting.recall(FOUNDING).await.hints[0].ends_with("(worked, done 2 times)"));
}

#[tokio::test]
async fn what_did_not_matter_is_no_step_and_what_is_no_workflow_is_not_kept() {
    let setting = Setting::new().await;
    for (calls, success) in [
        (&[("gitlab", "analyze_code", true)][..], true),
        (&[], true),
        (&[("gitlab", "analyze_code", true), ("jira", "create_issue", false)], true),
        (&[("gitlab", "analyze_code", true), ("gitlab", "analyze_code", true)], true),
        (&[("gitlab", "analyze_code", true), ("memory", "save", true), ("talon", "read_more", true)], true),
        (&CALLS, false),
    ] {
        setting.turn(FOUNDING, calls, success).await;
        assert!(setting.workflows().await.is_empty(), "{calls:?}");
    }
    let calls = [
        ("files", "read", true),
        ("files", "read", true),
        ("jira", "create_issue", false),
        ("memory", "search", true),
        ("jira", "create_issue", true),
    ];
    setting.turn("read the files and file an issue", &calls, true).await;
    let kept = setting.workflows().await;
    let steps = &kept[0].workflow.as_ref().expect("it is one").steps;
    assert_eq!(steps.len(), 2);
    let long: Vec<(String, String)> = (0..100).map(|n| ("p".to_owned(), format!("a{n}"))).collect();
    let long: Vec<(&str, &str, bool)> = long.iter().map(|(p, a)| (&**p, &**a, true)).collect();
    setting.turn("a program of a hundred steps", &long, true).await;
    assert_eq!(setting.workflows().await.len(), 1);
}

// Promises: AGENT-39
#[tokio::test]
async fn a_failed_run_marks_the_workflow_that_it_followed_until_it_works_again() {
    let setting = Setting::new().await;
    setting.turn(FOUNDING, &CALLS, true).await;
    let other = [("lint", "check", true), ("jira", "create_issue", true)];
    setting.turn("analyze code with lint, create issue in Jira", &other, true).await;

    let failed = [("gitlab", "analyze_code", true), ("jira", "create_issue", false)];
    setting.turn(FOUNDING, &failed, false).await;
    let kept = setting.workflows().await;
    assert_eq!(kept.len(), 2);
    let recalled = setting.recall(FOUNDING).await;
    // It was the most similar one.
    assert!(recalled.hints[0].contains("lint__check") && recalled.hints[0].ends_with("(worked)"));
    assert!(recalled.hints[1].contains("create_pr") && recalled.hints[1].ends_with("(failed the last time)"));
    assert!(!recalled.tools.contains(&"gitlab__create_pr".to_owned()), "{:?}", recalled.tools);

    setting.turn(FOUNDING, &CALLS, true).await;
    assert!(setting.recall(FOUNDING).await.hints[0].contains("(worked, done 3 times)"));
}

#[tokio::test]
async fn a_failed_run_that_did_something_else_marks_nothing() {
    let setting = Setting::new().await;
    setting.turn(FOUNDING, &CALLS, true).await;
    for calls in [
        &[][..],
        &[("web", "get", false)],
        &[
            ("web", "get", true),
            ("web", "find", true),
            ("mail", "send", true),
            ("jira", "create_issue", false),
        ],
    ] {
        setting.turn(FOUNDING, calls, false).await;
        assert!(setting.recall(FOUNDING).await.hints[0].ends_with("(worked)"), "{calls:?}");
    }
}

// Promises: AGENT-37
#[tokio::test]
async fn facts_that_go_with_a_request_are_recalled_and_no_others() {
    let setting = Setting::new().await;
    setting.fact("Ada likes her tea black", &["preference"]).await;
    setting.fact("the staging server is called otter", &["fact"]).await;
    setting.fact("東京の天気は晴れ", &["fact"]).await;
    for (request, memories) in [
        ("Could you please make some tea for me?", vec!["Ada likes her tea black"]),
        ("deploy it to the staging server", vec!["the staging server is called otter"]),
        ("明日の東京は？", vec!["東京の天気は晴れ"]),
        ("the and what", vec![]),
        ("", vec![]),
    ] {
        assert_eq!(setting.recall(request).await.memories, memories, "{request}");
    }
    setting.turn("make tea for Ada", &[("kettle", "boil", true), ("tea", "brew", true)], true).await;
    let recalled = setting.recall("make tea for Ada").await;
    assert_eq!(recalled.memories, ["Ada likes her tea black"]);
    assert_eq!(recalled.hints.len(), 1);
}

// Promises: AGENT-37
#[tokio::test]
async fn what_is_recalled_is_capped_by_count_and_by_tokens_whatever_there_is() {
    let mut setting = Setting::new().await;
    for number in 0..30 {
        setting.fact(&format!("otter number {number}: {}", "long ".repeat(number * 10)), &[]).await;
        let (first, second) = (format!("a{number}"), format!("b{number}"));
        let calls = [("otters", first.as_str(), true), ("rivers", second.as_str(), true)];
        setting.turn("feed the otter", &calls, true).await;
    }
    for tokens in [0, 10, 50, 200, 1000, 10_000] {
        setting.keys = MemoryKeys { recalled: 4, workflows_recalled: 2, tokens, ..MemoryKeys::default() };
        let recalled = setting.recall("feed the otter").await;
        assert!(recalled.memories.len() <= 4 && recalled.hints.len() <= 2);
        assert_eq!(recalled.followed.len(), recalled.hints.len());
        let all = recalled.memories.iter().chain(&recalled.hints);
        let sum: usize = all.map(|line| Estimate.count(line)).sum();
        assert!(sum <= tokens as usize, "{sum} > {tokens}: {recalled:#?}");
        assert!(tokens < 200 || (!recalled.memories.is_empty() && !recalled.hints.is_empty()));
    }
}

// Promises: AGENT-37
#[tokio::test]
async fn what_is_turned_off_is_neither_recalled_nor_learned() {
    let mut setting = Setting::new().await;
    setting.fact("Ada likes tea", &[]).await;
    setting.turn("make tea for Ada", &[("kettle", "boil", true), ("tea", "brew", true)], true).await;
    setting.keys.workflows = false;
    let recalled = setting.recall("make tea for Ada").await;
    assert_eq!((recalled.memories.len(), recalled.hints.len()), (1, 0));
    setting.turn(FOUNDING, &CALLS, true).await;
    setting.keys = MemoryKeys { enabled: false, ..MemoryKeys::default() };
    assert_eq!(setting.recall("make tea for Ada").await, Recollection::default());
    setting.turn(FOUNDING, &CALLS, true).await;
    assert_eq!(setting.workflows().await.len(), 1);
}

// Promises: AGENT-38
#[tokio::test]
async fn nobodys_memories_come_into_anothers_prompt() {
    let setting = Setting::new().await;
    setting.fact("Bob keeps his key below the otter", &["sender:bob"]).await;
    setting.fact("otters are everybody's", &[]).await;
    setting.turn_of("bob", "feed the otter", &[("kitchen", "get", true), ("zoo", "feed", true)], true).await;
    let of = async |sender| {
        setting.remembering().recall(&caller(sender), "feed the otter", &Pins::default()).await
    };
    let (alice, bob) = (of("alice").await, of("bob").await);
    assert_eq!((alice.memories.len(), alice.hints.len()), (1, 0));
    assert_eq!((bob.memories.len(), bob.hints.len()), (2, 1));
}

#[tokio::test]
async fn what_others_did_is_not_counted_as_ones_own() {
    let setting = Setting::new().await;
    for sender in ["alice", "bob"] {
        setting.turn_of(sender, FOUNDING, &CALLS, true).await;
    }
    let failed = [("gitlab", "analyze_code", true), ("jira", "create_issue", false)];
    setting.turn_of("bob", FOUNDING, &failed, false).await;
    let of =
        async |sender| setting.remembering().recall(&caller(sender), FOUNDING, &Pins::default()).await.hints;
    assert!(of("alice").await[0].ends_with("(worked)"));
    assert!(of("bob").await[0].ends_with("(failed the last time)"));
}

#[tokio::test]
async fn a_sub_agent_remembers_and_learns_nothing() {
    let setting = Setting::new().await;
    setting.fact("Ada likes tea", &[]).await;
    let caller = Caller { subagent: "ResearchAgent".to_owned(), ..caller("alice") };
    let remembering = setting.remembering();
    assert_eq!(remembering.recall(&caller, "tea for Ada", &Pins::default()).await, Recollection::default());
    let calls = CALLS.map(|(p, a, ok)| (p.to_owned(), a.to_owned(), ok)).to_vec();
    let request = FOUNDING.to_owned();
    remembering
        .learn(CompletedTurn { caller, request, calls, success: true, followed: Vec::new(), confined: false })
        .await;
    assert!(setting.workflows().await.is_empty());
}

#[tokio::test]
async fn a_store_that_cannot_be_read_fails_no_turn() {
    let setting = Setting::new().await;
    setting.fact("Ada likes tea", &[]).await;
    setting.store.close().await;
    assert_eq!(setting.recall("tea for Ada").await, Recollection::default());
    setting.turn(FOUNDING, &CALLS, true).await;
}

#[tokio::test]
async fn however_long_or_odd_a_request_is_something_comes_of_it() {
    let setting = Setting::new().await;
    for request in
        ["x ".repeat(200_000), "é".repeat(100_000), "\0\n\u{202e}".repeat(1000), "🦦".repeat(50_000)]
    {
        setting.turn(&request, &CALLS, true).await;
        let _ = setting.recall(&request).await;
    }
    let _: Arc<dyn Memory> = setting.store.memory();
}

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use talon_arguments::Arguments;
use talon_store::{Engine, Store, StoreOptions};

use super::*;
use crate::approval::policy::ConfirmReason;
use crate::approval::record::ApprovalRecord;
use crate::approval::store::ApprovalStore;
use crate::driver::{BatchProgress, CallToConfirm, Caller};

const SESSION: &str = "S1";

struct Call {
    caller: Caller,
    args: BTreeMap<String, String>,
    json: Arguments,
}

impl Call {
    fn new(command: &str) -> Self {
        let caller = Caller { session: SESSION.to_owned(), sender: "alice".to_owned(), ..Caller::default() };
        let args = BTreeMap::from([("command".to_owned(), command.to_owned())]);
        Self { caller, args, json: Arguments::default() }
    }

    fn in_batch<'a>(&'a self, batch: &'a BatchProgress) -> CallToConfirm<'a> {
        CallToConfirm {
            caller: &self.caller,
            call_id: "c",
            plugin: "shell",
            action: "run",
            args: &self.args,
            json: &self.json,
            read_only: false,
            destructive: None,
            position: batch.position(0),
        }
    }

    fn look<T>(&self, how: impl FnOnce(&CallToConfirm<'_>) -> T) -> T {
        how(&self.in_batch(&BatchProgress::default()))
    }

    fn record(&self, why: &ConfirmReason) -> ApprovalRecord {
        self.look(|call| ApprovalRecord::new(call, why, Duration::from_secs(60))).expect("it is short")
    }

    async fn covered(&self, rules: &RuleRegistry, why: &ConfirmReason) -> bool {
        let batch = BatchProgress::default();
        rules.use_covering(&self.in_batch(&batch), why).await.is_some()
    }
}

async fn store(directory: &tempfile::TempDir) -> Store {
    let path = directory.path().join("agent/agent.db");
    StoreOptions::new(Engine::Sqlite { path }).open().await.expect("a directory of our own")
}

async fn open(store: &Store) -> RuleRegistry {
    RuleRegistry::open(ApprovalStore::of_rules(store.key_values())).await.expect("it can be read")
}

fn pattern(text: &str) -> BTreeMap<String, String> {
    BTreeMap::from([("command".to_owned(), text.to_owned())])
}

const UNDECLARED: ConfirmReason = ConfirmReason::Undeclared;

// Promises: AGENT-84
#[tokio::test]
async fn a_rule_covers_its_call_for_its_sender_and_its_session_over_a_restart() {
    let directory = tempfile::tempdir().expect("there is room");
    let before = store(&directory).await;
    let rules = open(&before).await;
    let record = Call::new("make x").record(&UNDECLARED);
    let id = rules.add(&record, RuleScope::Session, &BTreeMap::new(), "alice").await.expect("made");
    drop(rules);
    before.close().await;
    let after = store(&directory).await;
    let rules = open(&after).await;
    assert!(Call::new("make x").covered(&rules, &UNDECLARED).await);
    for other in [
        Call::new("make y"),
        Call { caller: Caller { sender: "bob".to_owned(), ..Call::new("").caller }, ..Call::new("make x") },
        Call { caller: Caller { session: "S2".to_owned(), ..Call::new("").caller }, ..Call::new("make x") },
        Call { args: BTreeMap::new(), ..Call::new("make x") },
    ] {
        assert!(!other.covered(&rules, &UNDECLARED).await, "{:?}", other.args);
    }
    let shown = rules.list(Some("alice")).await;
    assert_eq!((shown[0].uses, shown[0].session_id.as_str(), shown[0].id.as_str()), (1, SESSION, &*id));
    assert!(rules.list(Some("bob")).await.is_empty());
    assert!(matches!(rules.revoke(&id, Some("bob")).await, Err(RuleError::Unknown { .. })));
    rules.revoke(&id, Some("alice")).await.expect("it is hers");
    assert!(!Call::new("make x").covered(&rules, &UNDECLARED).await);
    drop(rules);
    assert!(open(&after).await.list(None).await.is_empty(), "it is off the disk");
}

// Promises: AGENT-84
#[tokio::test]
async fn a_pattern_covers_what_fits_and_nothing_that_a_confirm_pattern_finds() {
    let directory = tempfile::tempdir().expect("there is room");
    let store = store(&directory).await;
    let rules = open(&store).await;
    let record = Call::new("make x").record(&UNDECLARED);
    rules.add(&record, RuleScope::Always, &pattern("make *"), "alice").await.expect("made");
    let found = ConfirmReason::Pattern("rm -rf".to_owned());
    let elsewhere = || Caller { session: "S2".to_owned(), ..Call::new("").caller };
    assert!(Call { caller: elsewhere(), ..Call::new("make y -j2") }.covered(&rules, &UNDECLARED).await);
    assert!(!Call::new("make x; rm y").covered(&rules, &UNDECLARED).await);
    assert!(!Call::new("make x").covered(&rules, &found).await);
    assert!(!Call::new("make x").covered(&rules, &ConfirmReason::Always).await);
    // Exactly this call may be allowed, whatever it says.
    let record = Call::new("rm -rf build").record(&found);
    rules.add(&record, RuleScope::Always, &BTreeMap::new(), "alice").await.expect("made");
    assert!(Call::new("rm -rf build").covered(&rules, &found).await);
    assert!(!Call::new("rm -rf /").covered(&rules, &found).await);
}

// Promises: AGENT-84
#[tokio::test]
async fn what_makes_no_rule_says_why() {
    let directory = tempfile::tempdir().expect("there is room");
    let store = store(&directory).await;
    let rules = open(&store).await;
    let found = ConfirmReason::Pattern("rm -rf".to_owned());
    let unknown = BTreeMap::from([("cmd".to_owned(), "*".to_owned())]);
    for (record, patterns, said) in [
        (Call::new("x").record(&ConfirmReason::Always), BTreeMap::new(), "only this one can be approved"),
        (Call::new("rm -rf x").record(&found), pattern("rm *"), "exactly this call"),
        (Call::new("x").record(&UNDECLARED), unknown, "no argument \"cmd\""),
        (Call::new("x").record(&UNDECLARED), pattern("y*"), "does not cover what was shown"),
        (Call::new("x").record(&UNDECLARED), pattern("x\\"), "backslash"),
        (Call::new(&"x".repeat(5000)).record(&UNDECLARED), BTreeMap::new(), "at most 4096 bytes"),
    ] {
        let error = rules.add(&record, RuleScope::Always, &patterns, "alice").await.expect_err(said);
        assert!(error.to_string().contains(said), "{error}");
    }
    assert!(rules.list(None).await.is_empty());
}

// Promises: AGENT-84
#[tokio::test]
async fn there_are_so_many_rules_of_one_sender_and_those_of_a_deleted_session_go_with_it() {
    let directory = tempfile::tempdir().expect("there is room");
    let store = store(&directory).await;
    let rules = Arc::new(open(&store).await);
    for n in 0..MAX_RULES_PER_SENDER {
        let scope = if n % 2 == 0 { RuleScope::Session } else { RuleScope::Always };
        let record = Call::new(&n.to_string()).record(&UNDECLARED);
        rules.add(&record, scope, &BTreeMap::new(), "alice").await.expect("there is room");
    }
    let more = Call::new("more").record(&UNDECLARED);
    let full = rules.add(&more, RuleScope::Always, &BTreeMap::new(), "alice").await.expect_err("full");
    assert!(matches!(full, RuleError::TooMany));
    rules.forget_session(SESSION).await.expect("forgotten");
    assert_eq!(rules.list(None).await.len(), MAX_RULES_PER_SENDER / 2);
    rules.add(&more, RuleScope::Always, &BTreeMap::new(), "alice").await.expect("there is room again");
}

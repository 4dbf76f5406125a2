use talon_agent_settings::Budget;
use talon_llm::route::catalog::ModelRef;
use talon_llm::route::cost::Charge;
use talon_store::{Engine, NotificationFilter, PageRequest, Store, StoreOptions};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::notify::payload::Payload;

async fn setting() -> (tempfile::TempDir, Store, Arc<Notifier>) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("agent/agent.db");
    let store = StoreOptions::new(Engine::Sqlite { path }).open().await.expect("a store");
    let notifier = Notifier::new(store.outbox());
    notifier.configure(&[talon_extensions::NotificationEntry::new(&["budget.*", "task.failed"], "a.b")]);
    (directory, store, notifier)
}

/// What was told, oldest first, once everything is written.
async fn told(store: &Store, notifier: &Arc<Notifier>) -> Vec<String> {
    let ending = CancellationToken::new();
    ending.cancel();
    Arc::clone(notifier).write_events(ending).await;
    let page = store.outbox().list(&NotificationFilter::default(), &PageRequest::first(100)).await;
    let mut events: Vec<String> = page.expect("a page").items.into_iter().map(|one| one.event).collect();
    events.reverse();
    events
}

fn money(text: &str) -> Money {
    text.parse().expect("an amount")
}

// Promises: EXT-61
#[tokio::test]
async fn a_budget_is_told_when_it_is_nearly_and_when_it_is_wholly_spent() {
    let (_directory, store, notifier) = setting().await;
    let budget = Budget { per_session: Some(money("1")), per_day: Some(money("1.5")) };
    let (events, ledgers) = (BudgetEvents::new(Arc::clone(&notifier)), Ledgers::new(budget));
    events.set_ledgers(ledgers.clone());
    let model = ModelRef { provider: "p".into(), name: "m".into() };
    let spend = |session: &str, cost: &str| {
        let charge = Charge { cost: money(cost), ..Charge::default() };
        ledgers.reserve(session, today(), Money::ZERO).expect("within it").charge(&model, &charge, true);
        events.on_event(&ChainEvent::Charged {
            session,
            plugin: None,
            model: &model,
            charge: &charge,
            answered: true,
        });
    };
    spend("a", "0.79");
    assert!(told(&store, &notifier).await.is_empty());
    spend("a", "0.02");
    spend("a", "0.01");
    assert_eq!(told(&store, &notifier).await, ["budget.warning session a 1.00"]);
    spend("b", "0.5");
    let day = format!("budget.warning day {} 1.50", today().0);
    assert_eq!(told(&store, &notifier).await, ["budget.warning session a 1.00", &day]);
    let over = ledgers.reserve("a", today(), money("0.5")).expect_err("it is spent");
    for _ in 0..3 {
        events.on_event(&ChainEvent::OverBudget { session: "a", over: &over });
    }
    assert_eq!(told(&store, &notifier).await[2..], ["budget.exceeded session a 1.00"]);
}

// Promises: EXT-180
#[tokio::test]
async fn events_have_the_fields_that_are_documented() {
    let (_directory, store, notifier) = setting().await;
    let caller =
        Caller { session: "s".into(), sender: "ada".into(), subagent: "helper".into(), ..Caller::default() };
    let budgets = BudgetEvents::new(Arc::clone(&notifier));
    let (once, twice) = (budgets.follow(&caller), budgets.follow(&caller));
    drop(once);
    for kind in [EventKind::BudgetWarning, EventKind::BudgetExceeded] {
        budgets.tell(kind, BudgetScope::Session, "s", "spent".into(), (money("1"), money("1")));
    }
    drop(twice);
    assert!(budgets.senders.lock().is_empty());
    notifier.notify(task_failed(caller, "limit", "it took too long"));
    told(&store, &notifier).await;
    let page = store.outbox().list(&NotificationFilter::default(), &PageRequest::first(100)).await;
    let stored = page.expect("a page").items;
    let stored = stored.iter().flat_map(|one| Payload::read(&one.payload).expect("a payload").events);
    let approval = agent::Approval {
        id: "01K".into(),
        session_id: "s".into(),
        plugin: "files".into(),
        action: "write".into(),
        sender: "ada".into(),
        ..agent::Approval::default()
    };
    let made = [
        approval_waiting(&approval),
        schedule_failed("digest", "1", "no model"),
        room_changed(Some("the disk is full")),
        room_changed(None),
    ];
    let events: Vec<_> = stored.chain(made.map(NewEvent::happened)).collect();
    for event in &events {
        for name in event.kind.fields() {
            assert!(event.fields.contains_key(*name), "{} has no field {name}: {event:?}", event.kind);
        }
    }
    // The supervisor makes the others of `HostEventKind`, plugins `source.event`, tests of an entry `test`; `answer` is shown where
    // jobs deliver, `events.gap` where the supervisor's events are read.
    let seen: BTreeSet<EventKind> = events.iter().map(|event| event.kind).collect();
    let expected = [
        EventKind::ApprovalWaiting,
        EventKind::BudgetWarning,
        EventKind::BudgetExceeded,
        EventKind::TaskFailed,
        EventKind::StateUnavailable,
        EventKind::StateAvailable,
        EventKind::ScheduleFailed,
    ];
    assert_eq!(seen, BTreeSet::from(expected));
}

#[test]
fn what_waits_says_how_to_decide() {
    let approval = agent::Approval {
        id: "01K".into(),
        plugin: "files".into(),
        action: "write".into(),
        sender: "ada".into(),
        ..agent::Approval::default()
    };
    let call = approval_waiting(&approval).happened();
    assert!(
        call.details.contains("talon approval approve 01K") && call.fields["sender"] == "ada",
        "{call:?}"
    );
    let question = agent::Approval { question: "Which one?".into(), ..approval };
    let asked = approval_waiting(&question).happened();
    assert!(asked.summary.contains("Which one?") && asked.details.contains("talon approval answer 01K"));
}

//! The outbox.

use std::time::Duration;

use talon_store::{
    GroupKey, NewNotification, Notification, NotificationBatch, NotificationChange, NotificationClaim,
    NotificationEnd, NotificationFilter, NotificationState, PageRequest, PageToken, Store, Timestamp,
};

use crate::support::{Fixture, cases};

cases![
    an_event_makes_one_notification_of_an_entry,
    a_decision_about_what_changed_is_not_stored,
    numbered_events_are_stored_once,
    a_claim_is_for_one,
    a_lost_claim_writes_nothing,
    a_lease_that_expired_is_claimed_again,
    what_failed_waits_for_its_time,
    finished_ones_wait_again_by_wish,
    the_least_severe_and_oldest_make_room,
    a_list_is_paged_from_the_latest,
    old_ones_are_deleted_and_others_stay,
    a_sender_is_forgotten,
    an_exported_one_is_imported_once,
    what_no_notification_can_be_is_refused,
    of_many_that_decide_and_claim_at_once_one_does,
];

const LEASE: Duration = Duration::from_secs(600);

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(1_700_000_000_000 + seconds * 1000)
}

fn key(entry: &str, group: &str) -> GroupKey {
    GroupKey { entry: entry.to_owned(), group: group.to_owned() }
}

fn payload(sender: &str) -> String {
    format!(r#"{{"events":[{{"count":1,"fields":{{"sender":"{sender}"}}}}]}}"#)
}

/// A new notification whose id ends by a number, and whose event is named after it.
fn new(entry: &str, group: &str, number: u32) -> NewNotification {
    NewNotification {
        id: format!("01KAAAAAAAAAAAAAAAAAAA{number:04}"),
        event: format!("event {number}"),
        key: key(entry, group),
        severity: "info".to_owned(),
        payload: payload("ada"),
        count: 1,
        due_at: at(i64::from(number)),
        closes_at: at(0),
        created_at: at(i64::from(number)),
    }
}

fn batch(changes: Vec<NotificationChange>) -> NotificationBatch {
    NotificationBatch { changes, ..NotificationBatch::default() }
}

async fn stored(store: &Store, all: impl IntoIterator<Item = NewNotification>) {
    let changes = all.into_iter().map(NotificationChange::New).collect();
    assert!(store.outbox().write(batch(changes)).await.unwrap());
}

fn claim(id: &str, holder: &str, lease: Duration) -> NotificationClaim {
    NotificationClaim { id: id.to_owned(), holder: holder.to_owned(), lease, now: Timestamp::now() }
}

async fn one(store: &Store, id: &str) -> Notification {
    store.outbox().get(id).await.unwrap().unwrap()
}

async fn listed(store: &Store, filter: &NotificationFilter) -> Vec<String> {
    let page = store.outbox().list(filter, &PageRequest::first(1000)).await.unwrap();
    page.items.into_iter().map(|found| found.event).collect()
}

async fn an_event_makes_one_notification_of_an_entry(Fixture { store, .. }: Fixture) {
    let first = new("ops", "g", 1);
    stored(&store, [first.clone()]).await;
    let again = NewNotification { id: new("ops", "g", 2).id, payload: payload("bob"), ..first.clone() };
    let other = NewNotification { id: new("ops", "g", 3).id, key: key("dev", "g"), ..first.clone() };
    stored(&store, [again, other]).await;
    let all = store.outbox().list(&NotificationFilter::default(), &PageRequest::default()).await.unwrap();
    let all: Vec<_> = all.items.iter().map(|one| (one.entry.as_str(), one.payload.as_str())).collect();
    assert_eq!(all, [("dev", first.payload.as_str()), ("ops", &first.payload)]);
    let asked = ["event 1", "event 2"].map(|event| (event.to_owned(), "ops".to_owned()));
    assert_eq!(store.outbox().known_events(&asked).await.unwrap(), asked[..1]);
    assert_eq!(store.outbox().open_entries().await.unwrap(), ["dev", "ops"]);
    let found = one(&store, &first.id).await;
    assert_eq!((found.state, found.attempt, found.count), (NotificationState::Waiting, 0, 1));
    assert_eq!((found.due_at, found.next_at, found.created_at), (at(1), at(1), at(1)));
}

async fn a_decision_about_what_changed_is_not_stored(Fixture { store, .. }: Fixture) {
    let outbox = store.outbox();
    let group = key("ops", "g");
    assert!(outbox.latest(std::slice::from_ref(&group)).await.unwrap().is_empty());
    let first = new("ops", "g", 1);
    let decided = NotificationBatch {
        groups: vec![(group.clone(), None)],
        ..batch(vec![NotificationChange::New(first.clone())])
    };
    assert!(outbox.write(decided.clone()).await.unwrap());
    assert!(!outbox.write(decided).await.unwrap(), "there is one by now");
    let found = outbox.latest(&[group.clone(), key("ops", "other")]).await.unwrap();
    assert_eq!(found, [one(&store, &first.id).await]);
    let extend = NotificationChange::Extend {
        id: first.id.clone(),
        more: 4,
        payload: Some(payload("bob")),
        severity: "critical".into(),
    };
    let extended = NotificationBatch {
        groups: vec![(group.clone(), Some(found[0].seen()))],
        ..batch(vec![extend.clone()])
    };
    assert!(outbox.write(extended.clone()).await.unwrap());
    assert!(!outbox.write(extended).await.unwrap(), "it was extended meanwhile");
    let found = one(&store, &first.id).await;
    assert_eq!((found.count, found.severity.as_str(), found.payload), (5, "critical", payload("bob")));
    // What is being delivered takes in nothing more.
    let seen = outbox.latest(std::slice::from_ref(&group)).await.unwrap()[0].seen();
    outbox.claim(claim(&first.id, "x", LEASE)).await.unwrap().unwrap();
    let late = NotificationBatch { groups: vec![(group, Some(seen))], ..batch(vec![extend]) };
    assert!(!outbox.write(late).await.unwrap());
    assert_eq!(one(&store, &first.id).await.count, 5);
}

async fn numbered_events_are_stored_once(Fixture { store, .. }: Fixture) {
    let outbox = store.outbox();
    assert_eq!(outbox.cursor("host").await.unwrap(), 0);
    let read = |from, to, number| NotificationBatch {
        cursor: Some(("host".to_owned(), from, to)),
        ..batch(vec![NotificationChange::New(new("ops", "g", number))])
    };
    assert!(outbox.write(read(0, 7, 1)).await.unwrap());
    assert!(!outbox.write(read(0, 7, 2)).await.unwrap(), "they were read before");
    assert_eq!(outbox.cursor("host").await.unwrap(), 7);
    assert_eq!(outbox.cursor("another").await.unwrap(), 0);
    assert!(outbox.write(read(7, 9, 3)).await.unwrap());
    assert_eq!(listed(&store, &NotificationFilter::default()).await, ["event 3", "event 1"]);
}

async fn a_claim_is_for_one(Fixture { store, .. }: Fixture) {
    let outbox = store.outbox();
    let later = NewNotification { due_at: at(1_000_000_000), ..new("ops", "g", 2) };
    stored(&store, [new("ops", "g", 1), later.clone(), new("dev", "g", 3)]).await;
    let now = Timestamp::now();
    let due = outbox.due("ops", now, 10).await.unwrap();
    assert_eq!(due.iter().map(|one| one.event.as_str()).collect::<Vec<_>>(), ["event 1"]);
    assert_eq!(outbox.next_due("ops", now).await.unwrap(), Some(later.due_at));
    assert_eq!(outbox.next_due("none", now).await.unwrap(), None);
    assert!(outbox.claim(claim(&later.id, "x", LEASE)).await.unwrap().is_none(), "it is not due");
    let claimed = outbox.claim(claim(&due[0].id, "x", LEASE)).await.unwrap().unwrap();
    assert_eq!((claimed.state, claimed.attempt, claimed.epoch), (NotificationState::Sending, 1, 1));
    assert_eq!(claimed.holder.as_deref(), Some("x"));
    assert!(outbox.claim(claim(&due[0].id, "y", LEASE)).await.unwrap().is_none());
    assert!(outbox.due("ops", now, 10).await.unwrap().is_empty());
    let counts = outbox.counts().await.unwrap();
    assert_eq!((counts.waiting, counts.sending, counts.delivered), (2, 1, 0));
}

async fn a_lost_claim_writes_nothing(Fixture { store, .. }: Fixture) {
    let outbox = store.outbox();
    stored(&store, [new("ops", "g", 1)]).await;
    let id = new("ops", "g", 1).id;
    let first = outbox.claim(claim(&id, "x", Duration::ZERO)).await.unwrap().unwrap();
    let second = outbox.claim(claim(&id, "y", LEASE)).await.unwrap().unwrap();
    assert_eq!((second.epoch, second.attempt), (2, 2));
    assert!(!outbox.end(&first.handle(), NotificationEnd::Delivered, at(5)).await.unwrap());
    assert_eq!(one(&store, &id).await.holder.as_deref(), Some("y"));
    assert!(outbox.end(&second.handle(), NotificationEnd::Delivered, at(5)).await.unwrap());
    assert!(!outbox.end(&second.handle(), NotificationEnd::Refused("no".into()), at(6)).await.unwrap());
    let found = one(&store, &id).await;
    assert_eq!((found.state, found.ended_at), (NotificationState::Delivered, Some(at(5))));
}

async fn a_lease_that_expired_is_claimed_again(Fixture { store, .. }: Fixture) {
    let outbox = store.outbox();
    stored(&store, [new("ops", "g", 1)]).await;
    let id = new("ops", "g", 1).id;
    outbox.claim(claim(&id, "x", LEASE)).await.unwrap().unwrap();
    outbox.expire_leases().await.unwrap();
    let again = outbox.claim(claim(&id, "y", LEASE)).await.unwrap();
    // A database of several is waited for, whoever held the claim.
    assert_eq!(again.is_some(), store.engine() == "sqlite");
}

async fn what_failed_waits_for_its_time(Fixture { store, .. }: Fixture) {
    let outbox = store.outbox();
    stored(&store, [new("ops", "g", 1)]).await;
    let id = new("ops", "g", 1).id;
    let first = outbox.claim(claim(&id, "x", LEASE)).await.unwrap().unwrap();
    let later = Timestamp::from_millis(Timestamp::now().as_millis() + 3_600_000);
    let retry = NotificationEnd::Retry { note: "no network".into(), at: later };
    assert!(outbox.end(&first.handle(), retry, at(5)).await.unwrap());
    let found = one(&store, &id).await;
    assert_eq!((found.state, found.note.as_str()), (NotificationState::Waiting, "no network"));
    assert_eq!((found.next_at, found.due_at, found.ended_at), (later, at(1), None));
    assert!(outbox.claim(claim(&id, "x", LEASE)).await.unwrap().is_none());
    assert_eq!(outbox.retry(Some(&id), Timestamp::now()).await.unwrap(), 1);
    let second = outbox.claim(claim(&id, "x", LEASE)).await.unwrap().unwrap();
    assert_eq!((second.attempt, second.due_at), (2, at(1)));
    assert!(outbox.end(&second.handle(), NotificationEnd::Released, Timestamp::now()).await.unwrap());
    assert!(outbox.claim(claim(&id, "x", LEASE)).await.unwrap().is_some());
}

async fn finished_ones_wait_again_by_wish(Fixture { store, .. }: Fixture) {
    let outbox = store.outbox();
    stored(&store, (1..=4).map(|number| new("ops", "g", number))).await;
    let ends = [
        NotificationEnd::GivenUp("a day".into()),
        NotificationEnd::Refused("no such channel".into()),
        NotificationEnd::Delivered,
    ];
    for (number, end) in (1..).zip(ends) {
        let claimed = outbox.claim(claim(&new("ops", "g", number).id, "x", LEASE)).await.unwrap().unwrap();
        assert!(outbox.end(&claimed.handle(), end, at(10)).await.unwrap());
    }
    let given_up = NotificationFilter { state: Some(NotificationState::GivenUp), entry: None };
    assert_eq!(listed(&store, &given_up).await, ["event 1"]);
    assert_eq!(outbox.retry(Some("nothing"), at(50)).await.unwrap(), 0);
    assert_eq!(outbox.retry(None, at(50)).await.unwrap(), 2);
    let again = one(&store, &new("ops", "g", 1).id).await;
    assert_eq!((again.state, again.due_at, again.next_at), (NotificationState::Waiting, at(50), at(50)));
    assert_eq!((again.attempt, again.ended_at, again.note.as_str()), (1, None, "a day"));
    assert_eq!(outbox.counts().await.unwrap().delivered, 1);
    assert_eq!(outbox.retry(None, at(60)).await.unwrap(), 2, "also those that were attempted and wait");
}

async fn the_least_severe_and_oldest_make_room(Fixture { store, .. }: Fixture) {
    let outbox = store.outbox();
    let severe = |number, severity: &str| NewNotification {
        severity: severity.to_owned(),
        count: 2,
        ..new("ops", "g", number)
    };
    stored(&store, (1..=10).map(|number| severe(number, "critical"))).await;
    stored(&store, (11..=21).map(|number| severe(number, "info"))).await;
    let stand_in = |number| new("ops", "!gap", number);
    let none = outbox.fold(21, stand_in(100)).await.unwrap();
    assert_eq!((none.notifications, none.events), (0, 0));
    let folded = outbox.fold(20, stand_in(100)).await.unwrap();
    assert_eq!((folded.notifications, folded.events), (3, 6));
    let left = listed(&store, &NotificationFilter::default()).await;
    assert_eq!((left.len(), left[0].as_str()), (19, "event 100"));
    assert!(!left.contains(&"event 13".to_owned()) && left.contains(&"event 14".to_owned()));
    // The next ones are counted in the same.
    let folded = outbox.fold(5, stand_in(101)).await.unwrap();
    assert_eq!((folded.notifications, folded.events), (13, 26));
    assert_eq!(one(&store, &stand_in(100).id).await.count, 32);
    let left = listed(&store, &NotificationFilter::default()).await;
    assert_eq!(left, ["event 100", "event 10", "event 9", "event 8", "event 7", "event 6"]);
}

async fn a_list_is_paged_from_the_latest(Fixture { store, .. }: Fixture) {
    stored(&store, (1..=5).map(|number| new(if number == 3 { "dev" } else { "ops" }, "g", number))).await;
    let outbox = store.outbox();
    let filter = NotificationFilter { entry: Some("ops".into()), state: Some(NotificationState::Waiting) };
    let (mut page, mut found) = (PageRequest::first(2), Vec::new());
    loop {
        let got = outbox.list(&filter, &page).await.unwrap();
        found.extend(got.items.into_iter().map(|item| item.event));
        let Some(next) = got.next else { break };
        page = PageRequest::after(PageToken::parse(&next.to_string()).unwrap(), 2);
    }
    assert_eq!(found, ["event 5", "event 4", "event 2", "event 1"]);
}

async fn old_ones_are_deleted_and_others_stay(Fixture { store, .. }: Fixture) {
    let outbox = store.outbox();
    stored(&store, (1..=7).map(|number| new("ops", "g", number))).await;
    for (number, ended) in [(1, 10), (2, 20), (3, 30), (4, 40)] {
        let claimed = outbox.claim(claim(&new("ops", "g", number).id, "x", LEASE)).await.unwrap().unwrap();
        assert!(outbox.end(&claimed.handle(), NotificationEnd::Delivered, at(ended)).await.unwrap());
    }
    for (number, ended) in [(5, 5), (6, 50)] {
        let claimed = outbox.claim(claim(&new("ops", "g", number).id, "x", LEASE)).await.unwrap().unwrap();
        assert!(
            outbox.end(&claimed.handle(), NotificationEnd::GivenUp("x".into()), at(ended)).await.unwrap()
        );
    }
    // Three delivered ones are more than two; those that were given up stay until they are old.
    assert_eq!(outbox.prune(2, at(15)).await.unwrap(), 3);
    let left = listed(&store, &NotificationFilter::default()).await;
    assert_eq!(left, ["event 7", "event 6", "event 4", "event 3"]);
    assert_eq!(outbox.prune(2, at(15)).await.unwrap(), 0);
}

async fn a_sender_is_forgotten(Fixture { store, .. }: Fixture) {
    let outbox = store.outbox();
    let both = r#"{"digest":true,"events":[{"count":3,"fields":{"sender":"ada"}},{"count":1,"fields":{"sender":"bob"}}]}"#;
    let digest = NewNotification { payload: both.to_owned(), count: 4, ..new("ops", "d", 1) };
    let bobs = NewNotification { payload: payload("bob"), ..new("ops", "g", 3) };
    stored(&store, [digest.clone(), new("ops", "g", 2), bobs]).await;
    assert_eq!(outbox.forget_sender("nobody").await.unwrap(), 0);
    assert_eq!(outbox.forget_sender("ada").await.unwrap(), 2);
    assert_eq!(listed(&store, &NotificationFilter::default()).await, ["event 3", "event 1"]);
    let left = one(&store, &digest.id).await;
    assert!(left.count == 1 && left.payload.contains("bob") && !left.payload.contains("ada"), "{left:?}");
}

async fn an_exported_one_is_imported_once(Fixture { store, .. }: Fixture) {
    let outbox = store.outbox();
    stored(&store, [new("ops", "g", 1)]).await;
    let claimed = outbox.claim(claim(&new("ops", "g", 1).id, "x", LEASE)).await.unwrap().unwrap();
    outbox.end(&claimed.handle(), NotificationEnd::GivenUp("no".into()), at(70)).await.unwrap();
    let mut exported = one(&store, &claimed.id).await;
    let text = serde_json::to_string(&exported).unwrap();
    assert_eq!(serde_json::from_str::<Notification>(&text).unwrap(), exported);
    assert!(!outbox.import(exported.clone()).await.unwrap());
    exported.id = new("ops", "g", 2).id;
    assert!(!outbox.import(exported.clone()).await.unwrap(), "its event is there");
    exported.event = "event 2".into();
    assert!(outbox.import(exported.clone()).await.unwrap());
    (exported.holder, exported.epoch, exported.revision) = (None, 0, 0);
    assert_eq!(one(&store, &exported.id).await, exported);
}

async fn what_no_notification_can_be_is_refused(Fixture { store, .. }: Fixture) {
    let outbox = store.outbox();
    let base = || new("ops", "g", 1);
    let bad = [
        NewNotification { id: String::new(), ..base() },
        NewNotification { event: "a\0b".into(), ..base() },
        NewNotification { key: key(&"x".repeat(10_000), "g"), ..base() },
        NewNotification { payload: "\0".into(), ..base() },
        NewNotification { payload: "x".repeat(300 * 1024), ..base() },
    ];
    for new in bad {
        assert!(outbox.write(batch(vec![NotificationChange::New(new.clone())])).await.is_err(), "{}", new.id);
        assert!(outbox.fold(1, new).await.is_err());
    }
    let many = (0..1000).map(|number| NotificationChange::New(new("ops", "g", number))).collect();
    assert!(outbox.write(batch(many)).await.is_err());
    stored(&store, [base()]).await;
    let claimed = outbox.claim(claim(&base().id, "x", LEASE)).await.unwrap().unwrap();
    for reason in ["x".repeat(100_000), "\0".to_owned()] {
        assert!(outbox.end(&claimed.handle(), NotificationEnd::Refused(reason), at(5)).await.is_err());
    }
}

async fn of_many_that_decide_and_claim_at_once_one_does(Fixture { store, .. }: Fixture) {
    let group = key("ops", "g");
    let decide = |number: u32| {
        let (store, group) = (store.clone(), group.clone());
        tokio::spawn(async move {
            let outbox = store.outbox();
            let decision = NotificationBatch {
                groups: vec![(group, None)],
                ..batch(vec![NotificationChange::New(new("ops", "g", number))])
            };
            let decided = outbox.write(decision).await.unwrap();
            let mut claimed = 0;
            for found in outbox.due("ops", Timestamp::now(), 10).await.unwrap() {
                let got = outbox.claim(claim(&found.id, &format!("h{number}"), LEASE)).await.unwrap();
                claimed += usize::from(got.is_some());
            }
            (decided, claimed)
        })
    };
    let (mut decided, mut claimed) = (0, 0);
    for one in (1..9).map(decide).collect::<Vec<_>>() {
        let (did, got) = one.await.unwrap();
        decided += usize::from(did);
        claimed += got;
    }
    assert_eq!((decided, claimed), (1, 1));
}

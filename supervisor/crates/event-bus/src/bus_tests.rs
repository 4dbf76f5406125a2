use std::sync::mpsc;

use proptest::prelude::*;
use talon_proto::agent::{AgentThinking, ToolExecute};

use super::*;
use crate::{Delivery, MAX_SUBSCRIBERS, MAX_WAITING};

const ANNA: Subject<'_> = Subject { sender: "anna", session: "s1" };

fn thinking(turn: u64) -> Payload {
    Payload::AgentThinking(AgentThinking { turn, ..AgentThinking::default() })
}

fn tool(turn: u64) -> Payload {
    Payload::ToolExecute(ToolExecute { turn, ..ToolExecute::default() })
}

/// Turns of events, and negative numbers for those that are missing.
fn taken(subscription: &mut Subscription) -> Vec<i64> {
    std::iter::from_fn(|| subscription.try_next())
        .map(|delivery| match delivery {
            Delivery::Missed(missed) => -i64::try_from(missed).expect("few"),
            Delivery::Event(event) => match &event.payload {
                Some(Payload::AgentThinking(AgentThinking { turn, .. })) => {
                    i64::try_from(*turn).expect("few")
                }
                other => panic!("not wanted: {other:?}"),
            },
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    // Promises: GW-154
    #[test]
    fn what_a_slow_subscriber_misses_is_counted_exactly_and_others_miss_nothing(
        bursts in prop::collection::vec((0_usize..2 * MAX_WAITING, any::<bool>()), 1..4),
    ) {
        let bus = EventBus::default();
        let mut slow = bus.subscribe(EventKind::AgentThinking).expect("room");
        let mut quick = bus.subscribe(EventKind::AgentThinking).expect("room");
        let (mut emitted, mut heard, mut missed, mut expected) = (0_i64, Vec::new(), 0_i64, 0_i64);
        let mut waiting = 0;
        for (events, reads) in bursts {
            for _ in 0..events {
                emitted += 1;
                bus.emit(ANNA, thinking(u64::try_from(emitted).expect("positive")));
                // Not wanted, and so never counted.
                bus.emit(ANNA, tool(1));
                prop_assert_eq!(taken(&mut quick), vec![emitted]);
                expected += i64::from(waiting == MAX_WAITING);
                waiting = (waiting + 1).min(MAX_WAITING);
            }
            if reads {
                heard.extend(taken(&mut slow));
                waiting = 0;
            }
        }
        heard.extend(taken(&mut slow));
        // In order; what is missing is said exactly where it is missing.
        let mut next = 1;
        for one in heard {
            if one < 0 {
                (next, missed) = (next - one, missed - one);
            } else {
                prop_assert_eq!(one, next);
                next += 1;
            }
        }
        prop_assert_eq!(next, emitted + 1);
        prop_assert_eq!(missed, expected);
        prop_assert_eq!(bus.missed(), u64::try_from(missed).expect("positive"));
    }
}

// Promises: GW-154
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_that_does_not_return_holds_up_neither_emitters_nor_others() {
    let bus = EventBus::default();
    let (release, held) = mpsc::channel::<()>();
    let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
    bus.on(EventKind::AgentThinking, move |delivery| {
        told.send(delivery).expect("it is heard");
        // Until it is let go.
        let _released = held.recv();
    })
    .expect("room");
    bus.emit(ANNA, thinking(1));
    assert!(matches!(heard.recv().await, Some(Delivery::Event(_))));
    let mut other = bus.subscribe(EventKind::AgentThinking).expect("room");
    let many = 3 * MAX_WAITING;
    for turn in 2..=many {
        bus.emit(ANNA, thinking(u64::try_from(turn).expect("few")));
        assert!(matches!(other.next().await, Some(Delivery::Event(_))));
    }
    drop(release);
    let missed = u64::try_from(many - 1 - MAX_WAITING).expect("few");
    assert_eq!(heard.recv().await, Some(Delivery::Missed(missed)));
    for _ in 0..MAX_WAITING {
        assert!(matches!(heard.recv().await, Some(Delivery::Event(_))));
    }
}

// Promises: GW-155
#[tokio::test]
async fn handlers_are_called_until_they_are_off_and_those_of_one_event_once() {
    let bus = EventBus::default();
    let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let turn = |event: &BusEvent| match &event.payload {
        Some(Payload::AgentThinking(thinking)) => thinking.turn,
        other => panic!("not wanted: {other:?}"),
    };
    let on = bus
        .on(EventKind::AgentThinking, {
            let told = told.clone();
            move |delivery| match delivery {
                Delivery::Event(event) => told.send(("on", turn(&event))).expect("it is heard"),
                Delivery::Missed(missed) => panic!("{missed} are missing"),
            }
        })
        .expect("room");
    let once = bus
        .once(EventKind::AgentThinking, {
            let told = told.clone();
            move |event| told.send(("once", turn(&event))).expect("it is heard")
        })
        .expect("room");
    let never = bus
        .once(EventKind::AgentThinking, {
            let told = told.clone();
            move |event| told.send(("never", turn(&event))).expect("it is heard")
        })
        .expect("room");
    bus.off(never);
    bus.emit(ANNA, tool(9));
    bus.emit(ANNA, thinking(1));
    bus.emit(ANNA, thinking(2));
    let mut first = Vec::new();
    for _ in 0..3 {
        first.push(heard.recv().await.expect("it is told"));
    }
    first.sort_unstable();
    assert_eq!(first, [("on", 1), ("on", 2), ("once", 1)]);
    assert_eq!(bus.subscribers(), 1, "the one that had its event is gone");
    bus.off(once);
    // One that waits for its handler is not given out after off.
    bus.emit(ANNA, thinking(3));
    bus.off(on);
    bus.off(on);
    assert!(!bus.is_watched(EventKind::AgentThinking));
    bus.emit(ANNA, thinking(4));
    drop(told);
    assert_eq!(heard.recv().await, None, "all handlers have ended");
}

// Promises: GW-155
#[tokio::test]
async fn a_handler_that_panics_ends_alone() {
    let bus = EventBus::default();
    bus.on(EventKind::AgentThinking, |_| panic!("a defect")).expect("room");
    let mut other = bus.subscribe(EventKind::AgentThinking).expect("room");
    bus.emit(ANNA, thinking(1));
    while bus.subscribers() > 1 {
        tokio::task::yield_now().await;
    }
    bus.emit(ANNA, thinking(2));
    assert_eq!(taken(&mut other), [1, 2]);
}

#[test]
fn what_nobody_wants_is_numbered_and_not_made() {
    let bus = EventBus::default();
    bus.emit_with(ANNA, EventKind::AgentThinking, || panic!("nobody watches"));
    let mut watch = bus.subscribe(EventKind::AgentThinking).expect("room");
    bus.emit_with(ANNA, EventKind::AgentThinking, || thinking(1));
    let Some(Delivery::Event(event)) = watch.try_next() else { panic!("an event") };
    assert_eq!(event.sequence, 2);
}

#[tokio::test]
async fn a_subscriber_of_one_sender_gets_theirs_alone_and_places_are_bounded() {
    let bus = EventBus::default();
    let mut anna = bus.subscribe_for(KindSet::all(), "anna".into()).expect("room");
    bus.emit(Subject { sender: "ben", session: "s2" }, thinking(1));
    bus.emit(Subject::NOBODY, thinking(2));
    bus.emit(ANNA, thinking(3));
    let Some(Delivery::Event(event)) = anna.next().await else { panic!("an event") };
    assert_eq!((event.sequence, event.sender.as_str(), event.session_id.as_str()), (3, "anna", "s1"));
    assert_eq!(anna.try_next(), None);
    let mut all: Vec<Subscription> = Vec::new();
    while let Ok(one) = bus.subscribe(EventKind::ToolExecute) {
        all.push(one);
    }
    assert_eq!(all.len(), MAX_SUBSCRIBERS - 1);
    drop(all);
    assert_eq!(bus.subscribers(), 1);
    assert!(bus.subscribe(EventKind::ToolExecute).is_ok());
}

// Promises: GW-154
#[test]
fn what_an_emitter_did_not_hear_of_is_missing_where_it_was() {
    let bus = EventBus::default();
    let mut all = bus.subscribe(EventKind::AgentThinking).expect("room");
    let mut annas = bus.subscribe_for(KindSet::all(), "anna".into()).expect("room");
    let mut others = bus.subscribe(EventKind::ToolExecute).expect("room");
    bus.emit(ANNA, thinking(1));
    bus.note_missed(EventKind::AgentThinking, 2);
    bus.note_missed([EventKind::AgentThinking, EventKind::ToolComplete], 1);
    bus.emit(ANNA, thinking(2));
    assert_eq!(taken(&mut all), [1, -3, 2]);
    assert_eq!(taken(&mut annas), [1, 2], "what is missing was nobody's");
    assert_eq!(others.try_next(), None);
    assert_eq!(bus.missed(), 3);
    bus.note_missed(EventKind::AgentThinking, 4);
    bus.emit(ANNA, thinking(3));
    // A full queue loses its oldest, whatever it is.
    for turn in 0..MAX_WAITING {
        bus.emit(ANNA, thinking(u64::try_from(turn).expect("few")));
    }
    assert_eq!(all.try_next(), Some(Delivery::Missed(5)));
    let Some(Delivery::Event(event)) = all.try_next() else { panic!("an event") };
    assert_eq!(event.sequence, 4, "the third one is gone");
}

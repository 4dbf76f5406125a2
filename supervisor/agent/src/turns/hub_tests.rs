use futures_util::{FutureExt as _, StreamExt as _};
use talon_proto::agent::{Done, Started, Text, ToolResult};

use super::*;

const MAX_FOLLOWERS: usize = 16;

fn hub() -> Arc<Hub> {
    hub_beside(&QueuedBytes::default())
}

fn hub_beside(waiting: &QueuedBytes) -> Arc<Hub> {
    let at = LoopState { state: "init".to_owned(), ..LoopState::default() };
    Hub::new(at, Arc::default(), waiting.clone(), MAX_FOLLOWERS)
}

fn result(bytes: usize) -> Kind {
    Kind::ToolResult(ToolResult { output: "x".repeat(bytes), ..ToolResult::default() })
}

fn text(text: &str) -> Kind {
    Kind::Text(Text { text: text.to_owned(), ..Text::default() })
}

fn done() -> Kind {
    Kind::Done(Done { text: "all of it".to_owned(), ..Done::default() })
}

fn end(hub: &Hub) {
    hub.on_chunk(done());
    hub.finish();
}

fn approval(id: &str, state: &str) -> Kind {
    let approval = Approval {
        id: id.to_owned(),
        state: state.to_owned(),
        expires_unix_ms: if id == "old" { 0 } else { u64::MAX },
        ..Approval::default()
    };
    Kind::Approval(approval)
}

async fn rest(following: Subscription) -> Vec<Result<Kind, Status>> {
    let kind = |next: Result<Chunk, Status>| next.map(|chunk| chunk.kind.expect("a kind"));
    following.map(kind).collect().await
}

// Promises: AGENT-44
#[tokio::test]
async fn everybody_gets_everything_and_the_end_once() {
    let hub = hub();
    let first = hub.follow(|_| vec![]).expect("room");
    hub.on_chunk(text("a"));
    hub.on_chunk(Kind::Loop(LoopState { state: "await_llm".to_owned(), ..LoopState::default() }));
    let second = hub.follow(|at| vec![Kind::Loop(at.clone())]).expect("room");
    hub.on_chunk(text("b"));
    end(&hub);
    end(&hub);
    let late = hub.follow(|_| vec![]).expect("room");
    let first = rest(first).await;
    assert!(first.len() == 4 && matches!(first[3], Ok(Kind::Done(_))), "{first:?}");
    let second = rest(second).await;
    assert!(matches!(&second[0], Ok(Kind::Loop(at)) if at.state == "await_llm"), "{second:?}");
    assert_eq!(second.len(), 3);
    assert_eq!(rest(late).await.len(), 1, "who comes after the end gets the end");
}

// Promises: AGENT-44
#[tokio::test]
async fn a_slow_reader_loses_pieces_of_text_alone_and_is_told() {
    let hub = hub();
    let following = hub.follow(|_| vec![]).expect("room");
    for _ in 0..MAX_PIECES + 5 {
        hub.on_chunk(text("x"));
    }
    hub.on_chunk(Kind::ToolResult(ToolResult::default()));
    hub.on_chunk(text("y"));
    end(&hub);
    let heard = rest(following).await;
    assert_eq!(heard.len(), MAX_PIECES + 4);
    let missing = heard.iter().filter_map(|chunk| match chunk {
        Ok(Kind::Notice(notice)) => Some(notice.text.clone()),
        _ => None,
    });
    let missing: Vec<String> = missing.collect();
    assert!(missing.len() == 2 && missing[0].starts_with("5 pieces") && missing[1].starts_with("1 piece"));
    assert!(matches!(heard[MAX_PIECES + 1], Ok(Kind::ToolResult(_))));
    assert!(matches!(heard.last(), Some(Ok(Kind::Done(_)))));
}

// Promises: GW-290
#[tokio::test]
async fn a_follower_gets_the_chunks_that_it_wants_and_always_the_beginning_and_the_end() {
    let hub = hub();
    let follow = |word: &str| {
        let begin = |at: &LoopState| vec![Kind::Started(Started::default()), Kind::Loop(at.clone())];
        hub.follow(begin).expect("room").filtered(ChunkFilter::parse(word).expect("a word"))
    };
    let following = ["all", "text", "none"].map(follow);
    hub.on_chunk(text("a"));
    hub.on_chunk(approval("a", "pending"));
    hub.on_chunk(result(1));
    hub.on_chunk(Kind::Notice(missing(1)));
    end(&hub);
    let mut heard = Vec::new();
    for following in following {
        let kind = |chunk: Result<Kind, Status>| match chunk.expect("a chunk") {
            Kind::Started(_) => "started",
            Kind::Text(_) => "text",
            Kind::Notice(_) => "notice",
            Kind::Done(_) => "done",
            _ => "other",
        };
        heard.push(rest(following).await.into_iter().map(kind).collect::<Vec<_>>());
    }
    assert_eq!(heard[0], ["started", "other", "text", "other", "other", "notice", "done"]);
    assert_eq!(heard[1], ["started", "text", "notice", "done"]);
    assert_eq!(heard[2], ["started", "done"]);
    assert!(ChunkFilter::parse("some").is_err());
}

// Promises: GW-291
#[tokio::test]
async fn a_slow_reader_of_text_gets_all_of_it_or_is_cut_off() {
    let hub = hub();
    let [slow, slower] = [0, 1].map(|_| hub.follow(|_| vec![]).expect("room").filtered(ChunkFilter::Text));
    let mut said = String::new();
    for number in 0..MAX_PIECES * 3 {
        let piece = format!("{number} ");
        said.push_str(&piece);
        hub.on_chunk(text(&piece));
    }
    let heard: Vec<_> = slow.take(MAX_PIECES).collect().await;
    let pieces = heard.into_iter().map(|chunk| match chunk.expect("a piece").kind {
        Some(Kind::Text(text)) => text.text,
        other => panic!("{other:?}"),
    });
    assert_eq!(pieces.collect::<String>(), said);
    for _ in 0..2 {
        hub.on_chunk(text(&"x".repeat(MAX_WAITING_BYTES / 2)));
    }
    let heard = rest(slower).await;
    assert!(heard.last().expect("a reason").is_err(), "a missing piece ends the stream");
    assert_eq!(hub.waiting.0.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_piece_that_is_too_large_is_left_out_and_a_result_is_not() {
    let hub = hub();
    let following = hub.follow(|_| vec![]).expect("room");
    hub.on_chunk(text(&"x".repeat(MAX_PIECE_BYTES + 1)));
    hub.on_chunk(Kind::ToolResult(ToolResult {
        output: "x".repeat(MAX_PIECE_BYTES + 1),
        ..ToolResult::default()
    }));
    end(&hub);
    let heard = rest(following).await;
    assert!(
        matches!(heard[..], [Ok(Kind::Notice(_)), Ok(Kind::ToolResult(_)), Ok(Kind::Done(_))]),
        "{}",
        heard.len()
    );
}

// Promises: AGENT-44
#[tokio::test]
async fn one_who_does_not_keep_up_at_all_is_cut_off_with_a_reason_and_the_others_are_not() {
    let hub = hub();
    let (slow, mut quick) = (hub.follow(|_| vec![]).expect("room"), hub.follow(|_| vec![]).expect("room"));
    for _ in 0..=MAX_WAITING {
        hub.on_chunk(Kind::ToolResult(ToolResult::default()));
        assert!(quick.next().await.expect("a chunk").is_ok());
    }
    assert_eq!(hub.followers(), 1);
    let heard = rest(slow).await;
    assert_eq!(heard.len(), MAX_WAITING + 1);
    let status = heard.last().expect("a reason").as_ref().expect_err("cut off");
    assert!(status.message().contains("Attach"), "{status}");
    end(&hub);
    assert!(matches!(rest(quick).await[..], [Ok(Kind::Done(_))]));
}

#[tokio::test]
async fn who_comes_later_is_shown_what_waits_and_a_turn_that_waited_is_known() {
    let hub = hub();
    assert!(!hub.has_waited());
    hub.on_chunk(approval("old", "pending"));
    hub.on_chunk(approval("a", "pending"));
    hub.on_chunk(approval("b", "pending"));
    hub.on_chunk(approval("a", "approved"));
    assert!(hub.has_waited());
    let mut following = hub.follow(|_| vec![]).expect("room");
    let next = following.next().await.expect("a chunk").expect("no error").kind;
    assert!(matches!(next, Some(Kind::Approval(approval)) if approval.id == "b"));
    assert!(following.next().now_or_never().is_none());
    hub.on_chunk(approval("b", "denied"));
    assert!(hub.follow(|_| vec![]).expect("room").next().now_or_never().is_none());
}

#[tokio::test]
async fn a_turn_that_is_left_ends_its_followers_with_unavailable() {
    let hub = hub();
    let following = hub.follow(|_| vec![]).expect("room");
    hub.interrupt("the agent is restarted");
    let heard = rest(following).await;
    assert_eq!(heard[0].as_ref().expect_err("left").code(), tonic::Code::Unavailable);
    let followers: Vec<_> = (0..MAX_FOLLOWERS).map(|_| hub.follow(|_| vec![])).collect();
    assert!(followers.iter().all(Result::is_ok), "a turn that has ended has no followers");
}

#[tokio::test]
async fn what_waits_is_in_memory_once_and_bounded_for_one_and_for_all() {
    let waiting = QueuedBytes::default();
    let counted = || waiting.0.load(Ordering::Relaxed);
    let hubs: Vec<_> = (0..3).map(|_| hub_beside(&waiting)).collect();
    let mut slow = Vec::new();
    for hub in &hubs {
        slow.extend((0..MAX_FOLLOWERS).map(|_| hub.follow(|_| vec![]).expect("room")));
        for _ in 0..8 {
            hub.on_chunk(result(1 << 20));
        }
        hub.on_chunk(text("not even this"));
    }
    assert!(counted() <= MAX_ALL_WAITING_BYTES && counted() > MAX_ALL_WAITING_BYTES / 2, "{}", counted());
    for following in &slow {
        assert!(following.queue.lock().bytes <= MAX_WAITING_BYTES);
    }
    let copies =
        |following: &Subscription| following.queue.lock().chunks.front().map(|it| Arc::as_ptr(&it.0));
    assert_eq!(copies(&slow[0]), copies(&slow[1]));
    // Disconnected followers are notified, and the others continue.
    let heard = rest(slow.remove(0)).await;
    assert!(heard.last().expect("a word").is_err());
    drop(slow);
    assert_eq!(counted(), 0);
    let quick = hubs[0].follow(|_| vec![]).expect("room");
    hubs[0].on_chunk(result(1 << 20));
    end(&hubs[0]);
    assert!(matches!(rest(quick).await[..], [Ok(Kind::ToolResult(_)), Ok(Kind::Done(_))]));
    assert_eq!(counted(), 0);
}

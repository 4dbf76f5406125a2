use super::*;

fn told(live: &LiveTurn, cursor: &mut LiveCursor) -> Vec<Kind> {
    live.news(cursor, u64::MAX).expect("the store has nothing more")
}

/// Attempt, offset and text of pieces of text.
fn pieces(news: &[Kind]) -> Vec<(u64, u64, &str)> {
    let piece = |kind: &Kind| match kind {
        Kind::Piece(piece) if !piece.thinking => Some((piece.attempt, piece.offset, piece.text.len())),
        _ => None,
    };
    let text = |kind: &Kind| matches!(kind, Kind::Piece(piece) if !piece.thinking);
    let texts = news.iter().filter(|kind| text(kind)).map(|kind| match kind {
        Kind::Piece(piece) => piece.text.as_str(),
        _ => "",
    });
    news.iter()
        .filter_map(piece)
        .zip(texts)
        .map(|((attempt, offset, _), text)| (attempt, offset, text))
        .collect()
}

// Promises: GW-63
#[test]
fn pieces_are_joined_for_who_is_slow_and_whole_for_who_comes_later() {
    let live = LiveTurn::new(1);
    let (mut quick, mut slow) = (LiveCursor::default(), LiveCursor::default());
    live.add_thinking("hm");
    live.add_text("Once ");
    let first = told(&live, &mut quick);
    assert!(matches!(&first[0], Kind::Discard(_)) && first.len() == 3, "{first:?}");
    let attempt = pieces(&first)[0].0;
    live.add_text("upon ");
    live.add_text("a time");
    let more = told(&live, &mut quick);
    assert_eq!(pieces(&more), [(attempt, 5, "upon a time")]);
    assert_eq!(pieces(&told(&live, &mut slow)), [(attempt, 0, "Once upon a time")]);
    assert!(told(&live, &mut quick).is_empty() && told(&live, &mut slow).is_empty());
}

// Promises: GW-63
#[test]
fn an_attempt_that_does_not_count_is_discarded_and_one_that_is_stored_is_not() {
    let live = LiveTurn::new(1);
    let mut cursor = LiveCursor::default();
    live.add_text("wrong");
    let first = pieces(&told(&live, &mut cursor))[0].0;
    live.discard();
    live.add_text("right");
    let news = told(&live, &mut cursor);
    let second = pieces(&news)[0].0;
    assert!(second > first);
    assert_eq!(news[0], Kind::Discard(Discard { attempt: second }));
    live.store_attempt();
    assert!(told(&live, &mut cursor).is_empty(), "the store tells what became of it");
    // What comes next is another attempt, after the message that the first one became.
    live.stored(7);
    live.add_text("more");
    assert_eq!(live.news(&mut cursor, 6), Err(BehindStore));
    cursor.forget_attempt();
    let news = live.news(&mut cursor, 7).expect("it was read");
    assert!(matches!(&news[..], [Kind::Piece(piece)] if piece.text == "more"), "{news:?}");
    // One that is given up without another.
    live.discard();
    assert_eq!(told(&live, &mut cursor), [Kind::Discard(Discard { attempt: 0 })]);
    assert!(told(&live, &mut cursor).is_empty());
}

#[test]
fn another_turn_is_told_from_its_beginning() {
    let mut cursor = LiveCursor::default();
    for turn in 1..=2 {
        let live = LiveTurn::new(turn);
        live.set_loop(LoopState { phase: "planning".to_owned(), ..LoopState::default() });
        live.set_loop(LoopState { phase: "deciding".to_owned(), ..LoopState::default() });
        let news = told(&live, &mut cursor);
        let phases = news.iter().filter(|kind| matches!(kind, Kind::Loop(at) if at.phase == "deciding"));
        assert_eq!(phases.count(), 1, "{news:?}");
    }
}

// Promises: GW-63
#[test]
fn what_is_kept_of_output_is_bounded_and_what_is_missing_is_said() {
    let live = LiveTurn::new(1);
    let mut cursor = LiveCursor::default();
    let line = |text: &str| {
        Kind::LiveNotice(Notice { level: "info".to_owned(), text: text.to_owned(), discard_text: false })
    };
    for _ in 0..MAX_RECENT + 5 {
        live.add_recent(line("x"));
    }
    let news = told(&live, &mut cursor);
    assert_eq!(news.len(), MAX_RECENT + 2, "a discard, what is missing, and what is kept");
    assert!(
        matches!(&news[0], Kind::LiveNotice(notice) if notice.text.starts_with("5 lines")),
        "{:?}",
        news[0]
    );
    for _ in 0..3 {
        live.add_recent(line(&"x".repeat(MAX_RECENT_BYTES / 2)));
    }
    let kept = live.state.lock().recent_bytes;
    assert!(kept <= MAX_RECENT_BYTES, "{kept}");
    live.add_text(&"y".repeat(MAX_TEXT_BYTES + 9));
    let news = told(&live, &mut cursor);
    let [(_, 0, text)] = pieces(&news)[..] else { panic!("one piece") };
    assert_eq!(text.len(), MAX_TEXT_BYTES);
}

#[test]
fn numbers_of_attempts_grow() {
    let numbers: Vec<u64> = (0..100).map(|_| next_attempt()).collect();
    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]));
}

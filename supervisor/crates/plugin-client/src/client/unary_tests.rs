use proptest::prelude::*;

use super::*;

fn wire(messages: &[&[u8]]) -> Vec<u8> {
    messages.iter().flat_map(|message| talon_wire::message::framed_bytes(message)).collect()
}

/// What comes of bytes that arrive in pieces of these lengths, the rest at once.
fn taken(bytes: &[u8], cuts: &[usize], limit: usize) -> Result<(Option<Bytes>, bool), Status> {
    let refused = |error| no_message(error, limit);
    let (mut incoming, mut rest) = (MessageReader::new(limit), bytes);
    for cut in cuts {
        let (piece, others) = rest.split_at((*cut).min(rest.len()));
        incoming.push(Bytes::copy_from_slice(piece)).map_err(refused)?;
        rest = others;
    }
    incoming.push(Bytes::copy_from_slice(rest)).map_err(refused)?;
    match incoming.finish() {
        Err(MessageError::Missing) => Ok((None, false)),
        Err(MessageError::Partial) => Ok((None, true)),
        message => Ok((Some(message.map_err(refused)?), false)),
    }
}

proptest! {
    #[test]
    fn a_message_is_the_same_in_whatever_pieces_it_comes(
        message in prop::collection::vec(any::<u8>(), 0..200),
        cuts in prop::collection::vec(0..20_usize, 0..30),
    ) {
        let whole = taken(&wire(&[&message]), &cuts, 200).expect("it is within the limit");
        prop_assert_eq!(whole, (Some(Bytes::from(message)), false));
    }

    #[test]
    fn what_ends_early_is_partial_and_never_a_message(
        message in prop::collection::vec(any::<u8>(), 1..200),
        cuts in prop::collection::vec(0..20_usize, 0..30),
        missing in 1..5_usize,
    ) {
        let wire = wire(&[&message]);
        let cut = &wire[..wire.len() - missing.min(message.len())];
        prop_assert_eq!(taken(cut, &cuts, 200).expect("it is within the limit"), (None, true));
    }

    #[test]
    fn no_bytes_at_all_are_taken_for_more_than_they_are(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        cuts in prop::collection::vec(0..20_usize, 0..30),
    ) {
        if let Ok((Some(message), _)) = taken(&bytes, &cuts, 100) {
            prop_assert_eq!(&bytes[PREFIX_BYTES..PREFIX_BYTES + message.len()], &message[..]);
            prop_assert!(message.len() <= 100);
        }
    }
}

#[test]
fn a_long_message_stays_where_it_was_received_and_a_short_one_does_not() {
    for (bytes, shared) in [(SHARED_FROM_BYTES, true), (SHARED_FROM_BYTES - 1, false)] {
        let piece = talon_wire::message::framed_bytes(&vec![7; bytes]);
        let there = piece[PREFIX_BYTES..].as_ptr();
        let mut incoming = MessageReader::new(1 << 20);
        incoming.push(piece).expect("it is within the limit");
        assert_eq!(detached(incoming.finish().expect("it is whole")).as_ptr() == there, shared);
    }
}

#[test]
fn what_is_no_single_message_is_refused() {
    for (bytes, code) in [
        (wire(&[b"one", b"two"]), Code::Internal),
        (wire(&[b"one", b""]), Code::Internal),
        (b"\x01\0\0\0\x01x".to_vec(), Code::Internal),
        (b"\x07\0\0\0\x01x".to_vec(), Code::Internal),
        (b"\0\xff\xff\xff\xffx".to_vec(), Code::OutOfRange),
        (wire(&[b"eleven here"]), Code::OutOfRange),
    ] {
        for cuts in [&[][..], &[1; 20], &[5], &[6]] {
            assert_eq!(taken(&bytes, cuts, 10).expect_err("refused").code(), code, "{bytes:?}");
        }
    }
}

#[test]
fn a_status_ends_a_call_and_what_else_it_says_is_not_read() {
    let headers = |pairs: &[(&'static str, &'static str)]| -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| ((*name).parse().expect("a name"), value.parse().expect("a value")))
            .collect()
    };
    assert!(!is_final_ok(&headers(&[])).expect("it goes on"));
    assert!(is_final_ok(&headers(&[("grpc-status", "0")])).expect("it is well"));
    let details =
        [("grpc-status", "8"), ("grpc-message", "too%20much"), ("grpc-status-details-bin", "no base64!")];
    let status = is_final_ok(&headers(&details)).expect_err("it is an error");
    assert_eq!((status.code(), status.message()), (Code::ResourceExhausted, "too much"));
    let nonsense = is_final_ok(&headers(&[("grpc-status", "none")])).expect_err("it is an error");
    assert_eq!(nonsense.code(), Code::Unknown);
    assert_eq!(without_status(StatusCode::BAD_GATEWAY).code(), Code::Unavailable);
}

#[test]
fn a_timeout_has_no_more_digits_than_it_may() {
    for (timeout, expected) in [
        (Duration::from_nanos(1), "1n"),
        (Duration::from_millis(99), "99000000n"),
        (Duration::from_millis(100), "100000u"),
        (Duration::from_secs(20), "20000000u"),
        (Duration::from_secs(100), "100000m"),
        (Duration::from_secs(100_000), "100000S"),
        (Duration::MAX, "99999999S"),
    ] {
        assert_eq!(timeout_value(timeout), expected);
    }
}

#[test]
fn the_same_limit_is_the_same_value_however_soon_the_call_is_sent() {
    let limit = Duration::from_secs(30);
    for waited in [0, 1, 900, 999_999].map(Duration::from_nanos) {
        assert_eq!(round_up(limit - waited), limit);
    }
    // Never less than there is, and at most a step more.
    for nanos in [1, 999_999, 1_000_000, 1_000_001, 123_456_789_012, 4_000_000_000_000_000] {
        let timeout = Duration::from_nanos(nanos);
        assert!(round_up(timeout) >= timeout && round_up(timeout) - timeout < TIMEOUT_STEP, "{timeout:?}");
    }
    assert_eq!(round_up(Duration::MAX), Duration::MAX);
}

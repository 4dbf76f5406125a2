use super::*;

fn gate(room: &Arc<RequestBudget>) -> Gate<()> {
    Gate::new((), Arc::clone(room), CancellationToken::new(), Duration::MAX)
}

#[test]
fn a_socket_has_so_many_places_and_bytes_and_they_come_back() {
    let room = RequestBudget::new_plugin();
    let gate = gate(&room);
    let held: Vec<_> = (0..MAX_REQUESTS).map(|_| gate.admit().unwrap()).collect();
    let refused = gate.admit().unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused:?}");
    assert!(held[0].grow(MAX_REQUEST_BYTES) && !held[1].grow(1));
    drop(held);
    assert!(gate.admit().unwrap().grow(MAX_REQUEST_BYTES));
    assert_eq!((room.requests.load(Ordering::Relaxed), room.bytes.load(Ordering::Relaxed)), (0, 0));
}

#[test]
fn a_closed_socket_takes_no_requests() {
    let gate = gate(&RequestBudget::new_plugin());
    gate.closed.cancel();
    assert_eq!(gate.admit().unwrap_err().code(), Code::Unavailable);
}

#[test]
fn a_clients_own_deadline_is_read_in_every_unit_and_nonsense_is_none() {
    let read = |text: &'static str| {
        let mut headers = http::HeaderMap::new();
        headers.insert("grpc-timeout", http::HeaderValue::from_static(text));
        grpc_timeout(&headers)
    };
    for (text, seconds) in
        [("2H", 7200.0), ("3M", 180.0), ("4S", 4.0), ("5m", 0.005), ("6u", 6e-6), ("7n", 7e-9)]
    {
        assert_eq!(read(text), Some(Duration::from_secs_f64(seconds)), "{text}");
    }
    for text in ["", "S", "1", "-1S", "+1S", "123456789S", "1s", "1 S"] {
        assert_eq!(read(text), None, "{text:?}");
    }
}

#[test]
fn too_large_is_said_in_our_words_and_all_else_is_left_alone() {
    let code =
        |status: Status| Status::from_header_map(explain_size_error(status.into_http()).headers()).unwrap();
    let told = code(Status::out_of_range("decoded message length too large"));
    assert_eq!(told.code(), Code::InvalidArgument);
    assert!(told.message().contains("1048576"), "{told:?}");
    assert_eq!(code(Status::not_found("x")).message(), "x");
}

#[tokio::test]
async fn a_plugin_has_one_room_and_its_writes_wait_for_each_other_alone() {
    let rooms = RequestBudgets::default();
    let [one, same, other] =
        ["one", "one", "other"].map(|name| rooms.for_plugin(&PluginId::new(name).unwrap()));
    assert!(Arc::ptr_eq(&one, &same) && !Arc::ptr_eq(&one, &other));
    let mut turns = Vec::new();
    for _ in 0..MAX_WRITES {
        turns.push(one.write().await.unwrap());
    }
    assert!(same.write().now_or_never().is_none());
    assert!(other.write().now_or_never().is_some());
    turns.pop();
    assert!(same.write().now_or_never().is_some());
    drop(turns);
    drop((one, same));
    assert_eq!(rooms.for_plugin(&PluginId::new("one").unwrap()).requests.load(Ordering::Relaxed), 0);
}

use std::net::Shutdown;

use talon_lua_engine::{Context, Limits, Point};

use super::*;
use crate::message::{FromWorker, ScriptSource};

#[test]
fn a_call_of_an_unknown_machine_is_answered_and_a_known_one_says_when_it_begins() {
    let (mut ours, theirs) = UnixStream::pair().expect("a pair");
    let worker = std::thread::spawn(move || serve(theirs.try_clone().expect("a second handle"), theirs));
    let call = |call| ToWorker::Call { machine: 7, call, point: Point::PreHook, context: Context::default() };
    let script = ScriptSource {
        name: "a.lua".to_owned(),
        source: "function pre_hook(ctx) end".to_owned(),
        limits: Limits::default(),
        libraries: Vec::new(),
    };
    let mut next = |order: &ToWorker, answers: usize| -> Vec<WorkerMessage> {
        frame::write(&mut ours, order).expect("written");
        let read = |_| frame::read::<FromWorker>(&mut ours).expect("a message").expect("not the end");
        (0..answers).map(read).map(|from| from.message).collect()
    };
    let unknown = next(&call(1), 1);
    assert!(matches!(unknown[..], [WorkerMessage::Unknown { call: 1 }]), "{unknown:?}");
    let loaded = next(&ToWorker::Load { machine: 7, script }, 2);
    assert!(
        matches!(loaded[..], [WorkerMessage::Begun { call: None }, WorkerMessage::Loaded(Ok(_))]),
        "{loaded:?}"
    );
    let done = next(&call(2), 2);
    assert!(
        matches!(
            done[..],
            [WorkerMessage::Begun { call: Some(2) }, WorkerMessage::Done { call: 2, outcome: Ok(_), .. }]
        ),
        "{done:?}"
    );
    ours.shutdown(Shutdown::Both).expect("shut");
    assert_eq!(format!("{:?}", worker.join().expect("it ends")), format!("{:?}", ExitCode::SUCCESS));
}

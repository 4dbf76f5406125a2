use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use talon_proto::state::state_server::StateServer;
use tokio::net::UnixListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_stream::wrappers::UnixListenerStream;

use super::*;
use crate::testing::MemoryState;

/// The same state in both forms that a plugin's code can meet: in memory, and served over a socket.
struct Both {
    memory: MemoryState,
    path: PathBuf,
    dir: tempfile::TempDir,
    server: Server,
}

impl Both {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("dir");
        let path = dir.path().join("state.sock");
        let memory = MemoryState::new();
        let server = serve(&path, &memory);
        Self { memory, path, dir, server }
    }

    fn states(&self) -> [State; 2] {
        let inner = StateSource::Memory(self.memory.shared()).open().expect("served");
        let outer = StateSource::from_env(Some(self.path.clone())).open().expect("served");
        [inner, outer]
    }
}

/// A server that ends, with its connections, on request.
struct Server(oneshot::Sender<()>, JoinHandle<()>);

impl Server {
    async fn end(self) {
        self.0.send(()).expect("it runs");
        self.1.await.expect("no panic");
    }
}

fn serve(path: &Path, memory: &MemoryState) -> Server {
    let listener = UnixListenerStream::new(UnixListener::bind(path).expect("bound"));
    let service = StateServer::new(memory.clone());
    let (end, ended) = oneshot::channel();
    let task = tokio::spawn(async move {
        let ended = async { drop(ended.await) };
        let server = tonic::transport::Server::builder();
        server.serve_with_incoming_shutdown(service, listener, ended).await.expect("serves");
    });
    Server(end, task)
}

#[tokio::test]
async fn a_used_up_quota_comes_with_its_numbers_and_leaves_room_for_less() {
    let both = Both::new();
    for state in both.states() {
        both.memory.set("a", "1234");
        both.memory.set_quota(10, 100);
        let error = state.set("b", "12345").await.expect_err("11 of 10 bytes");
        let StateError::QuotaExceeded { resource, used, limit, wanted } = error else { panic!("{error:?}") };
        assert_eq!((resource, used, limit, wanted), (StateResource::Bytes, 5, 10, 11));
        state.set("b", "1234").await.expect("10 of 10 bytes");
        both.memory.set_quota(1, 1);
        state.set("b", "123").await.expect("less than before");
        both.memory.set_quota(1000, 1);
        let swap = state.compare_and_set("c", None, Some(b"x".to_vec())).await;
        let error = swap.expect_err("3 of 1 keys");
        assert_eq!(error.to_string(), "the quota is used up: 2 of 1 keys, and 3 are wanted");
        assert!(state.delete("b").await.expect("deleted"));
        assert!(!state.delete("b").await.expect("asked"));
        both.memory.set_quota(1000, 100);
    }
}

#[tokio::test]
async fn keys_and_values_have_the_limits_of_a_real_host() {
    let both = Both::new();
    for state in both.states() {
        let (longest, largest) = ("k".repeat(512), vec![0; memory::MAX_VALUE_BYTES]);
        state.set(&longest, largest.clone()).await.expect("kept");
        assert_eq!(state.get(&longest).await.expect("read"), Some(largest.clone()));
        let larger = [largest.as_slice(), b"0"].concat();
        for (key, value) in [("", "x".into()), (&*"k".repeat(513), "x".into()), ("k", larger)] {
            let error = state.set(key, value).await.expect_err("refused");
            assert!(matches!(&error, StateError::Invalid { message } if message.contains("bytes, not")));
        }
    }
}

#[tokio::test]
async fn what_is_not_available_is_tried_again_by_the_next_operation() {
    let both = Both::new();
    for state in both.states() {
        both.memory.set_available(false);
        let error = state.get("a").await.expect_err("away");
        assert!(matches!(error, StateError::Unavailable { .. }), "{error:?}");
        both.memory.set_available(true);
        state.set("a", "kept").await.expect("back");
    }
    let [_, state] = both.states();
    state.get("a").await.expect("connected");
    let Both { memory, path, dir: _dir, server } = both;
    server.end().await;
    std::fs::remove_file(&path).expect("removed");
    let error = state.get("a").await.expect_err("nobody listens");
    assert!(matches!(error, StateError::Unavailable { .. }), "{error:?}");
    let _server = serve(&path, &memory);
    // The first words on the new connection, or the one before it is noticed to be gone: not both.
    let kept = match state.get("a").await {
        Err(StateError::Unavailable { .. }) => state.get("a").await,
        other => other,
    };
    assert_eq!(kept.expect("reconnected").expect("there"), b"kept");
}

#[tokio::test]
async fn updates_that_meet_lose_none() {
    let both = Both::new();
    let mut tasks = Vec::new();
    for state in both.states() {
        for _ in 0..10 {
            let state = state.clone();
            tasks.push(tokio::spawn(async move {
                let count = |count: &mut u64| {
                    *count += 1;
                    *count
                };
                state.update_json("count", count).await.expect("counted")
            }));
        }
    }
    let mut seen = Vec::new();
    for task in tasks {
        seen.push(task.await.expect("no panic"));
    }
    seen.sort_unstable();
    assert_eq!(seen, (1..=20).collect::<Vec<u64>>());
}

#[tokio::test]
async fn an_update_that_changes_nothing_writes_nothing() {
    let both = Both::new();
    for state in both.states() {
        both.memory.set("guests", "{ \"Ada\": 2 }");
        let refuse = |guests: &mut BTreeMap<String, u32>| Err::<(), usize>(guests.len());
        assert_eq!(state.update_json("guests", refuse).await.expect("asked"), Err(1));
        assert_eq!(both.memory.get("guests").expect("there"), b"{ \"Ada\": 2 }");
        let nothing = state.update_json("nobody", |_: &mut Vec<String>| ()).await;
        nothing.expect("asked");
        assert_eq!(both.memory.get("nobody"), None);
        let error = state.update_json("guests", |_: &mut u64| ()).await.expect_err("no number");
        assert!(matches!(error, StateError::TypeMismatch { .. }), "{error:?}");
    }
}

#[tokio::test]
async fn an_update_gives_up_when_others_are_always_faster() {
    let both = Both::new();
    for state in both.states() {
        let mut tries = 0_usize;
        let meddle = |count: &mut usize| {
            tries += 1;
            both.memory.set("count", (1_000 + tries).to_string());
            *count += 1;
        };
        let error = state.update_json("count", meddle).await.expect_err("gives up");
        assert!(matches!(error, StateError::Contended { .. }), "{error:?}");
        assert_eq!(tries, MAX_UPDATES);
        both.memory.set("count", "0");
    }
}

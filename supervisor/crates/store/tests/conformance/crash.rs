//! Writers that are killed: what was acknowledged is there, and nothing incomplete.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use talon_store::{Engine, NewSession, PageRequest, SessionId, Store, StoreOptions, View};
use tokio::runtime::Runtime;

use crate::support::{Server, key, plugin, runtime, scratch};

/// How many acknowledgements a writer lives for: another number each round, so that it dies at other moments.
fn lifetime(round: u32) -> usize {
    1 + (round as usize * 37) % 90
}

#[derive(Default)]
struct Acknowledged {
    keys: Vec<String>,
    appends: BTreeMap<u64, String>,
}

impl Acknowledged {
    /// Lets a writer live for a while, then kills it, and notes all that was acknowledged until then.
    fn gather(&mut self, engine: &str, place: &str, session: SessionId, round: u32) {
        let mut writer = Command::new(env!("CARGO_BIN_EXE_store-fixture"))
            .args([engine, place, &session.to_string(), &round.to_string()])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let told = BufReader::new(writer.stdout.take().unwrap());
        for (number, line) in told.lines().map(Result::unwrap).enumerate() {
            let words: Vec<&str> = line.split(' ').collect();
            match words.as_slice() {
                ["set", name] => self.keys.push((*name).to_owned()),
                ["append", sequence, rest @ ..] => {
                    self.appends.insert(sequence.parse().unwrap(), rest.join(" "));
                }
                // The last line of a killed process may be cut.
                _ => {}
            }
            if number == lifetime(round) {
                writer.kill().unwrap();
            }
        }
        writer.wait().unwrap();
    }

    async fn check(&self, store: &Store, session: SessionId) {
        let db = store.key_values();
        for name in &self.keys {
            let value = db.get(&plugin("writer"), &key(name)).await.unwrap();
            let value = String::from_utf8(value.unwrap_or_else(|| panic!("{name} is lost"))).unwrap();
            let whole = value.split_terminator(' ').all(|part| part == name);
            assert!(whole && [1, 1000].contains(&value.split_terminator(' ').count()), "{name} is torn");
        }
        let (mut messages, mut request) = (Vec::new(), PageRequest::first(1000));
        loop {
            let page = store.sessions().messages(session, View::All, &request).await.unwrap();
            messages.extend(page.items);
            let Some(next) = page.next else { break };
            request = PageRequest::after(next, 1000);
        }
        assert!(messages.iter().zip(1..).all(|(message, number)| message.sequence == number));
        for pair in messages.chunks(2) {
            let (first, second) = (&pair[0].content, &pair[1].content);
            assert_eq!(first.trim_end_matches('a'), second.trim_end_matches('b'), "half an append");
        }
        for (sequence, content) in &self.appends {
            let message = &messages[usize::try_from(*sequence).unwrap() - 1];
            assert_eq!(message.content, format!("{content} a"));
        }
    }
}

fn rounds(runtime: &Runtime, engine: &str, place: &str, open: &StoreOptions, rounds: u32) {
    let begin = async {
        let store = open.clone().open().await.unwrap();
        let new = NewSession { sender: "writer".into(), channel: "c".into(), ..NewSession::default() };
        let session = store.sessions().create(new).await.unwrap().id;
        store.close().await;
        session
    };
    let session = runtime.block_on(begin);
    let mut all = Acknowledged::default();
    for round in 0..rounds {
        let mut acknowledged = Acknowledged::default();
        acknowledged.gather(engine, place, session, round);
        // Opened while the log is as the killed writer left it.
        runtime.block_on(async {
            let store = open.clone().open().await.unwrap();
            acknowledged.check(&store, session).await;
            store.close().await;
        });
        all.keys.extend(acknowledged.keys);
        all.appends.extend(acknowledged.appends);
    }
    println!("{} sets and {} appends in {rounds} rounds", all.keys.len(), all.appends.len());
    assert!(all.keys.len() > rounds as usize && !all.appends.is_empty());
    // And no round has lost what an earlier one had.
    runtime.block_on(async {
        let store = open.clone().open().await.unwrap();
        all.check(&store, session).await;
        let kept = store.key_values().usage(&plugin("writer")).await.unwrap();
        assert!(kept.keys >= all.keys.len() as u64);
        store.close().await;
    });
}

// Promises: STORE-2
#[test]
fn sqlite_keeps_what_a_killed_writer_was_told() {
    let (_directory, path) = scratch();
    let open = StoreOptions::new(Engine::Sqlite { path: path.clone() });
    rounds(&runtime(), "sqlite", path.to_str().unwrap(), &open, 50);
}

// Promises: STORE-2
#[test]
fn postgres_keeps_what_a_killed_writer_was_told() {
    let Some(server) = Server::start("postgres_keeps_what_a_killed_writer_was_told") else { return };
    let url = server.database();
    rounds(&runtime(), "postgres", &url, &StoreOptions::new(Engine::Postgres { url: url.clone() }), 15);
}

//! Clients that work while a plugin is replaced: calls that only read, and writes with unique names. At the
//! end every acknowledged write has to be found exactly once.
//!
//! ```text
//! talon-load SOCKET PLUGIN [READERS WRITERS NEWCOMERS]
//! stdin:   phase NAME          a line for each; end of file means stop
//! stdout:  enough NAME         each kind of client got some answers in this phase
//!          {"phases": …}       at the end, as JSON in one line
//! ```
//!
//! The plugin is `talon-ledger`. Readers and writers keep their connection, and rely on `talon-client` alone
//! to survive; a newcomer opens a new connection for each of its calls.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use parking_lot::Mutex;
use serde::Serialize;
use talon_client::{CallError, Client, RequestFate};
use talon_proto::host::{ExecuteRequest, ExecuteResponse, Outcome};
use talon_tests::args;
use tokio::io::{AsyncBufReadExt as _, BufReader};

/// Reads, acknowledged writes and answers to newcomers that complete a phase: each client got several, and a
/// machine that is busy with other tests gets there within seconds.
const PHASE_MINIMUMS: [u64; 3] = [100, 50, 20];
/// Entries that are looked up in one call; their counts fit into one answer.
const LOOKED_UP: usize = 200;
/// Problems whose text is kept in each phase.
const MAX_PROBLEMS: usize = 10;
/// The longest time of one call, restarts included.
const TIMEOUT_MS: u64 = 60_000;

/// The kinds of client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Reader,
    Writer,
    Newcomer,
}

#[derive(Debug, Default, Serialize)]
struct Phase {
    reads: u64,
    reads_failed: u64,
    read_max_us: u64,
    newcomers: u64,
    newcomers_failed: u64,
    newcomer_max_us: u64,
    writes: u64,
    /// Writes that the tool confirmed.
    acknowledged: u64,
    /// Not begun, or refused: certainly without effect.
    writes_not_begun: u64,
    /// Writes whose effect is unknown.
    writes_unknown: u64,
    write_max_us: u64,
    problems: Vec<String>,
    #[serde(skip)]
    told: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WriteOutcome {
    Acknowledged,
    Unacknowledged,
    Unknown,
}

#[derive(Default)]
struct LoadTotals {
    phases: Vec<(String, Phase)>,
    written: BTreeMap<String, WriteOutcome>,
}

struct Load {
    socket: PathBuf,
    plugin: String,
    going: AtomicBool,
    next: AtomicU64,
    kinds: [usize; 3],
    tally: Mutex<LoadTotals>,
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    ensure!([2, 5].contains(&arguments.len()), "usage: talon-load SOCKET PLUGIN [READERS WRITERS NEWCOMERS]");
    let mut kinds = [4, 4, 1];
    for (kind, text) in kinds.iter_mut().zip(&arguments[2..]) {
        *kind = text.parse().context("a number of clients")?;
    }
    let load = Arc::new(Load {
        socket: PathBuf::from(&arguments[0]),
        plugin: arguments[1].clone(),
        going: AtomicBool::new(true),
        next: AtomicU64::new(0),
        kinds,
        tally: Mutex::default(),
    });
    load.begin("quiet");

    let mut clients = Vec::new();
    for (kind, count) in [Kind::Reader, Kind::Writer, Kind::Newcomer].into_iter().zip(kinds) {
        for _ in 0..count {
            let client = Client::connect(load.socket.clone()).await.context("connect")?;
            clients.push(tokio::spawn(Arc::clone(&load).work(kind, client)));
        }
    }
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = lines.next_line().await? {
        if let Some(name) = line.strip_prefix("phase ") {
            load.begin(name);
        }
    }
    load.going.store(false, Ordering::Relaxed);
    for client in clients {
        client.await?;
    }
    println!("{}", load.result().await?);
    Ok(())
}

impl Load {
    fn begin(&self, name: &str) {
        self.tally.lock().phases.push((name.to_owned(), Phase::default()));
    }

    async fn work(self: Arc<Self>, kind: Kind, client: Client) {
        while self.going.load(Ordering::Relaxed) {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let began = Instant::now();
            match kind {
                Kind::Reader => {
                    let result = self.read(&client, number).await;
                    self.record_read(kind, began, result);
                }
                Kind::Newcomer => {
                    let result = match Client::connect(self.socket.clone()).await {
                        Ok(client) => self.read(&client, number).await,
                        Err(error) => Err(format!("connect: {error}")),
                    };
                    self.record_read(kind, began, result);
                }
                Kind::Writer => {
                    let entry = format!("entry-{number}");
                    let request = self.request("add", "entry", &entry, number);
                    let result = client.execute(request).await;
                    self.record_write(entry, began, result);
                }
            }
        }
    }

    fn request(&self, action: &str, name: &str, value: &str, number: u64) -> ExecuteRequest {
        ExecuteRequest {
            plugin: self.plugin.clone(),
            action: action.to_owned(),
            args: args(&[(name, value)]),
            call_id: format!("load-{number}"),
            timeout_ms: TIMEOUT_MS,
            ..ExecuteRequest::default()
        }
    }

    async fn read(&self, client: &Client, number: u64) -> Result<(), String> {
        match client.execute(self.request("counts", "entries", "entry-0", number)).await {
            Ok(answer) if answer.outcome() == Outcome::Ok => Ok(()),
            Ok(answer) => Err(answer_text(&answer)),
            Err(error) => Err(format!("{:?}: {error}", error.fate)),
        }
    }

    fn record_read(&self, kind: Kind, began: Instant, result: Result<(), String>) {
        let took = micros(began);
        self.record(|phase| {
            let (count, failed, longest) = match kind {
                Kind::Newcomer => {
                    (&mut phase.newcomers, &mut phase.newcomers_failed, &mut phase.newcomer_max_us)
                }
                Kind::Reader | Kind::Writer => {
                    (&mut phase.reads, &mut phase.reads_failed, &mut phase.read_max_us)
                }
            };
            *count += 1;
            *longest = took.max(*longest);
            if let Err(problem) = result {
                *failed += 1;
                phase.add_problem(format!("{kind:?}: {problem}"));
            }
        });
    }

    fn record_write(&self, entry: String, began: Instant, result: Result<ExecuteResponse, CallError>) {
        let took = micros(began);
        let (fate, problem) = match &result {
            Ok(answer) if answer.outcome() == Outcome::Ok => (WriteOutcome::Acknowledged, None),
            // Refused before the plugin was asked.
            Ok(answer) if answer.outcome() == Outcome::Refused && answer.reason != "bad_result" => {
                (WriteOutcome::Unacknowledged, Some(answer_text(answer)))
            }
            Ok(answer) => (WriteOutcome::Unknown, Some(answer_text(answer))),
            Err(error) if error.fate == RequestFate::NotStarted => {
                (WriteOutcome::Unacknowledged, Some(error.to_string()))
            }
            Err(error) => (WriteOutcome::Unknown, Some(error.to_string())),
        };
        self.tally.lock().written.insert(entry, fate);
        self.record(|phase| {
            phase.writes += 1;
            phase.write_max_us = took.max(phase.write_max_us);
            match fate {
                WriteOutcome::Acknowledged => phase.acknowledged += 1,
                WriteOutcome::Unacknowledged => phase.writes_not_begun += 1,
                WriteOutcome::Unknown => phase.writes_unknown += 1,
            }
            if let Some(problem) = problem {
                phase.add_problem(format!("Writer: {problem}"));
            }
        });
    }

    fn record(&self, change: impl FnOnce(&mut Phase)) {
        let mut tally = self.tally.lock();
        let (name, phase) = tally.phases.last_mut().expect("the first phase began before the first client");
        change(phase);
        let done = [phase.reads, phase.acknowledged, phase.newcomers];
        let enough = self
            .kinds
            .iter()
            .zip(done)
            .zip(PHASE_MINIMUMS)
            .all(|((clients, done), enough)| *clients == 0 || done >= enough);
        if enough && !std::mem::replace(&mut phase.told, true) {
            println!("enough {name}");
        }
    }

    /// Looks up every entry and compares it with its outcome.
    async fn result(&self) -> Result<serde_json::Value> {
        let client = Client::connect(self.socket.clone()).await?;
        let written = std::mem::take(&mut self.tally.lock().written);
        let entries: Vec<(&String, &WriteOutcome)> = written.iter().collect();
        let (mut lost, mut duplicated, mut unknown_that_took_effect, mut without_that_took_effect) =
            (Vec::new(), Vec::new(), 0_u64, Vec::new());
        for some in entries.chunks(LOOKED_UP) {
            let names: Vec<&str> = some.iter().map(|(entry, _)| entry.as_str()).collect();
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let answer = client.execute(self.request("counts", "entries", &names.join(","), number)).await?;
            ensure!(answer.outcome() == Outcome::Ok, "{}", answer_text(&answer));
            let counts: BTreeMap<String, u64> =
                serde_json::from_str(&answer.structured_content).context("counts as JSON")?;
            for (entry, fate) in some {
                let count = *counts.get(*entry).context("every entry has a count")?;
                match (fate, count) {
                    (_, 2..) => duplicated.push((*entry).clone()),
                    (WriteOutcome::Acknowledged, 0) => lost.push((*entry).clone()),
                    (WriteOutcome::Unacknowledged, 1) => without_that_took_effect.push((*entry).clone()),
                    (WriteOutcome::Unknown, 1) => unknown_that_took_effect += 1,
                    _ => {}
                }
            }
        }
        let acknowledged = written.values().filter(|fate| **fate == WriteOutcome::Acknowledged).count();
        let tally = self.tally.lock();
        let phases: Vec<serde_json::Value> = tally
            .phases
            .iter()
            .map(|(name, phase)| {
                let mut value = serde_json::to_value(phase).unwrap_or_default();
                value["name"] = name.as_str().into();
                value
            })
            .collect();
        Ok(serde_json::json!({
            "phases": phases,
            "acknowledged": acknowledged,
            "lost": lost,
            "duplicated": duplicated,
            "not_begun_that_took_effect": without_that_took_effect,
            "unknown_that_took_effect": unknown_that_took_effect,
        }))
    }
}

impl Phase {
    fn add_problem(&mut self, problem: String) {
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(problem);
        }
    }
}

fn answer_text(answer: &ExecuteResponse) -> String {
    format!("{:?} {}: {}{}", answer.outcome(), answer.reason, answer.error, answer.content)
}

fn micros(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX)
}

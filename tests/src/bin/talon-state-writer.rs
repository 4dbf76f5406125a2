//! Writes to a plugin's state socket until that breaks, or until it is asked to stop, and prints what was
//! acknowledged. Before that, and after the stop, it reads everything and prints what it finds.
//!
//! ```text
//! talon-state-writer SOCKET FIRST end|go-on      stdin: end of file means stop
//! have KEY NUMBER … checked   ack KEY NUMBER …   [have KEY NUMBER … checked]
//! torn WHAT                   refused WHAT       an error, after which it ends
//! ```

use std::error::Error as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context as _, bail};
use parking_lot::Mutex;
use talon_proto::state::state_client::StateClient;
use talon_proto::state::{CompareAndSetRequest, GetRequest, KeysRequest, SetRequest};
use talon_tests::state::{ValueNumbers, number_of, value};
use tokio::io::AsyncReadExt as _;
use tonic::transport::Channel;
use tonic::{Code, Status};

/// Concurrent writers, so that they share commits.
const WRITERS: usize = 16;
/// Keys of each, over and over again, so that the database stays small.
const KEYS: usize = 8;
/// How long it retries. The state service is restarted within seconds; this is only a limit for hangs.
const RETRY_TIMEOUT: Duration = Duration::from_secs(60);
/// The pause between two attempts.
const PAUSE: Duration = Duration::from_millis(20);

struct Shared {
    client: StateClient<Channel>,
    next: AtomicU32,
    stop: AtomicBool,
    go_on: bool,
    out: Mutex<std::io::Stdout>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [socket, first, broken] = arguments.as_slice() else {
        bail!("usage: talon-state-writer SOCKET FIRST end|go-on");
    };
    let channel = talon_tests::dial(&PathBuf::from(socket)).await.context("connect")?;
    let shared = Arc::new(Shared {
        client: StateClient::new(channel),
        next: AtomicU32::new(first.parse()?),
        stop: AtomicBool::new(false),
        go_on: broken == "go-on",
        out: Mutex::new(std::io::stdout()),
    });
    let found = shared.check().await?;
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let shared = Arc::clone(&shared);
            let found = found.clone();
            tokio::spawn(async move { shared.write(writer, found).await })
        })
        .collect();
    let told = Arc::clone(&shared);
    tokio::spawn(async move {
        let _ = tokio::io::stdin().read(&mut [0]).await;
        told.stop.store(true, Ordering::Relaxed);
    });
    for writer in writers {
        writer.await??;
    }
    if shared.go_on {
        shared.check().await?;
    }
    // The read of standard input blocks a thread until its end, which may come later.
    std::process::exit(0);
}

impl Shared {
    /// One line in one write: the test reads up to the last complete one.
    fn say(&self, line: &str) {
        let mut out = self.out.lock();
        if out.write_all(format!("{line}\n").as_bytes()).and_then(|()| out.flush()).is_err() {
            // The reader is gone.
            std::process::exit(0);
        }
    }

    /// Reads everything.
    async fn check(&self) -> anyhow::Result<ValueNumbers> {
        let (mut found, mut page_token) = (ValueNumbers::new(), String::new());
        loop {
            let request = KeysRequest { prefix: String::new(), page_token, page_size: 0 };
            let page = self.client.clone().keys(request).await?.into_inner();
            for key in page.keys {
                let number = self.read(&key).await?.context("a key that is listed is there")?;
                self.say(&format!("have {key} {number}"));
                found.insert(key, number);
            }
            page_token = page.next_page_token;
            if page_token.is_empty() {
                self.say("checked");
                return Ok(found);
            }
        }
    }

    async fn read(&self, key: &str) -> Result<Option<u32>, Status> {
        let found = self.client.clone().get(GetRequest { key: key.to_owned() }).await?.into_inner().value;
        Ok(found.map(|found| {
            number_of(key, &found).unwrap_or_else(|what| {
                self.say(&format!("torn {what}"));
                std::process::exit(3);
            })
        }))
    }

    /// Every second write is a plain one.
    async fn write(&self, writer: usize, mut there: ValueNumbers) -> anyhow::Result<()> {
        let mut last_try = None;
        for turn in 0usize.. {
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
            let key = format!("w{writer:02}-{}", (turn / 2) % KEYS);
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            match self.write_one(&key, number, there.get(&key).copied(), turn % 2 == 0).await {
                Ok(()) => {
                    self.say(&format!("ack {key} {number}"));
                    there.insert(key, number);
                    last_try = None;
                }
                Err(status) if !is_disconnect(&status) => {
                    self.say(&format!("refused {key} {number}: {status}"));
                    std::process::exit(4);
                }
                Err(_) if !self.go_on => break,
                // Whether it was done is unknown: reading the value shows it.
                Err(_) => loop {
                    let began = *last_try.get_or_insert_with(tokio::time::Instant::now);
                    anyhow::ensure!(began.elapsed() < RETRY_TIMEOUT, "{key}: nobody answers");
                    match self.read(&key).await {
                        Ok(Some(number)) => {
                            let before = there.insert(key.clone(), number);
                            if before > Some(number) {
                                self.say(&format!("refused {key}: {before:?} became {number}"));
                                std::process::exit(4);
                            }
                            break;
                        }
                        Ok(None) if !there.contains_key(&key) => break,
                        Ok(None) => {
                            self.say(&format!("refused {key}: it is gone"));
                            std::process::exit(4);
                        }
                        Err(_) => tokio::time::sleep(PAUSE).await,
                    }
                },
            }
        }
        Ok(())
    }

    async fn write_one(&self, key: &str, number: u32, there: Option<u32>, plain: bool) -> Result<(), Status> {
        let mut client = self.client.clone();
        let (key, new) = (key.to_owned(), value(key, number));
        if plain {
            client.set(SetRequest { key, value: new }).await?;
            return Ok(());
        }
        let expected = there.map(|number| value(&key, number));
        let request = CompareAndSetRequest { key, expected, value: Some(new) };
        let answer = client.compare_and_set(request).await?.into_inner();
        // No other writer uses this key.
        answer.swapped.then_some(()).ok_or_else(|| Status::aborted("another value stands there"))
    }
}

/// Whether the connection or the service ended, instead of an answer.
fn is_disconnect(status: &Status) -> bool {
    status.code() == Code::Unavailable || status.source().is_some()
}

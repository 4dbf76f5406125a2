//! Appends to a session until it is killed, and prints what was acknowledged: two of these write to one
//! session at once.
//!
//! ```text
//! talon-session-writer DATABASE SESSION NAME
//! append SEQUENCE NAME TASK NUMBER …
//! ```

use std::io::Write as _;
use std::sync::Arc;

use anyhow::bail;
use parking_lot::Mutex;
use talon_store::{Engine, Expected, SessionId, Sessions, StoreOptions};
use talon_tests::message_batches::batch;

/// Concurrent writers of this process. The other process has as many.
const WRITERS: usize = 4;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [database, session, name] = arguments.as_slice() else {
        bail!("usage: talon-session-writer DATABASE SESSION NAME");
    };
    let store = StoreOptions::new(Engine::Sqlite { path: database.into() }).open().await?;
    let session = SessionId::new(session)?;
    let told = Arc::new(Mutex::new(std::io::stdout()));
    let mut writers = tokio::task::JoinSet::new();
    for task in 0..WRITERS {
        let (sessions, told) = (store.sessions(), Arc::clone(&told));
        writers.spawn(append(sessions, session, format!("{name}/{task}"), told));
    }
    while let Some(ended) = writers.join_next().await {
        ended??;
    }
    Ok(())
}

async fn append(
    sessions: Arc<dyn Sessions>,
    session: SessionId,
    writer: String,
    told: Arc<Mutex<std::io::Stdout>>,
) -> anyhow::Result<()> {
    for number in 0u32.. {
        let messages = batch(&writer, number);
        let appended = sessions.append(session, Expected::Any, messages).await?;
        // One line in one write: the test reads up to the last complete one.
        let line = format!("append {} {writer} {number}\n", appended[0].sequence);
        let mut out = told.lock();
        out.write_all(line.as_bytes()).and_then(|()| out.flush())?;
    }
    Ok(())
}

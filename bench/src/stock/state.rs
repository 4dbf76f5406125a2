//! Who reads and writes state: a plugin through the socket that it has for that, and one that has a database to itself. Both on
//! the system's allocator, which is what plugins have.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Result, ensure};
use rusqlite::Connection;
use talon_proto::state::state_client::StateClient;
use talon_proto::state::{GetRequest, SetRequest};
use talon_tests::dial;
use tonic::transport::Channel;

use super::sqlite::{self, KEYS, VALUE_BYTES, fresh, name};
use crate::load::Caller;

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum What {
    /// A value is read.
    Get,
    /// A value is written, and is on the disk.
    Set,
}

/// A database of one's own.
#[derive(Clone)]
pub(super) struct Database {
    raw: Arc<Mutex<Connection>>,
    next: Arc<AtomicU64>,
    what: What,
}

impl Database {
    pub(super) fn open(path: &Path, what: What) -> Result<Self> {
        Ok(Self { raw: Arc::new(Mutex::new(sqlite::open(path)?)), next: Arc::default(), what })
    }
}

impl Caller for Database {
    async fn call(&mut self, _: usize) -> Result<()> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        // Never waited for: there is one thread, and it holds no lock across a wait.
        let raw = self.raw.lock().unwrap_or_else(PoisonError::into_inner);
        match self.what {
            What::Get => ensure!(sqlite::get(&raw, number)?.len() == VALUE_BYTES, "another value came"),
            What::Set => sqlite::set(&raw, number)?,
        }
        Ok(())
    }
}

/// A plugin's own state.
#[derive(Clone)]
pub(super) struct Kept {
    client: StateClient<Channel>,
    next: Arc<AtomicU64>,
    what: What,
}

impl Kept {
    pub(super) async fn to(socket: &Path, what: What) -> Result<Self> {
        let mut kept = Self { client: StateClient::new(dial(socket).await?), next: Arc::default(), what };
        for number in 0..KEYS {
            kept.client.set(SetRequest { key: name(number), value: fresh() }).await?;
        }
        Ok(kept)
    }
}

impl Caller for Kept {
    async fn call(&mut self, _: usize) -> Result<()> {
        let key = name(self.next.fetch_add(1, Ordering::Relaxed));
        match self.what {
            What::Get => {
                let value = self.client.get(GetRequest { key }).await?.into_inner().value;
                ensure!(value.is_some_and(|value| value.len() == VALUE_BYTES), "another value came");
            }
            What::Set => drop(self.client.set(SetRequest { key, value: fresh() }).await?),
        }
        Ok(())
    }
}

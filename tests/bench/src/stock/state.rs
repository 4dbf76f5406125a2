//! Reading and writing state: by a plugin through its state socket, and directly in a private database. Both
//! use the system's allocator, as plugins do.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Result, ensure};
use parking_lot::Mutex;
use rusqlite::Connection;
use talon_proto::state::state_client::StateClient;
use talon_proto::state::{GetRequest, SetRequest};
use talon_tests::dial;
use tonic::transport::Channel;

use super::sqlite::{self, KEYS, VALUE_BYTES, key_name, unique_value};
use crate::load::Caller;

/// The operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Operation {
    /// Reads a value.
    Get,
    /// Writes a value durably to the disk.
    Set,
}

/// A private database.
#[derive(Clone)]
pub(super) struct Database {
    raw: Arc<Mutex<Connection>>,
    next: Arc<AtomicU64>,
    what: Operation,
}

impl Database {
    pub(super) fn open(path: &Path, what: Operation) -> Result<Self> {
        Ok(Self { raw: Arc::new(Mutex::new(sqlite::open(path)?)), next: Arc::default(), what })
    }
}

impl Caller for Database {
    async fn call(&mut self, _: usize) -> Result<()> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        // Uncontended: there is one thread, and it holds no lock across an await.
        let raw = self.raw.lock();
        match self.what {
            Operation::Get => ensure!(sqlite::get(&raw, number)?.len() == VALUE_BYTES, "another value came"),
            Operation::Set => sqlite::set(&raw, number)?,
        }
        Ok(())
    }
}

/// The state of a plugin.
#[derive(Clone)]
pub(super) struct StateCaller {
    client: StateClient<Channel>,
    next: Arc<AtomicU64>,
    what: Operation,
}

impl StateCaller {
    pub(super) async fn to(socket: &Path, what: Operation) -> Result<Self> {
        let mut kept = Self { client: StateClient::new(dial(socket).await?), next: Arc::default(), what };
        for number in 0..KEYS {
            kept.client.set(SetRequest { key: key_name(number), value: unique_value() }).await?;
        }
        Ok(kept)
    }
}

impl Caller for StateCaller {
    async fn call(&mut self, _: usize) -> Result<()> {
        let key = key_name(self.next.fetch_add(1, Ordering::Relaxed));
        match self.what {
            Operation::Get => {
                let value = self.client.get(GetRequest { key }).await?.into_inner().value;
                ensure!(value.is_some_and(|value| value.len() == VALUE_BYTES), "another value came");
            }
            Operation::Set => drop(self.client.set(SetRequest { key, value: unique_value() }).await?),
        }
        Ok(())
    }
}

//! Reads and conditional writes, each with as many attempts as its time allows.

use std::sync::Arc;
use std::time::Duration;

use talon_extensions::MAX_STORAGE_PAGE_ITEMS;
use talon_extensions::contract::{StorageAnswer, StorageBytes, StorageOp, StorageRequest};
use talon_store::limits::MAX_VALUE_BYTES;
use talon_store::{Error, InvalidError};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout_at};

use super::caller::{CallFailure, StorageCaller};
use super::record::{self, WriteId};

/// Calls of the action at once; further ones wait. A plugin runs 16 calls at once unless its entry says otherwise
/// (`guard.concurrency`), and refuses what exceeds its queue.
const MAX_IN_FLIGHT: usize = 16;
/// How long one operation may take with all its attempts. A write has two of them, and a third if it has to be found out whether it
/// was done, so it may take longer than the 30 s of a plugin's request: then it goes on without its requester.
const PATIENCE: Duration = Duration::from_secs(12);
/// How long one attempt may take. Shorter than the patience, so that one that hangs is followed by another.
const ATTEMPT: Duration = Duration::from_secs(5);
/// The wait before the next attempt: it doubles up to the longest.
const FIRST_WAIT: Duration = Duration::from_millis(20);
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// What is known of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KeyInfo {
    /// The backend's key.
    pub(super) name: Vec<u8>,
    pub(super) revision: String,
    /// The size of the value that the plugin stored.
    pub(super) bytes: u64,
}

/// A value with its revision and the number of its write.
pub(super) struct StoredValue {
    pub(super) value: Vec<u8>,
    pub(super) revision: String,
    write_id: WriteId,
}

/// What became of a conditional write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    /// It is durable.
    Done,
    /// The key has another revision.
    Conflict,
}

/// The storage backend.
#[derive(Clone)]
pub(super) struct Backend {
    caller: Arc<dyn StorageCaller>,
    in_flight: Arc<Semaphore>,
}

/// The attempts of one operation.
struct Attempts {
    deadline: Instant,
    wait: Duration,
    last: String,
}

impl Attempts {
    fn begin() -> Self {
        Self { deadline: Instant::now() + PATIENCE, wait: FIRST_WAIT, last: String::new() }
    }

    /// Waits before the next attempt.
    ///
    /// # Errors
    /// [`Error::Unavailable`] once there is no time for one.
    async fn again(&mut self, reason: String) -> Result<(), Error> {
        self.last = reason;
        if Instant::now() + self.wait >= self.deadline {
            return Err(self.unavailable());
        }
        sleep(self.wait).await;
        self.wait = (self.wait * 2).min(LONGEST_WAIT);
        Ok(())
    }

    fn unavailable(&self) -> Error {
        Error::Unavailable { reason: self.last.clone(), retry_in: LONGEST_WAIT }
    }
}

fn refused(reason: String) -> Error {
    Error::Engine(format!("the storage backend refuses it: {reason}").into())
}

impl Backend {
    pub(super) fn new(caller: Arc<dyn StorageCaller>) -> Self {
        Self { caller, in_flight: Arc::new(Semaphore::new(MAX_IN_FLIGHT)) }
    }

    /// One attempt, which waits for its turn.
    async fn attempt(&self, asked: &StorageRequest, deadline: Instant) -> Result<StorageAnswer, CallFailure> {
        let busy = || CallFailure {
            reason: "too many calls wait for the storage backend".to_owned(),
            may_be_done: false,
        };
        let turn = timeout_at(deadline, self.in_flight.acquire()).await;
        let Ok(Ok(_turn)) = turn else { return Err(busy()) };
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(busy());
        }
        self.caller.call(asked, left.min(ATTEMPT)).await
    }

    /// One attempt, to learn whether it answers.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if it does not.
    pub(super) async fn check(&self, prefix: &[u8]) -> Result<(), Error> {
        let asked = scan_request(prefix, None, 1);
        let unavailable = |reason| Err(Error::Unavailable { reason, retry_in: LONGEST_WAIT });
        match self.attempt(&asked, Instant::now() + ATTEMPT).await {
            Ok(StorageAnswer::Unavailable(reason) | StorageAnswer::Refused(reason)) => unavailable(reason),
            Ok(_) => Ok(()),
            Err(failure) => unavailable(failure.reason),
        }
    }

    /// A read, which may be repeated.
    async fn read(&self, asked: &StorageRequest) -> Result<StorageAnswer, Error> {
        let mut attempts = Attempts::begin();
        loop {
            let reason = match self.attempt(asked, attempts.deadline).await {
                Ok(StorageAnswer::Unavailable(reason)) => reason,
                Ok(StorageAnswer::Refused(reason)) => return Err(refused(reason)),
                Ok(answer) => return Ok(answer),
                Err(failure) => failure.reason,
            };
            attempts.again(reason).await?;
        }
    }

    /// The value of a key.
    pub(super) async fn get(&self, key: &[u8]) -> Result<Option<StoredValue>, Error> {
        let asked = StorageRequest { key: Some(StorageBytes::seal(key)), ..request(StorageOp::Get) };
        match self.read(&asked).await? {
            StorageAnswer::Found { value, revision } => {
                let (write_id, value) = record::decode(key, &value)?;
                Ok(Some(StoredValue { value, revision, write_id }))
            }
            _ => Ok(None),
        }
    }

    /// A page of keys, and whether there are further ones.
    pub(super) async fn scan(
        &self,
        prefix: &[u8],
        after: Option<&[u8]>,
        limit: usize,
    ) -> Result<(Vec<KeyInfo>, bool), Error> {
        let most = MAX_STORAGE_PAGE_ITEMS as usize;
        let limit = u32::try_from(limit.clamp(1, most)).unwrap_or(MAX_STORAGE_PAGE_ITEMS);
        match self.read(&scan_request(prefix, after, limit)).await? {
            StorageAnswer::Page { items, more } => {
                let info = |(name, revision, bytes): (Vec<u8>, String, u64)| KeyInfo {
                    name,
                    revision,
                    bytes: bytes.saturating_sub(record::OVERHEAD_BYTES as u64),
                };
                Ok((items.into_iter().map(info).collect(), more))
            }
            _ => Ok((Vec::new(), false)),
        }
    }

    /// Revision and size of a key. It is the first of those that begin with it.
    pub(super) async fn look_up(&self, key: &[u8]) -> Result<Option<KeyInfo>, Error> {
        let (items, _) = self.scan(key, None, 1).await?;
        Ok(items.into_iter().next().filter(|item| item.name == key))
    }

    /// Writes a value if the key has this revision (`None`: if there is no such key). Nobody else in this process may write to
    /// the key meanwhile.
    pub(super) async fn put(
        &self,
        key: &[u8],
        expected: Option<&str>,
        value: &[u8],
    ) -> Result<Written, Error> {
        if value.len() > MAX_BACKEND_VALUE_BYTES {
            let why = format!(
                "must have at most {MAX_BACKEND_VALUE_BYTES} bytes with a storage backend, not {}",
                value.len()
            );
            return Err(InvalidError::new("a value", why).into());
        }
        let id = record::new_write_id();
        let asked = StorageRequest {
            key: Some(StorageBytes::seal(key)),
            value: Some(StorageBytes::seal(&record::encode(id, key, value))),
            expected: expected.map(str::to_owned),
            ..request(StorageOp::Set)
        };
        let mut attempts = Attempts::begin();
        // Whether an attempt without an answer may have done it.
        let mut may_be_done = false;
        loop {
            let reason = match self.attempt(&asked, attempts.deadline).await {
                Ok(StorageAnswer::Stored { .. }) => return Ok(Written::Done),
                Ok(StorageAnswer::Conflict) if !may_be_done => return Ok(Written::Conflict),
                Ok(StorageAnswer::Conflict) => {
                    return match self.get(key).await? {
                        Some(found) if found.write_id == id => Ok(Written::Done),
                        _ => Err(unknown_write()),
                    };
                }
                Ok(StorageAnswer::Full(reason)) => return Err(Error::Full(reason.into())),
                Ok(StorageAnswer::Refused(reason)) => return Err(refused(reason)),
                Ok(StorageAnswer::Unavailable(reason)) => reason,
                Ok(_) => "it answers another operation".to_owned(),
                Err(failure) => {
                    may_be_done |= failure.may_be_done;
                    failure.reason
                }
            };
            attempts.again(reason).await?;
        }
    }

    /// Removes a key if it has this revision. Nobody else in this process may write to the key meanwhile.
    pub(super) async fn remove(&self, key: &[u8], expected: &str) -> Result<Written, Error> {
        let asked = StorageRequest {
            key: Some(StorageBytes::seal(key)),
            expected: Some(expected.to_owned()),
            ..request(StorageOp::Delete)
        };
        let mut attempts = Attempts::begin();
        let mut may_be_done = false;
        loop {
            let reason = match self.attempt(&asked, attempts.deadline).await {
                Ok(StorageAnswer::Deleted) => return Ok(Written::Done),
                Ok(StorageAnswer::Conflict) if !may_be_done => return Ok(Written::Conflict),
                Ok(StorageAnswer::Conflict) => {
                    return match self.look_up(key).await? {
                        None => Ok(Written::Done),
                        Some(_) => Err(unknown_write()),
                    };
                }
                Ok(StorageAnswer::Refused(reason)) => return Err(refused(reason)),
                Ok(StorageAnswer::Unavailable(reason)) => reason,
                Ok(_) => "it answers another operation".to_owned(),
                Err(failure) => {
                    may_be_done |= failure.may_be_done;
                    failure.reason
                }
            };
            attempts.again(reason).await?;
        }
    }
}

/// The largest value of a plugin, half of what a database takes: as base64 within JSON it has to pass the guard.
pub(super) const MAX_BACKEND_VALUE_BYTES: usize = MAX_VALUE_BYTES / 2;

/// Another process wrote to the key, after an attempt of ours without an answer.
fn unknown_write() -> Error {
    Error::Unavailable {
        reason: "whether a write was done cannot be known: another supervisor writes to the same storage"
            .to_owned(),
        retry_in: LONGEST_WAIT,
    }
}

fn request(op: StorageOp) -> StorageRequest {
    StorageRequest { op, key: None, value: None, expected: None, prefix: None, after: None, limit: None }
}

fn scan_request(prefix: &[u8], after: Option<&[u8]>, limit: u32) -> StorageRequest {
    StorageRequest {
        prefix: Some(StorageBytes::seal(prefix)),
        after: after.map(StorageBytes::seal),
        limit: Some(limit),
        ..request(StorageOp::Scan)
    }
}

//! The operations, each on one connection.
//!
//! A write watches the key, compares its revision, and writes in a transaction, which the server refuses if the key changed in
//! between. No script is needed, so that a server whose ACL forbids them will do.

use redis::aio::MultiplexedConnection;
use redis::{RedisError, Value, cmd, pipe};
use talon_sdk::{StorageItem, StorageReply};

use crate::keys::{REVISION, VALUE, bounds, index, row};

/// How an operation failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OperationError {
    /// Nothing was changed.
    #[error("{0}")]
    NotDone(RedisError),
    /// The transaction was sent, and its answer did not come.
    #[error("{0}")]
    Unknown(RedisError),
}

/// Reads a key.
pub(crate) async fn get(
    redis: &mut MultiplexedConnection,
    prefix: &str,
    key: &[u8],
) -> Result<StorageReply, OperationError> {
    let found: (Option<String>, Option<Vec<u8>>) = cmd("HMGET")
        .arg(row(prefix, key))
        .arg(REVISION)
        .arg(VALUE)
        .query_async(redis)
        .await
        .map_err(OperationError::NotDone)?;
    Ok(match found {
        (Some(revision), Some(value)) => StorageReply::found(&value, revision),
        _ => StorageReply::absent(),
    })
}

/// Watches a key; whether it has the expected revision.
async fn watch(
    redis: &mut MultiplexedConnection,
    row: &[u8],
    expected: Option<&str>,
) -> Result<bool, OperationError> {
    let (revision,): (Option<String>,) = pipe()
        .cmd("WATCH")
        .arg(row)
        .ignore()
        .cmd("HGET")
        .arg(row)
        .arg(REVISION)
        .query_async(redis)
        .await
        .map_err(OperationError::NotDone)?;
    if revision.as_deref() == expected {
        return Ok(true);
    }
    cmd("UNWATCH").query_async::<()>(redis).await.map_err(OperationError::NotDone)?;
    Ok(false)
}

/// Whether the server refused a transaction as a whole.
fn is_aborted(error: &RedisError) -> bool {
    const CODES: [&str; 6] = ["EXECABORT", "OOM", "MISCONF", "READONLY", "NOPERM", "LOADING"];
    error.code().is_some_and(|code| CODES.contains(&code))
}

/// Runs a transaction on what is watched; whether nothing had changed.
async fn execute(
    redis: &mut MultiplexedConnection,
    transaction: &redis::Pipeline,
) -> Result<bool, OperationError> {
    match transaction.query_async::<Option<Vec<Value>>>(redis).await {
        Ok(done) => Ok(done.is_some()),
        Err(error) if is_aborted(&error) => Err(OperationError::NotDone(error)),
        Err(error) => Err(OperationError::Unknown(error)),
    }
}

/// Writes a key if it has the expected revision.
pub(crate) async fn set(
    redis: &mut MultiplexedConnection,
    prefix: &str,
    key: &[u8],
    value: &[u8],
    expected: Option<&str>,
) -> Result<StorageReply, OperationError> {
    let row = row(prefix, key);
    if !watch(redis, &row, expected).await? {
        return Ok(StorageReply::conflict());
    }
    let revision = ulid::Ulid::generate().to_string();
    let mut transaction = pipe();
    transaction.atomic();
    transaction.cmd("HSET").arg(&row).arg(REVISION).arg(&revision).arg(VALUE).arg(value);
    transaction.cmd("ZADD").arg(index(prefix)).arg(0).arg(key);
    let done = execute(redis, &transaction).await?;
    Ok(if done { StorageReply::stored(revision) } else { StorageReply::conflict() })
}

/// Removes a key if it has the expected revision.
pub(crate) async fn delete(
    redis: &mut MultiplexedConnection,
    prefix: &str,
    key: &[u8],
    expected: &str,
) -> Result<StorageReply, OperationError> {
    let row = row(prefix, key);
    if !watch(redis, &row, Some(expected)).await? {
        return Ok(StorageReply::conflict());
    }
    let mut transaction = pipe();
    transaction.atomic();
    transaction.cmd("DEL").arg(&row);
    transaction.cmd("ZREM").arg(index(prefix)).arg(key);
    let done = execute(redis, &transaction).await?;
    Ok(if done { StorageReply::deleted() } else { StorageReply::conflict() })
}

/// Lists keys in the order of their bytes.
pub(crate) async fn scan(
    redis: &mut MultiplexedConnection,
    prefix: &str,
    begins: &[u8],
    after: &[u8],
    limit: u32,
) -> Result<StorageReply, OperationError> {
    let limit = limit as usize;
    let mut after = after.to_vec();
    loop {
        let (from, to) = bounds(begins, &after);
        let mut keys: Vec<Vec<u8>> = cmd("ZRANGEBYLEX")
            .arg(index(prefix))
            .arg(from)
            .arg(to)
            .arg("LIMIT")
            .arg(0)
            .arg(limit + 1)
            .query_async(redis)
            .await
            .map_err(OperationError::NotDone)?;
        let more = keys.len() > limit;
        keys.truncate(limit);
        let Some(last) = keys.last().cloned() else { return Ok(StorageReply::page(Vec::new(), false)) };
        let mut lookups = pipe();
        for key in &keys {
            let row = row(prefix, key);
            lookups.cmd("HGET").arg(&row).arg(REVISION);
            lookups.cmd("HSTRLEN").arg(row).arg(VALUE);
        }
        let found: Vec<Value> = lookups.query_async(redis).await.map_err(OperationError::NotDone)?;
        let mut items = Vec::with_capacity(keys.len());
        for (key, pair) in keys.iter().zip(found.chunks(2)) {
            let [revision, bytes] = pair else { continue };
            let revision: Option<String> = read(revision)?;
            // One that was removed meanwhile is left out.
            if let Some(revision) = revision {
                items.push(StorageItem::new(key, revision, read(bytes)?));
            }
        }
        // A page with more to come has items.
        if more && items.is_empty() {
            after = last;
            continue;
        }
        return Ok(StorageReply::page(items, more));
    }
}

fn read<T: redis::FromRedisValue>(value: &Value) -> Result<T, OperationError> {
    redis::from_redis_value(value.clone()).map_err(|error| OperationError::NotDone(error.into()))
}

//! Backups in a storage backend: an action in the role `storage_backend`, called by the person who runs the command.
//!
//! A backup is the keys `backup/NAME/piece/NUMBER`, and `backup/NAME/manifest`, which is written last and says how many pieces there
//! are, of how many bytes, with which digest. One without a manifest is none.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use talon_extensions::contract::{StorageAnswer, StorageBytes, StorageOp, StorageReply, StorageRequest};
use talon_proto::host::{ExecuteRequest, Outcome};
use talon_sanitize::Raw;

use super::progress;
use crate::client::connection::Client;
use crate::exit;
use crate::failure::Failure;
use crate::global::Global;
use crate::host_socket::HostSocket;

/// How all keys of backups begin.
const ROOT: &str = "backup/";
/// The name of the manifest's key.
const MANIFEST: &str = "manifest";
/// The version of this form.
const VERSION: u32 = 1;
/// The bytes of one piece. As base64 it has to pass `guard.max_structured_bytes`, 64 KiB unless the operator raises it.
const PIECE_BYTES: usize = 32 << 10;
/// The largest manifest; it has some 200 bytes.
const MAX_MANIFEST_BYTES: usize = 4 << 10;
/// The largest backup that is read: as the state service's limit of a copy.
const MAX_BACKUP_BYTES: u64 = 64 << 30;
/// The longest name of a backup.
const MAX_NAME_BYTES: usize = 64;
/// How many keys a page has.
const PAGE_KEYS: u32 = 50;

/// What a stored backup is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredBackup {
    version: u32,
    pub(super) bytes: u64,
    pieces: u64,
    sha256: String,
    pub(super) created_at: String,
}

/// Where backups are.
pub(super) struct BackupStorage {
    client: Client,
    plugin: String,
    action: String,
}

fn request(op: StorageOp) -> StorageRequest {
    StorageRequest { op, key: None, value: None, expected: None, prefix: None, after: None, limit: None }
}

fn piece(name: &str, number: u64) -> String {
    format!("{ROOT}{name}/piece/{number:010}")
}

fn manifest(name: &str) -> String {
    format!("{ROOT}{name}/{MANIFEST}")
}

/// Refuses what is no name of a backup.
fn check_name(name: &str) -> Result<(), Failure> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.len() > MAX_NAME_BYTES || !name.chars().all(plain) {
        return Err(Failure::usage(format!(
            "a backup in a plugin has a name of 1 to {MAX_NAME_BYTES} letters, digits, '-', '_' and '.', such as monday"
        )));
    }
    Ok(())
}

impl BackupStorage {
    /// The action of a running supervisor.
    pub(super) async fn find(global: &Global, action: &str) -> Result<Self, Failure> {
        let Some((plugin, action)) = action.split_once('.') else {
            return Err(Failure::usage("name the action as plugin.action, such as valkey.store"));
        };
        let client = Client::connect(&HostSocket::new(global)).await?;
        Ok(Self { client, plugin: plugin.to_owned(), action: action.to_owned() })
    }

    fn failed(&self, why: &str) -> Failure {
        let why = Raw::from(why).line();
        Failure::new(exit::HOST_FAULT, format!("{}.{}: {why}", self.plugin, self.action))
    }

    async fn call(&self, asked: &StorageRequest) -> Result<StorageAnswer, Failure> {
        let request = ExecuteRequest {
            plugin: self.plugin.clone(),
            action: self.action.clone(),
            // The type has string keys only.
            arguments_json: serde_json::to_string(asked).unwrap_or_default(),
            ..ExecuteRequest::default()
        };
        let answer = self.client.reconnecting.execute(request).await;
        let answer = answer.map_err(|error| self.failed(&error.to_string()))?;
        if answer.outcome() != Outcome::Ok {
            return Err(self.failed(&answer.error));
        }
        let structured = serde_json::from_str(&answer.structured_content).unwrap_or_default();
        let judged = StorageReply::parse(&structured).and_then(|reply| reply.judge(asked));
        match judged.map_err(|error| self.failed(&error.to_string()))? {
            StorageAnswer::Unavailable(why) | StorageAnswer::Refused(why) | StorageAnswer::Full(why) => {
                Err(self.failed(&why))
            }
            answer => Ok(answer),
        }
    }

    async fn get(&self, key: &str) -> Result<Option<Vec<u8>>, Failure> {
        let asked =
            StorageRequest { key: Some(StorageBytes::seal(key.as_bytes())), ..request(StorageOp::Get) };
        match self.call(&asked).await? {
            StorageAnswer::Found { value, .. } => Ok(Some(value)),
            _ => Ok(None),
        }
    }

    /// Writes a key that is not there.
    async fn create(&self, key: &str, value: &[u8]) -> Result<(), Failure> {
        let asked = StorageRequest {
            key: Some(StorageBytes::seal(key.as_bytes())),
            value: Some(StorageBytes::seal(value)),
            ..request(StorageOp::Set)
        };
        match self.call(&asked).await? {
            StorageAnswer::Stored { .. } => Ok(()),
            _ => Err(self.failed("another backup is being written under this name: choose another one")),
        }
    }

    async fn page(
        &self,
        prefix: &str,
        after: Option<&[u8]>,
    ) -> Result<(Vec<(Vec<u8>, String)>, bool), Failure> {
        let asked = StorageRequest {
            prefix: Some(StorageBytes::seal(prefix.as_bytes())),
            after: after.map(StorageBytes::seal),
            limit: Some(PAGE_KEYS),
            ..request(StorageOp::Scan)
        };
        match self.call(&asked).await? {
            StorageAnswer::Page { items, more } => {
                Ok((items.into_iter().map(|(key, revision, _)| (key, revision)).collect(), more))
            }
            _ => Ok((Vec::new(), false)),
        }
    }

    /// Removes a backup, its manifest first, so that half of one is none.
    async fn remove(&self, name: &str) -> Result<(), Failure> {
        for prefix in [manifest(name), format!("{ROOT}{name}/")] {
            loop {
                let (keys, more) = self.page(&prefix, None).await?;
                for (key, revision) in &keys {
                    let asked = StorageRequest {
                        key: Some(StorageBytes::seal(key)),
                        expected: Some(revision.clone()),
                        ..request(StorageOp::Delete)
                    };
                    self.call(&asked).await?;
                }
                if !more {
                    break;
                }
            }
        }
        Ok(())
    }

    async fn stored(&self, name: &str) -> Result<Option<StoredBackup>, Failure> {
        let Some(json) = self.get(&manifest(name)).await? else { return Ok(None) };
        let read = || serde_json::from_slice(&json[..json.len().min(MAX_MANIFEST_BYTES)]).ok();
        let stored: StoredBackup = read().ok_or_else(|| self.failed("the manifest of the backup is none"))?;
        let pieces = stored.bytes.div_ceil(PIECE_BYTES as u64);
        if stored.version != VERSION || stored.pieces != pieces || stored.bytes > MAX_BACKUP_BYTES {
            return Err(self.failed("the manifest of the backup is one of another version"));
        }
        Ok(Some(stored))
    }

    /// The complete backups, by name.
    pub(super) async fn list(&self) -> Result<Vec<(String, StoredBackup)>, Failure> {
        let (mut found, mut after) = (Vec::new(), None::<Vec<u8>>);
        loop {
            let (keys, _) = self.page(ROOT, after.as_deref()).await?;
            let Some((first, _)) = keys.first() else { return Ok(found) };
            let name = std::str::from_utf8(&first[ROOT.len()..]).ok().and_then(|rest| rest.split('/').next());
            let name = name.ok_or_else(|| self.failed("what lies below backup/ is not Talon's"))?.to_owned();
            if let Some(stored) = self.stored(&name).await? {
                found.push((name.clone(), stored));
            }
            // Behind all keys of this backup: no name has a byte behind it.
            after = Some([ROOT.as_bytes(), name.as_bytes(), b"/\xff"].concat());
        }
    }

    /// Stores a file under a name.
    pub(super) async fn write(
        &self,
        name: &str,
        file: &mut File,
        created_at: String,
        overwrite: bool,
    ) -> Result<(), Failure> {
        check_name(name)?;
        if !overwrite && self.stored(name).await?.is_some() {
            return Err(Failure::usage(format!(
                "there is a backup {name} already: choose another name, or say --overwrite"
            )));
        }
        // Also what an interrupted one left.
        self.remove(name).await?;
        let unreadable = |error: std::io::Error| Failure::failed(format!("cannot read the backup: {error}"));
        let total = file.metadata().map_err(unreadable)?.len();
        file.seek(SeekFrom::Start(0)).map_err(unreadable)?;
        let progress = progress::bytes("storing", total);
        let (mut digest, mut bytes, mut pieces) = (Sha256::new(), 0, 0);
        loop {
            let mut data = Vec::with_capacity(PIECE_BYTES);
            (&mut *file).take(PIECE_BYTES as u64).read_to_end(&mut data).map_err(unreadable)?;
            if data.is_empty() {
                break;
            }
            digest.update(&data);
            self.create(&piece(name, pieces), &data).await?;
            progress.inc(data.len() as u64);
            (bytes, pieces) = (bytes + data.len() as u64, pieces + 1);
        }
        let sha256 = hex::encode(digest.finalize());
        let stored = StoredBackup { version: VERSION, bytes, pieces, sha256, created_at };
        // The type has string keys only.
        self.create(&manifest(name), &serde_json::to_vec(&stored).unwrap_or_default()).await
    }

    /// Writes a stored backup to a file, if all of it is there.
    pub(super) async fn read(&self, name: &str, to: &mut File) -> Result<(), Failure> {
        check_name(name)?;
        let Some(stored) = self.stored(name).await? else {
            return Err(Failure::usage(format!(
                "there is no complete backup {name}: list them with `talon backup --to {}.{} --list`",
                self.plugin, self.action
            )));
        };
        let progress = progress::bytes("fetching", stored.bytes);
        let (mut digest, mut bytes) = (Sha256::new(), 0);
        for number in 0..stored.pieces {
            let data = self.get(&piece(name, number)).await?;
            let data =
                data.ok_or_else(|| self.failed("a piece of the backup is missing: it cannot be restored"))?;
            bytes += data.len() as u64;
            digest.update(&data);
            to.write_all(&data)
                .map_err(|error| Failure::failed(format!("cannot write the backup: {error}")))?;
            progress.inc(data.len() as u64);
        }
        if bytes != stored.bytes || hex::encode(digest.finalize()) != stored.sha256 {
            return Err(
                self.failed("the pieces of the backup are not those of its manifest: it cannot be restored")
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_no_path() {
        for name in ["monday", "2026-11-26", "a.b_c"] {
            assert!(check_name(name).is_ok(), "{name}");
        }
        for name in ["", "a/b", "ü", &"x".repeat(65)] {
            assert!(check_name(name).is_err(), "{name}");
        }
        assert!(piece("a", 9) < piece("a", 10) && manifest("a") < piece("a", 0));
    }
}

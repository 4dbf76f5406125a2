//! Backups in a storage backend: an action in the role `storage_backend`, called by the person who runs the command.
//!
//! A backup is the keys `backup/NAME/piece/GENERATION/NUMBER`, and `backup/NAME/manifest`, which is written last and says which
//! generation it is of, how many pieces there are, of how many bytes, with which digest. One without a manifest is none. Another one
//! under the same name is a further generation: its manifest replaces the one that was there when it began, and then the pieces of
//! the generations before are removed. So there is a whole backup at every moment, and of two that are written at once one fails.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use talon_extensions::contract::{StorageAnswer, StorageBytes, StorageOp, StorageReply, StorageRequest};
use talon_proto::host::{ExecuteRequest, Outcome};
use talon_sanitize::Raw;
use ulid::Ulid;

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
/// How many generations one backup removes. An interrupted one leaves one; what is left is removed with the next.
const MAX_REMOVED_GENERATIONS: usize = 64;

/// What a stored backup is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredBackup {
    version: u32,
    generation: String,
    pub(super) bytes: u64,
    pieces: u64,
    sha256: String,
    pub(super) created_at: String,
}

/// A backup that is about to be stored.
pub(super) struct Draft {
    name: String,
    generation: String,
    /// The revision of the manifest that it replaces.
    replaces: Option<String>,
}

/// What stored backups of before have left under a name.
pub(super) struct OldGenerations {
    name: String,
    generations: Vec<String>,
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

/// How the keys of all pieces of a name begin.
fn pieces(name: &str) -> String {
    format!("{ROOT}{name}/piece/")
}

fn piece(name: &str, generation: &str, number: u64) -> String {
    format!("{}{generation}/{number:010}", pieces(name))
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

/// Reads a manifest.
///
/// # Errors
/// Why it is none.
fn parse_manifest(json: &[u8]) -> Result<StoredBackup, &'static str> {
    let whole = Some(json).filter(|json| json.len() <= MAX_MANIFEST_BYTES);
    let stored: StoredBackup = whole
        .and_then(|json| serde_json::from_slice(json).ok())
        .ok_or("the manifest of the backup cannot be read")?;
    if stored.version != VERSION
        || stored.pieces != stored.bytes.div_ceil(PIECE_BYTES as u64)
        || stored.bytes > MAX_BACKUP_BYTES
        || Ulid::from_string(&stored.generation).is_err()
    {
        return Err("the manifest of the backup is one of another version");
    }
    Ok(stored)
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

    /// A value and its revision.
    async fn get(&self, key: &str) -> Result<Option<(Vec<u8>, String)>, Failure> {
        let asked =
            StorageRequest { key: Some(StorageBytes::seal(key.as_bytes())), ..request(StorageOp::Get) };
        match self.call(&asked).await? {
            StorageAnswer::Found { value, revision } => Ok(Some((value, revision))),
            _ => Ok(None),
        }
    }

    /// Writes a key that has this revision, or is not there.
    async fn set(&self, key: &str, expected: Option<String>, value: &[u8]) -> Result<(), Failure> {
        let asked = StorageRequest {
            key: Some(StorageBytes::seal(key.as_bytes())),
            value: Some(StorageBytes::seal(value)),
            expected,
            ..request(StorageOp::Set)
        };
        match self.call(&asked).await? {
            StorageAnswer::Stored { .. } => Ok(()),
            _ => Err(self.failed("another backup was stored under this name meanwhile: choose another name")),
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

    /// Removes the pieces of one generation.
    async fn remove_generation(&self, name: &str, generation: &str) -> Result<(), Failure> {
        let prefix = format!("{}{generation}/", pieces(name));
        let mut after = None::<Vec<u8>>;
        loop {
            let (keys, more) = self.page(&prefix, after.as_deref()).await?;
            for (key, revision) in &keys {
                let asked = StorageRequest {
                    key: Some(StorageBytes::seal(key)),
                    expected: Some(revision.clone()),
                    ..request(StorageOp::Delete)
                };
                if !matches!(self.call(&asked).await?, StorageAnswer::Deleted) {
                    return Err(self.failed("somebody else changes the pieces of the backup"));
                }
            }
            match keys.into_iter().last() {
                Some((last, _)) if more => after = Some(last),
                _ => return Ok(()),
            }
        }
    }

    /// The generations that have pieces.
    async fn generations(&self, name: &str) -> Result<Vec<String>, Failure> {
        let prefix = pieces(name);
        let (mut found, mut after) = (Vec::new(), None::<Vec<u8>>);
        while found.len() < MAX_REMOVED_GENERATIONS {
            let (keys, _) = self.page(&prefix, after.as_deref()).await?;
            let Some((first, _)) = keys.first() else { break };
            let generation =
                first.get(prefix.len()..).and_then(|rest| rest.split(|byte| *byte == b'/').next());
            let generation = generation.and_then(|generation| std::str::from_utf8(generation).ok());
            let generation =
                generation.ok_or_else(|| self.failed("what lies below backup/ is not Talon's"))?.to_owned();
            // Behind all pieces of this generation.
            after = Some([prefix.as_bytes(), generation.as_bytes(), b"/\xff"].concat());
            found.push(generation);
        }
        Ok(found)
    }

    async fn stored(&self, name: &str) -> Result<Option<StoredBackup>, Failure> {
        let Some((json, _)) = self.get(&manifest(name)).await? else { return Ok(None) };
        parse_manifest(&json).map(Some).map_err(|why| self.failed(why))
    }

    /// The backups that have a manifest, by name; with why it is none if it cannot be read.
    pub(super) async fn list(&self) -> Result<Vec<(String, Result<StoredBackup, &'static str>)>, Failure> {
        let (mut found, mut after) = (Vec::new(), None::<Vec<u8>>);
        loop {
            let (keys, _) = self.page(ROOT, after.as_deref()).await?;
            let Some((first, _)) = keys.first() else { return Ok(found) };
            let rest = first.get(ROOT.len()..).and_then(|rest| std::str::from_utf8(rest).ok());
            let name = rest.and_then(|rest| rest.split('/').next());
            let name = name.ok_or_else(|| self.failed("what lies below backup/ is not Talon's"))?.to_owned();
            if let Some((json, _)) = self.get(&manifest(&name)).await? {
                found.push((name.clone(), parse_manifest(&json)));
            }
            // Behind all keys of this backup: no name has a byte behind it.
            after = Some([ROOT.as_bytes(), name.as_bytes(), b"/\xff"].concat());
        }
    }

    /// Begins a backup under a name, before anything is read for it.
    ///
    /// # Errors
    /// It is no name, or there is a backup of this name that is not to be overwritten.
    pub(super) async fn begin(&self, name: &str, overwrite: bool) -> Result<Draft, Failure> {
        check_name(name)?;
        let replaces = self.get(&manifest(name)).await?.map(|(_, revision)| revision);
        if !overwrite && replaces.is_some() {
            return Err(Failure::usage(format!(
                "there is a backup {name} already: choose another name, or say --overwrite"
            )));
        }
        Ok(Draft { name: name.to_owned(), generation: Ulid::generate().to_string(), replaces })
    }

    /// Stores a file. What was stored under the name is there until the whole of it is.
    pub(super) async fn write(
        &self,
        draft: Draft,
        file: &mut File,
        created_at: String,
    ) -> Result<OldGenerations, Failure> {
        let Draft { name, generation, replaces } = draft;
        // Those that are there now began before the manifest changes, so they cannot become the backup afterwards.
        let generations = self.generations(&name).await?;
        let stored = match self.write_pieces(&name, &generation, file).await {
            Ok((bytes, pieces, sha256)) => {
                StoredBackup { version: VERSION, generation, bytes, pieces, sha256, created_at }
            }
            Err(failure) => {
                // The first failure is the one to tell; the next backup under this name removes what is left.
                let _ = self.remove_generation(&name, &generation).await;
                return Err(failure);
            }
        };
        // The type has string keys only.
        let json = serde_json::to_vec(&stored).unwrap_or_default();
        // If it fails its pieces stay, since it may have been done.
        self.set(&manifest(&name), replaces, &json).await?;
        Ok(OldGenerations { name, generations })
    }

    /// Stores the pieces; gives bytes, number and digest.
    async fn write_pieces(
        &self,
        name: &str,
        generation: &str,
        file: &mut File,
    ) -> Result<(u64, u64, String), Failure> {
        let unreadable = |error: std::io::Error| Failure::failed(format!("cannot read the backup: {error}"));
        let total = file.metadata().map_err(unreadable)?.len();
        file.seek(SeekFrom::Start(0)).map_err(unreadable)?;
        let progress = progress::bytes("storing", total);
        let (mut digest, mut bytes, mut pieces) = (Sha256::new(), 0, 0);
        loop {
            let mut data = Vec::with_capacity(PIECE_BYTES);
            (&mut *file).take(PIECE_BYTES as u64).read_to_end(&mut data).map_err(unreadable)?;
            if data.is_empty() {
                return Ok((bytes, pieces, hex::encode(digest.finalize())));
            }
            digest.update(&data);
            self.set(&piece(name, generation, pieces), None, &data).await?;
            progress.inc(data.len() as u64);
            (bytes, pieces) = (bytes + data.len() as u64, pieces + 1);
        }
    }

    /// Removes the pieces of what was stored before.
    pub(super) async fn remove(&self, old: &OldGenerations) -> Result<(), Failure> {
        for generation in &old.generations {
            self.remove_generation(&old.name, generation).await?;
        }
        Ok(())
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
            let data = self.get(&piece(name, &stored.generation, number)).await?;
            let (data, _) =
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
        assert!(piece("a", "g", 9) < piece("a", "g", 10) && manifest("a") < piece("a", "g", 0));
    }

    #[test]
    fn a_manifest_is_one_of_ours_or_none() {
        let stored = StoredBackup {
            version: VERSION,
            generation: Ulid::generate().to_string(),
            bytes: PIECE_BYTES as u64 + 1,
            pieces: 2,
            sha256: "00".to_owned(),
            created_at: "2026-11-26T00:00:00Z".to_owned(),
        };
        let json = |stored: &StoredBackup| serde_json::to_vec(stored).expect("JSON");
        assert_eq!(parse_manifest(&json(&stored)), Ok(stored.clone()));
        for other in [
            StoredBackup { version: VERSION + 1, ..stored.clone() },
            StoredBackup { generation: "../piece".to_owned(), ..stored.clone() },
            StoredBackup { pieces: 3, ..stored.clone() },
            StoredBackup { bytes: u64::MAX, pieces: u64::MAX, ..stored.clone() },
        ] {
            assert!(parse_manifest(&json(&other)).is_err_and(|why| why.contains("another version")));
        }
        let long = [json(&stored), vec![b' '; MAX_MANIFEST_BYTES]].concat();
        for none in [&b""[..], b"{}", b"\xff", &long] {
            assert!(parse_manifest(none).is_err_and(|why| why.contains("cannot be read")));
        }
    }
}

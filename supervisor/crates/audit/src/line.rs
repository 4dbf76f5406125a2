//! Encodes a record as a line, and parses and checks a line.
//!
//! The hash is the last field and covers the bytes before it. So writer and reader need not agree on how JSON
//! is formatted: the bytes in the file are the bytes that were hashed.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::hex_digest::{HEX_BYTES, hex_digits};
use crate::record::Body;

/// The longest line. The limits of `record.rs` make a line of 80 KiB if every byte of every text has to be
/// escaped. A reader treats a longer line as invalid, and keeps no more of it than this.
pub const MAX_LINE_BYTES: usize = 128 << 10;
/// Separates these hashes from SHA-256 of the same text elsewhere, and from those of a later format.
const DOMAIN: &[u8] = b"talon-audit-1\n";
/// The text before and after a line's own hash.
const BEFORE_HASH: &[u8] = b",\"hash\":\"";
const AFTER_HASH: &[u8] = b"\"}";
/// The length of everything after the hashed bytes.
const SEAL_BYTES: usize = BEFORE_HASH.len() + HEX_BYTES + AFTER_HASH.len();

/// The hash of a record and, through its `prev`, of all records before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Hash([u8; 32]);

impl Hash {
    /// The `prev` of the first record of a chain.
    pub const NONE: Self = Self([0; 32]);

    fn of(bytes: &[u8]) -> Self {
        Self(Sha256::new().chain_update(DOMAIN).chain_update(bytes).finalize().into())
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(str::from_utf8(&hex_digits(self.0)).map_err(|_| fmt::Error)?)
    }
}

/// The text is not a hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a hash: 64 digits of 0-9 and a-f")]
pub struct ParseHashError;

impl FromStr for Hash {
    type Err = ParseHashError;

    fn from_str(text: &str) -> Result<Self, ParseHashError> {
        // There is one way to write a hash: a digit in the other case counts as a change.
        if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return Err(ParseHashError);
        }
        let mut hash = [0; 32];
        hex::decode_to_slice(text, &mut hash).map_err(|_| ParseHashError)?;
        Ok(Self(hash))
    }
}

#[derive(Serialize)]
struct UnsealedLine<'a> {
    seq: u64,
    unix_ms: u64,
    #[serde(flatten)]
    body: &'a Body,
    prev: &'a str,
}

/// Appends the line of a record to `to`, and returns its hash.
pub(crate) fn seal(seq: u64, unix_ms: u64, body: &Body, prev: Hash, to: &mut Vec<u8>) -> Hash {
    let start = to.len();
    let prev = hex_digits(prev.0);
    let prev = str::from_utf8(&prev).expect("digits are ASCII");
    let unsealed = UnsealedLine { seq, unix_ms, body, prev };
    serde_json::to_writer(&mut *to, &unsealed)
        .expect("numbers, texts and lists of them are JSON, and memory takes them");
    // The closing brace of the object; the seal ends with another one.
    to.pop();
    let hash = Hash::of(&to[start..]);
    to.extend_from_slice(BEFORE_HASH);
    to.extend_from_slice(&hex_digits(hash.0));
    to.extend_from_slice(AFTER_HASH);
    to.push(b'\n');
    hash
}

/// What a line says about its place in the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChainLink {
    pub(crate) seq: u64,
    pub(crate) unix_ms: u64,
    pub(crate) prev: Hash,
    pub(crate) hash: Hash,
    pub(crate) kind: RecordKind,
}

/// The kind of a record, as far as it says something about the chain itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RecordKind {
    Chain { why: String },
    File,
    Closed { next: String },
    Deleted { through: Option<u64>, hash: Option<Hash> },
    Recovered { cut_bytes: u64 },
    Lost { count: u64, why: String },
    Other,
}

#[derive(Deserialize)]
struct RawLine {
    seq: u64,
    unix_ms: u64,
    kind: String,
    prev: String,
    #[serde(default)]
    why: Option<String>,
    #[serde(default)]
    next: Option<String>,
    #[serde(default)]
    through: Option<u64>,
    #[serde(default)]
    through_hash: Option<String>,
    #[serde(default)]
    cut_bytes: u64,
    #[serde(default)]
    count: u64,
}

/// Why a line is not a valid record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LineError {
    #[error("a line that does not end in its hash")]
    NoHash,
    #[error("a line whose content is not what its hash was made of")]
    OtherContent,
    #[error("a line whose hash is right and whose content is no record of this version")]
    NoRecord,
}

/// Parses a line, without its line break, and checks its own hash.
pub(crate) fn parse(line: &[u8]) -> Result<ChainLink, LineError> {
    let split = line.len().checked_sub(SEAL_BYTES).ok_or(LineError::NoHash)?;
    let (content, seal) = line.split_at(split);
    let said = seal
        .strip_prefix(BEFORE_HASH)
        .and_then(|rest| rest.strip_suffix(AFTER_HASH))
        .and_then(|hex| std::str::from_utf8(hex).ok())
        .and_then(|hex| hex.parse::<Hash>().ok())
        .ok_or(LineError::NoHash)?;
    if Hash::of(content) != said {
        return Err(LineError::OtherContent);
    }
    let read: RawLine = serde_json::from_slice(line).map_err(|_| LineError::NoRecord)?;
    let prev = read.prev.parse().map_err(|_| LineError::NoRecord)?;
    let kind = match read.kind.as_str() {
        "chain" => RecordKind::Chain { why: read.why.unwrap_or_default() },
        "file" => RecordKind::File,
        "closed" => RecordKind::Closed { next: read.next.unwrap_or_default() },
        "deleted" => RecordKind::Deleted {
            through: read.through,
            hash: read.through_hash.and_then(|hash| hash.parse().ok()),
        },
        "recovered" => RecordKind::Recovered { cut_bytes: read.cut_bytes },
        "lost" => RecordKind::Lost { count: read.count, why: read.why.unwrap_or_default() },
        _ => RecordKind::Other,
    };
    Ok(ChainLink { seq: read.seq, unix_ms: read.unix_ms, prev, hash: said, kind })
}

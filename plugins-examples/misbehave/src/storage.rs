//! A storage backend in memory, with faults. The conformance kit is tested with them.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use prost::Message;
use serde_json::{Map, Value};
use talon_extensions::contract::{
    StorageBytes, StorageItem, StorageOp, StorageOutcome, StorageReply, StorageRequest,
};
use talon_extensions::{MAX_STORAGE_VALUE_BYTES, Role};
use talon_proto::plugin::{Action, ToolCallRequest, ToolResultResponse};

use crate::capabilities::role_parameter;
use crate::fault_kinds::Fault;
use crate::reply::Reply;

/// The name of the action.
pub(crate) const ACTION: &str = "store";

/// Parameters and their types, as the role has them.
const PARAMETERS: [(&str, &str); 7] = [
    ("op", "string"),
    ("key", "object"),
    ("value", "object"),
    ("expected", "string"),
    ("prefix", "object"),
    ("after", "object"),
    ("limit", "integer"),
];

static STORE: Mutex<Store> = Mutex::new(Store { rows: BTreeMap::new(), writes: 0 });

/// Each key with its revision and value.
struct Store {
    rows: BTreeMap<Vec<u8>, (String, Vec<u8>)>,
    writes: u64,
}

/// Whether the fault is one of a storage backend.
pub(crate) fn is_backend(wrong: Option<Fault>) -> bool {
    matches!(
        wrong,
        Some(
            Fault::StorageForgets
                | Fault::StorageLastWins
                | Fault::StorageSkips
                | Fault::StorageTexts
                | Fault::StorageObeys
        )
    )
}

/// The declared action.
pub(crate) fn action() -> Action {
    Action {
        name: ACTION.to_owned(),
        description: "Keeps keys and values until the process ends".to_owned(),
        parameters: PARAMETERS.map(|(name, kind)| role_parameter(name, kind, name == "op")).into(),
        // Only such actions are called without a question.
        read_only: true,
        roles: vec![Role::StorageBackend.as_str().to_owned()],
        ..Action::default()
    }
}

/// The answer to a call.
pub(crate) fn execute(wrong: Option<Fault>, call: &ToolCallRequest) -> Reply {
    let obeys = wrong == Some(Fault::StorageObeys);
    let reply = read(call, obeys).and_then(|asked| {
        let mut store = STORE.lock();
        let reply = match asked.op {
            StorageOp::Get => store.get(&bytes(asked.key.as_ref(), obeys)?),
            StorageOp::Set => store.set(&asked, wrong)?,
            StorageOp::Delete => store.delete(&asked, wrong)?,
            StorageOp::Scan => store.scan(&asked, wrong)?,
        };
        serde_json::to_string(&reply).map_err(|error| error.to_string())
    });
    let mut result = ToolResultResponse { call_id: call.id.clone(), ..ToolResultResponse::default() };
    match reply {
        Ok(reply) => result.structured_content = reply,
        Err(error) => result.error = error,
    }
    Reply::Message(result.encode_to_vec().into())
}

/// The request. One that obeys takes an operation that it does not know for a `set`.
fn read(call: &ToolCallRequest, obeys: bool) -> Result<StorageRequest, String> {
    let mut members = Map::new();
    for (name, kind) in PARAMETERS {
        let Some(text) = call.args.get(name).filter(|text| *text != "null") else { continue };
        let value = match kind {
            "string" => Value::String(text.clone()),
            _ => serde_json::from_str(text).map_err(|error| format!("{name}: {error}"))?,
        };
        members.insert(name.to_owned(), value);
    }
    let known = |op: &str| matches!(op, "get" | "set" | "delete" | "scan");
    if obeys && members.get("op").and_then(Value::as_str).is_some_and(|op| !known(op)) {
        members.insert("op".to_owned(), "set".into());
    }
    serde_json::from_value(Value::Object(members)).map_err(|error| error.to_string())
}

/// The bytes of an envelope. One that obeys takes it without its digest, or none for no bytes.
fn bytes(sealed: Option<&StorageBytes>, obeys: bool) -> Result<Vec<u8>, String> {
    match sealed {
        None if obeys => Ok(Vec::new()),
        None => Err("something is missing".to_owned()),
        Some(sealed) => match sealed.open(MAX_STORAGE_VALUE_BYTES) {
            Err(_) if obeys => Ok(sealed.data.clone().into_bytes()),
            opened => opened.map_err(|error| error.to_string()),
        },
    }
}

fn outcome(outcome: StorageOutcome) -> StorageReply {
    StorageReply { outcome, revision: None, value: None, items: Vec::new(), more: false, reason: None }
}

impl Store {
    fn get(&self, key: &[u8]) -> StorageReply {
        self.rows.get(key).map_or_else(
            || outcome(StorageOutcome::Absent),
            |(revision, value)| StorageReply {
                revision: Some(revision.clone()),
                value: Some(StorageBytes::seal(value)),
                ..outcome(StorageOutcome::Found)
            },
        )
    }

    /// Whether a write conflicts with what is there. The last one that writes wins, if that is the fault.
    fn conflicts(&self, key: &[u8], expected: Option<&String>, wrong: Option<Fault>) -> bool {
        let current = self.rows.get(key).map(|(revision, _)| revision);
        let lax = expected.is_some() && current.is_some() && wrong == Some(Fault::StorageLastWins);
        !lax && current != expected
    }

    fn set(&mut self, asked: &StorageRequest, wrong: Option<Fault>) -> Result<StorageReply, String> {
        let obeys = wrong == Some(Fault::StorageObeys);
        let (key, mut value) = (bytes(asked.key.as_ref(), obeys)?, bytes(asked.value.as_ref(), obeys)?);
        if self.conflicts(&key, asked.expected.as_ref(), wrong) {
            return Ok(outcome(StorageOutcome::Conflict));
        }
        if wrong == Some(Fault::StorageTexts) && value.len() < 1024 {
            value = String::from_utf8_lossy(&value).into_owned().into_bytes();
        }
        self.writes += 1;
        let revision = format!("w{}", self.writes);
        self.rows.insert(key, (revision.clone(), value));
        Ok(StorageReply { revision: Some(revision), ..outcome(StorageOutcome::Stored) })
    }

    fn delete(&mut self, asked: &StorageRequest, wrong: Option<Fault>) -> Result<StorageReply, String> {
        let key = bytes(asked.key.as_ref(), false)?;
        if self.conflicts(&key, asked.expected.as_ref(), wrong) {
            return Ok(outcome(StorageOutcome::Conflict));
        }
        self.rows.remove(&key);
        Ok(outcome(StorageOutcome::Deleted))
    }

    /// A page. One that skips begins it one key too late.
    fn scan(&self, asked: &StorageRequest, wrong: Option<Fault>) -> Result<StorageReply, String> {
        let prefix = bytes(asked.prefix.as_ref(), true)?;
        let after = bytes(asked.after.as_ref(), true)?;
        let limit = usize::try_from(asked.limit.unwrap_or(100)).unwrap_or(usize::MAX);
        let skipped = usize::from(wrong == Some(Fault::StorageSkips) && !after.is_empty());
        let mut found =
            self.rows.iter().filter(|(key, _)| key.starts_with(&prefix) && **key > after).skip(skipped);
        let items = found
            .by_ref()
            .take(limit)
            .map(|(key, (revision, value))| StorageItem {
                key: StorageBytes::seal(key),
                revision: revision.clone(),
                bytes: value.len() as u64,
            })
            .collect();
        Ok(StorageReply { items, more: found.next().is_some(), ..outcome(StorageOutcome::Page) })
    }
}

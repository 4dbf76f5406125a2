//! What a storage backend promises: actions that may be called and declare the role `storage_backend`.
//!
//! All keys that are written begin with `talon-conformance/` and a number of the run, and are removed at the end.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use serde_json::Value;
use talon_extensions::Role;
use talon_extensions::contract::{StorageAnswer, StorageBytes, StorageOp, StorageReply, StorageRequest};
use talon_sanitize::{Raw, Sanitized, sanitized};

use crate::harness::{CallResult, Finding, Harness, Session};

/// The longest description of what was wrong.
const SHOWN_BYTES: usize = 300;
/// How many writers compete for a revision.
const WRITERS: usize = 8;
/// The keys of a scan, and how many a page has.
const KEYS: usize = 25;
const PAGE_KEYS: u32 = 10;

/// The action that is tried.
struct Backend {
    action: String,
    /// How its keys begin.
    prefix: Vec<u8>,
}

/// A request without anything but the operation.
fn request(op: StorageOp) -> StorageRequest {
    StorageRequest { op, key: None, value: None, expected: None, prefix: None, after: None, limit: None }
}

fn failed(text: impl Into<String>) -> Finding {
    let text = text.into();
    Finding::Fail(Raw::from(text).line_within(SHOWN_BYTES))
}

/// The arguments as they travel: texts as they are, everything else as JSON.
fn texts(arguments: Value) -> BTreeMap<String, String> {
    let Value::Object(members) = arguments else { return BTreeMap::new() };
    let text = |value| match value {
        Value::String(text) => text,
        value => value.to_string(),
    };
    members.into_iter().map(|(name, value)| (name, text(value))).collect()
}

impl Backend {
    /// The first such action; `None` if there is none that may be called.
    fn of(harness: &Harness<'_>) -> Option<Self> {
        let declared = harness.facts.capabilities.as_ref()?;
        let plays = |name: &str| {
            let action = declared.actions.iter().find(|action| action.name == name);
            action.is_some_and(|action| action.roles.iter().any(|role| role == Role::StorageBackend.as_str()))
        };
        let target = harness.targets.all.iter().find(|target| plays(&target.action))?;
        let prefix = format!("talon-conformance/{}/", std::process::id()).into_bytes();
        Some(Self { action: target.action.clone(), prefix })
    }

    fn key(&self, name: &[u8]) -> Vec<u8> {
        [&self.prefix, name].concat()
    }

    async fn call(
        &self,
        harness: &Harness<'_>,
        session: &Session,
        asked: &StorageRequest,
    ) -> Result<StorageAnswer, Finding> {
        // The type has string keys only.
        let args = texts(serde_json::to_value(asked).unwrap_or_default());
        let answer = match harness.call(session, "conformance-storage", &self.action, &args).await {
            CallResult::Answer(answer) if answer.error.is_empty() => answer,
            other => return Err(Finding::Fail(sanitized!("{} got {}", op(asked), other.describe()))),
        };
        let structured = serde_json::from_str(&answer.structured_content).unwrap_or_default();
        let judged = StorageReply::parse(&structured).and_then(|reply| reply.judge(asked));
        match judged.map_err(|error| failed(format!("{:?}: {error}", asked.op)))? {
            StorageAnswer::Unavailable(reason) => Err(failed(format!("it is unavailable: {reason}"))),
            answer => Ok(answer),
        }
    }

    async fn get(
        &self,
        harness: &Harness<'_>,
        session: &Session,
        key: &[u8],
    ) -> Result<StorageAnswer, Finding> {
        let asked = StorageRequest { key: Some(StorageBytes::seal(key)), ..request(StorageOp::Get) };
        self.call(harness, session, &asked).await
    }

    async fn set(
        &self,
        harness: &Harness<'_>,
        session: &Session,
        key: &[u8],
        value: &[u8],
        expected: Option<&str>,
    ) -> Result<StorageAnswer, Finding> {
        let asked = StorageRequest {
            key: Some(StorageBytes::seal(key)),
            value: Some(StorageBytes::seal(value)),
            expected: expected.map(str::to_owned),
            ..request(StorageOp::Set)
        };
        self.call(harness, session, &asked).await
    }

    async fn delete(
        &self,
        harness: &Harness<'_>,
        session: &Session,
        key: &[u8],
        expected: &str,
    ) -> Result<StorageAnswer, Finding> {
        let asked = StorageRequest {
            key: Some(StorageBytes::seal(key)),
            expected: Some(expected.to_owned()),
            ..request(StorageOp::Delete)
        };
        self.call(harness, session, &asked).await
    }

    /// Sets an absent key; its revision.
    async fn create(
        &self,
        harness: &Harness<'_>,
        session: &Session,
        key: &[u8],
        value: &[u8],
    ) -> Result<String, Finding> {
        match self.set(harness, session, key, value, None).await? {
            StorageAnswer::Stored { revision } => Ok(revision),
            other => Err(failed(format!("a set of an absent key got {other:?}"))),
        }
    }

    async fn page(
        &self,
        harness: &Harness<'_>,
        session: &Session,
        after: Option<&[u8]>,
        limit: u32,
    ) -> Result<(Vec<(Vec<u8>, String, u64)>, bool), Finding> {
        let asked = StorageRequest {
            prefix: Some(StorageBytes::seal(&self.prefix)),
            after: after.map(StorageBytes::seal),
            limit: Some(limit),
            ..request(StorageOp::Scan)
        };
        match self.call(harness, session, &asked).await? {
            StorageAnswer::Page { items, more } => Ok((items, more)),
            other => Err(failed(format!("a scan got {other:?}"))),
        }
    }

    /// Removes what this run wrote.
    async fn clear(&self, harness: &Harness<'_>, session: &Session) -> Result<(), Finding> {
        loop {
            let (items, more) = self.page(harness, session, None, 100).await?;
            for (key, revision, _) in &items {
                self.delete(harness, session, key, revision).await?;
            }
            if !more {
                return Ok(());
            }
        }
    }
}

fn op(asked: &StorageRequest) -> Sanitized {
    let name = format!("{:?}", asked.op).to_lowercase();
    Raw::from(name).line()
}

/// What a check does with the backend and its process.
macro_rules! with_backend {
    ($harness:ident, $backend:ident, $session:ident, $body:block) => {{
        let Some($backend) = Backend::of($harness) else {
            return Ok(Finding::Skip(
                "no action that may be called declares the role storage_backend".into(),
            ));
        };
        $harness.ensure_session().await?;
        let $harness: &Harness<'_> = $harness;
        let Some($session) = $harness.session() else { return Ok(Finding::pass()) };
        $body
    }};
}

pub(in crate::checks) async fn revisions(harness: &mut Harness<'_>) -> Result<Finding, Finding> {
    with_backend!(harness, backend, session, {
        let key = backend.key(b"revisions");
        backend.clear(harness, session).await?;
        let first = backend.create(harness, session, &key, b"1").await?;
        if backend.set(harness, session, &key, b"2", None).await? != StorageAnswer::Conflict {
            return Err(failed("a set without a revision replaced a key that was there"));
        }
        let writers = (0..WRITERS).map(|number| {
            let (value, first, key, backend) = (number.to_string(), &first, &key, &backend);
            async move { backend.set(harness, session, key, value.as_bytes(), Some(first)).await }
        });
        let mut stored = Vec::new();
        for answer in join_all(writers).await {
            match answer? {
                StorageAnswer::Stored { revision } => stored.push(revision),
                StorageAnswer::Conflict => {}
                other => return Err(failed(format!("a set got {other:?}"))),
            }
        }
        let [second] = stored.as_slice() else {
            return Err(failed(format!(
                "{} of {WRITERS} sets with the same revision were stored, not one",
                stored.len()
            )));
        };
        if backend.delete(harness, session, &key, &first).await? != StorageAnswer::Conflict {
            return Err(failed("a delete with an old revision removed the key"));
        }
        if backend.delete(harness, session, &key, second).await? != StorageAnswer::Deleted {
            return Err(failed("a delete with the key's revision did not remove it"));
        }
        if backend.get(harness, session, &key).await? != StorageAnswer::Absent {
            return Err(failed("a key that was deleted is still there"));
        }
        let third = backend.create(harness, session, &key, b"1").await?;
        if third == first || third == *second {
            return Err(failed("a revision came back after the key was deleted"));
        }
        backend.clear(harness, session).await?;
        Ok(Finding::pass())
    })
}

pub(in crate::checks) async fn scans(harness: &mut Harness<'_>) -> Result<Finding, Finding> {
    with_backend!(harness, backend, session, {
        backend.clear(harness, session).await?;
        let name = |number: usize| backend.key(format!("s/{number:03}").as_bytes());
        for number in 0..KEYS {
            backend.create(harness, session, &name(number), b"value").await?;
        }
        let (mut found, mut after, mut pages) = (Vec::new(), None::<Vec<u8>>, 0);
        loop {
            let (items, more) = backend.page(harness, session, after.as_deref(), PAGE_KEYS).await?;
            pages += 1;
            if items.iter().any(|(_, _, bytes)| *bytes != 5) {
                return Err(failed("a page has another size than that of the value"));
            }
            after = items.last().map(|(key, _, _)| key.clone()).or(after);
            found.extend(items.into_iter().map(|(key, _, _)| key));
            if !more || pages > KEYS {
                break;
            }
            // Others write meanwhile, ahead of the page and behind it.
            for other in [format!("r/{pages}"), format!("s/{pages:03}x")] {
                backend.create(harness, session, &backend.key(other.as_bytes()), b"other").await?;
            }
        }
        let lost = (0..KEYS).filter(|number| !found.contains(&name(*number))).count();
        if lost > 0 {
            return Err(failed(format!("{lost} of {KEYS} keys were in no page, while others wrote")));
        }
        backend.clear(harness, session).await?;
        Ok(Finding::pass())
    })
}

pub(in crate::checks) async fn bytes(harness: &mut Harness<'_>) -> Result<Finding, Finding> {
    with_backend!(harness, backend, session, {
        backend.clear(harness, session).await?;
        let long = vec![b'k'; talon_extensions::MAX_STORAGE_KEY_BYTES - backend.prefix.len()];
        let large = vec![0xa5; talon_extensions::MAX_STORAGE_VALUE_BYTES];
        let names: [&[u8]; 6] = ["ü 漢字".as_bytes(), b"\0\xff\n\r ", b"*?[a]\\", b"{a}:b", b"(x", &long];
        let values: [&[u8]; 6] = [b"", b"\0\xff\r\n", b"<|im_start|>", "ü".as_bytes(), b"null", &large];
        for (name, value) in names.iter().zip(values) {
            backend.create(harness, session, &backend.key(name), value).await?;
        }
        for (name, value) in names.iter().zip(values) {
            match backend.get(harness, session, &backend.key(name)).await? {
                StorageAnswer::Found { value: found, .. } if found == value => {}
                _ => {
                    let text = format!(
                        "a value of {} bytes under a key of {} did not come back",
                        value.len(),
                        name.len()
                    );
                    return Err(failed(text));
                }
            }
        }
        let absent = backend.get(harness, session, &backend.key(b"\0")).await?;
        if absent != StorageAnswer::Absent {
            return Err(failed("a key that was never set is there"));
        }
        backend.clear(harness, session).await?;
        Ok(Finding::pass())
    })
}

pub(in crate::checks) async fn refusals(harness: &mut Harness<'_>) -> Result<Finding, Finding> {
    with_backend!(harness, backend, session, {
        let key = backend.key(b"refusals");
        backend.clear(harness, session).await?;
        let sealed = || Some(StorageBytes::seal(&key));
        let set = StorageRequest { key: sealed(), value: sealed(), ..request(StorageOp::Set) };
        let mut unknown = serde_json::to_value(&set).unwrap_or_default();
        unknown["op"] = "rename".into();
        let mut damaged = serde_json::to_value(&set).unwrap_or_default();
        damaged["value"]["sha256"] = StorageBytes::seal(b"other").sha256.into();
        let mut missing = serde_json::to_value(&set).unwrap_or_default();
        missing["key"] = Value::Null;
        for (what, arguments) in [
            ("an unknown operation", unknown),
            ("a digest of other bytes", damaged),
            ("a set without a key", missing),
        ] {
            let said = harness.call(session, "conformance-storage", &backend.action, &texts(arguments)).await;
            let refused = match &said {
                CallResult::Answer(answer) if answer.error.is_empty() => {
                    answer.structured_content.contains("\"refused\"")
                }
                CallResult::Answer(_) | CallResult::Status(..) => true,
                _ => false,
            };
            if !refused {
                return Err(Finding::Fail(sanitized!("{} got {}", what, said.describe())));
            }
        }
        if backend.get(harness, session, &key).await? != StorageAnswer::Absent {
            return Err(failed("a refused request wrote a key"));
        }
        Ok(Finding::pass())
    })
}

pub(in crate::checks) async fn durable(harness: &mut Harness<'_>) -> Result<Finding, Finding> {
    let Some(backend) = Backend::of(harness) else {
        return Ok(Finding::Skip("no action that may be called declares the role storage_backend".into()));
    };
    let key = backend.key(b"durable");
    {
        harness.ensure_session().await?;
        let harness: &Harness<'_> = harness;
        let Some(session) = harness.session() else { return Ok(Finding::pass()) };
        backend.clear(harness, session).await?;
        backend.create(harness, session, &key, b"kept").await?;
    }
    // It is killed.
    harness.drop_session().await;
    harness.ensure_session().await?;
    let harness: &Harness<'_> = harness;
    let Some(session) = harness.session() else { return Ok(Finding::pass()) };
    match backend.get(harness, session, &key).await? {
        StorageAnswer::Found { value, .. } if value == b"kept" => {}
        other => {
            return Err(failed(format!(
                "an acknowledged write is gone after the process was killed: {other:?}"
            )));
        }
    }
    backend.clear(harness, session).await?;
    Ok(Finding::pass())
}

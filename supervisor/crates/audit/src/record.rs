//! What is recorded. Every text is truncated when its record is made, so that a line has a maximum size.

use serde::Serialize;

use crate::hex_digest;

/// The most of a call's arguments that is kept as text: enough to see the request, and a line stays readable.
pub const MAX_ARGUMENT_TEXT_BYTES: usize = 4 << 10;
/// The limit of all other texts. Names and reasons are far shorter. Longer texts are truncated.
pub const MAX_TEXT_BYTES: usize = 512;
/// The longest list in a record, such as the families of neutralized syntax; there are fewer.
const MAX_ENTRIES: usize = 32;
/// The longest entry of a list: plugin names, and the guard's own terms.
const MAX_ENTRY_BYTES: usize = 64;

/// The caller, as identified by the kernel for the connection and by the configuration for its role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Caller {
    /// The effective uid of the process that connected.
    pub uid: u32,
    /// Its effective gid.
    pub gid: u32,
    /// Its process id when it connected; it may have been reused since.
    pub pid: u32,
    /// `call`, `operate` or `admin`.
    pub role: &'static str,
    /// `person`, `model`, `program` or `system`.
    pub origin: &'static str,
    /// For whom the gateway asked; absent for others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
}

impl Caller {
    fn truncate(&mut self) {
        if let Some(subject) = &mut self.subject {
            truncate(subject, MAX_TEXT_BYTES);
        }
    }
}

/// The arguments of a call.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Arguments {
    /// SHA-256 of the arguments as a JSON object with sorted keys and without spaces, with the types that the
    /// caller sent, all strings if it sent texts; absent if they are not recorded.
    #[serde(rename = "arguments_sha256", skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// That object itself, truncated to [`MAX_ARGUMENT_TEXT_BYTES`]; absent unless configured.
    #[serde(rename = "arguments", skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// How many bytes of the object the text omits.
    #[serde(rename = "arguments_cut_bytes", skip_serializing_if = "is_zero")]
    pub cut_bytes: u64,
}

impl Arguments {
    /// The digest of arguments, which are one JSON object, without their text.
    #[must_use]
    pub fn digest(json: &str) -> Self {
        Self { sha256: Some(hex_digest::sha256(json.as_bytes())), ..Self::default() }
    }

    /// The digest, and the text up to its limit.
    #[must_use]
    pub fn text(whole: &str) -> Self {
        let sha256 = Some(hex_digest::sha256(whole.as_bytes()));
        let text = whole[..whole.floor_char_boundary(MAX_ARGUMENT_TEXT_BYTES)].to_owned();
        let cut_bytes = (whole.len() - text.len()) as u64;
        Self { sha256, text: Some(text), cut_bytes }
    }
}

/// What the guard did to an answer.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Verdicts {
    /// How often control syntax was neutralized, by family.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "as_object")]
    pub neutralised: Vec<(String, u64)>,
    /// Whether a size limit cut something off.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// What was detected and left unchanged.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<String>,
    /// Plugins whose answers appear in the arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tainted_by: Vec<String>,
}

/// A finished call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Call {
    /// The caller.
    pub who: Caller,
    /// The caller's session, if it named one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub session: String,
    /// The user that the agent called for; empty for a call by any other caller, which is in `who`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub sender: String,
    /// The sub-agent that it called for; empty if none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub subagent: String,
    /// The role that the action plays, if the call is made for an extension; `session` then has its entry. Empty if none.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub role: &'static str,
    /// The id of the call in logs and events; the part before the last dot was chosen by the caller.
    pub call_id: String,
    /// The requested plugin, whether it exists or not.
    pub plugin: String,
    /// The requested action.
    pub action: String,
    /// The arguments.
    #[serde(flatten)]
    pub arguments: Arguments,
    /// `ok`, `tool_error`, `refused`, `host_fault` or `cancelled`.
    pub outcome: &'static str,
    /// The reason, if it is not `ok`.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub reason: &'static str,
    /// What the guard did.
    #[serde(skip_serializing_if = "Verdicts::is_empty")]
    pub guard: Verdicts,
    /// SHA-256 of the plugin's answer as received; empty if there was none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub answer_sha256: String,
    /// Digest of the plugin's program or directory, if known.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub plugin_sha256: String,
    /// The time from request to answer.
    pub duration_us: u64,
}

/// An operation on plugins or on the supervisor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Operation {
    /// The requester; absent if the supervisor acted on its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub who: Option<Caller>,
    /// The requested operation, such as `stop`.
    pub verb: String,
    /// The object of the operation, such as a plugin's name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub subject: String,
    /// `done`, `denied` or `failed`.
    pub outcome: &'static str,
    /// The reason, if it was not done.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// How long it took.
    pub duration_us: u64,
}

/// The content of a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Body {
    /// The first record of a chain.
    Chain {
        /// The file's number.
        file: u64,
        /// Why a chain begins here.
        why: String,
    },
    /// The first record of a further file.
    File {
        /// Its number.
        file: u64,
        /// The file that it continues.
        continues: String,
    },
    /// The last record of a file that is full.
    Closed {
        /// The file that continues it.
        next: String,
    },
    /// A file is about to be deleted, because there are more than are kept.
    Deleted {
        /// The name of that file.
        file: String,
        /// The last record in it; absent if that is unknown.
        #[serde(skip_serializing_if = "Option::is_none")]
        through: Option<u64>,
        /// The hash of that record.
        #[serde(skip_serializing_if = "Option::is_none")]
        through_hash: Option<String>,
    },
    /// The end of the file was not a whole line, as after a crash, and was truncated.
    Recovered {
        /// The number of truncated bytes.
        cut_bytes: u64,
        /// Their SHA-256.
        cut_sha256: String,
    },
    /// Records are missing here.
    Lost {
        /// The number of missing records.
        count: u64,
        /// Why, unless they only found no room in time.
        #[serde(skip_serializing_if = "String::is_empty")]
        why: String,
    },
    /// A supervisor started to write.
    Started {
        /// Its version.
        version: String,
        /// Its process id.
        pid: u32,
    },
    /// A supervisor stopped writing. If this is missing, it did not end in order, or could not write any
    /// more.
    Stopped {
        /// Its process id.
        pid: u32,
    },
    /// A call.
    Call(Box<Call>),
    /// An operation.
    Operation(Box<Operation>),
}

impl Verdicts {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Body {
    /// A call, with its texts truncated to their limits.
    #[must_use]
    pub fn call(mut call: Box<Call>) -> Self {
        call.who.truncate();
        for text in [
            &mut call.session,
            &mut call.sender,
            &mut call.subagent,
            &mut call.call_id,
            &mut call.plugin,
            &mut call.action,
            &mut call.answer_sha256,
            &mut call.plugin_sha256,
        ] {
            truncate(text, MAX_TEXT_BYTES);
        }
        let guard = &mut call.guard;
        guard.neutralised.truncate(MAX_ENTRIES);
        for list in [&mut guard.flags, &mut guard.tainted_by] {
            list.truncate(MAX_ENTRIES);
        }
        let families = guard.neutralised.iter_mut().map(|(family, _)| family);
        let entries = guard.flags.iter_mut().chain(&mut guard.tainted_by).chain(families);
        entries.for_each(|entry| truncate(entry, MAX_ENTRY_BYTES));
        Self::Call(call)
    }

    /// An operation, with its texts truncated to their limits.
    #[must_use]
    pub fn operation(mut operation: Operation) -> Self {
        operation.who.as_mut().map(Caller::truncate);
        for text in [&mut operation.verb, &mut operation.subject, &mut operation.reason] {
            truncate(text, MAX_TEXT_BYTES);
        }
        Self::Operation(Box::new(operation))
    }
}

fn truncate(text: &mut String, bytes: usize) {
    text.truncate(text.floor_char_boundary(bytes));
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde asks for")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

fn as_object<S: serde::Serializer>(pairs: &[(String, u64)], to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(pairs.iter().map(|(name, count)| (name, count)))
}

//! What is recorded. Every text in a record is bounded where the record is made, so that a line has a largest size.

use serde::Serialize;

use crate::digits;

/// The most of a call's arguments that is kept as text: enough to see what was asked, and a line stays readable.
pub const MAX_ARGUMENT_TEXT_BYTES: usize = 4 << 10;
/// The longest of all other texts; names and reasons are far shorter. What is longer is cut.
pub const MAX_TEXT_BYTES: usize = 512;
/// The longest list in a record, such as the families of what was made inert; there are fewer.
const MAX_ENTRIES: usize = 32;
/// The longest entry of a list: names of plugins and words of the guard's own.
const MAX_ENTRY_BYTES: usize = 64;

/// Who asked, as the kernel says about the connection and the configuration about that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Who {
    /// The effective uid of the process that connected.
    pub uid: u32,
    /// Its effective gid.
    pub gid: u32,
    /// Its process id when it connected; it can have been used again since.
    pub pid: u32,
    /// `call`, `operate` or `admin`.
    pub role: &'static str,
    /// `person`, `model` or `program`.
    pub origin: &'static str,
}

/// What a call was asked with.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Arguments {
    /// SHA-256 of them as a JSON object with sorted keys and without spaces; absent if nothing of them is recorded.
    #[serde(rename = "arguments_sha256", skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// That object itself, cut to [`MAX_ARGUMENT_TEXT_BYTES`]; absent unless asked for.
    #[serde(rename = "arguments", skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// How many bytes of the object the text leaves out.
    #[serde(rename = "arguments_cut_bytes", skip_serializing_if = "is_zero")]
    pub cut_bytes: u64,
}

impl Arguments {
    /// The digest of arguments.
    #[must_use]
    pub fn digest(arguments: &impl Serialize) -> Self {
        Self { sha256: Some(digits::sha256(&json(arguments))), ..Self::default() }
    }

    /// The digest, and as much of the text as is kept.
    #[must_use]
    pub fn text(arguments: &impl Serialize) -> Self {
        let whole = json(arguments);
        let sha256 = Some(digits::sha256(&whole));
        let whole = String::from_utf8_lossy(&whole);
        let text = cut(&whole, MAX_ARGUMENT_TEXT_BYTES);
        let cut_bytes = (whole.len() - text.len()) as u64;
        Self { sha256, text: Some(text), cut_bytes }
    }
}

/// Texts by name are a JSON object whatever is in them; for what is none there is nothing to record.
fn json(arguments: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(arguments).unwrap_or_default()
}

/// What the guard did to an answer.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Verdicts {
    /// How often control syntax was made inert, by family.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "as_object")]
    pub neutralised: Vec<(String, u64)>,
    /// Whether a size limit left something out.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// What was noticed and left as it is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<String>,
    /// Plugins whose answers the arguments carried.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tainted_by: Vec<String>,
}

/// A call that came to an end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Call {
    /// Who called.
    pub who: Who,
    /// The caller's session, if it named one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub session: String,
    /// For whom the agent called; empty for a call of anybody else, who is in `who`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub sender: String,
    /// For which of its sub-agents; empty if for none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub subagent: String,
    /// The id it has in logs and events; what its caller chose stands before the last dot.
    pub call_id: String,
    /// The plugin that was asked for, whether there is such a one or not.
    pub plugin: String,
    /// The action that was asked for.
    pub action: String,
    /// With what.
    #[serde(flatten)]
    pub arguments: Arguments,
    /// `ok`, `tool_error`, `refused`, `host_fault` or `cancelled`.
    pub outcome: &'static str,
    /// Why, if it is not `ok`.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub reason: &'static str,
    /// What the guard did.
    #[serde(skip_serializing_if = "Verdicts::is_empty")]
    pub guard: Verdicts,
    /// SHA-256 of the plugin's answer as it came; empty if none came.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub answer_sha256: String,
    /// Digest of the plugin's program or directory, if it is known.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub plugin_sha256: String,
    /// From its arrival to its answer.
    pub duration_us: u64,
}

/// Something that was done to plugins or to the supervisor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Operation {
    /// Who asked for it; absent if the supervisor did it by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub who: Option<Who>,
    /// What was asked for, such as `stop`.
    pub verb: String,
    /// What it is about, such as a plugin's name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub subject: String,
    /// `done`, `denied` or `failed`.
    pub outcome: &'static str,
    /// Why not.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// How long it took.
    pub duration_us: u64,
}

/// What a record says.
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
    /// A file is deleted next, because there are more than are kept.
    Deleted {
        /// Which.
        file: String,
        /// The last record that is gone with it; absent if that cannot be told.
        #[serde(skip_serializing_if = "Option::is_none")]
        through: Option<u64>,
        /// The hash of that record.
        #[serde(skip_serializing_if = "Option::is_none")]
        through_hash: Option<String>,
    },
    /// The end of the file was not a whole line, as after a crash, and was cut off.
    Recovered {
        /// How many bytes.
        cut_bytes: u64,
        /// Their SHA-256.
        cut_sha256: String,
    },
    /// Records that are missing here.
    Lost {
        /// How many.
        count: u64,
    },
    /// A supervisor begins to write.
    Started {
        /// Its version.
        version: String,
        /// Its process id.
        pid: u32,
    },
    /// It writes no more. Where this is missing it did not end in order.
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
    /// A call, with its texts within their bounds.
    #[must_use]
    pub fn call(mut call: Box<Call>) -> Self {
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
            bound(text, MAX_TEXT_BYTES);
        }
        let guard = &mut call.guard;
        guard.neutralised.truncate(MAX_ENTRIES);
        for list in [&mut guard.flags, &mut guard.tainted_by] {
            list.truncate(MAX_ENTRIES);
        }
        let families = guard.neutralised.iter_mut().map(|(family, _)| family);
        let entries = guard.flags.iter_mut().chain(&mut guard.tainted_by).chain(families);
        entries.for_each(|entry| bound(entry, MAX_ENTRY_BYTES));
        Self::Call(call)
    }

    /// An operation, with its texts within their bounds.
    #[must_use]
    pub fn operation(mut operation: Operation) -> Self {
        for text in [&mut operation.verb, &mut operation.subject, &mut operation.reason] {
            bound(text, MAX_TEXT_BYTES);
        }
        Self::Operation(Box::new(operation))
    }
}

fn bound(text: &mut String, bytes: usize) {
    if text.len() > bytes {
        *text = cut(text, bytes);
    }
}

/// The beginning of a text that has at most so many bytes.
fn cut(text: &str, bytes: usize) -> String {
    text[..text.floor_char_boundary(bytes)].to_owned()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde asks for")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

fn as_object<S: serde::Serializer>(pairs: &[(String, u64)], to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(pairs.iter().map(|(name, count)| (name, count)))
}

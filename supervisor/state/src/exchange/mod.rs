//! Export and import of a store in the founding layout: `sessions/<id>.yaml`, `memory/memories.yaml` and
//! `plugins/<id>/state.yaml`; `approvals/rules.yaml`, `media/<id>.yaml`, `schedule/occurrences.yaml` and
//! `notifications/notifications.yaml` beside it.
//!
//! | file | contents | a record is |
//! |---|---|---|
//! | `sessions/<id>.yaml` | a map: `id`, `sender`, `channel`, …, `messages` last | the session |
//! | `memory/memories.yaml` | a list of maps: `id`, `content`, `tags`, `created_at`, … | a memory |
//! | `approvals/rules.yaml` | a map of rules' ids and their JSON | a rule |
//! | `media/<session>.yaml` | a map of pieces' names (`TIME.SHA256/NUMBER`) and their bytes, as `!!binary` | a piece |
//! | `schedule/occurrences.yaml` | a map of jobs with planned times, and their JSON | a finished occurrence |
//! | `schedule/proposals.yaml` | a map of jobs with digests, and their JSON | the operator's decision about a proposed job |
//! | `notifications/notifications.yaml` | a map of ids, and their JSON | a notification |
//! | `shadow/state.yaml` | a map of what the agent keeps of persons, ghosts and the log, by its keys | a key |
//! | `plugins/<id>/state.yaml` | a map of keys and texts, bytes that are no text as `!!binary` | a key |
//!
//! **Export** ([`export`]). The same store gives the same bytes. Only the open layers are exported, and
//! nothing that is empty gets a file. Records are read page by page and sent in chunks while the next ones
//! are read.
//!
//! **Import** ([`Importer`]). A file that is not valid YAML gives one refusal, with line and column, and
//! changes nothing. Otherwise its records are imported one by one, and an invalid one is refused alone.
//! Existing records are never changed: if the stored record is the same, the result is `unchanged`; if it
//! differs, the import refuses the new one. So a second import changes nothing, and neither does one into a
//! store that has changed since: a session that has further messages by now, or was compacted, already has
//! everything.
//!
//! Files of other programs may hold less, and more:
//!
//! * An id that is no ULID becomes one, made of the time of creation and a digest of the id (of a memory: of
//!   its content too); that of a session is stored in its metadata as `imported_id`. Keys and plugin ids stay
//!   unchanged.
//! * Messages without numbers are numbered; without times, they get their session's `created_at`. A `summary`
//!   becomes the first message, of the system. `tool_call_id` becomes `tool_results`. The spellings
//!   `toolcalls` and `toolcallid` are read too.
//! * Sender and channel come from the metadata (`sender`, `channel_id`, …), the channel else from an id of
//!   the form `channel:conversation`, and are `import` otherwise. A session without a state is idle.
//! * A memory without a time gets the current one. A workflow is a memory with `trigger` and `steps`, with or
//!   without `id` and `content`, or a memory tagged `workflow` whose content is the text of one, as YAML,
//!   JSON or the lines that OpenTalon wrote; a memory with that tag and other content gets the tag
//!   `workflow-text` instead. A workflow that is recorded twice is stored once.
//! * Unknown scalar fields of a session become metadata. What the store cannot hold (a field that is a list
//!   or a map, metadata beyond the limits, files of messages, other fields of messages and memories) is left
//!   out, and reported as refused: once for each name, with the position of the first and their number. The
//!   record itself is imported.
//! * A message that cannot be imported refuses its whole session: a log with a gap would have another
//!   meaning.
//!
//! The counts of a report are records and omitted fields, so there are as many refusals as `refused` says.

mod approval_rules;
mod entries;
mod excerpt;
mod export;
mod fields;
mod ids;
mod import;
mod layout;
pub mod limits;
mod media;
mod memories;
mod messages;
mod node;
mod notifications;
mod occurrences;
mod omitted;
mod proposals;
mod read;
mod record_writer;
mod scalar;
mod sessions;
mod shadow;
mod source;
#[cfg(test)]
mod tests;
mod workflow;

pub use export::{ExportError, export};
pub use import::{ImportError, Importer};

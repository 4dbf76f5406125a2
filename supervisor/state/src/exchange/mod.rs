//! The founding layout, out of a store and into it: `sessions/<id>.yaml`, `memory/memories.yaml` and
//! `plugins/<id>/state.yaml`.
//!
//! | file | what it holds | one record is |
//! |---|---|---|
//! | `sessions/<id>.yaml` | a map: `id`, `sender`, `channel`, …, `messages` last | the session |
//! | `memory/memories.yaml` | a list of maps: `id`, `content`, `tags`, `created_at`, … | a memory |
//! | `plugins/<id>/state.yaml` | a map of keys and texts, bytes that are no text as `!!binary` | a key |
//!
//! **Out** ([`export`]). The same store gives the same bytes. Files of the layers that are open and of no others; nothing
//! that is empty has a file. Records are read page by page and sent in chunks while the next ones are read.
//!
//! **In** ([`Importer`]). A file that cannot be read as YAML gives one refusal, with line and column, and changes nothing.
//! Otherwise its records are taken one by one, and each that cannot be is refused alone. Nothing that is in the store is
//! ever changed: what is there already, the same, is `unchanged`; what is there otherwise is refused and stays. So a second
//! import changes nothing, and neither does one into a store that has gone on since: a session that has further messages by
//! now, or was compacted, has everything already.
//!
//! What comes from elsewhere may say less, and more:
//!
//! * An id that is no ULID becomes one, of the time of creation and a digest of the id (of a memory: of its content too);
//!   the session's own is kept in its metadata as `imported_id`. Keys and plugin ids stay as they are.
//! * Messages without numbers are numbered; without times, they have their session's `created_at`. A `summary` is the first
//!   message, of the system. `tool_call_id` becomes `tool_results`. The spellings `toolcalls` and `toolcallid` are read too.
//! * Sender and channel come from the metadata (`sender`, `channel_id`, …), the channel else from an id of the form
//!   `channel:conversation`, and are `import` otherwise. A session that does not say its state is idle.
//! * A memory without a time is new. A workflow is one with `trigger` and `steps`, with or without `id` and
//!   `content`, or a memory tagged `workflow` whose content is the text of one, as YAML, JSON or the lines that OpenTalon
//!   wrote; a memory with that tag and another content gets the tag `workflow-text` instead. Recorded twice, it is one.
//! * Unknown scalar fields of a session become metadata. What has no place (a field that is a list or a map, metadata
//!   beyond the limits, files of messages, other fields of messages and memories) is left out, and reported as refused:
//!   once for each name of a part, with where the first stood and how many there are. The record itself is taken.
//! * A message that cannot be taken keeps its whole session out: a log with a hole would say something else than was said.
//!
//! The counts of a report are records and parts that were left out, so there are as many refusals as `refused` says.

mod emit;
mod entries;
mod export;
mod ids;
mod import;
mod keep;
mod layout;
mod left_out;
pub mod limits;
mod memories;
mod messages;
mod node;
mod read;
mod scalar;
mod sessions;
mod shown;
mod source;
#[cfg(test)]
mod tests;
mod workflow;

pub use export::{ExportError, export};
pub use import::{ImportStopped, Importer};

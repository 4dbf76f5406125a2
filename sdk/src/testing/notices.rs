//! A plugin's notices, for tests.

use talon_proto::notices as wire;
use talon_proto::notices::notice::Kind;
use tonic::{Status, Streaming};

use crate::progress::Progress;
use crate::script_status::ScriptStatus;

/// One notice of a plugin.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Notice {
    /// By [`Context::progress`](crate::Context::progress).
    Progress(Progress),
    /// By [`Context::output`](crate::Context::output).
    Output {
        /// Which call.
        call_id: String,
        /// What it put out.
        lines: Vec<String>,
        /// How many lines before these were left out.
        left_out_lines: u64,
    },
    /// By [`Notifier::capabilities_changed`](crate::Notifier::capabilities_changed).
    CapabilitiesChanged,
    /// By [`Notifier::lists_changed`](crate::Notifier::lists_changed).
    ListsChanged {
        /// Those of resources.
        resources: bool,
        /// Those of prompts.
        prompts: bool,
    },
    /// By [`Notifier::resource_updated`](crate::Notifier::resource_updated): the addresses.
    ResourcesUpdated(Vec<String>),
    /// By [`Notifier::script`](crate::Notifier::script).
    Script(ScriptStatus),
    /// By [`Notifier::script_removed`](crate::Notifier::script_removed): the name.
    ScriptRemoved(String),
}

/// A plugin's notices, in order; see [`Host::listen`](super::Host::listen).
#[derive(Debug)]
pub struct Notices {
    stream: Streaming<wire::Notice>,
}

impl Notices {
    pub(super) fn new(stream: Streaming<wire::Notice>) -> Self {
        Self { stream }
    }

    /// Waits for the next notice; `None` once the plugin ends, or another client listens. There is no
    /// timeout: set one yourself, or rely on the test runner's.
    ///
    /// # Errors
    /// The gRPC status.
    pub async fn next(&mut self) -> Result<Option<Notice>, Status> {
        while let Some(notice) = self.stream.message().await? {
            match notice.kind {
                Some(Kind::Progress(progress)) => return Ok(Some(Notice::Progress(progress.into()))),
                Some(Kind::Output(wire::CallOutput { call_id, lines, left_out_lines })) => {
                    return Ok(Some(Notice::Output { call_id, lines, left_out_lines }));
                }
                Some(Kind::CapabilitiesChanged(_)) => return Ok(Some(Notice::CapabilitiesChanged)),
                Some(Kind::ListsChanged(wire::ListsChanged { resources, prompts })) => {
                    return Ok(Some(Notice::ListsChanged { resources, prompts }));
                }
                Some(Kind::ResourcesUpdated(updated)) => {
                    return Ok(Some(Notice::ResourcesUpdated(updated.uris)));
                }
                Some(Kind::Script(status)) if status.removed => {
                    return Ok(Some(Notice::ScriptRemoved(status.name)));
                }
                Some(Kind::Script(status)) => return Ok(Some(Notice::Script(status.into()))),
                None => {}
            }
        }
        Ok(None)
    }
}

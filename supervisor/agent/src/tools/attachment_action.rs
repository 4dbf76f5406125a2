//! The agent's own action that reads files which a person sent.

use talon_client::tool::tool_name;
use talon_proto::plugin::Action;

use super::turn_actions::{TURN_PLUGIN, parameter};

/// The action of [`TURN_PLUGIN`] that reads a file.
pub const READ_ATTACHMENT_ACTION: &str = "read_attachment";

/// The name by which models call it.
#[must_use]
pub fn read_attachment_tool() -> String {
    tool_name(TURN_PLUGIN, READ_ATTACHMENT_ACTION)
}

/// The action, for sessions that have files.
#[must_use]
pub fn read_attachment_action() -> Action {
    Action {
        name: READ_ATTACHMENT_ACTION.to_owned(),
        description:
            "Reads text that the user sent as a file, page by page. Without an id it lists the files."
                .to_owned(),
        parameters: vec![
            parameter("id", "string", false, "As in the note: file-…"),
            parameter("offset", "integer", false, "In bytes"),
        ],
        read_only: true,
        destructive: Some(false),
        always_include: true,
        ..Action::default()
    }
}

//! Whether an action is a tool, by the roles that it declares (`Action.roles`).

use crate::plugin::Action;

/// An action that declares this among its roles is a tool as well.
pub const TOOL: &str = "tool";

/// Whether an action is a tool. One that declares roles, and not [`TOOL`] among them, only plays roles: models neither see nor
/// call it.
#[must_use]
pub fn is_tool(action: &Action) -> bool {
    action.roles.is_empty() || action.roles.iter().any(|role| role == TOOL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_action_is_a_tool_unless_it_declares_roles_alone() {
        for (roles, tool) in [
            (&[] as &[&str], true),
            (&["tool"], true),
            (&["request_hook", "tool"], true),
            (&["request_hook"], false),
            (&["a role of a later version"], false),
        ] {
            let roles = roles.iter().map(|role| (*role).to_owned()).collect();
            assert_eq!(is_tool(&Action { roles, ..Action::default() }), tool);
        }
    }
}

//! Whether an action is a tool, by the roles that it declares (`Action.roles`), and whether it proposes a job.

use crate::plugin::{Action, JobProposal};

/// An action that declares this among its roles is a tool as well.
pub const TOOL: &str = "tool";

/// Whether an action is a tool. One that declares roles, and not [`TOOL`] among them, only plays roles: models neither see nor
/// call it.
#[must_use]
pub fn is_tool(action: &Action) -> bool {
    action.roles.is_empty() || action.roles.iter().any(|role| role == TOOL)
}

/// The role in which jobs call actions.
pub const SCHEDULED_TASK: &str = "scheduled_task";

/// Whether an action of the plugin with this configured name proposes a job of this id, in the role that the job calls it in. What
/// the operator accepted may be called as long as this is so.
#[must_use]
pub fn proposes(action: &Action, plugin: &str, job: &str) -> bool {
    let name = job.strip_prefix(plugin).and_then(|rest| rest.strip_prefix('.'));
    let is_it = |proposal: &JobProposal| {
        let own = if proposal.name.is_empty() { &action.name } else { &proposal.name };
        name == Some(own.as_str())
    };
    action.roles.iter().any(|role| role == SCHEDULED_TASK) && action.proposed_jobs.iter().any(is_it)
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: EXT-162
    #[test]
    fn an_action_proposes_a_job_by_its_plugins_name_and_its_own() {
        let job = |name: &str| JobProposal { name: name.to_owned(), ..JobProposal::default() };
        let action = |roles: &[&str], proposed_jobs: Vec<JobProposal>| Action {
            name: "tidy".to_owned(),
            roles: roles.iter().map(|role| (*role).to_owned()).collect(),
            proposed_jobs,
            ..Action::default()
        };
        let both = action(&[SCHEDULED_TASK], vec![job(""), job("weekly")]);
        assert!(proposes(&both, "files", "files.tidy") && proposes(&both, "files", "files.weekly"));
        for (plugin, id) in [
            ("files", "files.other"),
            ("other", "files.tidy"),
            ("files", "tidy"),
            ("files", "filestidy"),
            ("", "files.tidy"),
        ] {
            assert!(!proposes(&both, plugin, id), "{plugin} {id}");
        }
        assert!(!proposes(&action(&[], vec![job("")]), "files", "files.tidy"));
        assert!(!proposes(&action(&[SCHEDULED_TASK], Vec::new()), "files", "files.tidy"));
    }

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

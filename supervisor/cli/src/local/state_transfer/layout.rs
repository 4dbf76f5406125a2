//! The directory layout: `sessions/<id>.yaml`, `memory/memories.yaml`, `approvals/rules.yaml`,
//! `media/<id>.yaml`, `schedule/occurrences.yaml`, `schedule/proposals.yaml`,
//! `notifications/notifications.yaml`, `shadow/state.yaml`, `plugins/<id>/state.yaml`.
//!
//! When reading, the id in a file name may be another program's; `talon-state` decides what to do with it. A
//! file is written only if its id is a ULID in canonical form, as all our ids are.

use talon_plugin_config::PluginName;
use ulid::Ulid;

use crate::local::state::part::StatePart;

/// The directory of the sessions' files.
pub(super) const SESSIONS: &str = "sessions";
/// The extension of the sessions' files.
pub(super) const YAML: &str = ".yaml";
/// The directory of the memories.
pub(super) const MEMORY: &str = "memory";
/// The file with all memories.
pub(super) const MEMORIES: &str = "memories.yaml";
/// The directory of the approval rules.
pub(super) const APPROVALS: &str = "approvals";
/// The file with all approval rules.
pub(super) const RULES: &str = "rules.yaml";
/// The directory of the files with sessions' images and files.
pub(super) const MEDIA: &str = "media";
/// The directory of what jobs did.
pub(super) const SCHEDULE: &str = "schedule";
/// The file with all finished occurrences of jobs.
pub(super) const OCCURRENCES: &str = "occurrences.yaml";
/// The file with the decisions about proposed jobs.
pub(super) const PROPOSALS: &str = "proposals.yaml";
/// The directory of what people are told.
pub(super) const NOTIFICATIONS: &str = "notifications";
/// The file with all notifications.
pub(super) const ALL_NOTIFICATIONS: &str = "notifications.yaml";
/// The directory of what the shadow loop keeps.
pub(super) const SHADOW: &str = "shadow";
/// The directory that has a subdirectory for each plugin.
pub(super) const PLUGINS: &str = "plugins";
/// The file with a plugin's key-values.
pub(super) const STATE: &str = "state.yaml";

/// The part that a path belongs to, if it may be written: this keeps a malicious service from creating other
/// files.
pub(super) fn part(path: &str) -> Option<StatePart> {
    let words: Vec<&str> = path.split('/').collect();
    match words.as_slice() {
        [SESSIONS | MEDIA, file] => {
            let id = file.strip_suffix(YAML)?;
            // A ULID has several spellings; another spelling would be a different file.
            let same = |ulid: Ulid| ulid.to_string() == id;
            Ulid::from_string(id).is_ok_and(same).then_some(StatePart::Agent)
        }
        [MEMORY, MEMORIES]
        | [APPROVALS, RULES]
        | [SCHEDULE, OCCURRENCES | PROPOSALS]
        | [NOTIFICATIONS, ALL_NOTIFICATIONS]
        | [SHADOW, STATE] => Some(StatePart::Agent),
        [PLUGINS, plugin, STATE] => PluginName::new(plugin).is_ok().then_some(StatePart::Plugins),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_the_layout_and_no_others_are_written() {
        for (path, whose) in [
            ("sessions/01KB3Q6T9VXJ6A8W5ZC2M4N7PR.yaml", StatePart::Agent),
            ("memory/memories.yaml", StatePart::Agent),
            ("approvals/rules.yaml", StatePart::Agent),
            ("media/01KB3Q6T9VXJ6A8W5ZC2M4N7PR.yaml", StatePart::Agent),
            ("schedule/occurrences.yaml", StatePart::Agent),
            ("schedule/proposals.yaml", StatePart::Agent),
            ("notifications/notifications.yaml", StatePart::Agent),
            ("shadow/state.yaml", StatePart::Agent),
            ("plugins/notes/state.yaml", StatePart::Plugins),
        ] {
            assert_eq!(part(path), Some(whose), "{path}");
        }
        for bad in [
            "",
            "/etc/passwd",
            "../x",
            "sessions/../x.yaml",
            "sessions/01kb3q6t9vxj6a8w5zc2m4n7pr.yaml",
            "sessions/01KB3Q6T9VXJ6A8W5ZC2M4N7PR",
            "sessions/x.yaml",
            "media/x.yaml",
            "./memory/memories.yaml",
            "memory//memories.yaml",
            "memory/memories.yaml/",
            "memory/other.yaml",
            "plugins/../state.yaml",
            "plugins/Notes/state.yaml",
            "plugins/no\0tes/state.yaml",
            "plugins/notes/other.yaml",
            "plugins/notes/x/state.yaml",
        ] {
            assert_eq!(part(bad), None, "{bad:?}");
        }
    }
}

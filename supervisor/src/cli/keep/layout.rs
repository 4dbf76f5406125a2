//! The founding layout: `sessions/<id>.yaml`, `memory/memories.yaml`, `plugins/<id>/state.yaml`.
//!
//! A file that is read may be called by another program's id; `talon-state` says what becomes of it. One is written only
//! if its id is a ULID in canonical spelling, as all ids of ours are.

use talon_plugin::PluginName;
use ulid::Ulid;

use super::super::state::reach::Part;

/// Where each session has a file.
pub(super) const SESSIONS: &str = "sessions";
/// What the files of sessions end with.
pub(super) const YAML: &str = ".yaml";
/// Where memories are.
pub(super) const MEMORY: &str = "memory";
/// The file of all memories.
pub(super) const MEMORIES: &str = "memories.yaml";
/// Where each plugin has a directory.
pub(super) const PLUGINS: &str = "plugins";
/// The file of a plugin's key-values.
pub(super) const STATE: &str = "state.yaml";

/// Whose file a path is, if it is one that is written: nothing else that somebody sends becomes a file.
pub(super) fn part(path: &str) -> Option<Part> {
    let words: Vec<&str> = path.split('/').collect();
    match words.as_slice() {
        [SESSIONS, file] => {
            let id = file.strip_suffix(YAML)?;
            // There are other spellings of the same number, and one of them would be another file.
            let same = |ulid: Ulid| ulid.to_string() == id;
            Ulid::from_string(id).is_ok_and(same).then_some(Part::Agent)
        }
        [MEMORY, MEMORIES] => Some(Part::Agent),
        [PLUGINS, plugin, STATE] => PluginName::new(plugin).is_ok().then_some(Part::Plugins),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_the_layout_and_no_others_are_written() {
        for (path, whose) in [
            ("sessions/01KB3Q6T9VXJ6A8W5ZC2M4N7PR.yaml", Part::Agent),
            ("memory/memories.yaml", Part::Agent),
            ("plugins/notes/state.yaml", Part::Plugins),
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

//! The metadata of a session: its open turn, its title, and what may be called in it.

use talon_agent_settings::Sampling;
use talon_store::Session;

/// The metadata key for the number of a turn without an end.
pub(crate) const OPEN_TURN: &str = "open_turn";
/// The metadata key of a turn that goes on although nobody follows it.
pub(super) const DETACHED_TURN: &str = "detached_turn";
/// The metadata key for the title: the beginning of the first message.
pub(crate) const TITLE: &str = "title";
/// The metadata key for what may be called in the session, as a JSON list.
pub(crate) const TOOLS: &str = "tools";
/// The metadata key of a session whose text only models on this machine may see.
pub(crate) const LOCAL_ONLY: &str = "local_only";

/// The metadata key of a session whose channels show arguments and results of calls.
pub(crate) const VERBOSE: &str = "verbose";
/// The metadata key of a session without a message.
pub(crate) const CREATED: &str = "created";
/// The metadata key of its sender's main session.
pub(crate) const MAIN: &str = "main";

/// The metadata key for how its models choose their words, as JSON.
pub(crate) const SAMPLING: &str = "sampling";

/// The metadata key of a session in which a turn was for models on this machine alone.
pub(super) const LOCAL_TURNS: &str = "local_turns";

/// Whether only models on this machine may see what was said in a session, or in a part of it.
pub(super) fn said_here(session: &Session) -> bool {
    session.metadata.contains_key(LOCAL_ONLY) || session.metadata.contains_key(LOCAL_TURNS)
}

/// All keys of the agent's own. Clients see and set none of them.
pub(crate) const OWN_KEYS: [&str; 11] = [
    CREATED,
    OPEN_TURN,
    DETACHED_TURN,
    TITLE,
    TOOLS,
    LOCAL_ONLY,
    LOCAL_TURNS,
    SAMPLING,
    VERBOSE,
    MAIN,
    crate::plan::METADATA_KEY,
];

/// The longest title: one line of a list.
const MAX_TITLE_CHARS: usize = 80;

/// What may be called in a session; empty for everything that its sender may call.
pub(crate) fn tools_of(session: &Session) -> Vec<String> {
    session.metadata.get(TOOLS).and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default()
}

/// How models choose their words in a session.
pub(crate) fn sampling_of(session: &Session) -> Sampling {
    session.metadata.get(SAMPLING).and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default()
}

/// The beginning of a message, as one line.
pub(super) fn title(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut title: String = line.chars().filter(|c| !c.is_control()).take(MAX_TITLE_CHARS).collect();
    if title.chars().count() == MAX_TITLE_CHARS {
        title.push('…');
    }
    title
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_one_short_line() {
        assert_eq!(title("  What is\n\n new?\u{7} "), "What is new?");
        let long = title(&"ä ".repeat(MAX_TITLE_CHARS));
        assert!(long.ends_with('…') && long.chars().count() == MAX_TITLE_CHARS + 1, "{long}");
        assert_eq!(title(""), "");
    }
}

//! The metadata of a session: its open turn, its title, and what may be called in it.

use talon_store::Session;

/// The metadata key for the number of a turn without an end.
pub(crate) const OPEN_TURN: &str = "open_turn";
/// The metadata key for the title: the beginning of the first message.
pub(crate) const TITLE: &str = "title";
/// The metadata key for what may be called in the session, as a JSON list.
pub(crate) const TOOLS: &str = "tools";
/// The metadata key of a session whose text only models on this machine may see.
pub(crate) const LOCAL_ONLY: &str = "local_only";

/// The longest title: one line of a list.
const MAX_TITLE_CHARS: usize = 80;

/// What may be called in a session; empty for everything that its sender may call.
pub(crate) fn tools_of(session: &Session) -> Vec<String> {
    session.metadata.get(TOOLS).and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default()
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

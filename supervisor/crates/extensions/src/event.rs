//! The kinds of events that people are notified of.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talon_sanitize::nearest;

use crate::limits::MAX_NAME_CHARS;

/// How much an event matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EventSeverity {
    /// Good to know.
    Info,
    /// Somebody should look at it.
    Warning,
    /// Something does not work.
    Critical,
}

macro_rules! kinds {
    ($($variant:ident = $word:literal, $severity:ident, [$($field:literal),*], $when:literal;)+) => {
        /// What an event is about.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        pub enum EventKind {
            $(#[doc = $when] #[serde(rename = $word)] $variant,)+
        }

        impl EventKind {
            /// All kinds.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The name on the wire and in the configuration.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }

            /// How much such events matter.
            #[must_use]
            pub const fn severity(self) -> EventSeverity {
                match self { $(Self::$variant => EventSeverity::$severity,)+ }
            }

            /// The names of the fields that such events have.
            #[must_use]
            pub const fn fields(self) -> &'static [&'static str] {
                match self { $(Self::$variant => &[$($field),*],)+ }
            }

            /// When it happens, in a sentence.
            #[must_use]
            pub const fn when(self) -> &'static str {
                match self { $(Self::$variant => $when,)+ }
            }
        }
    };
}

kinds! {
    PluginFailed = "plugin.failed", Critical, ["plugin", "reason"], "A plugin failed, and is not started again by itself.";
    PluginRestarting = "plugin.restarting", Warning, ["plugin", "reason", "restarts"], "A plugin was restarted too often within a short time.";
    PluginQuarantined = "plugin.quarantined", Critical, ["plugin", "reason"], "A plugin is in quarantine: it kept sending control syntax.";
    PluginReady = "plugin.ready", Info, ["plugin"], "A plugin works again.";
    ScriptRefused = "script.refused", Warning, ["plugin", "script", "sha256", "reason"], "A saved script does not load; the version before it runs on, or none.";
    ScriptLoaded = "script.loaded", Info, ["plugin", "script", "sha256"], "A script runs again as its file is, after one that was refused.";
    ApprovalWaiting = "approval.waiting", Warning, ["approval", "session", "sender", "plugin", "action"], "A call waits for a person's decision.";
    BudgetWarning = "budget.warning", Warning, ["budget", "spent", "limit", "session", "sender"], "Most of a budget is spent.";
    BudgetExceeded = "budget.exceeded", Critical, ["budget", "spent", "limit", "session", "sender"], "A budget is spent.";
    TaskFailed = "task.failed", Warning, ["subagent", "session", "sender", "reason"], "A sub-agent's task failed.";
    StateUnavailable = "state.unavailable", Critical, ["service", "reason"], "The store of sessions or of plugins does not answer.";
    StateAvailable = "state.available", Info, ["service"], "The store answers again.";
    ConfigRefused = "config.refused", Warning, ["reason"], "A changed configuration was refused; the old one holds.";
    ScheduleFailed = "schedule.failed", Warning, ["job", "run", "reason"], "A run of a job failed, and is not tried again.";
    ScheduleProposed = "schedule.proposed", Info, ["job", "plugin", "action", "when", "hash"], "A plugin proposes a job, which runs once an operator accepts it.";
    ShadowGhost = "shadow.ghost", Info, ["ghost", "sender", "trigger", "confidence"], "The shadow loop has a proposal, which waits for that person.";
    Answer = "answer", Info, ["job", "run", "session", "sender"], "The answer of a job that names the entry with `deliver`.";
    SourceEvent = "source.event", Info, ["plugin", "topic", "event_id"], "A plugin tells what happened. It has the fields of the plugin, too; entries name the plugin and the fields.";
    EventsGap = "events.gap", Warning, ["first", "last"], "Events were lost at a limit.";
    Test = "test", Info, ["entry"], "Somebody tries an entry.";
}

impl EventKind {
    /// The part before the dot, by which `plugin.*` selects.
    #[must_use]
    pub fn family(self) -> &'static str {
        self.as_str().split('.').next().unwrap_or_default()
    }

    /// The kinds that a word of `on` selects: one kind, or all of `FAMILY.*`.
    ///
    /// # Errors
    /// [`UnknownKindError`], if there is none.
    pub fn selected(word: &str) -> Result<Vec<Self>, UnknownKindError> {
        let family = word.strip_suffix(".*");
        let chosen = |kind: &&Self| match family {
            Some(family) => kind.family() == family && kind.as_str() != family,
            None => kind.as_str() == word,
        };
        let kinds: Vec<Self> = Self::ALL.iter().filter(chosen).copied().collect();
        if kinds.is_empty() { Err(UnknownKindError::new(word)) } else { Ok(kinds) }
    }

    /// Whether a word of `on` selects it. A word that selects nothing does not.
    #[must_use]
    pub fn is_selected_by(self, word: &str) -> bool {
        match word.strip_suffix(".*") {
            Some(family) => self.family() == family && self.as_str() != family,
            None => self.as_str() == word,
        }
    }

    /// The names of all fields, each with an empty value: what a template finds where an event has no such field.
    #[must_use]
    pub fn empty_fields() -> BTreeMap<String, String> {
        let names = Self::ALL.iter().flat_map(|kind| kind.fields());
        names.map(|name| ((*name).to_owned(), String::new())).collect()
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A word that names no kind of event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no kind of event {word:?}; {help}")]
pub struct UnknownKindError {
    /// The word, bounded.
    pub word: String,
    /// The nearest ones, or all.
    pub help: String,
}

impl UnknownKindError {
    fn new(word: &str) -> Self {
        let families: Vec<String> =
            EventKind::ALL.iter().map(|kind| format!("{}.*", kind.family())).collect();
        let names = || EventKind::ALL.iter().map(|kind| kind.as_str());
        let candidates = names().chain(families.iter().map(String::as_str));
        Self {
            word: word.chars().take(MAX_NAME_CHARS).collect(),
            help: match nearest(word, candidates).first() {
                Some(near) => format!("did you mean {near}?"),
                None => format!("there are: {}", names().collect::<Vec<_>>().join(", ")),
            },
        }
    }
}

impl FromStr for EventKind {
    type Err = UnknownKindError;

    fn from_str(word: &str) -> Result<Self, UnknownKindError> {
        Self::ALL
            .iter()
            .find(|kind| kind.as_str() == word)
            .copied()
            .ok_or_else(|| UnknownKindError::new(word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_selects_one_kind_or_a_family() {
        for kind in EventKind::ALL {
            assert_eq!(EventKind::selected(kind.as_str()), Ok(vec![*kind]));
            assert_eq!(kind.as_str().parse(), Ok(*kind));
            assert_eq!(serde_json::to_value(kind).expect("a word"), kind.as_str());
            for word in ["plugin.*", "budget.*", "answer", "x", "*", ".*"] {
                let selected = EventKind::selected(word).is_ok_and(|kinds| kinds.contains(kind));
                assert_eq!(kind.is_selected_by(word), selected, "{kind} {word}");
            }
        }
        assert_eq!(EventKind::selected("plugin.*").expect("a family").len(), 4);
        for word in ["plugin", "*", "", "answer.*", "plugin.*.*"] {
            assert!(EventKind::selected(word).is_err(), "{word}");
        }
        let near = "plugin.faild".parse::<EventKind>().expect_err("unknown").to_string();
        assert!(near.ends_with("did you mean plugin.failed?"), "{near}");
        let long = "x".repeat(10_000).parse::<EventKind>().expect_err("unknown").to_string();
        assert!(long.len() < 600 && long.contains("approval.waiting"), "{long}");
    }
}

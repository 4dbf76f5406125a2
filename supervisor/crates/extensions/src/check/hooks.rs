//! Checks of filters and hooks.

use super::findings::{Environment, Findings, nearest_of, shown};
use crate::contract::is_metadata_key;
use crate::limits::{MAX_METADATA_KEYS, MAX_SUBAGENTS};
use crate::{Effect, HookEntry, MAX_ENTRIES, Role};

pub(super) fn check(found: &mut Findings, role: Role, hooks: &[HookEntry], around: Environment<'_>) {
    found.check_count(role, hooks.len(), MAX_ENTRIES, "remove some: each delays every message");
    for (index, hook) in hooks.iter().enumerate() {
        let mut of = found.of(role, index);
        if role == Role::Filter && hook.may(Effect::Replace) {
            let help = "move the entry to request_hooks, or remove replace";
            of.problem("may", "a filter replaces nothing", help);
        }
        if role != Role::ResponseHook && hook.stream.is_some() {
            let help = "remove it, or move the entry to response_hooks";
            of.problem("stream", "only the text of answers is streamed", help);
        }
        of.check_deadline(hook.deadline);
        if hook.metadata.len() > MAX_METADATA_KEYS {
            let message = format!("lists {} keys, and {MAX_METADATA_KEYS} are the most", hook.metadata.len());
            of.problem("metadata", message, "remove some");
        }
        if hook.metadata.iter().any(|key| !is_metadata_key(key)) {
            let help = "use 1 to 64 characters of a-z, A-Z, 0-9, '_', '-' and '.': each key by its name";
            of.problem("metadata", "lists what is no key", help);
        }
        if hook.subagents.len() > MAX_SUBAGENTS {
            let message =
                format!("lists {} sub-agents, and {MAX_SUBAGENTS} are the most", hook.subagents.len());
            of.problem("subagents", message, "remove some");
        }
        for name in hook.subagents.iter().filter(|name| !around.subagents.contains(&name.as_str())) {
            let message = format!("there is no sub-agent {}", shown(name));
            of.problem("subagents", message, nearest_of(name, around.subagents));
        }
    }
}

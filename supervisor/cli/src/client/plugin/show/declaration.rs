//! What a plugin declares: its actions, and its texts about itself. What differs from the approved
//! declaration is marked and shown in full.

use anstyle::Style;
use talon_proto::plugin::{Action, PluginCapabilities};
use talon_sanitize::{Raw, sanitized};

use crate::output::Output;
use crate::table::{Cell, Table};

/// Bytes of a changed action's schema, and of each changed text, in the output for people. A longer one is
/// marked, and complete with `--output json`.
const MAX_TEXT_SHOWN: usize = 2 << 10;
/// How many context arguments of a changed action are listed; the others are counted.
const MAX_CONTEXT_SHOWN: usize = 32;

/// A schema or a plugin's text in a table, cut to the limit.
fn bounded(text: &str) -> Cell {
    let start = Raw::from(text).line_within(MAX_TEXT_SHOWN);
    match text.len() {
        ..=MAX_TEXT_SHOWN => start.into(),
        len => {
            sanitized!("{} ({} bytes in all: see `--output json` of `talon plugin show`)", start, len).into()
        }
    }
}

/// The actions with their parameters, for `plugin show` and `exec --list`; actions that differ from what was
/// approved are marked and shown in full.
pub(crate) fn actions(capabilities: &PluginCapabilities, changed: &[String], out: &mut Output) {
    let mut table = Table::new(&["ACTION", "TYPE", "", "DESCRIPTION"]);
    for action in &capabilities.actions {
        let is_changed = changed.contains(&action.name);
        let more = |table: &mut Table, what: &str, value: Cell| {
            table.row(vec![what.into(), "".into(), "".into(), value]);
        };
        table.row(vec![
            Cell::styled(action.name.as_str(), Style::new().bold()),
            "".into(),
            flags(action, is_changed).into(),
            action.description.as_str().into(),
        ]);
        for parameter in &action.parameters {
            let kind = if parameter.r#type.is_empty() { "string" } else { &parameter.r#type };
            table.row(vec![
                format!("  {}", parameter.name).into(),
                kind.into(),
                if parameter.required { "required".into() } else { "".into() },
                parameter.description.as_str().into(),
            ]);
            if is_changed && !parameter.schema.is_empty() {
                more(&mut table, "    (schema)", bounded(&parameter.schema));
            }
        }
        if is_changed && !action.output_schema.is_empty() {
            more(&mut table, "  (output schema)", bounded(&action.output_schema));
        }
        if is_changed && !action.inject_context_args.is_empty() {
            more(&mut table, "  (context)", context(&action.inject_context_args));
        }
    }
    if !table.is_empty() {
        out.table(&table);
    }
}

/// How many glossary entries and articles are listed for a plugin whose texts changed; the others are
/// counted.
const MAX_ENTRIES_SHOWN: usize = 32;

/// The plugin's description of itself, if it differs from what was approved.
pub(in crate::client::plugin) fn texts(said: &PluginCapabilities, out: &mut Output) {
    let mut table = Table::new(&["ITS OWN TEXTS", "CHANGED"]);
    for (what, text) in
        [("description", &said.description), ("system prompt addition", &said.system_prompt_addition)]
    {
        if !text.is_empty() {
            table.row(vec![what.into(), bounded(text)]);
        }
    }
    for entry in said.glossary.iter().take(MAX_ENTRIES_SHOWN) {
        table.row(vec!["glossary".into(), bounded(&format!("{}: {}", entry.term, entry.definition))]);
    }
    for article in said.knowledge_articles.iter().take(MAX_ENTRIES_SHOWN) {
        table.row(vec!["article".into(), bounded(&format!("{}: {}", article.title, article.content))]);
    }
    let more = |count: usize| count.saturating_sub(MAX_ENTRIES_SHOWN);
    let left_out = more(said.glossary.len()) + more(said.knowledge_articles.len());
    if left_out > 0 {
        table.row(vec!["".into(), format!("and {left_out} more: see `--output json`").into()]);
    }
    out.table(&table);
}

/// Context arguments in a table cell.
fn context(names: &[String]) -> Cell {
    let shown = names.iter().take(MAX_CONTEXT_SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(MAX_CONTEXT_SHOWN) {
        0 => shown.into(),
        more => format!("{shown} and {more} more").into(),
    }
}

fn flags(action: &Action, changed: bool) -> String {
    let mut flags = Vec::new();
    if changed {
        flags.push("changed");
    }
    if action.user_only {
        flags.push("user only");
    }
    if action.read_only {
        flags.push("read only");
    }
    if action.destructive == Some(true) {
        flags.push("destructive");
    }
    // What it would like to be; `talon extension list` has what the operator made it.
    let roles: Vec<String> = action.roles.iter().map(|role| format!("role {role}")).collect();
    flags.extend(roles.iter().map(String::as_str));
    flags.join(", ")
}

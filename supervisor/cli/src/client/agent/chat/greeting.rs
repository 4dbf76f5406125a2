//! The greeting of a chat.

use anstyle::{AnsiColor, Style};
use talon_proto::agent::{GetStatusResponse, ProviderState};
use talon_sanitize::sanitized;

use crate::client::agent::formatting::single_line;
use crate::line::Line;

/// Problems in the greeting; `talon status` lists all.
const MAX_PROBLEMS: usize = 3;

const WARN: Style = AnsiColor::Yellow.on_default();

/// The lines of the greeting: which models can answer, and the agent's problems.
pub(super) fn lines(status: &GetStatusResponse, typed: bool) -> Vec<Line> {
    let mut lines = Vec::new();
    if typed {
        lines.push(Line::from(sanitized!(
            "talon {}: /help shows what there is, Ctrl-D leaves",
            single_line(&status.version)
        )));
    }
    if status.providers.is_empty() {
        let what = " no provider of models is configured: see docs/providers.md";
        lines.push(Line::styled(WARN, "talon:").and(what));
    } else if is_scripted(&status.providers) {
        let what = " no model answers here: the provider is scripted, and its answers come from a file";
        lines.push(Line::styled(WARN, "scripted:").and(what));
    }
    for problem in status.problems.iter().take(MAX_PROBLEMS) {
        lines.push(Line::styled(WARN, "talon:").and(" ").and(single_line(problem)));
    }
    if let Some(more @ 1..) = status.problems.len().checked_sub(MAX_PROBLEMS) {
        lines.push(Line::styled(WARN, "talon:").and(sanitized!(" and {} more: see `talon status`", more)));
    }
    lines
}

/// Whether all providers that can answer are scripted.
fn is_scripted(providers: &[ProviderState]) -> bool {
    let mut ready = providers.iter().filter(|provider| provider.state == "ready").peekable();
    match ready.peek() {
        Some(_) => ready.all(|provider| provider.scripted),
        None => providers.iter().all(|provider| provider.scripted),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn provider(state: &str, scripted: bool) -> ProviderState {
        ProviderState { state: state.into(), scripted, ..ProviderState::default() }
    }

    fn said(providers: Vec<ProviderState>, problems: &[&str]) -> String {
        let problems = problems.iter().map(|&problem| problem.to_owned()).collect();
        let status = GetStatusResponse { providers, problems, ..GetStatusResponse::default() };
        lines(&status, false).iter().map(|line| line.render(false) + "\n").collect()
    }

    // Promises: CLI-46
    #[test]
    fn a_scripted_provider_is_never_taken_for_a_model() {
        assert!(said(vec![provider("ready", true)], &[]).starts_with("scripted: no model answers"));
        assert!(said(vec![provider("ready", true), provider("out", false)], &[]).starts_with("scripted:"));
        assert_eq!(said(vec![provider("ready", true), provider("ready", false)], &[]), "");
        assert!(said(vec![], &[]).contains("docs/providers.md"));
    }

    #[test]
    fn problems_are_told_and_counted() {
        let said = said(vec![provider("ready", false)], &["a", "b\u{1b}[2J", "c", "d", "e"]);
        assert_eq!(said, "talon: a\ntalon: b␛[2J\ntalon: c\ntalon: and 2 more: see `talon status`\n");
    }
}

//! `/context`: what the model saw with the last question.

use talon_proto::agent::ContextStats;
use talon_sanitize::sanitized;

use crate::client::agent::formatting::{count, count_of, single_line};
use crate::output::Output;
use crate::table::{Column, Table};

/// Prints the composition of the last question.
pub(super) fn print(stats: Option<&ContextStats>, out: &mut Output) {
    let Some(stats) = stats else {
        out.err_line("no question yet in this chat: ask something first");
        return;
    };
    let mut table = Table::of(&[Column::text("SECTION", 0), Column::number("TOKENS", 0)]);
    for (section, tokens) in [
        ("rules, files, memories", stats.system_tokens),
        ("summary of older turns", stats.summary_tokens),
        ("turns", stats.recent_tokens),
        ("latest results of tools", stats.tool_result_tokens),
        ("tools", stats.tools_tokens),
        ("all", stats.total_tokens),
        ("the model's window", stats.window_tokens),
    ] {
        table.row(vec![section.into(), count(tokens).into()]);
    }
    out.table(&table);
    for line in lines(stats) {
        out.err_line(line);
    }
}

/// What was shortened or left out, and what to do.
fn lines(stats: &ContextStats) -> Vec<talon_sanitize::Sanitized> {
    let counted = if stats.exact { "counted" } else { "estimated" };
    let mut lines = vec![sanitized!(
        "profile {}; tokens are {}; {} shown as they were",
        single_line(&stats.profile),
        counted,
        count_of(stats.turns.into(), "turn")
    )];
    if stats.results_cut > 0 {
        lines.push(sanitized!(
            "{} shortened by about {} tokens; the model can read on with talon.read_more",
            count_of(stats.results_cut.into(), "result"),
            single_line(&count(stats.result_tokens_cut))
        ));
    }
    if stats.messages_left_out > 0 {
        lines.push(sanitized!(
            "{} left out and not summarized yet: /compact summarizes now",
            count_of(stats.messages_left_out.into(), "message")
        ));
    }
    if stats.images_left_out > 0 {
        lines.push(sanitized!(
            "{} of earlier turns described instead of shown: send again what matters",
            count_of(stats.images_left_out.into(), "image")
        ));
    }
    if stats.tools_left_out > 0 {
        lines.push(sanitized!(
            "{} not offered at once: /tools PATTERN… offers fewer, or raise agent.context.shares.tools",
            count_of(stats.tools_left_out.into(), "tool")
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_shortened_is_said_with_what_to_do() {
        let whole = ContextStats { profile: "balanced".into(), turns: 3, ..ContextStats::default() };
        assert_eq!(lines(&whole).len(), 1);
        let cut = ContextStats {
            results_cut: 2,
            result_tokens_cut: 12_000,
            messages_left_out: 1,
            tools_left_out: 4,
            ..whole
        };
        let lines: Vec<String> = lines(&cut).into_iter().map(|line| line.into_string()).collect();
        assert!(lines[1].contains("2 results") && lines[1].contains("talon.read_more"), "{lines:?}");
        assert!(lines[2].contains("/compact") && lines[3].contains("4 tools"), "{lines:?}");
    }
}

//! How texts are written for Slack and Discord: as data, which mentions nobody and hides no link.

use talon_sink::text::Markup;

/// Stands between two characters that would mean something together, and shows nothing.
const NOTHING: char = '\u{200b}';

/// The markup of Slack, and of what is compatible with it.
pub(crate) struct Slack;

impl Markup for Slack {
    fn push(&self, out: &mut String, c: char, previous: Option<char>) {
        match c {
            // Everything that Slack gives a meaning stands in <>.
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            // Mattermost and others read `@all` and `@channel` without them. In an address, a word goes before it.
            '@' if !previous.is_some_and(char::is_alphanumeric) => out.extend(['@', NOTHING]),
            // A run of them would begin or end a block.
            '`' => out.extend(['`', NOTHING]),
            c => push_line(out, c),
        }
    }

    fn push_in_block(&self, out: &mut String, c: char, previous: Option<char>) {
        push_block(out, c, |out| self.push(out, c, previous));
    }

    fn strong(&self) -> (&'static str, &'static str) {
        ("*", "*")
    }

    fn block(&self) -> (&'static str, &'static str) {
        ("```\n", "\n```")
    }
}

/// The markup of Discord.
pub(crate) struct Discord;

impl Markup for Discord {
    fn push(&self, out: &mut String, c: char, _: Option<char>) {
        if matches!(c, '\\' | '*' | '_' | '~' | '`' | '|' | '>' | '<' | '#' | '[' | ']') {
            out.push('\\');
        }
        push_line(out, c);
    }

    fn push_in_block(&self, out: &mut String, c: char, _: Option<char>) {
        // Nothing is read in a block but its end.
        push_block(out, c, |out| if c == '`' { out.extend(['`', NOTHING]) } else { push_line(out, c) });
    }

    fn strong(&self) -> (&'static str, &'static str) {
        ("**", "**")
    }

    fn block(&self) -> (&'static str, &'static str) {
        ("```\n", "\n```")
    }
}

fn push_line(out: &mut String, c: char) {
    out.push(if c.is_control() { ' ' } else { c });
}

fn push_block(out: &mut String, c: char, other: impl FnOnce(&mut String)) {
    match c {
        '\n' | '\t' => out.push(c),
        c if c.is_control() => {}
        _ => other(out),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use talon_sdk::{Event, Severity};
    use talon_sink::text::text;

    use super::*;

    fn event(summary: &str, details: &str) -> Event {
        Event {
            id: "01K1".to_owned(),
            kind: "test".to_owned(),
            severity: Severity::Info,
            summary: summary.to_owned(),
            details: details.to_owned(),
            time_unix_ms: 0,
            fields: BTreeMap::new(),
            count: 1,
        }
    }

    #[test]
    fn what_slack_gives_a_meaning_is_escaped() {
        let said = text(&event("<!channel> & @all a@b.c", "```\n<@U1>"), &[], &Slack, 4000);
        assert_eq!(
            said,
            "*[info] test*: &lt;!channel&gt; &amp; @\u{200b}all a@b.c\n```\n`\u{200b}`\u{200b}`\u{200b}\n&lt;@\u{200b}U1&gt;\n```"
        );
    }

    #[test]
    fn what_discord_gives_a_meaning_is_escaped() {
        let said = text(&event("[a](https://x.y) **b**", "```\n**c**"), &[], &Discord, 2000);
        assert_eq!(
            said,
            "**\\[info\\] test**: \\[a\\](https://x.y) \\*\\*b\\*\\*\n```\n`\u{200b}`\u{200b}`\u{200b}\n**c**\n```"
        );
    }

    proptest! {
        // Promises: EXT-78
        #[test]
        fn no_text_breaks_out_of_its_place(summary in "[ -~\n`@<]{0,60}", details in "[ -~\n`@<]{0,60}") {
            let one = event(&summary, &details);
            let said = text(&one, &[], &Slack, 4000);
            prop_assert!(!said.contains('<') && !said.contains("@all") && !said.contains("@channel"));
            let blocks = if details.is_empty() { 0 } else { 2 };
            prop_assert_eq!(said.matches("```").count(), blocks, "{}", said);
            let said = text(&one, &[], &Discord, 2000);
            prop_assert_eq!(said.matches("```").count(), blocks, "{}", said);
        }
    }
}

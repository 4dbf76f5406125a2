//! Slack's markup (<https://docs.slack.dev/messaging/formatting-message-text>), as people read it, and texts that have none. Pure.

/// A text in which nothing counts as markup: no link, and nobody who is told of it. What counts with Slack are these three characters.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            c => out.push(c),
        }
    }
    out
}

/// What a character counts in an escaped text, in UTF-16 units.
pub(crate) fn escaped_units(c: char) -> usize {
    match c {
        '&' => "&amp;".len(),
        '<' | '>' => "&lt;".len(),
        c => c.len_utf16(),
    }
}

/// Who the app is: its user's id, and what people call it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OwnName<'a> {
    pub(crate) id: &'a str,
    pub(crate) name: &'a str,
}

/// What people read of a text that Slack tells.
pub(crate) fn plain(text: &str, own: &OwnName<'_>) -> String {
    let (mut out, mut left) = (String::with_capacity(text.len()), text);
    while let Some((before, rest)) = left.split_once('<') {
        unescape(before, &mut out);
        let Some((inner, behind)) = rest.split_once('>') else {
            // A text that was cut.
            out.push('<');
            left = rest;
            continue;
        };
        entity(inner, own, &mut out);
        left = behind;
    }
    unescape(left, &mut out);
    out
}

/// Whether a text mentions somebody.
pub(crate) fn mentions(text: &str, user: &str) -> bool {
    !user.is_empty()
        && text.split("<@").skip(1).any(|rest| {
            rest.strip_prefix(user).is_some_and(|behind| behind.starts_with('>') || behind.starts_with('|'))
        })
}

/// What stands between `<` and `>`.
fn entity(inner: &str, own: &OwnName<'_>, out: &mut String) {
    let (what, label) = inner.split_once('|').map_or((inner, ""), |(what, label)| (what, label));
    if let Some(user) = what.strip_prefix('@') {
        out.push('@');
        unescape(if user == own.id { own.name } else { or(label, user) }, out);
    } else if let Some(channel) = what.strip_prefix('#') {
        out.push('#');
        unescape(or(label, channel), out);
    } else if let Some(special) = what.strip_prefix('!') {
        if special.starts_with("date^") {
            return unescape(or(label, special), out);
        }
        let name = or(label, special.split('^').next().unwrap_or_default());
        out.push('@');
        unescape(name.trim_start_matches('@'), out);
    } else {
        let address = what.strip_prefix("mailto:").unwrap_or(what);
        if label.is_empty() || label == address || address.ends_with(&format!("//{label}")) {
            return unescape(address, out);
        }
        unescape(label, out);
        out.push_str(" (");
        unescape(address, out);
        out.push(')');
    }
}

fn or<'t>(text: &'t str, other: &'t str) -> &'t str {
    if text.is_empty() { other } else { text }
}

fn unescape(text: &str, out: &mut String) {
    let mut left = text;
    while let Some((before, rest)) = left.split_once('&') {
        out.push_str(before);
        let known = [("amp;", '&'), ("lt;", '<'), ("gt;", '>')];
        let found = known.into_iter().find_map(|(name, c)| Some((c, rest.strip_prefix(name)?)));
        let (c, behind) = found.unwrap_or(('&', rest));
        out.push(c);
        left = behind;
    }
    out.push_str(left);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const OWN: OwnName<'_> = OwnName { id: "U0TALON", name: "talon" };

    // Promises: GW-283
    #[test]
    fn a_text_of_slack_is_what_people_read() {
        for (text, read) in [
            ("hello", "hello"),
            ("a &lt;b&gt; &amp; c &amp;lt;", "a <b> & c &lt;"),
            ("<@U0TALON> hi <@U123> and <@U124|ada>", "@talon hi @U123 and @ada"),
            ("see <#C123|general> and <#C124>", "see #general and #C124"),
            ("<!here> <!channel|channel> <!subteam^S1|@ops> <!subteam^S2>", "@here @channel @ops @subteam"),
            ("at <!date^1392734382^{date}|February 18>", "at February 18"),
            (
                "<https://example.org/a?b=1&amp;c> <https://example.org|here> <http://example.org|example.org>",
                "https://example.org/a?b=1&c here (https://example.org) http://example.org",
            ),
            ("<mailto:ada@example.org|ada@example.org>", "ada@example.org"),
            ("cut <@U1", "cut <@U1"),
            ("&", "&"),
        ] {
            assert_eq!(plain(text, &OWN), read, "{text}");
        }
    }

    // Promises: GW-281
    #[test]
    fn a_mention_is_of_one_user() {
        assert!(mentions("hi <@U0TALON>", "U0TALON") && mentions("<@U0TALON|talon> hi", "U0TALON"));
        for none in ["hi @U0TALON", "<@U0TALON2> hi", "&lt;@U0TALON&gt;", "<@U0", ""] {
            assert!(!mentions(none, "U0TALON"), "{none}");
        }
        assert!(!mentions("<@>", ""));
    }

    // Promises: GW-283
    #[test]
    fn what_a_model_writes_tells_nobody() {
        let hostile = "<!channel> <!here|x> <@U1> <!subteam^S1> <https://example.org|safe>";
        let sent = escaped(hostile);
        assert!(!sent.contains(['<', '>']), "{sent}");
        assert_eq!(plain(&sent, &OWN), hostile);
    }

    proptest! {
        // Promises: GW-283
        #[test]
        fn what_is_sent_is_read_as_it_was_and_is_no_markup(text in "[a-z<>&;|@!#\n äα😀]{0,80}") {
            let sent = escaped(&text);
            prop_assert!(!sent.contains(['<', '>']));
            prop_assert_eq!(sent.encode_utf16().count(), text.chars().map(escaped_units).sum::<usize>());
            prop_assert_eq!(plain(&sent, &OWN), text);
        }

        #[test]
        fn any_text_is_read(text in any::<String>()) {
            plain(&text, &OWN);
            mentions(&text, "U0TALON");
        }
    }
}

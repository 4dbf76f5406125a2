//! The two tokens of an app. Pure.

/// Which of its two tokens a method wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// The bot's, `xoxb-…`.
    Bot,
    /// The app's, `xapp-…`, for connections alone.
    App,
}

impl TokenKind {
    /// The credential with it.
    pub(crate) const fn credential(self) -> &'static str {
        match self {
            Self::Bot => "bot_token",
            Self::App => "app_token",
        }
    }

    /// What its tokens begin with.
    pub(crate) const fn prefix(self) -> &'static str {
        match self {
            Self::Bot => "xoxb-",
            Self::App => "xapp-",
        }
    }

    /// Whether a text has the form of such a token, so that it can stand in a header.
    pub(crate) fn is_token(self, token: &str) -> bool {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        token.strip_prefix(self.prefix()).is_some_and(|rest| rest.len() >= 10 && rest.chars().all(plain))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_has_its_form_and_stands_in_a_header() {
        assert!(TokenKind::Bot.is_token("xoxb-17653672481-19874698323-pdFZKVeTuE8sk7oOcBrzbqgy"));
        assert!(TokenKind::App.is_token("xapp-1-A123ABC456-4567890-deadbeef"));
        for wrong in
            ["", "xoxb-short", "xapp-1-A123ABC456-4567890", "xoxb-17653672481\r\nX: y", "xoxp-17653672481"]
        {
            assert!(!TokenKind::Bot.is_token(wrong), "{wrong}");
        }
    }
}

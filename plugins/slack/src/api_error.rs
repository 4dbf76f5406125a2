//! Why a request was not done.

use std::time::Duration;

use talon_sink::delivery::Delivery;
use talon_sink::peer_text::one_line;

use crate::token_kind::TokenKind;

/// Why a request was not done. The texts are one bounded line each, without a token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ApiError {
    /// It may work later; Slack may say when.
    #[error("{reason}")]
    Later {
        /// Why.
        reason: String,
        /// The least time until then.
        after: Option<Duration>,
    },
    /// The token is nobody's, or may not do that.
    #[error("{0}")]
    Token(String),
    /// It will not work.
    #[error("{0}")]
    Refused(String),
}

impl ApiError {
    /// What Slack's word for an error means (the list below each method, such as
    /// <https://docs.slack.dev/reference/methods/chat.postMessage#errors>). `needed` names the scopes that a token lacks.
    pub(crate) fn of_word(kind: TokenKind, method: &str, word: &str, needed: &str) -> Self {
        let said = |advice: &str| one_line(&format!("Slack refuses {method}: {word}{advice}"));
        let credential = kind.credential();
        match word {
            "not_authed"
            | "invalid_auth"
            | "account_inactive"
            | "token_revoked"
            | "token_expired"
            | "no_permission"
            | "org_login_required"
            | "ekm_access_denied"
            | "access_denied"
            | "enterprise_is_restricted"
            | "team_access_not_granted" => {
                Self::Token(said(&format!("; see the credential `{credential}` of this plugin")))
            }
            "not_allowed_token_type" => Self::Token(said(&format!(
                "; the credential `{credential}` of this plugin is a token {}…",
                kind.prefix()
            ))),
            "missing_scope" => Self::Token(said(&format!(
                "; the token of `{credential}` lacks the scope {needed}: add it to the app, and install it anew"
            ))),
            "ratelimited"
            | "rate_limited"
            | "internal_error"
            | "fatal_error"
            | "service_unavailable"
            | "request_timeout"
            | "team_added_to_org" => Self::Later { reason: said(""), after: None },
            // A word of a later version, or none: it may be a fault of Slack's.
            "" => Self::Later { reason: said("no reason"), after: None },
            "not_in_channel" | "channel_not_found" => Self::Refused(said("; invite the app to the channel")),
            _ => Self::Refused(said("")),
        }
    }

    /// What it means for a text that was to be sent, or a file.
    pub(crate) fn delivery(self) -> Delivery {
        match self {
            Self::Later { reason, after } => Delivery::Retry(reason, after),
            Self::Token(reason) => Delivery::retry(reason),
            Self::Refused(reason) => Delivery::refused(reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: GW-282
    #[test]
    fn a_word_says_whether_it_may_work_later_and_what_to_do() {
        let of = |word, needed| ApiError::of_word(TokenKind::Bot, "chat.postMessage", word, needed);
        assert!(matches!(of("ratelimited", ""), ApiError::Later { .. }));
        assert!(matches!(of("internal_error", ""), ApiError::Later { .. }));
        assert!(matches!(of("", ""), ApiError::Later { .. }));
        assert_eq!(
            of("invalid_auth", ""),
            ApiError::Token(
                "Slack refuses chat.postMessage: invalid_auth; see the credential `bot_token` of this plugin"
                    .to_owned()
            )
        );
        let scope = of("missing_scope", "chat:write").to_string();
        assert!(scope.contains("lacks the scope chat:write"), "{scope}");
        let kind = ApiError::of_word(TokenKind::App, "apps.connections.open", "not_allowed_token_type", "");
        assert!(kind.to_string().ends_with("`app_token` of this plugin is a token xapp-…"), "{kind}");
        assert!(matches!(of("is_archived", ""), ApiError::Refused(why) if why.ends_with("is_archived")));
        assert!(matches!(of("not_in_channel", ""), ApiError::Refused(why) if why.contains("invite the app")));
    }
}

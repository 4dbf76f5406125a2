//! Why a request was not done.

use std::time::Duration;

use talon_sink::delivery::Delivery;
use talon_sink::peer_text::one_line;

use crate::token_kind::TokenKind;

/// Words of Slack's for what will not work however often it is tried: what was asked is wrong, is gone, or is forbidden there.
const FINAL_WORDS: &[&str] = &[
    "as_user_not_supported",
    "attachment_payload_limit_exceeded",
    "cannot_reply_to_message",
    "channel_type_not_supported",
    "deprecated_endpoint",
    "file_deleted",
    "file_not_found",
    "invalid_arg_name",
    "invalid_arguments",
    "invalid_array_arg",
    "invalid_blocks",
    "invalid_blocks_format",
    "invalid_charset",
    "invalid_form_data",
    "invalid_metadata_format",
    "invalid_metadata_schema",
    "invalid_post_type",
    "invalid_ts_oldest",
    "is_archived",
    "is_inactive",
    "markdown_text_conflict",
    "messages_tab_disabled",
    "metadata_must_be_sent_from_app",
    "metadata_too_large",
    "method_deprecated",
    "method_not_supported_for_channel_type",
    "missing_post_type",
    "msg_blocks_too_long",
    "msg_too_long",
    "no_text",
    "restricted_action",
    "restricted_action_non_threadable_channel",
    "restricted_action_read_only_channel",
    "restricted_action_thread_locked",
    "restricted_action_thread_only_channel",
    "slack_connect_canvas_sharing_blocked",
    "slack_connect_file_link_sharing_blocked",
    "thread_not_found",
    "too_many_attachments",
    "too_many_contact_cards",
    "unknown_method",
    "user_not_found",
    "user_not_visible",
];

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
        /// Whether it is certain that Slack has not done it: it was asked too often. Otherwise it may have been done all the same.
        is_undone: bool,
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
            "ratelimited" | "rate_limited" => Self::Later { reason: said(""), after: None, is_undone: true },
            "" => Self::Later { reason: said("no reason"), after: None, is_undone: false },
            "not_in_channel" | "channel_not_found" => Self::Refused(said("; invite the app to the channel")),
            _ if FINAL_WORDS.contains(&word) => Self::Refused(said("")),
            // A fault of Slack's (`internal_error`, `fatal_error`), or a word of a later version: the agent gives up after its time.
            _ => Self::Later { reason: said(""), after: None, is_undone: false },
        }
    }

    /// What it means for a text that was to be sent, or a file.
    pub(crate) fn delivery(self) -> Delivery {
        match self {
            Self::Later { reason, after, .. } => Delivery::Retry(reason, after),
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
        assert!(matches!(of("ratelimited", ""), ApiError::Later { is_undone: true, .. }));
        // It may have been done; of a word that is not known nobody can say that it never works.
        for word in ["internal_error", "fatal_error", "a_word_of_next_year", ""] {
            assert!(matches!(of(word, ""), ApiError::Later { is_undone: false, .. }), "{word}");
        }
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

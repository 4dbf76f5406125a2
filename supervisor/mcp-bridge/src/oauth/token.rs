//! The token endpoint, and the credential that is stored.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use talon_bridge::text::cut;
use url::Url;

use super::client::Client;
use super::error::OauthError;
use super::fetch::{Reply, address};

/// How long before its end a token is no longer used: a call may take that long.
const LEEWAY_SECONDS: u64 = 60;
/// How much of an error is shown.
const MAX_SHOWN_BYTES: usize = 300;

/// All that is needed to call a server and to renew its token. It is stored as JSON in the plugin's state. No
/// `Debug`: it would show the tokens.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Credential {
    /// The origin of the server that gets the token, and no other.
    pub(super) server: String,
    pub(super) issuer: String,
    pub(super) token_endpoint: String,
    #[serde(flatten)]
    pub(super) client: Client,
    pub(super) resource: String,
    pub(super) access_token: String,
    /// Seconds since 1970; nothing if the server does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) expires_at: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) refresh_token: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) scope: Option<String>,
}

/// A token endpoint's answer.
#[derive(Deserialize)]
pub(super) struct Tokens {
    access_token: String,
    token_type: String,
    expires_in: Option<u64>,
    refresh_token: Option<String>,
    scope: Option<String>,
}

#[derive(Deserialize)]
struct Refusal {
    error: String,
    #[serde(default)]
    error_description: String,
}

impl Credential {
    /// Whether the token has to be renewed before the next request.
    pub(super) fn is_expiring(&self) -> bool {
        self.expires_at.is_some_and(|at| at <= now() + LEEWAY_SECONDS)
    }

    /// Replaces the tokens by newer ones.
    pub(super) fn update(&mut self, tokens: Tokens) {
        self.access_token = tokens.access_token;
        self.expires_at = tokens.expires_in.map(|seconds| now().saturating_add(seconds));
        // An authorization server that does not rotate it sends none.
        self.refresh_token = tokens.refresh_token.or(self.refresh_token.take());
        self.scope = tokens.scope.or(self.scope.take());
    }

    /// New tokens by the refresh token. The credential is to be stored before they are used: the old refresh
    /// token may be void by then.
    pub(super) async fn refreshed(&self) -> Result<Self, OauthError> {
        let Some(refresh_token) = &self.refresh_token else {
            return Err(OauthError::LoginNeeded {
                why: "its token has expired, and cannot be renewed".to_owned(),
            });
        };
        let form =
            [("grant_type", "refresh_token"), ("refresh_token", refresh_token), ("resource", &self.resource)];
        let mut renewed = self.clone();
        renewed.update(ask(&address(&self.token_endpoint)?, &self.client, &form).await?);
        Ok(renewed)
    }
}

/// Asks the token endpoint.
pub(super) async fn ask(
    endpoint: &Url,
    client: &Client,
    fields: &[(&str, &str)],
) -> Result<Tokens, OauthError> {
    let reply = client.post(endpoint, fields).await?;
    if let Some(refused) = refusal(&reply) {
        return Err(refused);
    }
    let tokens: Tokens = reply.json()?;
    if !tokens.token_type.eq_ignore_ascii_case("bearer") {
        let why = format!("a token of the type {:?}", cut(&tokens.token_type, MAX_SHOWN_BYTES));
        return Err(OauthError::Answer { url: reply.url, why });
    }
    Ok(tokens)
}

/// The error that an authorization server answers with.
pub(super) fn refusal(reply: &Reply) -> Option<OauthError> {
    let refusal: Refusal =
        serde_json::from_slice(&reply.body).ok().filter(|_| reply.status.is_client_error())?;
    Some(refused(&refusal.error, &refusal.error_description))
}

/// An error of the authorization server.
pub(super) fn refused(error: &str, description: &str) -> OauthError {
    let description = if description.is_empty() {
        String::new()
    } else {
        format!(" ({})", cut(description, MAX_SHOWN_BYTES))
    };
    OauthError::Refused { error: cut(error, MAX_SHOWN_BYTES), description }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

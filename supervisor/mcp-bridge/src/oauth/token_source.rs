//! The token of each request: kept in the plugin's state, and refreshed there.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http::HeaderValue;
use talon_sdk::{State, Swap};
use tokio::sync::Mutex;
use url::Url;

use super::error::OauthError;
use super::token::Credential;
use crate::http::authorization::{Authorization, AuthorizationError};

/// The key of the credential in the plugin's state; `talon mcp login` writes it.
const KEY: &str = "talon.oauth";

/// The credential of a server.
pub(crate) struct TokenSource {
    state: State,
    /// The command that an operator runs when the login is over.
    login_command: String,
    /// Held during a refresh, so that concurrent requests wait for its token instead of spending the refresh
    /// token twice.
    credential: Mutex<Credential>,
}

impl TokenSource {
    /// The credential of this server, if somebody logged in. One that was made for another origin is not used:
    /// the plugin's `url` may have been changed since.
    ///
    /// # Errors
    /// When the state cannot be read.
    pub(crate) async fn load(
        state: State,
        server: &str,
        login_command: String,
    ) -> Result<Option<Self>, OauthError> {
        let Some(credential) = state.get_json::<Credential>(KEY).await? else { return Ok(None) };
        let origin = Url::parse(server).map(|url| url.origin().ascii_serialization()).unwrap_or_default();
        if credential.server != origin {
            tracing::warn!(
                "the stored login is for {}, and this plugin's url is elsewhere: it is not used; log in again",
                credential.server
            );
            return Ok(None);
        }
        Ok(Some(Self { state, login_command, credential: Mutex::new(credential) }))
    }

    /// A token that is not about to expire.
    async fn current(&self) -> Result<HeaderValue, OauthError> {
        let mut credential = self.credential.lock().await;
        if credential.is_expiring() {
            self.refresh(&mut credential).await?;
        }
        header(&credential)
    }

    /// A newer token than one that was refused.
    async fn newer(&self, refused: &HeaderValue) -> Result<HeaderValue, OauthError> {
        let mut credential = self.credential.lock().await;
        // Another request may have renewed it already.
        if header(&credential)? == *refused {
            self.refresh(&mut credential).await?;
        }
        header(&credential)
    }

    async fn refresh(&self, credential: &mut Credential) -> Result<(), OauthError> {
        let before = self.state.get(KEY).await?;
        let stored = before.as_deref().and_then(|bytes| serde_json::from_slice::<Credential>(bytes).ok());
        match stored {
            // Another instance of this plugin, or a new login, was faster.
            Some(stored)
                if stored.access_token != credential.access_token && stored.server == credential.server =>
            {
                *credential = stored;
                if !credential.is_expiring() {
                    return Ok(());
                }
            }
            Some(_) => {}
            None => return Err(OauthError::LoginNeeded { why: "it was removed".to_owned() }),
        }
        let renewed = credential.refreshed().await.map_err(|error| match error {
            OauthError::Refused { error, description } => {
                OauthError::LoginNeeded { why: format!("{error}{description}") }
            }
            error => error,
        })?;
        let after = serde_json::to_vec(&renewed)
            .map_err(|error| OauthError::LoginNeeded { why: error.to_string() })?;
        // Stored before it is used: the old refresh token is void now.
        match self.state.compare_and_set(KEY, before, Some(after)).await? {
            Swap::Done => {
                tracing::info!("the token of the MCP server was renewed");
                *credential = renewed;
                Ok(())
            }
            // What another writer stored meanwhile is newer.
            Swap::Lost(current) => {
                let current = current.and_then(|bytes| serde_json::from_slice::<Credential>(&bytes).ok());
                match current.filter(|current| current.server == credential.server) {
                    Some(current) => {
                        *credential = current;
                        Ok(())
                    }
                    None => Err(OauthError::LoginNeeded { why: "it was removed".to_owned() }),
                }
            }
        }
    }

    fn explain(&self, error: &OauthError) -> AuthorizationError {
        let error = talon_error_chain::error_chain(error);
        AuthorizationError(format!(
            "no token for it: {error}; if that lasts, log in with `{}`",
            self.login_command
        ))
    }
}

impl Authorization for TokenSource {
    fn header(&self) -> BoxFuture<'_, Result<HeaderValue, AuthorizationError>> {
        async { self.current().await.map_err(|error| self.explain(&error)) }.boxed()
    }

    fn scope(&self) -> BoxFuture<'_, Option<String>> {
        async { self.credential.lock().await.scope.clone() }.boxed()
    }

    fn renewed<'a>(
        &'a self,
        refused: &'a HeaderValue,
    ) -> BoxFuture<'a, Result<HeaderValue, AuthorizationError>> {
        async { self.newer(refused).await.map_err(|error| self.explain(&error)) }.boxed()
    }
}

fn header(credential: &Credential) -> Result<HeaderValue, OauthError> {
    let mut value = HeaderValue::try_from(format!("Bearer {}", credential.access_token)).map_err(|_| {
        OauthError::LoginNeeded { why: "its token is none that a header can have".to_owned() }
    })?;
    value.set_sensitive(true);
    Ok(value)
}

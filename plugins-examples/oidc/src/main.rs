//! Bearer tokens of an OpenID Connect provider: whose they are, by the provider's published keys.
//!
//! | file | content |
//! |---|---|
//! | `settings` | what the operator says, checked |
//! | `issuer` | the provider's documents over HTTPS, bounded |
//! | `keys` | its keys: which fit a token, how long they are kept, when they are fetched again |
//! | `token` | whether a token is right, and what it says |

mod issuer;
mod keys;
mod settings;
mod token;

use std::process::ExitCode;

use talon_sdk::{AuthRequest, Authentication, Context, Plugin, ToolError};

use crate::issuer::Issuer;
use crate::keys::{KeyError, Keys};
use crate::settings::{Config, Settings};
use crate::token::Verifier;

/// What all calls share.
#[derive(Debug)]
struct Provider {
    keys: Keys,
    verifier: Verifier,
}

impl Provider {
    fn new(config: Config) -> Result<Self, ToolError> {
        let settings = Settings::checked(config).map_err(|error| ToolError::new(error.to_string()))?;
        let issuer = Issuer::new(&settings).map_err(|error| ToolError::new(error.to_string()))?;
        Ok(Self { keys: Keys::new(issuer), verifier: Verifier::new(settings) })
    }

    async fn authenticate(&self, token: &str) -> Result<Authentication, ToolError> {
        let header = match self.verifier.header(token) {
            Ok(header) => header,
            Err(error) => return Ok(Authentication::rejected(error.to_string())),
        };
        let key = match self.keys.find(&header).await {
            Ok(key) => key,
            Err(error @ KeyError::Unknown) => return Ok(Authentication::rejected(error.to_string())),
            Err(KeyError::Issuer(error)) => {
                return Err(ToolError::new(format!("the issuer's keys cannot be had: {error}")));
            }
        };
        Ok(match self.verifier.verify(token, &header, &key) {
            Ok(subject) => subject.into_answer(),
            Err(error) => Authentication::rejected(error.to_string()),
        })
    }
}

/// Says whose bearer token it is, by the keys of the configured OpenID Connect issuer.
#[talon_sdk::auth_provider(read_only)]
async fn authenticate(asked: AuthRequest, cx: Context) -> Result<Authentication, ToolError> {
    if asked.scheme != "bearer" {
        return Ok(Authentication::rejected("only bearer tokens are looked at"));
    }
    cx.shared::<Provider>()?.authenticate(&asked.credential).await
}

fn main() -> ExitCode {
    Plugin::new("oidc")
        .description("Says whose bearer tokens of an OpenID Connect provider are.")
        .tool(authenticate())
        .init(|config| async move { Provider::new(config) })
        .serve()
}

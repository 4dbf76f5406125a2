//! A login: a person's consent, and the first tokens.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest, Sha256};
use talon_bridge::text::cut;

use super::error::OauthError;
use super::fetch::{address, origin_and_path, post};
use super::metadata::{AuthorizationServer, discover};
use super::redirect::Redirect;
use super::token::{Credential, ask};

/// The random bytes of a state and of a verifier: 256 bits, and a verifier of 43 characters, the fewest that
/// RFC 7636 allows.
const RANDOM_BYTES: usize = 32;

/// What the operator says.
pub(crate) struct LoginRequest {
    pub(crate) url: String,
    /// A client that was registered before.
    pub(crate) client_id: Option<String>,
    pub(crate) client_secret: Option<String>,
    pub(crate) scope: Option<String>,
}

/// A client at an authorization server.
#[derive(Deserialize)]
struct Client {
    client_id: String,
    client_secret: Option<String>,
}

/// Logs in. What the person has to do goes to standard error.
pub(crate) async fn login(request: LoginRequest) -> Result<Credential, OauthError> {
    let server = address(&request.url)?;
    let found = discover(&server).await?;
    let issuer = found.server.issuer.clone();
    let mut consent = address(&found.server.authorization_endpoint)?;
    let token_endpoint = address(&found.server.token_endpoint)?;
    let redirect = Redirect::listen().await?;
    let client = match request.client_id {
        Some(client_id) => Client { client_id, client_secret: request.client_secret },
        None => register(&found.server, redirect.uri()).await?,
    };
    let (state, verifier) = (random()?, random()?);
    let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(&verifier));
    let scope = request.scope.or(found.scope);
    consent
        .query_pairs_mut()
        .append_pair("response_type", "code")
        .append_pair("client_id", &client.client_id)
        .append_pair("redirect_uri", redirect.uri())
        .append_pair("code_challenge", &challenge)
        .append_pair("code_challenge_method", "S256")
        .append_pair("state", &state)
        .append_pair("resource", &found.resource)
        .extend_pairs(scope.iter().map(|scope| ("scope", scope)));
    eprintln!(
        "{} asks for a login with {}, and its tokens come from {}.\nOpen this address in a browser:\n\n{consent}\n\n\
         If the browser runs on another machine, it fails to open the last page: paste that page's address here.",
        server.origin().ascii_serialization(),
        cut(&issuer, 200),
        origin_and_path(&token_endpoint),
    );
    let uri = redirect.uri().to_owned();
    let names_issuer = found.server.authorization_response_iss_parameter_supported;
    let code = redirect.code(&state, &issuer, names_issuer).await?;
    let form = [
        ("grant_type", "authorization_code"),
        ("code", &code),
        ("redirect_uri", &uri),
        ("code_verifier", &verifier),
        ("resource", &found.resource),
    ];
    let tokens =
        ask(token_endpoint.as_str(), &client.client_id, client.client_secret.as_deref(), &form).await?;
    let mut credential = Credential {
        server: server.origin().ascii_serialization(),
        issuer,
        token_endpoint: token_endpoint.into(),
        client_id: client.client_id,
        client_secret: client.client_secret,
        resource: found.resource,
        access_token: String::new(),
        expires_at: None,
        refresh_token: None,
        scope,
    };
    credential.update(tokens);
    Ok(credential)
}

/// Dynamic registration (RFC 7591) of a public client.
async fn register(server: &AuthorizationServer, redirect_uri: &str) -> Result<Client, OauthError> {
    let Some(endpoint) = &server.registration_endpoint else {
        return Err(OauthError::NoRegistration { issuer: cut(&server.issuer, 200) });
    };
    let client = json!({
        "client_name": "Talon",
        "application_type": "native",
        "redirect_uris": [redirect_uri],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
    });
    post(&address(endpoint)?, ("application/json", client.to_string())).await?.json()
}

fn random() -> Result<String, OauthError> {
    let mut bytes = [0; RANDOM_BYTES];
    getrandom::fill(&mut bytes)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

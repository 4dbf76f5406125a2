//! A login: a person's consent, and the first tokens.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest, Sha256};
use talon_bridge::text::cut;
use url::Url;

use super::client::{Client, NONE, method_for_secret, method_to_register};
use super::device::{DeviceLogin, GRANT as DEVICE_GRANT};
use super::error::OauthError;
use super::fetch::{address, origin_and_path, post};
use super::metadata::{AuthorizationServer, Discovery, discover};
use super::redirect::Redirect;
use super::token::{Credential, Tokens, ask};

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
    /// Whether the person consents on another device.
    pub(crate) device: bool,
}

/// The answer to a registration.
#[derive(Deserialize)]
struct Registered {
    client_id: String,
    client_secret: Option<String>,
    /// Where it is another one than was asked for.
    token_endpoint_auth_method: Option<String>,
}

/// Logs in. What the person has to do goes to standard error.
pub(crate) async fn login(request: LoginRequest) -> Result<Credential, OauthError> {
    let server = address(&request.url)?;
    let found = discover(&server).await?;
    let scope = request.scope.clone().or_else(|| found.scope.clone());
    let token_endpoint = address(&found.server.token_endpoint)?;
    let consent =
        Consent { server: &server, found: &found, token_endpoint: &token_endpoint, scope: scope.as_deref() };
    let (client, tokens) =
        if request.device { consent.on_device(request).await? } else { consent.in_browser(request).await? };
    let mut credential = Credential {
        server: server.origin().ascii_serialization(),
        issuer: found.server.issuer,
        token_endpoint: token_endpoint.into(),
        client,
        resource: found.resource,
        access_token: String::new(),
        expires_at: None,
        refresh_token: None,
        scope,
    };
    credential.update(tokens);
    Ok(credential)
}

/// What a person consents to.
struct Consent<'a> {
    server: &'a Url,
    found: &'a Discovery,
    token_endpoint: &'a Url,
    scope: Option<&'a str>,
}

impl Consent<'_> {
    /// Whose login it is, for the person.
    fn parties(&self) -> String {
        format!(
            "{} asks for a login with {}, and its tokens come from {}.",
            self.server.origin().ascii_serialization(),
            cut(&self.found.server.issuer, 200),
            origin_and_path(self.token_endpoint),
        )
    }

    async fn on_device(&self, request: LoginRequest) -> Result<(Client, Tokens), OauthError> {
        let authorization_server = &self.found.server;
        let Some(endpoint) = &authorization_server.device_authorization_endpoint else {
            return Err(OauthError::NoDevice { issuer: cut(&authorization_server.issuer, 200) });
        };
        let endpoint = address(endpoint)?;
        let client = client(request, authorization_server, None).await?;
        let login = DeviceLogin {
            endpoint: &endpoint,
            token_endpoint: self.token_endpoint,
            client: &client,
            resource: &self.found.resource,
            scope: self.scope,
        };
        let show = |address: &Url, code: &str| {
            eprintln!(
                "{}\nOpen this address on any device:\n\n{address}\n\nand enter the code {code}, if it asks for one. \
                 Go on only if the page shows that code.",
                self.parties()
            );
        };
        let tokens = login.tokens(show).await?;
        Ok((client, tokens))
    }

    async fn in_browser(&self, request: LoginRequest) -> Result<(Client, Tokens), OauthError> {
        let authorization_server = &self.found.server;
        let mut consent = address(&authorization_server.authorization_endpoint)?;
        let redirect = Redirect::listen().await?;
        let client = client(request, authorization_server, Some(redirect.uri())).await?;
        let (state, verifier) = (random()?, random()?);
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(&verifier));
        consent
            .query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &client.client_id)
            .append_pair("redirect_uri", redirect.uri())
            .append_pair("code_challenge", &challenge)
            .append_pair("code_challenge_method", "S256")
            .append_pair("state", &state)
            .append_pair("resource", &self.found.resource)
            .extend_pairs(self.scope.iter().map(|scope| ("scope", scope)));
        eprintln!(
            "{}\nOpen this address in a browser:\n\n{consent}\n\n\
             If the browser runs on another machine, it fails to open the last page: paste that page's address here.",
            self.parties()
        );
        let uri = redirect.uri().to_owned();
        let names_issuer = authorization_server.authorization_response_iss_parameter_supported;
        let code = redirect.code(&state, &authorization_server.issuer, names_issuer).await?;
        let form = [
            ("grant_type", "authorization_code"),
            ("code", &code),
            ("redirect_uri", &uri),
            ("code_verifier", &verifier),
            ("resource", &self.found.resource),
        ];
        let tokens = ask(self.token_endpoint, &client, &form).await?;
        Ok((client, tokens))
    }
}

/// The client that the operator registered, or one that is registered now.
async fn client(
    request: LoginRequest,
    server: &AuthorizationServer,
    redirect_uri: Option<&str>,
) -> Result<Client, OauthError> {
    match request.client_id {
        Some(client_id) => {
            let method = method_for_secret(&server.token_endpoint_auth_methods_supported);
            let client_secret = request.client_secret;
            Ok(Client { client_id, client_secret, token_endpoint_auth_method: method.to_owned() })
        }
        None => register(server, redirect_uri).await,
    }
}

/// Dynamic registration (RFC 7591) of a client, a public one if possible: one that a browser comes back to, or one on another device.
async fn register(server: &AuthorizationServer, redirect_uri: Option<&str>) -> Result<Client, OauthError> {
    let Some(endpoint) = &server.registration_endpoint else {
        return Err(OauthError::NoRegistration { issuer: cut(&server.issuer, 200) });
    };
    let supported = &server.token_endpoint_auth_methods_supported;
    let mut client = json!({
        "client_name": "Talon",
        "application_type": "native",
        "token_endpoint_auth_method": method_to_register(supported),
    });
    match redirect_uri {
        Some(uri) => {
            client["redirect_uris"] = json!([uri]);
            client["grant_types"] = json!(["authorization_code", "refresh_token"]);
            client["response_types"] = json!(["code"]);
        }
        None => {
            client["redirect_uris"] = json!([]);
            client["grant_types"] = json!([DEVICE_GRANT, "refresh_token"]);
            client["response_types"] = json!([]);
        }
    }
    let reply = post(&address(endpoint)?, ("application/json", client.to_string())).await?;
    let registered: Registered = reply.json()?;
    // A server that gives a secret to a client that asked for none still means it to be shown.
    let method = registered.token_endpoint_auth_method.filter(|method| method != NONE);
    Ok(Client {
        client_id: registered.client_id,
        client_secret: registered.client_secret,
        token_endpoint_auth_method: method.unwrap_or_else(|| method_for_secret(supported).to_owned()),
    })
}

fn random() -> Result<String, OauthError> {
    let mut bytes = [0; RANDOM_BYTES];
    getrandom::fill(&mut bytes)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

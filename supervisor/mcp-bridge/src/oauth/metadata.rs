//! Which authorization server a server names (RFC 9728), and what that one says of itself (RFC 8414).
//!
//! Each document is believed only about the one who serves it: a server's metadata lies on its own host and is
//! about its own address, and an authorization server's metadata names the issuer that was asked.

use http::header::WWW_AUTHENTICATE;
use serde::Deserialize;
use talon_bridge::text::cut;
use url::Url;

use super::error::OauthError;
use super::fetch::{address, get, origin_and_path, post};
use crate::http::challenge::challenge_parameter;

/// How much of a foreign name is shown.
const MAX_SHOWN_BYTES: usize = 200;

/// What a login needs to know of a server.
#[derive(Debug)]
pub(super) struct Discovery {
    /// For what the tokens are (RFC 8707).
    pub(super) resource: String,
    /// What it asks for, if it says so.
    pub(super) scope: Option<String>,
    pub(super) server: AuthorizationServer,
}

/// The metadata of an authorization server.
#[derive(Debug, Deserialize)]
pub(super) struct AuthorizationServer {
    pub(super) issuer: String,
    pub(super) authorization_endpoint: String,
    pub(super) token_endpoint: String,
    pub(super) registration_endpoint: Option<String>,
    pub(super) device_authorization_endpoint: Option<String>,
    pub(super) revocation_endpoint: Option<String>,
    #[serde(default)]
    pub(super) token_endpoint_auth_methods_supported: Vec<String>,
    #[serde(default)]
    code_challenge_methods_supported: Vec<String>,
    #[serde(default)]
    pub(super) authorization_response_iss_parameter_supported: bool,
}

#[derive(Debug, Deserialize)]
struct ProtectedResource {
    resource: String,
    #[serde(default)]
    authorization_servers: Vec<String>,
    #[serde(default)]
    scopes_supported: Vec<String>,
}

/// Asks a server who may log in to it.
pub(super) async fn discover(server: &Url) -> Result<Discovery, OauthError> {
    let (named, wanted) = challenge(server).await;
    let resource = match named {
        Some(named) => Some(protected_resource(server, &named).await?),
        None => well_known_resource(server).await?,
    };
    let (issuer, resource, listed) = match resource {
        Some(found) => {
            let issuer = found.authorization_servers.into_iter().next();
            let issuer = issuer.ok_or(OauthError::NoAuthorizationServer)?;
            (issuer, found.resource, found.scopes_supported)
        }
        // Up to 2025-03-26 the server was its own authorization server.
        None => {
            let origin = server.origin().ascii_serialization();
            (origin, server.to_string(), Vec::new())
        }
    };
    let scope = wanted.or_else(|| (!listed.is_empty()).then(|| listed.join(" ")));
    Ok(Discovery { resource, scope, server: authorization_server(&issuer).await? })
}

/// The request that a server is asked to refuse: one that means the same in every revision of MCP, and does nothing.
const PING: &str = r#"{"jsonrpc":"2.0","id":0,"method":"ping"}"#;

/// What the server's refusal names: its metadata, and a scope. A server that does not refuse names nothing.
async fn challenge(server: &Url) -> (Option<String>, Option<String>) {
    // Servers of before 2025-03-26 take no `POST` at their address.
    let refused = match post(server, ("application/json", PING.to_owned())).await {
        Ok(reply) if reply.headers.contains_key(WWW_AUTHENTICATE) => Ok(reply),
        _ => get(server).await,
    };
    let Ok(reply) = refused else { return (None, None) };
    let found = reply.headers.get_all(WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok());
    let challenges: Vec<&str> = found.collect();
    let parameter = |name| challenges.iter().find_map(|challenge| challenge_parameter(challenge, name));
    (parameter("resource_metadata"), parameter("scope"))
}

async fn well_known_resource(server: &Url) -> Result<Option<ProtectedResource>, OauthError> {
    let path = server.path().trim_end_matches('/');
    for path in [path, ""] {
        let mut url = server.clone();
        url.set_path(&format!("/.well-known/oauth-protected-resource{path}"));
        url.set_query(None);
        if get(&url).await?.status.is_success() {
            return protected_resource(server, url.as_str()).await.map(Some);
        }
    }
    Ok(None)
}

async fn protected_resource(server: &Url, at: &str) -> Result<ProtectedResource, OauthError> {
    let url = Url::parse(at).ok().filter(|url| url.origin() == server.origin());
    let Some(url) = url else {
        return Err(OauthError::ForeignMetadata { named: cut(at, MAX_SHOWN_BYTES) });
    };
    let found: ProtectedResource = get(&url).await?.json()?;
    if !is_about(&found.resource, server) {
        let named = cut(&found.resource, MAX_SHOWN_BYTES);
        return Err(OauthError::Resource { named, asked: origin_and_path(server) });
    }
    Ok(found)
}

/// Whether a resource is this server, or a part of its host that holds it.
fn is_about(resource: &str, server: &Url) -> bool {
    let Ok(resource) = Url::parse(resource) else { return false };
    let (whole, part) = (server.path().trim_end_matches('/'), resource.path().trim_end_matches('/'));
    let below = whole.strip_prefix(part).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    resource.origin() == server.origin() && below
}

/// The metadata of an issuer, which has to name that issuer.
pub(super) async fn authorization_server(issuer: &str) -> Result<AuthorizationServer, OauthError> {
    let base = address(issuer)?;
    let path = base.path().trim_end_matches('/');
    let places = [
        format!("/.well-known/oauth-authorization-server{path}"),
        format!("/.well-known/openid-configuration{path}"),
        format!("{path}/.well-known/openid-configuration"),
    ];
    let mut last = None;
    for place in places {
        let mut url = base.clone();
        url.set_path(&place);
        url.set_query(None);
        let reply = get(&url).await?;
        if !reply.status.is_success() {
            last = Some(reply);
            continue;
        }
        let server: AuthorizationServer = reply.json()?;
        if server.issuer != issuer {
            let named = cut(&server.issuer, MAX_SHOWN_BYTES);
            return Err(OauthError::Issuer { asked: cut(issuer, MAX_SHOWN_BYTES), named });
        }
        if !server.code_challenge_methods_supported.iter().any(|method| method == "S256") {
            return Err(OauthError::NoPkce { issuer: cut(issuer, MAX_SHOWN_BYTES) });
        }
        return Ok(server);
    }
    match last {
        Some(reply) => {
            Err(reply.json::<AuthorizationServer>().err().unwrap_or(OauthError::NoAuthorizationServer))
        }
        None => Err(OauthError::NoAuthorizationServer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_about_the_server_that_was_asked() {
        let server = Url::parse("https://a.example/team/mcp").unwrap();
        for good in [
            "https://a.example/team/mcp",
            "https://a.example/team/mcp/",
            "https://a.example/team",
            "https://a.example",
        ] {
            assert!(is_about(good, &server), "{good}");
        }
        for bad in [
            "https://b.example/team/mcp",
            "https://a.example/tea",
            "http://a.example/team/mcp",
            "https://a.example/team/mcp/x",
            "x",
        ] {
            assert!(!is_about(bad, &server), "{bad}");
        }
    }
}

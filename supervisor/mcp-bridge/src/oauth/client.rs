//! Who we are to an authorization server, and how we show it (RFC 6749, section 2.3).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use serde::{Deserialize, Serialize};
use url::{Url, form_urlencoded};

use super::error::OauthError;
use super::fetch::{Reply, post_as};

/// A client at an authorization server. No `Debug`: it would show the secret.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Client {
    pub(super) client_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) client_secret: Option<String>,
    /// How the secret is shown. Logins that were stored before there was a choice showed it in the body.
    #[serde(default = "in_body")]
    pub(super) token_endpoint_auth_method: String,
}

/// In the header, which every authorization server has to understand from clients with a secret.
const BASIC: &str = "client_secret_basic";
/// In the body.
const POST: &str = "client_secret_post";
/// A public client, which has no secret.
pub(super) const NONE: &str = "none";

fn in_body() -> String {
    POST.to_owned()
}

/// How a client with a secret shows it where these methods are supported. A server that names none supports the header
/// (RFC 8414, section 2).
pub(super) fn method_for_secret(supported: &[String]) -> &'static str {
    let has = |method: &str| supported.iter().any(|named| named == method);
    if !has(BASIC) && has(POST) { POST } else { BASIC }
}

/// What a new client asks to be registered with: no secret, unless the server wants one.
pub(super) fn method_to_register(supported: &[String]) -> &'static str {
    let public = supported.is_empty() || supported.iter().any(|named| named == NONE);
    if public { NONE } else { method_for_secret(supported) }
}

impl Client {
    /// Posts the fields to an endpoint of the authorization server, with who we are.
    pub(super) async fn post(&self, endpoint: &Url, fields: &[(&str, &str)]) -> Result<Reply, OauthError> {
        let header = self.header();
        let form = self.form(fields, header.is_some());
        post_as(endpoint, ("application/x-www-form-urlencoded", form), header).await
    }

    /// The fields, and who we are unless the header says it.
    fn form(&self, fields: &[(&str, &str)], in_header: bool) -> String {
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.extend_pairs(fields);
        if !in_header {
            form.append_pair("client_id", &self.client_id);
            form.extend_pairs(self.client_secret.iter().map(|secret| ("client_secret", secret)));
        }
        form.finish()
    }

    /// The header with the secret, if it belongs there.
    fn header(&self) -> Option<HeaderValue> {
        let secret = self.client_secret.as_ref().filter(|_| self.token_endpoint_auth_method == BASIC)?;
        let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
        let both = format!("{}:{}", encoded(&self.client_id), encoded(secret));
        let mut value = HeaderValue::try_from(format!("Basic {}", STANDARD.encode(both))).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(method: &str, secret: Option<&str>) -> Client {
        Client {
            client_id: "a:b".to_owned(),
            client_secret: secret.map(str::to_owned),
            token_endpoint_auth_method: method.to_owned(),
        }
    }

    #[test]
    fn a_secret_stands_in_the_header_where_that_is_supported() {
        let named = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        for (supported, with_secret, registered) in [
            (named(&[]), BASIC, NONE),
            (named(&[NONE]), BASIC, NONE),
            (named(&[POST]), POST, POST),
            (named(&[POST, BASIC]), BASIC, BASIC),
            (named(&[BASIC, NONE]), BASIC, NONE),
            (named(&["private_key_jwt"]), BASIC, BASIC),
        ] {
            assert_eq!(method_for_secret(&supported), with_secret, "{supported:?}");
            assert_eq!(method_to_register(&supported), registered, "{supported:?}");
        }
        // Both halves are form-encoded before they are joined, so that a colon stays a colon.
        let header = client(BASIC, Some("x y")).header().unwrap();
        assert_eq!(header, format!("Basic {}", STANDARD.encode("a%3Ab:x+y")));
        assert!(header.is_sensitive());
        assert!(client(POST, Some("x")).header().is_none() && client(BASIC, None).header().is_none());
    }

    #[test]
    fn a_stored_login_without_a_method_shows_its_secret_in_the_body() {
        let stored: Client = serde_json::from_str(r#"{"client_id":"a","client_secret":"s"}"#).unwrap();
        assert_eq!(stored.token_endpoint_auth_method, POST);
    }
}

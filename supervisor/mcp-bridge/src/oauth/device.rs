//! A login on another device (RFC 8628): for a machine without a browser that could come back to it.

use std::time::Duration;

use serde::Deserialize;
use talon_bridge::text::cut;
use tokio::time::{Instant, sleep};
use url::Url;

use super::client::Client;
use super::error::OauthError;
use super::fetch::address;
use super::token::{Tokens, ask, refusal};

/// How a token is asked for.
pub(super) const GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";
/// The wait between two questions if the server names none (RFC 8628, 3.2), the least and the longest, in seconds.
const DEFAULT_INTERVAL: u64 = 5;
const MIN_INTERVAL: u64 = 1;
const MAX_INTERVAL: u64 = 60;
/// What `slow_down` adds to it, in seconds (RFC 8628, 3.5).
const SLOW_DOWN: u64 = 5;
/// How long a person has at most, in seconds, whatever the server says; as for a login in a browser.
const MAX_LIFE: u64 = 10 * 60;
/// The longest code that a person types.
const MAX_CODE_BYTES: usize = 64;
/// The longest address that is shown.
const MAX_ADDRESS_BYTES: usize = 2048;

/// What the device authorization endpoint answers.
#[derive(Deserialize)]
struct Authorization {
    device_code: String,
    user_code: String,
    verification_uri: String,
    verification_uri_complete: Option<String>,
    expires_in: u64,
    interval: Option<u64>,
}

/// Who asks for what.
pub(super) struct DeviceLogin<'a> {
    pub(super) endpoint: &'a Url,
    pub(super) token_endpoint: &'a Url,
    pub(super) client: &'a Client,
    pub(super) resource: &'a str,
    pub(super) scope: Option<&'a str>,
}

impl DeviceLogin<'_> {
    /// Shows the person a code and an address, by `show`, and waits until they have used it.
    pub(super) async fn tokens(&self, show: impl FnOnce(&Url, &str)) -> Result<Tokens, OauthError> {
        let authorization = self.begin().await?;
        let (shown, code) = what_is_shown(&authorization)?;
        show(&shown, code);
        let life = authorization.expires_in.min(MAX_LIFE);
        let until = Instant::now() + Duration::from_secs(life);
        let mut interval =
            authorization.interval.unwrap_or(DEFAULT_INTERVAL).clamp(MIN_INTERVAL, MAX_INTERVAL);
        let form =
            [("grant_type", GRANT), ("device_code", &authorization.device_code), ("resource", self.resource)];
        loop {
            let wait = Duration::from_secs(interval);
            if Instant::now() + wait > until {
                return Err(OauthError::Timeout(life.div_ceil(60)));
            }
            sleep(wait).await;
            match ask(self.token_endpoint, self.client, &form).await {
                Err(OauthError::Refused { error, .. }) if error == "authorization_pending" => {}
                Err(OauthError::Refused { error, .. }) if error == "slow_down" => {
                    interval = (interval + SLOW_DOWN).min(MAX_INTERVAL);
                }
                ended => return ended,
            }
        }
    }

    async fn begin(&self) -> Result<Authorization, OauthError> {
        let mut fields = vec![("resource", self.resource)];
        fields.extend(self.scope.map(|scope| ("scope", scope)));
        let reply = self.client.post(self.endpoint, &fields).await?;
        match refusal(&reply) {
            Some(refused) => Err(refused),
            None => reply.json(),
        }
    }
}

/// The address that a person opens, and the code. Both are shown in a terminal, so neither may be anything else than what it
/// is called; and the person is led to no address that a login would not use.
fn what_is_shown(authorization: &Authorization) -> Result<(Url, &str), OauthError> {
    let code = authorization.user_code.as_str();
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == ' ';
    if code.is_empty() || code.len() > MAX_CODE_BYTES || !code.chars().all(plain) {
        return Err(OauthError::UserCode);
    }
    let plain_address = address(&authorization.verification_uri)?;
    let shown = match &authorization.verification_uri_complete {
        Some(complete) => {
            let complete = address(complete)?;
            if complete.origin() != plain_address.origin() {
                return Err(OauthError::Address(cut(complete.as_str(), 200)));
            }
            complete
        }
        None => plain_address,
    };
    if shown.as_str().len() > MAX_ADDRESS_BYTES {
        return Err(OauthError::Address(cut(shown.as_str(), 200)));
    }
    Ok((shown, code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_person_sees_is_an_address_and_a_code() {
        let shown = |code: &str, uri: &str, complete: Option<&str>| {
            let authorization = Authorization {
                device_code: "d".to_owned(),
                user_code: code.to_owned(),
                verification_uri: uri.to_owned(),
                verification_uri_complete: complete.map(str::to_owned),
                expires_in: 60,
                interval: None,
            };
            what_is_shown(&authorization).map(|(uri, code)| format!("{uri} {code}")).ok()
        };
        let uri = "https://a.example/device";
        assert_eq!(shown("WDJB-MJHT", uri, None).unwrap(), "https://a.example/device WDJB-MJHT");
        let complete = Some("https://a.example/device?c=WDJB-MJHT");
        assert!(shown("WDJB-MJHT", uri, complete).unwrap().contains("?c="));
        for (code, uri, complete) in [
            ("\u{1b}[2J", uri, None),
            ("", uri, None),
            (&*"A".repeat(65), uri, None),
            ("A", "http://a.example/device", None),
            ("A", "javascript:alert(1)", None),
            ("A", uri, Some("https://b.example/device")),
        ] {
            assert_eq!(shown(code, uri, complete), None, "{code} {uri} {complete:?}");
        }
    }
}

//! What the operator says, checked.

use std::collections::BTreeMap;

use jsonwebtoken::Algorithm;
use reqwest::{Certificate, Url};
use serde::Deserialize;

/// The most audiences, algorithms, claims or scopes that are listed.
const MAX_LISTED: usize = 64;
/// The most that clocks may differ, in seconds: five minutes, as Kerberos has it. More hides a wrong clock.
const MAX_LEEWAY_SECONDS: u64 = 300;

/// The plugin's settings.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    /// The issuer as its tokens name it, to the letter: `https://login.example.org/realms/staff`.
    issuer: String,
    /// What a token has to be for: one of these stands in its `aud`.
    audience: Vec<String>,
    /// The claims with a token's scopes, as a list or as one text with spaces.
    #[serde(default = "default_scope_claims")]
    scope_claims: Vec<String>,
    /// Which scope a value of these claims becomes. Without it, each is a scope as it is.
    #[serde(default)]
    scopes: BTreeMap<String, String>,
    /// By how much the issuer's clock may differ.
    #[serde(default = "default_leeway_seconds")]
    leeway_seconds: u64,
    /// The signatures that are accepted. None with a shared secret can be.
    #[serde(default = "default_algorithms")]
    algorithms: Vec<String>,
    /// Certificates of authorities in PEM that are trusted for the issuer, instead of the machine's.
    #[serde(default)]
    ca_pem: Option<String>,
}

fn default_scope_claims() -> Vec<String> {
    ["scope", "scp"].map(str::to_owned).to_vec()
}

fn default_leeway_seconds() -> u64 {
    60
}

fn default_algorithms() -> Vec<String> {
    ["RS256", "ES256", "EdDSA"].map(str::to_owned).to_vec()
}

/// The settings, checked.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) issuer: String,
    pub(crate) issuer_url: Url,
    pub(crate) audience: Vec<String>,
    pub(crate) scope_claims: Vec<String>,
    pub(crate) scopes: BTreeMap<String, String>,
    pub(crate) leeway_seconds: u64,
    pub(crate) algorithms: Vec<Algorithm>,
    pub(crate) authorities: Option<Vec<Certificate>>,
}

/// What is wrong with the settings.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SettingsError {
    #[error(
        "issuer: it is no URL: write it as the provider's tokens name it, such as https://login.example.org"
    )]
    IssuerUrl,
    #[error(
        "issuer: it has to be https, since its keys decide who is let in; http is for a loopback address alone"
    )]
    IssuerPlain,
    #[error("issuer: it has a query, a fragment or a user name, which no issuer has: remove it")]
    IssuerParts,
    #[error(
        "audience: list what tokens for this system name in `aud`; without it, every token of the issuer would fit"
    )]
    NoAudience,
    #[error("{0}: it lists nothing, or more than {MAX_LISTED}, or an empty text")]
    List(&'static str),
    #[error("leeway_seconds: {0} is more than {MAX_LEEWAY_SECONDS}: set the clocks")]
    Leeway(u64),
    #[error(
        "algorithms: {0:?} is none that is accepted: choose of RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384 and EdDSA"
    )]
    Algorithm(String),
    #[error("ca_pem: it has no certificate in PEM")]
    Authorities,
}

impl Settings {
    pub(crate) fn checked(config: Config) -> Result<Self, SettingsError> {
        let Config { issuer, audience, scope_claims, scopes, leeway_seconds, algorithms, ca_pem } = config;
        let issuer_url: Url = issuer.parse().map_err(|_| SettingsError::IssuerUrl)?;
        let is_plain_loopback = issuer_url.scheme() == "http" && is_loopback(&issuer_url);
        if issuer_url.scheme() != "https" && !is_plain_loopback {
            return Err(SettingsError::IssuerPlain);
        }
        let more = issuer_url.query().is_some() || issuer_url.fragment().is_some();
        if more || !issuer_url.username().is_empty() || issuer_url.password().is_some() {
            return Err(SettingsError::IssuerParts);
        }
        if audience.is_empty() {
            return Err(SettingsError::NoAudience);
        }
        for (key, list) in
            [("audience", &audience), ("scope_claims", &scope_claims), ("algorithms", &algorithms)]
        {
            if list.is_empty() || list.len() > MAX_LISTED || list.iter().any(String::is_empty) {
                return Err(SettingsError::List(key));
            }
        }
        if scopes.len() > MAX_LISTED {
            return Err(SettingsError::List("scopes"));
        }
        if leeway_seconds > MAX_LEEWAY_SECONDS {
            return Err(SettingsError::Leeway(leeway_seconds));
        }
        let algorithms = algorithms.iter().map(|word| algorithm(word)).collect::<Result<_, _>>()?;
        let authorities = ca_pem.as_deref().map(authorities).transpose()?;
        Ok(Self {
            issuer,
            issuer_url,
            audience,
            scope_claims,
            scopes,
            leeway_seconds,
            algorithms,
            authorities,
        })
    }
}

pub(crate) fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// The signatures of private keys alone: of a shared secret, the issuer's public key would be one.
fn algorithm(word: &str) -> Result<Algorithm, SettingsError> {
    match word.parse() {
        Ok(Algorithm::HS256 | Algorithm::HS384 | Algorithm::HS512) | Err(_) => {
            const MOST_SHOWN: usize = 32;
            Err(SettingsError::Algorithm(word.chars().take(MOST_SHOWN).collect()))
        }
        Ok(algorithm) => Ok(algorithm),
    }
}

fn authorities(pem: &str) -> Result<Vec<Certificate>, SettingsError> {
    let found = Certificate::from_pem_bundle(pem.as_bytes()).map_err(|_| SettingsError::Authorities)?;
    if found.is_empty() { Err(SettingsError::Authorities) } else { Ok(found) }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn checked(change: Value) -> Result<Settings, SettingsError> {
        let mut config = json!({"issuer": "https://login.example.org/realms/staff", "audience": ["talon"]});
        for (key, value) in change.as_object().expect("an object") {
            config[key] = value.clone();
        }
        Settings::checked(serde_json::from_value(config).expect("settings"))
    }

    // Promises: EXT-48
    #[test]
    fn settings_that_would_let_anybody_in_are_refused() {
        let plain = checked(json!({})).expect("settings");
        assert_eq!(plain.algorithms, [Algorithm::RS256, Algorithm::ES256, Algorithm::EdDSA]);
        assert!(checked(json!({"issuer": "http://127.0.0.1:8080"})).is_ok());
        for (change, says) in [
            (json!({"issuer": "login.example.org"}), "no URL"),
            (json!({"issuer": "http://login.example.org"}), "has to be https"),
            (json!({"issuer": "https://login.example.org/?a=b"}), "a query"),
            (json!({"audience": []}), "every token of the issuer"),
            (json!({"audience": [""]}), "lists nothing"),
            (json!({"scope_claims": []}), "lists nothing"),
            (json!({"leeway_seconds": 301}), "set the clocks"),
            (json!({"algorithms": ["HS256"]}), "\"HS256\" is none"),
            (json!({"algorithms": ["none"]}), "\"none\" is none"),
            (json!({"ca_pem": "-----BEGIN NOTHING-----"}), "no certificate"),
        ] {
            let error = checked(change).expect_err(says).to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}

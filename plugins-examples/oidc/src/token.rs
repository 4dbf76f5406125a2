//! Whether a token is right, and what it says. No error repeats a part of the token.

use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header, get_current_timestamp};
use serde::Deserialize;
use serde_json::{Map, Number, Value};
use talon_sdk::Authentication;

use crate::settings::Settings;

/// The largest token. 16 KiB: servers take no more of all headers together.
const MAX_TOKEN_BYTES: usize = 16 << 10;
/// The longest id of a key.
const MAX_KEY_ID_BYTES: usize = 512;
/// The most scopes of an answer, as the contract has it.
const MAX_SCOPES: usize = 64;

/// Why a token is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TokenError {
    #[error("the token has more than {MAX_TOKEN_BYTES} bytes")]
    TooLong,
    #[error("it is no signed token, or its signature is of a kind that is not known")]
    Shape,
    #[error("the token is signed with {0:?}, which `algorithms` does not list")]
    Algorithm(Algorithm),
    #[error("the token needs extensions (`crit`) that are not known")]
    Critical,
    #[error("the token is of another type than JWT or at+jwt")]
    Type,
    #[error("the token's signature is wrong")]
    Signature,
    #[error("the token has expired")]
    Expired,
    #[error("the token is not valid yet")]
    NotYet,
    #[error("the token is of another issuer")]
    Issuer,
    #[error("the token is for another audience")]
    Audience,
    #[error("the token lacks the claim {0}, or it is not of its form")]
    Claim(&'static str),
    #[error("the token cannot be read")]
    Unreadable,
}

/// What a token says before its signature is checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TokenHeader {
    pub(crate) algorithm: Algorithm,
    pub(crate) key_id: Option<String>,
}

/// The claims that are read. Each other one may be a scope claim.
#[derive(Deserialize)]
struct Claims {
    // `iss` may not be a list here, as it may for the library.
    iss: String,
    sub: String,
    exp: Number,
    #[serde(default)]
    iat: Option<Number>,
    #[serde(flatten)]
    others: Map<String, Value>,
}

/// Whose token it is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Subject {
    subject: String,
    scopes: Vec<String>,
    expires_unix_ms: i64,
    display_name: Option<String>,
}

/// Checks tokens.
#[derive(Debug)]
pub(crate) struct Verifier {
    settings: Settings,
}

impl Verifier {
    pub(crate) fn new(settings: Settings) -> Self {
        Self { settings }
    }

    /// What the token says of its signature, if that is one that may count.
    pub(crate) fn header(&self, token: &str) -> Result<TokenHeader, TokenError> {
        if token.len() > MAX_TOKEN_BYTES {
            return Err(TokenError::TooLong);
        }
        let header = decode_header(token).map_err(|_| TokenError::Shape)?;
        if !self.settings.algorithms.contains(&header.alg) {
            return Err(TokenError::Algorithm(header.alg));
        }
        if header.crit.is_some() {
            return Err(TokenError::Critical);
        }
        let is_known = |kind: &String| {
            let kind = kind.to_ascii_lowercase();
            ["jwt", "at+jwt", "application/at+jwt"].contains(&kind.as_str())
        };
        if !header.typ.as_ref().is_none_or(is_known) {
            return Err(TokenError::Type);
        }
        // Keys and addresses in the header (`jwk`, `jku`, `x5u`) are never looked at: the issuer's own keys count.
        let key_id = header.kid.filter(|id| id.len() <= MAX_KEY_ID_BYTES);
        Ok(TokenHeader { algorithm: header.alg, key_id })
    }

    /// Whose token it is.
    pub(crate) fn verify(
        &self,
        token: &str,
        header: &TokenHeader,
        key: &DecodingKey,
    ) -> Result<Subject, TokenError> {
        let settings = &self.settings;
        let mut validation = Validation::new(header.algorithm);
        validation.leeway = settings.leeway_seconds;
        validation.validate_nbf = true;
        validation.set_audience(&settings.audience);
        validation.set_issuer(&[&settings.issuer]);
        validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        let claims =
            decode::<Claims>(token, key, &validation).map_err(|error| rejection(error.kind()))?.claims;
        if claims.iss != settings.issuer {
            return Err(TokenError::Issuer);
        }
        let latest = get_current_timestamp().saturating_add(settings.leeway_seconds);
        let issued =
            claims.iat.as_ref().map(|issued| seconds(issued).ok_or(TokenError::Claim("iat"))).transpose()?;
        if issued.is_some_and(|issued| u64::try_from(issued).is_ok_and(|issued| issued > latest)) {
            return Err(TokenError::NotYet);
        }
        let expires = seconds(&claims.exp).and_then(|seconds| seconds.checked_mul(1000));
        let names = ["name", "preferred_username", "email"].into_iter();
        let name = names.filter_map(|claim| claims.others.get(claim)?.as_str()).next();
        Ok(Subject {
            scopes: self.scopes(&claims.others),
            subject: claims.sub,
            expires_unix_ms: expires.ok_or(TokenError::Claim("exp"))?,
            display_name: name.map(str::to_owned),
        })
    }

    fn scopes(&self, claims: &Map<String, Value>) -> Vec<String> {
        let mut scopes = Vec::new();
        for claim in self.settings.scope_claims.iter().filter_map(|claim| claims.get(claim)) {
            let values: Vec<&str> = match claim {
                Value::String(text) => text.split_ascii_whitespace().collect(),
                Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
                _ => Vec::new(),
            };
            for value in values {
                let scope = if self.settings.scopes.is_empty() {
                    Some(value)
                } else {
                    self.settings.scopes.get(value).map(String::as_str)
                };
                if let Some(scope) = scope.filter(|scope| !scopes.iter().any(|known| known == scope)) {
                    scopes.push(scope.to_owned());
                }
            }
        }
        scopes.truncate(MAX_SCOPES);
        scopes
    }
}

/// Whole seconds since the beginning of 1970; a claim may have a fraction.
fn seconds(claim: &Number) -> Option<i64> {
    const MOST: f64 = 1e15;
    let whole = || claim.as_f64().filter(|seconds| seconds.abs() < MOST).map(|seconds| seconds as i64);
    claim.as_i64().or_else(whole)
}

fn rejection(kind: &ErrorKind) -> TokenError {
    match kind {
        ErrorKind::ExpiredSignature => TokenError::Expired,
        ErrorKind::ImmatureSignature => TokenError::NotYet,
        ErrorKind::InvalidIssuer => TokenError::Issuer,
        ErrorKind::InvalidAudience => TokenError::Audience,
        ErrorKind::InvalidSignature | ErrorKind::InvalidAlgorithm => TokenError::Signature,
        ErrorKind::MissingRequiredClaim(claim) | ErrorKind::InvalidClaimFormat(claim) => {
            let known = ["exp", "iss", "aud", "sub", "nbf"].into_iter().find(|known| known == claim);
            TokenError::Claim(known.unwrap_or("exp"))
        }
        _ => TokenError::Unreadable,
    }
}

impl Subject {
    pub(crate) fn into_answer(self) -> Authentication {
        let mut answer = Authentication::accepted(self.subject).expires_unix_ms(self.expires_unix_ms);
        for scope in self.scopes {
            answer = answer.scope(scope);
        }
        match self.display_name {
            Some(name) => answer.display_name(name),
            None => answer,
        }
    }
}

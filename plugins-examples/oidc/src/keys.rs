//! The issuer's keys: which one a token is signed with, and when they are fetched.

use std::time::Duration;

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyOperations, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use talon_sdk::tracing;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::issuer::{Issuer, IssuerError};
use crate::token::TokenHeader;

/// How old keys may be before they are fetched again: a key that the issuer takes back counts no longer than that, if the issuer
/// can be asked.
const FRESH: Duration = Duration::from_secs(10 * 60);
/// How old they may be if the issuer cannot be asked. Afterwards nobody is let in.
const STALE: Duration = Duration::from_secs(60 * 60);
/// How often at most they are fetched for a key that is not among them. Anybody can send a token with such a key.
const UNKNOWN_INTERVAL: Duration = Duration::from_secs(60);
/// How long after a failure the issuer is left alone, while there are old keys or none.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);
/// The shortest modulus of an RSA key: 2048 bits.
const MIN_RSA_BYTES: usize = 256;

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeyError {
    #[error("the issuer has no key for it")]
    Unknown,
    #[error(transparent)]
    Issuer(#[from] IssuerError),
}

/// The issuer with its keys.
#[derive(Debug)]
pub(crate) struct Keys {
    issuer: Issuer,
    /// Held while they are fetched, so that many tokens cause one request.
    cache: Mutex<Cache>,
}

#[derive(Debug, Default)]
struct Cache {
    keys: Vec<Jwk>,
    fetched: Option<Instant>,
    /// When they were last fetched for an unknown key.
    asked_for_unknown: Option<Instant>,
    failed: Option<(Instant, IssuerError)>,
}

impl Keys {
    pub(crate) fn new(issuer: Issuer) -> Self {
        Self { issuer, cache: Mutex::default() }
    }

    /// The key that a token names.
    pub(crate) async fn find(&self, header: &TokenHeader) -> Result<DecodingKey, KeyError> {
        let mut cache = self.cache.lock().await;
        let now = Instant::now();
        if !cache.is_younger_than(FRESH, now) {
            let fetched = self.fetch(&mut cache, now).await;
            if !cache.is_younger_than(STALE, now) {
                fetched?;
            }
        }
        if let Some(key) = cache.find(header) {
            return Ok(key);
        }
        let is_too_soon = |asked: Instant| now.duration_since(asked) < UNKNOWN_INTERVAL;
        if cache.asked_for_unknown.is_some_and(is_too_soon) || cache.fetched == Some(now) {
            return Err(KeyError::Unknown);
        }
        cache.asked_for_unknown = Some(now);
        self.fetch(&mut cache, now).await?;
        cache.find(header).ok_or(KeyError::Unknown)
    }

    async fn fetch(&self, cache: &mut Cache, now: Instant) -> Result<(), IssuerError> {
        if let Some((failed, error)) = &cache.failed
            && now.duration_since(*failed) < RETRY_INTERVAL
        {
            return Err(error.clone());
        }
        match self.issuer.keys().await {
            Ok(keys) => {
                *cache = Cache { keys, fetched: Some(now), failed: None, ..*cache };
                Ok(())
            }
            Err(error) => {
                tracing::warn!(error = %error, "the issuer's keys cannot be had");
                cache.failed = Some((now, error.clone()));
                Err(error)
            }
        }
    }
}

impl Cache {
    fn is_younger_than(&self, age: Duration, now: Instant) -> bool {
        self.fetched.is_some_and(|fetched| now.duration_since(fetched) < age)
    }

    /// The key with the token's id, or the only one that fits if the token names none.
    fn find(&self, header: &TokenHeader) -> Option<DecodingKey> {
        let mut fitting = self.keys.iter().filter(|key| {
            let named = header.key_id.as_ref().is_none_or(|id| key.common.key_id.as_ref() == Some(id));
            named && fits(key, header.algorithm)
        });
        let key = fitting.next()?;
        if header.key_id.is_none() && fitting.next().is_some() {
            return None;
        }
        DecodingKey::from_jwk(key).ok()
    }
}

/// Whether a key may be used for a signature: its type, its curve, its length, and what the issuer says it is for.
fn fits(key: &Jwk, algorithm: Algorithm) -> bool {
    let of_type = match (&key.algorithm, algorithm) {
        (
            AlgorithmParameters::RSA(rsa),
            Algorithm::RS256
            | Algorithm::RS384
            | Algorithm::RS512
            | Algorithm::PS256
            | Algorithm::PS384
            | Algorithm::PS512,
        ) => rsa.n.trim_end_matches('=').len() * 3 / 4 >= MIN_RSA_BYTES,
        (AlgorithmParameters::EllipticCurve(key), Algorithm::ES256) => key.curve == EllipticCurve::P256,
        (AlgorithmParameters::EllipticCurve(key), Algorithm::ES384) => key.curve == EllipticCurve::P384,
        (AlgorithmParameters::OctetKeyPair(key), Algorithm::EdDSA) => key.curve == EllipticCurve::Ed25519,
        _ => false,
    };
    let of_use = key.common.public_key_use.as_ref().is_none_or(|used| *used == PublicKeyUse::Signature);
    let operations = key.common.key_operations.as_ref();
    let verifies = operations.is_none_or(|operations| operations.contains(&KeyOperations::Verify));
    let word = |value: Result<serde_json::Value, _>| value.ok();
    let of_algorithm = key
        .common
        .key_algorithm
        .is_none_or(|own| word(serde_json::to_value(own)) == word(serde_json::to_value(algorithm)));
    of_type && of_use && verifies && of_algorithm
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn key(value: Value) -> Jwk {
        serde_json::from_value(value).expect("a key")
    }

    fn rsa(bytes: usize) -> Value {
        json!({"kty": "RSA", "kid": "a", "n": "A".repeat((bytes * 4).div_ceil(3)), "e": "AQAB"})
    }

    fn with(mut value: Value, key: &str, to: Value) -> Value {
        value[key] = to;
        value
    }

    // Promises: EXT-49
    #[test]
    fn a_key_is_used_for_what_it_is_for() {
        assert!(fits(&key(rsa(256)), Algorithm::RS256) && fits(&key(rsa(256)), Algorithm::PS512));
        assert!(fits(
            &key(with(with(rsa(256), "use", json!("sig")), "alg", json!("RS256"))),
            Algorithm::RS256
        ));
        for (wrong, algorithm) in [
            (rsa(128), Algorithm::RS256),
            (rsa(256), Algorithm::ES256),
            (rsa(256), Algorithm::HS256),
            (with(rsa(256), "use", json!("enc")), Algorithm::RS256),
            (with(rsa(256), "key_ops", json!(["encrypt"])), Algorithm::RS256),
            (with(rsa(256), "alg", json!("RS512")), Algorithm::RS256),
            (json!({"kty": "EC", "crv": "P-384", "x": "AA", "y": "AA"}), Algorithm::ES256),
            (json!({"kty": "oct", "k": "c2VjcmV0"}), Algorithm::HS256),
            (json!({"kty": "oct", "k": "c2VjcmV0"}), Algorithm::RS256),
        ] {
            assert!(!fits(&key(wrong.clone()), algorithm), "{wrong}");
        }
    }

    #[test]
    fn a_token_without_a_key_id_needs_a_single_key() {
        let header = TokenHeader { algorithm: Algorithm::RS256, key_id: None };
        let one = Cache { keys: vec![key(rsa(256))], ..Cache::default() };
        assert!(one.find(&header).is_some());
        let two = Cache { keys: vec![key(rsa(256)), key(with(rsa(256), "kid", json!("b")))], ..one };
        assert!(two.find(&header).is_none());
        let named = TokenHeader { key_id: Some("b".to_owned()), ..header };
        assert!(two.find(&named).is_some());
    }
}

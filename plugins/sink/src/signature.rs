//! The signature: an HMAC with SHA-256 over the time and the body, so that a receiver knows who sent it, that nothing was
//! changed, and that nobody sends it again later.

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

/// The value of the signature's header: `t=TIME,v1=HEX`, where HEX is the HMAC of `TIME.BODY`.
#[must_use]
pub fn signature(secret: &str, unix_seconds: u64, body: &[u8]) -> String {
    let mut mac =
        Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("an HMAC takes a key of any length");
    mac.update(format!("{unix_seconds}.").as_bytes());
    mac.update(body);
    format!("t={unix_seconds},v1={}", hex::encode(mac.finalize().into_bytes()))
}

/// Why a signature is not believed. The texts say nothing of the secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// It is none.
    #[error("the signature is not t=TIME,v1=HEX")]
    Form,
    /// It is of another time.
    #[error("the signature's time is more than {0} s away: set the clock, and sign each attempt anew")]
    Time(u64),
    /// It is another one's, or of another body.
    #[error("the signature is not of this body by this secret")]
    Other,
}

/// Whether a signature is one of this body by this secret, made at most so many seconds before or after now.
///
/// # Errors
/// [`SignatureError`].
pub fn verify(secret: &str, given: &str, body: &[u8], now: u64, max_age: u64) -> Result<(), SignatureError> {
    let (time, hex_mac) = given
        .strip_prefix("t=")
        .and_then(|rest| rest.split_once(",v1="))
        .and_then(|(time, mac)| Some((time.parse::<u64>().ok()?, mac)))
        .ok_or(SignatureError::Form)?;
    let mac = hex::decode(hex_mac).map_err(|_| SignatureError::Form)?;
    if now.abs_diff(time) > max_age {
        return Err(SignatureError::Time(max_age));
    }
    let mut own =
        Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("an HMAC takes a key of any length");
    own.update(format!("{time}.").as_bytes());
    own.update(body);
    // In constant time.
    own.verify_slice(&mac).map_err(|_| SignatureError::Other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_hmac_of_time_and_body() {
        // printf '1780000000.{"a":1}' | openssl dgst -sha256 -hmac 'it is a secret'
        let expected = "t=1780000000,v1=02da649632872e23926c0cc02d86c441b106e5c46464ecc4bc66b20fb02c42b7";
        assert_eq!(signature("it is a secret", 1_780_000_000, br#"{"a":1}"#), expected);
    }

    // Promises: GW-212
    #[test]
    fn only_a_fresh_signature_of_the_body_counts() {
        let (now, body) = (1_780_000_000, br#"{"a":1}"#);
        let good = signature("it is a secret", now, body);
        assert_eq!(verify("it is a secret", &good, body, now + 300, 300), Ok(()));
        assert_eq!(verify("it is a secret", &good, body, now - 300, 300), Ok(()));
        assert_eq!(verify("it is a secret", &good, body, now + 301, 300), Err(SignatureError::Time(300)));
        assert_eq!(verify("it is a secret", &good, b"{}", now, 300), Err(SignatureError::Other));
        assert_eq!(verify("another", &good, body, now, 300), Err(SignatureError::Other));
        // The time is signed, too.
        let later = good.replace("t=1780000000", "t=1780000001");
        assert_eq!(verify("it is a secret", &later, body, now, 300), Err(SignatureError::Other));
        for none in ["", "t=,v1=", "t=1,v1=zz", "v1=00", "t=-1,v1=00", &good[..19]] {
            assert_eq!(verify("it is a secret", none, body, now, 300), Err(SignatureError::Form), "{none}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_judged(given in ".{0,100}", now in proptest::prelude::any::<u64>()) {
            proptest::prop_assert!(verify("it is a secret", &given, b"", now, 300).is_err());
        }
    }
}

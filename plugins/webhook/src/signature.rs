//! The signature: an HMAC with SHA-256 over the time and the body, so that a receiver knows who sent it, that nothing was
//! changed, and that nobody sends it again later.

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

/// The value of the signature's header: `t=TIME,v1=HEX`, where HEX is the HMAC of `TIME.BODY`.
pub(crate) fn signature(secret: &str, unix_seconds: u64, body: &[u8]) -> String {
    let mut mac =
        Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("an HMAC takes a key of any length");
    mac.update(format!("{unix_seconds}.").as_bytes());
    mac.update(body);
    format!("t={unix_seconds},v1={}", hex::encode(mac.finalize().into_bytes()))
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
}

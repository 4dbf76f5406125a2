//! Whether a field of a form asks for a secret. MCP forbids that: a secret goes to a page of its server
//! (URL mode), and not through programs that show, log and store what is typed.
//! <https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation>
//!
//! Names are all that a form says of its fields, so this is a net for honest servers. A server that calls the
//! field for a password `value` is not found out.

use serde_json::{Map, Value};

/// Words that mean a secret wherever they stand.
const ALWAYS: [&str; 9] = ["password", "passwd", "passphrase", "passcode", "pwd", "cvv", "cvc", "otp", "mfa"];
/// Words that mean a secret at the end of a name: `github_token`, and not `token_limit`.
const AT_THE_END: [&str; 6] = ["secret", "secrets", "token", "credential", "credentials", "pin"];
/// The same, as two words.
const PAIRS: [[&str; 2]; 8] = [
    ["api", "key"],
    ["access", "key"],
    ["private", "key"],
    ["secret", "key"],
    ["ssh", "key"],
    ["card", "number"],
    ["pin", "code"],
    ["security", "code"],
];

/// Whether a field with this name and schema asks for a secret.
pub(crate) fn asks_for_secret(name: &str, schema: &Map<String, Value>) -> bool {
    let text = |key: &str| schema.get(key).and_then(Value::as_str).unwrap_or_default();
    text("format") == "password"
        || schema.get("writeOnly") == Some(&Value::Bool(true))
        || [name, text("title")].into_iter().any(sounds_secret)
}

fn sounds_secret(text: &str) -> bool {
    let words = words(text);
    let last = words.last().map(String::as_str).unwrap_or_default();
    let ends_with = |pair: &[&str; 2]| {
        words.len() >= 2 && words[words.len() - 2..].iter().zip(pair).all(|(word, other)| word == other)
    };
    words.iter().any(|word| ALWAYS.contains(&word.as_str()))
        || AT_THE_END.contains(&last)
        || ["apikey", "accesskey", "privatekey"].contains(&last)
        || PAIRS.iter().any(ends_with)
}

/// The words of a name in small letters: `apiKey`, `api_key` and `API key` are two.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = ' ';
    for c in text.chars() {
        let begins = c.is_uppercase() && before.is_lowercase();
        if begins || !c.is_alphabetic() {
            words.push(String::new());
        }
        if c.is_alphabetic() {
            words.last_mut().expect("there is always one").extend(c.to_lowercase());
        }
        before = c;
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    // Promises: MCP-51
    #[test]
    fn secrets_are_known_by_their_names() {
        let asks = |name: &str, more: Value| {
            let Value::Object(schema) = more else { panic!("an object") };
            asks_for_secret(name, &schema)
        };
        for name in [
            "password",
            "db_password",
            "newPassword2",
            "PASSPHRASE",
            "githubToken",
            "client-secret",
            "apiKey",
            "api_key",
            "API key",
            "apikey",
            "card_number",
            "pin",
            "cvv",
        ] {
            assert!(asks(name, json!({})), "{name}");
        }
        assert!(asks("value", json!({"title": "Your password"})));
        assert!(asks("value", json!({"format": "password"})));
        assert!(asks("value", json!({"writeOnly": true})));
        for name in [
            "name",
            "token_limit",
            "max_tokens",
            "secret_santa",
            "key",
            "shipping",
            "pinned",
            "card",
            "number",
            "compass",
        ] {
            assert!(!asks(name, json!({"title": "What it is called"})), "{name}");
        }
    }
}

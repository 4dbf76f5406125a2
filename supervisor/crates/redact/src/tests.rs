use proptest::prelude::*;

use super::*;

/// Made of parts, so that no scanner takes this file for a leak.
fn samples() -> Vec<(&'static str, String)> {
    vec![
        ("aws access key", ["AKIA", "IOSFODNN7", "EXAMPLE"].concat().replace('0', "2")),
        ("github token", format!("ghp_{}", "a1B2".repeat(9))),
        ("gitlab token", format!("glpat-{}", "a1B2c".repeat(4))),
        ("slack token", format!("xoxb-{}", "12345-abcde".repeat(2))),
        ("google api key", format!("AIza{}", "aB3d-".repeat(7))),
        ("stripe key", format!("sk_live_{}", "a1B2".repeat(6))),
        ("api key of a model provider", format!("sk-ant-{}", "a1B2_".repeat(6))),
        ("npm token", format!("npm_{}", "a1B2".repeat(9))),
        ("json web token", format!("eyJ{0}.eyJ{0}.{0}", "hbGciOiJIUzI1NiJ9")),
        ("private key", format!("-----BEGIN {0} KEY-----\nMIIE\n-----END {0} KEY-----", "RSA PRIVATE")),
    ]
}

// Promises: SHADOW-50
#[test]
fn every_known_format_is_replaced_and_named() {
    for (rule, secret) in samples() {
        let text = format!("before {secret} after");
        let redacted = redact(&text);
        assert!(!redacted.text.contains(&secret), "{rule}: {}", redacted.text);
        assert!(redacted.text.contains(&format!("[redacted: {rule}]")), "{rule}: {}", redacted.text);
        assert!(
            redacted.text.starts_with("before ") && redacted.text.ends_with(" after"),
            "{}",
            redacted.text
        );
        assert!(secrets(&text).iter().any(|secret| secret.certain), "{rule}");
    }
}

// Promises: SHADOW-50
#[test]
fn values_of_names_that_sound_like_secrets_are_replaced() {
    for (text, secret) in [
        ("export DB_PASSWORD=hunter2hunter2", "hunter2hunter2"),
        ("password: \"correct horse\" token='abcdefgh'", "abcdefgh"),
        ("curl -H 'Authorization: Bearer abcdefghijkl' https://x", "abcdefghijkl"),
        ("curl -u me:s3cr3t https://x", "s3cr3t"),
        ("deploy --token abcd1234efgh", "abcd1234efgh"),
        ("git clone https://me:pa55word@forge/x.git", "pa55word"),
        ("mysql -uroot -phunter2 db", "hunter2"),
        ("DB_PASSWORD=Pa$$w0rd!xyz", "w0rd!xyz"),
        ("DB_PASSWORD=Passw(rd;xy,z", "rd;xy,z"),
        ("password=abcdefgh$rest", "$rest"),
        ("password: \"correct horse battery\"", "horse battery"),
        ("password='correct horse \"battery\"'", "battery"),
        ("password=truenorth99", "truenorth99"),
        ("password: \"!hunter2hunter2\"", "hunter2"),
        ("curl -u 'me:none of yours' https://x", "of yours"),
        ("curl -u me:default1 https://x", "default1"),
        ("mysql -uroot -p'your pass1' db", "pass1"),
        ("mysql -uroot -p%abc123 db", "abc123"),
        ("deploy --password 'two words' now", "two words"),
        ("deploy --token string.of.words", "of.words"),
        ("\"client_secret\": \"0123456789abcdef\"", "0123456789abcdef"),
    ] {
        let redacted = redact(text);
        assert!(!redacted.text.contains(secret) && redacted.count > 0, "{text}: {}", redacted.text);
    }
}

// Promises: SHADOW-51
#[test]
fn ordinary_text_stays() {
    for text in [
        "let token = self.tokens.next();",
        "password: String,",
        "the secret of good code: tests",
        "api_key: ${API_KEY}",
        "cargo test --workspace",
        "sk-short",
        "https://example.org:8080/path",
        "password = os.environ['X']",
        "let tokens: Vec<String> = lex(input, other)?;",
        "let secret = load_secret(path)?;",
        "check(token=token,other=1)",
        "auth: &credentials,",
        "connect(config.password).await",
        "println!(\"password: \", name, \"and more\");",
        "PASSWORD=$DB_PASSWORD",
        "PASSWORD=$(cat /run/secret)",
        "password: changeme",
        "password: \"<password>\"",
        "curl -u \"$USER_NAME:$USER_PASSWORD\" https://x",
        "deploy --token $TOKEN",
    ] {
        assert_eq!(redact(text), Redacted { text: text.to_owned(), count: 0 });
    }
}

proptest! {
    // Promises: SHADOW-50
    #[test]
    fn a_secret_never_survives_whatever_surrounds_it(
        before in "[ -~\n]{0,60}", after in "[ -~\n]{0,60}", which in 0usize..10
    ) {
        let (_, secret) = samples().swap_remove(which);
        let text = format!("{before} {secret} {after}");
        let redacted = redact(&text);
        prop_assert!(!redacted.text.contains(&secret), "{}", redacted.text);
        prop_assert!(redacted.count >= 1);
    }

    #[test]
    fn any_text_is_taken(text in "\\PC{0,300}") {
        let redacted = redact(&text);
        prop_assert_eq!(redacted.count == 0, redacted.text == text);
    }

    /// What the shell's reporter redacted stays as it is in the watcher.
    #[test]
    fn redacting_again_changes_nothing(
        words in prop::collection::vec(prop_oneof!["(--)?(token|password|secret)[= :]", "[a-zA-Z0-9]{1,20}", " "], 0..12)
    ) {
        let once = redact(&words.concat()).text;
        prop_assert_eq!(redact(&once), Redacted { text: once, count: 0 });
    }
}

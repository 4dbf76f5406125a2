//! The binary under the SDK's mock host, against an issuer on this machine.

mod issuer;

use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Value, json};
use talon_sdk::testing::{Answer, Host};

use self::issuer::{Issuer, SigningKey, now};

const PROGRAM: &str = env!("CARGO_BIN_EXE_oidc");

fn config(issuer: &Issuer) -> Value {
    json!({"issuer": issuer.url, "audience": ["talon"], "ca_pem": issuer.ca_pem, "leeway_seconds": 5})
}

async fn ask(host: &Host, token: &str) -> Answer {
    let asked = json!({"credential": token});
    host.call_role("auth_provider", "authenticate", asked).await.expect("answers")
}

/// Why a token is rejected.
async fn rejected(host: &Host, token: &str) -> String {
    let answer = ask(host, token).await;
    let said = answer.structured.unwrap_or_else(|| panic!("no answer: {:?}", answer.error));
    assert_eq!(said["outcome"], "rejected", "{said}");
    assert!(said.get("subject").is_none());
    said["reason"].as_str().expect("a reason").to_owned()
}

fn with(mut claims: Value, key: &str, value: Value) -> Value {
    claims[key] = value;
    claims
}

// Promises: EXT-48
#[tokio::test]
async fn a_token_of_the_issuer_is_accepted_and_no_other() {
    let (issuer, key) = (Issuer::start().await, SigningKey::new("one"));
    issuer.publish(&[&key]);
    let host = Host::builder(PROGRAM).config(config(&issuer)).launch().await.expect("launches");
    assert_eq!(issuer.fetched(), 0, "no network before there is a token");
    let claims = issuer.claims();
    let said = ask(&host, &key.sign(&claims)).await.structured.expect("an answer");
    assert_eq!((&said["outcome"], &said["subject"]), (&json!("accepted"), &json!("248289761001")));
    assert_eq!(said["scopes"], json!(["openid", "talon:chat"]));
    assert_eq!(said["display_name"], "Ada Lovelace");
    assert_eq!(said["expires_unix_ms"], json!(claims["exp"].as_u64().expect("a number") * 1000));

    let without = |claim: &str| {
        let mut claims = claims.clone();
        claims.as_object_mut().expect("an object").remove(claim);
        claims
    };
    for (wrong, says) in [
        (with(claims.clone(), "aud", json!("other")), "another audience"),
        (with(claims.clone(), "aud", json!([])), "another audience"),
        (without("aud"), "lacks the claim aud"),
        (with(claims.clone(), "iss", json!("https://evil.example")), "another issuer"),
        (with(claims.clone(), "iss", json!([issuer.url, "https://evil.example"])), "cannot be read"),
        (without("iss"), "the token"),
        (with(claims.clone(), "exp", json!(now() - 60)), "has expired"),
        (without("exp"), "the token"),
        (with(claims.clone(), "nbf", json!(now() + 600)), "not valid yet"),
        (with(claims.clone(), "iat", json!(now() + 600)), "not valid yet"),
        (without("sub"), "the token"),
    ] {
        let reason = rejected(&host, &key.sign(&wrong)).await;
        assert!(reason.contains(says), "{wrong}: {reason}");
    }
    // Another's key under the same name.
    assert!(rejected(&host, &SigningKey::new("one").sign(&claims)).await.contains("signature is wrong"));
    assert_eq!(issuer.fetched(), 1, "all of these were judged by what was fetched once");
    assert!(host.shutdown().await.expect("ends").success());
}

// Promises: EXT-48
#[tokio::test]
async fn no_token_chooses_how_it_is_checked() {
    let (issuer, key) = (Issuer::start().await, SigningKey::new("one"));
    issuer.publish(&[&key]);
    let host = Host::builder(PROGRAM).config(config(&issuer)).launch().await.expect("launches");
    let claims = issuer.claims();
    let good = key.sign(&claims);
    let (head, rest) = good.split_once('.').expect("two parts");
    let (body, signature) = rest.split_once('.').expect("three parts");
    // {"alg":"none"}, with and without a signature.
    let none = "eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0";
    let secret = EncodingKey::from_secret(issuer.ca_pem.as_bytes());
    let shared =
        encode(&Header { kid: Some("one".to_owned()), ..Header::new(Algorithm::HS256) }, &claims, &secret);
    let critical = Header {
        kid: Some("one".to_owned()),
        crit: Some(vec!["b64".to_owned()]),
        ..Header::new(Algorithm::ES256)
    };
    let critical = key.sign_with(&critical, &claims);
    let other_type = Header {
        kid: Some("one".to_owned()),
        typ: Some("logout+jwt".to_owned()),
        ..Header::new(Algorithm::ES256)
    };
    let other_type = key.sign_with(&other_type, &claims);
    for (token, says) in [
        (format!("{none}.{body}."), "no signed token"),
        (format!("{none}.{body}.{signature}"), "no signed token"),
        (shared.expect("signed"), "HS256, which `algorithms` does not list"),
        (critical, "extensions"),
        (other_type, "another type"),
        (format!("{head}.{body}."), "signature is wrong"),
        (format!("{head}.{body}.{signature}AA"), "the token"),
        (String::new(), "no signed token"),
        ("a.b.c".to_owned(), "no signed token"),
        ("x".repeat(20_000), "more than 16384 bytes"),
    ] {
        let reason = rejected(&host, &token).await;
        assert!(reason.contains(says), "{token}: {reason}");
        assert!(token.len() < 20 || !reason.contains(&token[..20]), "no reason repeats the token");
    }
    let other = json!({"scheme": "basic", "credential": good, "peer": {}});
    let said = host.call("authenticate", other).await.expect("answers").structured.expect("an answer");
    assert_eq!(said["outcome"], "rejected");
}

// Promises: EXT-49
#[tokio::test]
async fn keys_that_rotate_are_found_and_the_issuer_is_not_flooded() {
    let issuer = Issuer::start().await;
    let [one, two, three] = ["one", "two", "three"].map(SigningKey::new);
    issuer.publish(&[&one]);
    let host = Host::builder(PROGRAM).config(config(&issuer)).launch().await.expect("launches");
    let claims = issuer.claims();
    let accepted = async |key: &SigningKey| {
        let said = ask(&host, &key.sign(&claims)).await.structured.expect("an answer");
        said["outcome"] == "accepted"
    };
    assert!(accepted(&one).await);
    issuer.publish(&[&one, &two]);
    assert!(accepted(&two).await && accepted(&one).await);
    assert_eq!(issuer.fetched(), 2);
    // Within the minute, unknown keys cause no further request, whoever sends them.
    issuer.publish(&[&three]);
    for _ in 0..20 {
        assert!(!accepted(&three).await);
    }
    assert_eq!(issuer.fetched(), 2);
    // An issuer that is down changes nothing for keys that are there.
    issuer.set_down(true);
    assert!(accepted(&two).await);
}

// Promises: EXT-49
#[tokio::test]
async fn what_is_not_the_issuer_lets_nobody_in() {
    let (issuer, key) = (Issuer::start().await, SigningKey::new("one"));
    issuer.publish(&[&key]);
    let token = key.sign(&issuer.claims());
    let failed = async |host: &Host| {
        let answer = ask(host, &token).await;
        assert_eq!(answer.structured, None);
        answer.error.expect("an error")
    };
    // Without the authority nobody believes the certificate.
    let stranger = json!({"issuer": issuer.url, "audience": ["talon"]});
    let host = Host::builder(PROGRAM).config(stranger).launch().await.expect("launches");
    let error = failed(&host).await;
    assert!(error.contains("cannot be fetched") && !error.contains(&token), "{error}");
    // One that calls itself another, or publishes a key with a shared secret.
    issuer.call_itself("https://evil.example");
    let host = Host::builder(PROGRAM).config(config(&issuer)).launch().await.expect("launches");
    assert!(failed(&host).await.contains("it calls itself https://evil.example"));
    issuer.call_itself(&issuer.url);
    issuer.publish_raw(vec![
        json!({"kty": "oct", "kid": "one", "k": "c2VjcmV0"}),
        json!({"kty": "unheard of"}),
    ]);
    let host = Host::builder(PROGRAM).config(config(&issuer)).launch().await.expect("launches");
    assert!(rejected(&host, &token).await.contains("no key for it"));
    // One that is down, and comes back.
    issuer.set_down(true);
    let host = Host::builder(PROGRAM).config(config(&issuer)).launch().await.expect("launches");
    assert!(failed(&host).await.contains("answered 503"));
}

// Promises: EXT-48
#[tokio::test]
async fn scopes_are_what_the_operator_makes_of_claims() {
    let (issuer, key) = (Issuer::start().await, SigningKey::new("one"));
    issuer.publish(&[&key]);
    let mut config = config(&issuer);
    config["scope_claims"] = json!(["groups", "scope"]);
    config["scopes"] = json!({"talon-operators": "staff", "openid": "user"});
    let host = Host::builder(PROGRAM).config(config).launch().await.expect("launches");
    let claims = with(issuer.claims(), "groups", json!(["talon-operators", "everybody", 7]));
    let said = ask(&host, &key.sign(&claims)).await.structured.expect("an answer");
    assert_eq!(said["scopes"], json!(["staff", "user"]));
}

#[tokio::test]
async fn bad_settings_are_refused_with_their_reason() {
    let error = Host::builder(PROGRAM)
        .config(json!({"issuer": "http://login.example.org", "audience": ["talon"]}))
        .launch()
        .await
        .expect_err("refused")
        .to_string();
    assert!(error.contains("it has to be https"), "{error}");
}

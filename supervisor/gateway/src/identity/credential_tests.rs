use http::HeaderValue;
use proptest::prelude::*;

use super::*;

const SECRET: &str = "talon_abc123_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG";

fn headers(name: http::HeaderName, values: &[&str]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for value in values {
        headers.append(&name, HeaderValue::from_str(value).unwrap());
    }
    headers
}

#[test]
fn a_token_has_an_id_and_is_known_by_its_digest() {
    let token = Credential::bearer(&headers(AUTHORIZATION, &[&format!("bearer {SECRET}")])).unwrap().unwrap();
    assert_eq!(token.id(), "abc123");
    assert_eq!(token.digest(), &<[u8; 32]>::from(Sha256::digest(SECRET)));
    assert!(!format!("{token:?}").contains("0123456789"), "a secret is never printed");
}

#[test]
fn what_is_no_token_is_an_error_and_not_nobody() {
    assert_eq!(Credential::bearer(&HeaderMap::new()), Ok(None));
    for wrong in
        [vec!["Basic YTpi"], vec!["Bearer"], vec!["Bearer x"], vec!["Bearer talon__x"], vec!["a b", "c d"]]
    {
        assert_eq!(
            Credential::bearer(&headers(AUTHORIZATION, &wrong)),
            Err(MalformedCredentialError),
            "{wrong:?}"
        );
    }
}

#[test]
fn the_cookie_is_that_of_this_port_and_there_is_one() {
    let own = format!("a=b; talon_session_19789={SECRET}");
    let parse = |texts: &[&str]| Credential::cookie(&headers(COOKIE, texts), 19_789);
    assert_eq!(parse(&[&own]).unwrap().id(), "abc123");
    assert_eq!(parse(&[&format!("talon_session_19790={SECRET}")]), None);
    assert_eq!(parse(&[&own, &own]), None);
    assert_eq!(parse(&["talon_session_19789=x"]), None);
}

proptest! {
    #[test]
    fn no_text_breaks_the_reader(text in ".{0,200}") {
        if let Ok(credential) = Credential::parse(&text) {
            prop_assert!(text.starts_with("talon_") && !credential.id().is_empty());
        }
    }
}

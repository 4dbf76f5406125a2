use std::time::Duration;

use super::*;
use crate::identity::Role;
use crate::settings::Limits;

fn settings(address: &str) -> Settings {
    Settings {
        address: address.parse().unwrap(),
        tls: false,
        hears_all: false,
        names: Vec::new(),
        routes: Default::default(),
        auth: Default::default(),
        hosts: vec!["talon.example".to_owned(), "other.example:8443".to_owned()],
        origins: vec![HeaderValue::from_static("https://desk.example")],
        proxies: Vec::new(),
        max_role: Role::Call,
        tokens: true,
        limits: Limits {
            connections: 1,
            connections_per_address: 1,
            header_timeout: Duration::from_secs(1),
            body_timeout: Duration::from_secs(1),
            unread_timeout: Duration::from_secs(1),
            body_bytes: 1,
            requests_per_minute: 1,
            requests_per_minute_per_address: 1,
            websockets: 1,
            websockets_per_caller: 1,
            messages_per_websocket: 1,
            background_turns: 1,
        },
    }
}

fn verdict(pairs: &[(&str, &str)]) -> bool {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        headers
            .append(HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_str(value).unwrap());
    }
    check(&settings("127.0.0.1:19789"), &Uri::from_static("/api/health"), &headers).is_ok()
}

#[test]
fn only_its_own_names_are_answered() {
    for own in [
        "127.0.0.1:19789",
        "localhost:19789",
        "LOCALHOST:19789",
        "[::1]:19789",
        "talon.example",
        "talon.example:443",
        "other.example:8443",
    ] {
        assert!(verdict(&[("host", own)]), "{own}");
    }
    for foreign in [
        "evil.example:19789",
        "127.0.0.1",
        "127.0.0.1:80",
        "localhost",
        "localhost.evil.example:19789",
        "127.0.0.1:19789.evil.example",
        "other.example:19789",
        "",
        ":19789",
        "10.0.0.1:19789",
    ] {
        assert!(!verdict(&[("host", foreign)]), "{foreign}");
    }
    assert!(!verdict(&[]));
    assert!(!verdict(&[("host", "127.0.0.1:19789"), ("host", "127.0.0.1:19789")]));
}

#[test]
fn a_page_of_another_site_is_refused() {
    let own = ("host", "127.0.0.1:19789");
    for fits in ["http://127.0.0.1:19789", "https://desk.example"] {
        assert!(verdict(&[own, ("origin", fits)]), "{fits}");
    }
    for foreign in [
        "http://127.0.0.1:19790",
        "https://127.0.0.1:19789",
        "http://localhost:19789",
        "null",
        "https://desk.example.evil",
        "http://127.0.0.1:19789/",
    ] {
        assert!(!verdict(&[own, ("origin", foreign)]), "{foreign}");
    }
    assert!(!verdict(&[own, ("origin", "https://desk.example"), ("origin", "http://127.0.0.1:19789")]));
    for (site, fits) in [("same-origin", true), ("none", true), ("same-site", false), ("cross-site", false)] {
        assert_eq!(verdict(&[own, ("sec-fetch-site", site)]), fits, "{site}");
    }
    assert!(verdict(&[own, ("origin", "https://desk.example"), ("sec-fetch-site", "cross-site")]));
    assert!(!verdict(&[own, ("upgrade", "websocket"), ("sec-fetch-site", "same-origin")]));
    assert!(verdict(&[own, ("upgrade", "websocket")]), "a program has no site");
}

#[test]
fn a_target_of_another_name_is_refused() {
    let mut headers = HeaderMap::new();
    headers.insert(HOST, HeaderValue::from_static("127.0.0.1:19789"));
    let at = |uri| check(&settings("127.0.0.1:19789"), &Uri::from_static(uri), &headers).is_ok();
    assert!(at("http://127.0.0.1:19789/api/health"));
    assert!(!at("http://evil.example/api/health"));
}

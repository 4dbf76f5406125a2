use proptest::prelude::*;

use super::*;

fn list(entries: &[&str]) -> AllowList {
    AllowList::parse(&entries.iter().map(ToString::to_string).collect::<Vec<_>>()).unwrap()
}

fn refused(entry: &str) -> HostPortError {
    match AllowList::parse(&[entry.to_owned()]) {
        Err(AllowListError::Entry { problem, .. }) => problem,
        other => panic!("{entry:?}: {other:?}"),
    }
}

fn allows(list: &AllowList, asked: &str) -> bool {
    HostPort::parse(asked).is_ok_and(|place| list.allows(&place))
}

#[test]
fn a_name_is_that_name_and_that_port() {
    let list = list(&["API.example.org.:443", "under_score.example.org:80"]);
    assert!(allows(&list, "api.EXAMPLE.org:443"));
    assert!(allows(&list, "api.example.org.:443"));
    assert!(allows(&list, "under_score.example.org:80"));
    for other in [
        "api.example.org:444",
        "example.org:443",
        "x.api.example.org:443",
        "api.example.org.evil.test:443",
        "xapi.example.org:443",
        "api.example.org..:443",
    ] {
        assert!(!allows(&list, other), "{other}");
    }
}

#[test]
fn a_star_is_every_name_below_and_not_the_domain() {
    let list = list(&["*.example.org:443"]);
    assert!(allows(&list, "a.example.org:443"));
    assert!(allows(&list, "A.b.Example.org.:443"));
    for other in ["example.org:443", ".example.org:443", "aexample.org:443", "a.example.org:80"] {
        assert!(!allows(&list, other), "{other}");
    }
}

#[test]
fn an_address_is_that_address_in_each_of_its_forms() {
    let list = list(&["10.0.0.5:5432", "[::1]:8080", "[::ffff:192.0.2.1]:80"]);
    assert!(allows(&list, "10.0.0.5:5432"));
    assert!(allows(&list, "[::ffff:10.0.0.5]:5432"));
    assert!(allows(&list, "[0:0:0:0:0:0:0:1]:8080"));
    assert!(allows(&list, "192.0.2.1:80"));
    assert!(!allows(&list, "10.0.0.6:5432"));
    assert!(!allows(&list, "[::1]:8081"));
    assert!(!allows(&list, "167772165:5432"), "another way to write 10.0.0.5");
}

#[test]
fn entries_that_do_not_say_what_they_allow_are_refused() {
    for (entry, problem) in [
        ("example.org", HostPortError::NoPort),
        ("", HostPortError::NoPort),
        ("[::1]", HostPortError::NoPort),
        ("example.org:*", HostPortError::WildcardPort),
        ("*.example.org:*", HostPortError::WildcardPort),
        ("example.org:", HostPortError::BadPort),
        ("example.org:0", HostPortError::BadPort),
        ("example.org:+80", HostPortError::BadPort),
        ("example.org:65536", HostPortError::BadPort),
        ("example.org:https", HostPortError::BadPort),
        ("::1:8080", HostPortError::BadV6),
        ("[::1:8080", HostPortError::BadV6),
        ("[fe80::1%eth0]:80", HostPortError::BadV6),
        ("[10.0.0.5]:80", HostPortError::BadV6),
        ("127.1:80", HostPortError::BadV4),
        ("0x7f.0x1:80", HostPortError::BadV4),
        ("2130706433:80", HostPortError::BadV4),
        ("0127.0.0.1:80", HostPortError::BadV4),
        ("bücher.example:443", HostPortError::NotAscii),
        ("*:443", HostPortError::BadWildcard),
        ("*.org:443", HostPortError::BadWildcard),
        ("*.0.0.5:443", HostPortError::BadWildcard),
        ("a.*.example.org:443", HostPortError::BadWildcard),
        ("*.*.example.org:443", HostPortError::BadWildcard),
        ("*a.example.org:443", HostPortError::BadWildcard),
        ("a..example.org:443", HostPortError::BadName),
        (":443", HostPortError::BadName),
        ("user@example.org:443", HostPortError::BadName),
        ("example.org/x:443", HostPortError::BadName),
        ("a\0b:443", HostPortError::BadName),
        (&format!("{}.org:443", "a".repeat(64)), HostPortError::BadName),
        (&format!("{}a:443", "abc.".repeat(64)), HostPortError::BadName),
    ] {
        assert_eq!(refused(entry), problem, "{entry:?}");
    }
    assert!(
        list(&["xn--bcher-kva.example:443"]).allows(&HostPort::parse("xn--bcher-kva.example:443").unwrap())
    );
}

#[test]
fn errors_are_bounded_and_say_what_to_do() {
    let long = format!("\u{1b}[2J{}:443", "a".repeat(100_000));
    let text = AllowList::parse(&[long]).unwrap_err().to_string();
    assert!(text.len() < 600 && !text.contains('\u{1b}'), "{text}");
    let text = AllowList::parse(&["db:*".to_owned()]).unwrap_err().to_string();
    assert!(text.contains("\"db:*\"") && text.contains("name the ports"), "{text}");
    let many = vec!["a.example.org:443".to_owned(); MAX_ENTRIES];
    AllowList::parse(&many).unwrap();
    let many = vec!["a.example.org:443".to_owned(); MAX_ENTRIES + 1];
    assert_eq!(AllowList::parse(&many), Err(AllowListError::TooMany { count: MAX_ENTRIES + 1 }));
}

proptest! {
    #[test]
    fn no_text_panics_and_what_is_read_reads_the_same_again(text in "\\PC{0,80}", port in any::<u16>()) {
        for text in [text.clone(), format!("{text}:{port}"), format!("[{text}]:{port}"), format!("*.{text}:{port}")] {
            let _ = AllowList::parse(std::slice::from_ref(&text));
            if let Ok(place) = HostPort::parse(&text) {
                prop_assert_eq!(HostPort::parse(&place.to_string()), Ok(place));
            }
        }
    }

    #[test]
    fn a_list_allows_what_it_names_and_nothing_else(
        name in "[a-z0-9-]{1,8}(\\.[a-z][a-z0-9-]{0,8}){1,3}",
        other in "[a-z0-9-]{1,8}(\\.[a-z][a-z0-9-]{0,8}){1,3}",
        port in 1..=u16::MAX,
        other_port in 1..=u16::MAX,
    ) {
        let exact = list(&[&format!("{name}:{port}")]);
        let below = list(&[&format!("*.{name}:{port}")]);
        let shouted = format!("{}.:{port}", name.to_ascii_uppercase());
        prop_assert!(allows(&exact, &shouted));
        prop_assert!(!allows(&below, &shouted));
        let (sub, glued) = (format!("{other}.{name}:{port}"), format!("{other}{name}:{port}"));
        prop_assert!(allows(&below, &sub) && !allows(&exact, &sub));
        prop_assert!(!allows(&exact, &glued));
        prop_assert_eq!(allows(&exact, &format!("{other}:{other_port}")), name == other && port == other_port);
        prop_assert_eq!(allows(&exact, &format!("{name}:{other_port}")), port == other_port);
    }

    #[test]
    fn addresses_match_by_value(ip in any::<u128>(), v4 in any::<u32>(), port in 1..=u16::MAX) {
        let v6 = IpAddr::from(ip.to_be_bytes());
        let v4 = IpAddr::from(v4.to_be_bytes());
        for (ip, written) in [(v6.to_canonical(), format!("[{v6}]:{port}")), (v4, format!("{v4}:{port}"))] {
            let list = list(&[&written]);
            prop_assert!(list.names_address(ip, port) && allows(&list, &written));
            prop_assert_eq!(list.names_address(v4, port), ip == v4);
        }
    }
}

use proptest::prelude::*;

use super::*;

fn auto(line: &str) -> Result<Handshake, HandshakeError> {
    parse(line, Dialect::Auto, &[1, 2])
}

fn unix(path: &str) -> Address {
    Address::Unix(path.into())
}

// Promises: HAND-1
#[test]
fn go_plugin_lines_of_every_age_are_read() {
    // As printed by Go v1.0.1 to v1.8.0, by Python and Node, and with a field for multiplexing.
    for line in [
        "1|1|unix|/tmp/plugin2635494993|grpc|",
        "1|1|unix|/tmp/plugin2635494993|grpc",
        "1|1|unix|/tmp/plugin2635494993|grpc||false",
        "  1|1|unix|/tmp/plugin2635494993|grpc\r\n",
        "1|1|unix|/tmp/plugin2635494993|grpc|||something|new",
        "1|1|unix|/tmp/plugin2635494993|grpc|junk",
    ] {
        let handshake = auto(line).unwrap_or_else(|e| panic!("{line:?}: {e}"));
        assert_eq!(handshake.dialect, Dialect::GoPlugin);
        assert_eq!(handshake.app_version, Some(1));
        assert_eq!(handshake.address, unix("/tmp/plugin2635494993"));
        assert_eq!((handshake.server_cert, handshake.mux), (None, false));
    }
}

#[test]
fn certificate_and_multiplexing_are_seen() {
    let cert = "A".repeat(795);
    let handshake = auto(&format!("1|2|unix|/s|grpc|{cert}|true")).unwrap();
    assert_eq!(handshake.server_cert, Some(cert));
    assert!(handshake.mux);
}

// Promises: HAND-1
#[test]
fn opentalon_lines_are_read() {
    let handshake = auto("1|unix|/tmp/plug.sock").unwrap();
    assert_eq!(handshake.dialect, Dialect::OpenTalon);
    assert_eq!(handshake.address, unix("/tmp/plug.sock"));
    assert_eq!(
        auto("1|tcp|127.0.0.1:9001").unwrap().address,
        Address::Tcp("127.0.0.1:9001".parse().unwrap())
    );
    for http in ["127.0.0.1:9091", "[::1]:9091", "127.9.9.9:1"] {
        let handshake = auto(&format!("1|unix|/s|{http}")).unwrap();
        assert_eq!(handshake.http_addr, Some(http.parse().unwrap()));
    }
}

// Promises: HAND-19
#[test]
fn what_listens_everywhere_is_called_on_the_loopback() {
    for (line, called) in [("1|tcp|0.0.0.0:9001", "127.0.0.1:9001"), ("1|1|tcp|[::]:9001|grpc", "[::1]:9001")]
    {
        assert_eq!(auto(line).unwrap().address, Address::Tcp(called.parse().unwrap()));
    }
}

// Promises: HAND-10
#[test]
fn another_core_version_says_both() {
    for line in ["2|unix|/x", "2|1|unix|/x|grpc", "0|unix|/x", "99999999999999999999|unix|/x"] {
        let error = auto(line).unwrap_err();
        assert!(matches!(error, HandshakeError::CoreVersion { .. }), "{line}");
        assert!(error.to_string().contains("Talon speaks version 1"), "{error}");
    }
}

// Promises: HAND-10
#[test]
fn another_application_version_says_both() {
    let error = auto("1|7|unix|/x|grpc").unwrap_err();
    assert_eq!(error, HandshakeError::AppVersion { theirs: 7, ours: vec![1, 2] });
    let text = error.to_string();
    assert!(text.contains("version 7") && text.contains("1, 2"), "{text}");
}

// Promises: HAND-12
#[test]
fn only_grpc_is_spoken() {
    for line in ["1|1|unix|/x", "1|1|unix|/x|", "1|1|unix|/x|netrpc", "1|1|unix|/x|GRPC"] {
        assert!(matches!(auto(line), Err(HandshakeError::Protocol { .. })), "{line}");
    }
}

// Promises: HAND-20
#[test]
fn malformed_lines_are_refused() {
    for line in [
        "1|",
        "1||unix|/x",
        "1|unix",
        "1|1",
        "1|1|unix",
        "1|http|h:1",
        "1|1|udp|/x|grpc",
        "1|unix|",
        "1|unix|relative/path",
        "1|unix|@abstract",
        "1|unix|/a/../b",
        "1|unix|/a//b",
        "1|unix|/a\0b",
        "1|unix|/x|bad:addr:format",
        "1|unix|/x|noport",
        "1|unix|/x|0.0.0.0:9091",
        "1|unix|/x|:9091",
        "1|unix|/x|192.168.1.1:9091",
        "1|unix|/x|localhost:9091",
        "1|tcp|192.168.1.1:80",
        "1|tcp|127.0.0.1:0",
        "1|tcp|127.0.0.1",
        "1|99999999999|unix|/x|grpc",
    ] {
        assert!(matches!(auto(line), Err(HandshakeError::Malformed { .. })), "{line}: {:?}", auto(line));
    }
}

#[test]
fn banners_are_stray() {
    for line in ["", "hello", "Listening on port 80", "|1|unix|/x", "a|b", "-1|unix|/x", "v1|unix|/x", "1"] {
        assert!(matches!(auto(line), Err(HandshakeError::Stray { .. })), "{line}");
    }
}

// Promises: HAND-2
#[test]
fn the_configured_dialect_is_insisted_on() {
    let go = "1|1|unix|/x|grpc";
    let ot = "1|unix|/x";
    assert!(parse(go, Dialect::GoPlugin, &[1]).is_ok());
    assert!(parse(ot, Dialect::OpenTalon, &[1]).is_ok());
    assert!(matches!(parse(go, Dialect::OpenTalon, &[1]), Err(HandshakeError::WrongDialect { .. })));
    assert!(matches!(parse(ot, Dialect::GoPlugin, &[1]), Err(HandshakeError::WrongDialect { .. })));
}

// Promises: HAND-5
#[test]
fn a_long_line_is_refused_and_shown_in_part() {
    let error = auto(&format!("1|1|unix|/{}|grpc", "x".repeat(MAX_LINE_BYTES))).unwrap_err();
    assert!(matches!(error, HandshakeError::TooLong { .. }));
    assert!(error.to_string().len() < 2 * QUOTED_BYTES);
}

/// Texts that come near to a handshake more often than random ones.
fn nearly() -> impl Strategy<Value = String> {
    let field = prop_oneof![
        Just("1".to_owned()),
        Just("2".to_owned()),
        Just("unix".to_owned()),
        Just("tcp".to_owned()),
        Just("grpc".to_owned()),
        Just("/run/p/1/s/plugin1".to_owned()),
        Just("127.0.0.1:80".to_owned()),
        "[0-9]{1,30}",
        any::<String>(),
    ];
    proptest::collection::vec(field, 0..9).prop_map(|fields| fields.join("|"))
}

proptest! {
    // Promises: BAD-17, HAND-20
    #[test]
    fn no_text_does_any_harm(line in prop_oneof![nearly(), any::<String>()], dialect in 0..3) {
        let dialect = [Dialect::Auto, Dialect::GoPlugin, Dialect::OpenTalon][dialect as usize];
        match parse(&line, dialect, &[1, 2]) {
            Ok(handshake) => {
                prop_assert!(handshake.dialect != Dialect::Auto);
                prop_assert!(dialect == Dialect::Auto || dialect == handshake.dialect);
                prop_assert!(handshake.app_version.is_none_or(|v| v == 1 || v == 2));
                match &handshake.address {
                    Address::Unix(path) => prop_assert!(path.is_absolute() && path.components().skip(1).all(
                        |c| matches!(c, std::path::Component::Normal(_)))),
                    Address::Tcp(addr) => prop_assert!(addr.ip().is_loopback()),
                }
                prop_assert!(handshake.http_addr.is_none_or(|a| a.ip().is_loopback()));
            }
            Err(error) => {
                let text = error.to_string();
                prop_assert!(text.len() <= 1000, "{text}");
                prop_assert!(!text.chars().any(char::is_control), "{text:?}");
            }
        }
    }

    // Promises: HAND-21
    #[test]
    fn a_line_as_go_prints_it_is_read_back(app in 1u32..3, digits in "[0-9]{1,10}") {
        let path = format!("/run/talon/p/1/s/plugin{digits}");
        let handshake = auto(&format!("1|{app}|unix|{path}|grpc|")).unwrap();
        prop_assert_eq!(handshake.app_version, Some(app));
        prop_assert_eq!(handshake.address, unix(&path));
    }
}

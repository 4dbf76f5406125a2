//! Any bytes as a plugin's handshake line: never a panic, never a long or acting error, never a place that
//! the parser promises to refuse.

#![no_main]

use libfuzzer_sys::fuzz_target;
use talon_plugin_client::handshake::{Address, parse};
use talon_plugin_config::spec::Dialect;

fuzz_target!(|data: &[u8]| {
    let line = String::from_utf8_lossy(data);
    for dialect in [Dialect::Auto, Dialect::GoPlugin, Dialect::OpenTalon] {
        match parse(&line, dialect, &[1, 2]) {
            Ok(handshake) => {
                assert!(handshake.app_version.is_none_or(|version| version == 1 || version == 2));
                assert!(handshake.http_addr.is_none_or(|addr| addr.ip().is_loopback()));
                match handshake.address {
                    Address::Tcp(addr) => assert!(addr.ip().is_loopback()),
                    Address::Unix(path) => assert!(
                        path.is_absolute()
                            && path.components().skip(1).all(|c| matches!(c, std::path::Component::Normal(_)))
                    ),
                }
            }
            Err(error) => {
                let text = error.to_string();
                assert!(text.len() <= 1000 && !text.chars().any(char::is_control), "{text:?}");
            }
        }
    }
});

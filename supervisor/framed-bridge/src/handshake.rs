//! The handshake line: `1|unix|PATH`, and the lines that may precede it.

use std::path::PathBuf;

use talon_bridge::program::MAX_PATH_BYTES;
use talon_bridge::text::quoted;

/// Why a line is invalid.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HandshakeLineError {
    /// It begins like a handshake line.
    #[error("its handshake line {shown} {problem}; it should read 1|unix|PATH")]
    Malformed {
        /// Its beginning.
        shown: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// It is go-plugin's.
    #[error("its handshake line {0} is go-plugin's: set its dialect to go-plugin, it needs no bridge")]
    GoPlugin(String),
}

/// Parses a line. `None`: it is not a handshake at all, so the next one may be.
pub(crate) fn parse(line: &str) -> Option<Result<PathBuf, HandshakeLineError>> {
    let line = line.trim();
    let (version, rest) = line.split_once('|')?;
    if version.is_empty() || !version.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let malformed = |problem| Err(HandshakeLineError::Malformed { shown: quoted(line), problem });
    let mut fields = rest.split('|');
    let network = fields.next().unwrap_or_default();
    let result = match (network, fields.next()) {
        _ if version != "1" => malformed("has another version than 1"),
        ("tcp", _) => malformed("names a TCP address, and behind the bridge only a unix socket is taken"),
        ("unix", None) => malformed("ends before the path"),
        ("unix", Some(path)) if !path.starts_with('/') => malformed("names no absolute path"),
        ("unix", Some(path)) if path.contains('\0') || path.len() > MAX_PATH_BYTES => {
            malformed("names a path that no socket can have")
        }
        ("unix", Some(path)) => Ok(path.into()),
        (number, _) if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) => {
            Err(HandshakeLineError::GoPlugin(quoted(line)))
        }
        _ => malformed("names no network"),
    };
    Some(result)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_line_names_a_socket() {
        for line in [
            "1|unix|/tmp/x/plugin.sock\n",
            " 1|unix|/tmp/x/plugin.sock\r\n",
            "1|unix|/tmp/x/plugin.sock|127.0.0.1:1",
        ] {
            assert_eq!(parse(line).unwrap().unwrap(), PathBuf::from("/tmp/x/plugin.sock"), "{line:?}");
        }
    }

    #[test]
    fn a_banner_is_no_handshake() {
        for line in ["", "Loading…", "|unix|/x", "a|b", "1", "one|unix|/x"] {
            assert!(parse(line).is_none(), "{line:?}");
        }
    }

    #[test]
    fn what_is_wrong_with_it_is_said() {
        let long = format!("1|unix|/{}", "x".repeat(200));
        for (line, says) in [
            ("2|unix|/x", "another version"),
            ("1|tcp|127.0.0.1:1", "TCP"),
            ("1|unix", "ends before the path"),
            ("1|unix|x", "no absolute path"),
            (long.as_str(), "no socket can have"),
            ("1|1|unix|/x|grpc", "go-plugin"),
            ("1|pipe|/x", "no network"),
            ("1|", "no network"),
        ] {
            let said = parse(line).expect("like a handshake").unwrap_err().to_string();
            assert!(said.contains(says) && said.len() < 400, "{says:?} is not in {said:?}");
        }
    }

    proptest! {
        #[test]
        fn no_line_breaks_it(line in ".{0,300}") {
            if let Some(Ok(path)) = parse(&line) {
                prop_assert!(path.is_absolute());
            }
        }
    }
}

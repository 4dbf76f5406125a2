//! go-plugin's handshake line, as far as a program behind the bridge may use it: `1|APP|unix|PATH|grpc`.

use std::path::PathBuf;

use talon_bridge::program::MAX_PATH_BYTES;
use talon_bridge::text::quoted;

/// Why a line is invalid.
#[derive(Debug, thiserror::Error)]
#[error("its handshake line {shown} {problem}")]
pub(crate) struct HandshakeLineError {
    /// Its beginning.
    shown: String,
    /// What is wrong with it, and what to do.
    problem: &'static str,
}

/// Parses a line. `None`: it is not a handshake at all, so the next one may be.
pub(crate) fn parse(line: &str) -> Option<Result<PathBuf, HandshakeLineError>> {
    let line = line.trim();
    let fields: Vec<&str> = line.split('|').collect();
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if fields.len() < 4 || !number(fields[0]) {
        return None;
    }
    let refused = |problem| Err(HandshakeLineError { shown: quoted(line), problem });
    let field = |index: usize| fields.get(index).copied().unwrap_or_default();
    let path = field(3);
    Some(match (field(0), field(2), field(4)) {
        ("1", _, _) if !number(field(1)) => refused("names no version: it should read 1|APP|unix|PATH|grpc"),
        ("1", "unix", "grpc") if !path.starts_with('/') => refused("names no absolute path"),
        ("1", "unix", "grpc") if path.contains('\0') || path.len() > MAX_PATH_BYTES => {
            refused("names a path that no socket can have: shorten runtime_dir")
        }
        ("1", "unix", "grpc") if !field(6).is_empty() && field(6) != "false" => {
            refused("says that it multiplexes, without a request: switch GRPCBrokerMultiplex off")
        }
        ("1", "unix", "grpc") => Ok(path.into()),
        ("1", "unix", _) => refused("is for net/rpc: set GRPCServer in the program"),
        ("1", _, _) => refused("names no unix socket: behind the bridge nothing else is taken"),
        _ => refused("has another version than 1 of go-plugin's core protocol"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_names_a_socket() {
        for line in [
            "1|1|unix|/tmp/0/plugin42|grpc|\n",
            "1|5|unix|/tmp/0/plugin42|grpc",
            "1|1|unix|/tmp/0/plugin42|grpc||false",
        ] {
            assert_eq!(parse(line).unwrap().unwrap(), PathBuf::from("/tmp/0/plugin42"), "{line:?}");
        }
    }

    #[test]
    fn what_is_wrong_with_it_is_said() {
        for line in ["", "Loading…", "|1|unix|/x|grpc", "a|b|c|d", "1|2"] {
            assert!(parse(line).is_none(), "{line:?}");
        }
        let long = format!("1|1|unix|/{}|grpc", "x".repeat(200));
        for (line, word) in [
            ("2|1|unix|/x|grpc", "another version"),
            ("1|one|unix|/x|grpc", "no version"),
            ("1|1|tcp|127.0.0.1:1|grpc", "no unix socket"),
            ("1|1|unix|/x", "net/rpc"),
            ("1|1|unix|/x|netrpc", "net/rpc"),
            ("1|1|unix|x|grpc", "no absolute path"),
            ("1|1|unix|/x|grpc||true", "multiplexes"),
            (long.as_str(), "no socket can have"),
        ] {
            let said = parse(line).expect("like a handshake").unwrap_err().to_string();
            assert!(said.contains(word) && said.len() < 400, "{word:?} is not in {said:?}");
        }
    }
}

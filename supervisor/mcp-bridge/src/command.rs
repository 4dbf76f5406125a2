//! The bridge's command line.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use crate::http::address::{Address, AddressError};

/// The server's URL. It is not an argument, because every user of the machine could read it there, and it may
/// hold a key.
pub(crate) const URL_VARIABLE: &str = "TALON_PLUGIN_URL";
/// How long a start may take by default, as in the supervisor.
const DEFAULT_START_TIMEOUT: Duration = Duration::from_secs(30);

/// Where the server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// A program to start, with its arguments.
    Program(OsString, Vec<OsString>),
    /// A URL.
    Url(Address),
}

/// The client secret of a login, if the operator has one. No argument, for the same reason.
pub(crate) const CLIENT_SECRET_VARIABLE: &str = "TALON_MCP_CLIENT_SECRET";

/// `--login`: what `talon mcp login` runs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct LoginCommand {
    pub(crate) client_id: Option<String>,
    pub(crate) scope: Option<String>,
    /// Whether the person consents on another device.
    pub(crate) device: bool,
}

/// What `talon mcp logout` runs, with the stored credential on standard input.
pub(crate) const LOGOUT: &str = "--logout";

impl LoginCommand {
    /// Parses the arguments after the program's name; `None` if they are those of a plugin.
    pub(crate) fn parse(args: &[OsString]) -> Option<Result<Self, CommandError>> {
        let mut args = args.iter().map(|arg| arg.to_str().unwrap_or_default());
        if args.next() != Some("--login") {
            return None;
        }
        let mut login = Self::default();
        loop {
            let field = match args.next() {
                Some("--device") => {
                    login.device = true;
                    continue;
                }
                Some("--client-id") => &mut login.client_id,
                Some("--scope") => &mut login.scope,
                Some(_) => return Some(Err(CommandError::Usage)),
                None => return Some(Ok(login)),
            };
            match args.next() {
                Some(value) => *field = Some(value.to_owned()),
                None => return Some(Err(CommandError::Usage)),
            }
        }
    }
}

/// The command line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Command {
    pub(crate) target: Target,
    /// From the start of this process to its capabilities.
    pub(crate) start_timeout: Duration,
    /// The paths that the jail grants, if they are needed.
    pub(crate) granted: Vec<PathBuf>,
}

/// Why the command line is invalid.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandError {
    #[error(
        "this is Talon's bridge to MCP servers, which `talon` starts itself: give a plugin `dialect: mcp`, or a `url`.\n\
         Usage: talon-mcp-bridge [--start-timeout-ms N] [--granted PATH]… -- SERVER [ARGUMENT…]\n\
         \x20      talon-mcp-bridge [--start-timeout-ms N] [--granted PATH]… --url, with the URL in {URL_VARIABLE}"
    )]
    Usage,
    #[error("{URL_VARIABLE}: {0}")]
    Url(#[source] AddressError),
}

impl Command {
    /// Parses the arguments after the program's name; `url` is the value of `URL_VARIABLE`.
    pub(crate) fn parse(
        args: impl IntoIterator<Item = OsString>,
        url: Option<&str>,
    ) -> Result<Self, CommandError> {
        let mut args = args.into_iter();
        let (mut start_timeout, mut granted) = (DEFAULT_START_TIMEOUT, Vec::new());
        loop {
            let Some(arg) = args.next() else { return Err(CommandError::Usage) };
            match arg.to_str() {
                Some("--start-timeout-ms") => {
                    let value = args.next().and_then(|value| value.to_str()?.parse().ok());
                    start_timeout = Duration::from_millis(value.ok_or(CommandError::Usage)?);
                }
                Some("--granted") => granted.push(args.next().ok_or(CommandError::Usage)?.into()),
                Some("--") => {
                    let program = args.next().ok_or(CommandError::Usage)?;
                    return Ok(Self {
                        target: Target::Program(program, args.collect()),
                        start_timeout,
                        granted,
                    });
                }
                Some("--url") => {
                    let (Some(url), None) = (url, args.next()) else { return Err(CommandError::Usage) };
                    let address = Address::parse(url).map_err(CommandError::Url)?;
                    return Ok(Self { target: Target::Url(address), start_timeout, granted });
                }
                _ => return Err(CommandError::Usage),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str], url: Option<&str>) -> Result<Command, CommandError> {
        Command::parse(args.iter().map(OsString::from), url)
    }

    #[test]
    fn a_server_is_a_program_or_an_address() {
        let program = Target::Program("/bin/server".into(), vec!["--url".into(), "--".into()]);
        assert_eq!(parse(&["--", "/bin/server", "--url", "--"], None).unwrap().target, program);
        let told =
            parse(&["--start-timeout-ms", "3000", "--granted", "/a", "--url"], Some("http://[::1]:8080/mcp"))
                .unwrap();
        assert_eq!(told.granted, [PathBuf::from("/a")]);
        assert_eq!(told.start_timeout, Duration::from_secs(3));
        let Target::Url(address) = told.target else { panic!("{told:?}") };
        assert_eq!(address.authority(), "[::1]:8080");
        for bad in
            [&[][..], &["--"], &["server"], &["--start-timeout-ms", "x", "--", "s"], &["--url", "http://a"]]
        {
            assert!(matches!(parse(bad, Some("http://a")), Err(CommandError::Usage)), "{bad:?}");
        }
        assert!(matches!(parse(&["--url"], None), Err(CommandError::Usage)));
        let refused = parse(&["--url"], Some("ftp://a?key=s3cret")).unwrap_err().to_string();
        assert!(refused.contains("scheme") && !refused.contains("s3cret"), "{refused}");
    }
}

//! The command line, written by the supervisor.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

/// What the bridge does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Command {
    /// The file with the descriptor.
    pub(crate) descriptor: PathBuf,
    /// The full name of the service.
    pub(crate) service: String,
    /// Methods and the names of their actions; all, if empty.
    pub(crate) methods: BTreeMap<String, String>,
    /// The variable of the program's magic cookie, and its value.
    pub(crate) cookie: Option<(String, String)>,
    /// The application protocol versions to offer.
    pub(crate) app_versions: Vec<u32>,
    /// How its health is checked.
    pub(crate) health: HealthSettings,
    /// The program and its arguments.
    pub(crate) program: OsString,
    pub(crate) args: Vec<OsString>,
}

/// How the program's health is checked: as the operator says for the plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HealthSettings {
    /// Between checks.
    pub(crate) interval: Duration,
    /// For one check.
    pub(crate) timeout: Duration,
    /// After so many failed checks in a row it is given up.
    pub(crate) threshold: u32,
}

impl Default for HealthSettings {
    /// The supervisor's defaults.
    fn default() -> Self {
        Self { interval: Duration::from_secs(30), timeout: Duration::from_secs(5), threshold: 3 }
    }
}

/// Why a command line is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CommandError {
    #[error("{0}: there is no such option; see talon-service-bridge --help")]
    Unknown(String),
    #[error("{0} needs a value {1}; see talon-service-bridge --help")]
    Value(&'static str, &'static str),
    #[error("{0} is missing; see talon-service-bridge --help")]
    Missing(&'static str),
}

impl Command {
    /// Reads the arguments after the bridge's own name.
    pub(crate) fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Self, CommandError> {
        let mut args = args.into_iter();
        let (mut descriptor, mut service) = (None, None);
        let mut methods = BTreeMap::new();
        let (mut cookie, mut app_versions) = (None, vec![1]);
        let mut health = HealthSettings::default();
        while let Some(option) = args.next() {
            let mut value = || args.next().filter(|value| !value.is_empty());
            match option.to_str() {
                Some("--") => break,
                Some("--descriptor") => {
                    descriptor = Some(value().ok_or(CommandError::Value("--descriptor", "PATH"))?.into());
                }
                Some("--service") => {
                    service = Some(text(value()).ok_or(CommandError::Value("--service", "NAME"))?);
                }
                Some("--method") => {
                    let (method, action) =
                        pair(value()).ok_or(CommandError::Value("--method", "METHOD=ACTION"))?;
                    methods.insert(method, action);
                }
                Some("--cookie") => {
                    cookie = Some(pair(value()).ok_or(CommandError::Value("--cookie", "KEY=VALUE"))?);
                }
                Some("--app-versions") => {
                    let read = text(value()).and_then(|text| {
                        text.split(',').map(|version| version.parse().ok()).collect::<Option<_>>()
                    });
                    app_versions = read.ok_or(CommandError::Value("--app-versions", "1,2"))?;
                }
                Some("--health-interval-ms") => health.interval = millis("--health-interval-ms", value())?,
                Some("--health-timeout-ms") => health.timeout = millis("--health-timeout-ms", value())?,
                Some("--health-threshold") => {
                    let read = text(value()).and_then(|text| text.parse().ok());
                    health.threshold = read.ok_or(CommandError::Value("--health-threshold", "NUMBER"))?;
                }
                _ => return Err(CommandError::Unknown(option.to_string_lossy().into_owned())),
            }
        }
        Ok(Self {
            descriptor: descriptor.ok_or(CommandError::Missing("--descriptor"))?,
            service: service.ok_or(CommandError::Missing("--service"))?,
            methods,
            cookie,
            app_versions,
            health,
            program: args.next().ok_or(CommandError::Missing("-- PROGRAM"))?,
            args: args.collect(),
        })
    }
}

fn text(value: Option<OsString>) -> Option<String> {
    value.as_deref().and_then(OsStr::to_str).map(str::to_owned)
}

fn pair(value: Option<OsString>) -> Option<(String, String)> {
    let value = text(value)?;
    let (name, rest) = value.split_once('=').filter(|(name, _)| !name.is_empty())?;
    Some((name.to_owned(), rest.to_owned()))
}

fn millis(option: &'static str, value: Option<OsString>) -> Result<Duration, CommandError> {
    let read = text(value).and_then(|text| text.parse().ok()).filter(|millis| *millis > 0);
    read.map(Duration::from_millis).ok_or(CommandError::Value(option, "MILLISECONDS"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &[&str]) -> Result<Command, String> {
        Command::parse(line.iter().map(OsString::from)).map_err(|error| error.to_string())
    }

    #[test]
    fn a_whole_line_is_read() {
        let line = [
            "--descriptor",
            "/x/kv.pb",
            "--service",
            "proto.KV",
            "--method",
            "Get=read",
            "--cookie",
            "K=a=b",
            "--app-versions",
            "2,3",
            "--health-interval-ms",
            "100",
            "--health-threshold",
            "5",
            "--",
            "/x/kv",
            "--",
            "-v",
        ];
        let command = parsed(&line).unwrap();
        assert_eq!((command.service.as_str(), command.descriptor), ("proto.KV", PathBuf::from("/x/kv.pb")));
        assert_eq!(command.methods, BTreeMap::from([("Get".to_owned(), "read".to_owned())]));
        assert_eq!(command.cookie, Some(("K".to_owned(), "a=b".to_owned())));
        assert_eq!(command.app_versions, [2, 3]);
        assert_eq!((command.health.interval.as_millis(), command.health.threshold), (100, 5));
        assert_eq!((command.program, command.args), ("/x/kv".into(), vec!["--".into(), "-v".into()]));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let whole = ["--descriptor", "/x", "--service", "S", "--", "p"];
        assert!(parsed(&whole).is_ok());
        for (line, word) in [
            (&whole[2..], "--descriptor is missing"),
            (&whole[..4], "-- PROGRAM is missing"),
            (&["--descriptor"], "--descriptor needs a value"),
            (&["--method", "Get"], "METHOD=ACTION"),
            (&["--app-versions", "one"], "--app-versions needs"),
            (&["--health-timeout-ms", "0"], "MILLISECONDS"),
            (&["--servce", "S"], "--servce"),
        ] {
            let refused = parsed(line).unwrap_err();
            assert!(refused.contains(word), "{word:?} is not in {refused:?}");
        }
    }
}

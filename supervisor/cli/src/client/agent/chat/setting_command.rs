//! Parses the commands for what a session wants otherwise than the configuration: the words of the configuration and of
//! the options.

use talon_sanitize::Sanitized;

use crate::client::agent::session_overrides::metadata_entry;

/// Stands for the configured value.
pub(super) const DEFAULT: &str = "default";

/// What is set or, without a value, shown.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum SettingCommand {
    /// Shows how the model chooses its words.
    ShowSampling,
    /// `None`: as configured, as in the next two.
    Temperature(Option<f64>),
    TopP(Option<f64>),
    MaxTokens(Option<u32>),
    ShowVerbosity,
    /// low, high, or empty for as configured.
    Verbosity(String),
    ShowVerbose,
    Verbose(bool),
    ShowMetadata,
    /// An empty value removes the entry.
    Metadata(Vec<(String, String)>),
}

impl SettingCommand {
    /// Parses a command with its value; `None` for another command.
    pub(super) fn parse(word: &str, rest: &str) -> Option<Result<Self, Sanitized>> {
        Some(match (word, rest) {
            ("temperature" | "top_p" | "max_tokens", "") => Ok(Self::ShowSampling),
            ("temperature", value) => number(value, |number| (0.0..=2.0).contains(number))
                .map(Self::Temperature)
                .ok_or("a temperature is a number from 0 to 2, or default".into()),
            ("top_p", value) => number(value, |number| *number > 0.0 && *number <= 1.0)
                .map(Self::TopP)
                .ok_or("top_p is a number above 0 and at most 1, or default".into()),
            ("max_tokens", value) => number(value, |number| *number > 0)
                .map(Self::MaxTokens)
                .ok_or("write how many tokens an answer has at most, or default".into()),
            ("verbosity", "") => Ok(Self::ShowVerbosity),
            ("verbosity", DEFAULT) => Ok(Self::Verbosity(String::new())),
            ("verbosity", "low" | "high") => Ok(Self::Verbosity(rest.to_owned())),
            ("verbosity", _) => Err("say low, high or default".into()),
            ("verbose", "") => Ok(Self::ShowVerbose),
            ("verbose", "on" | "off") => Ok(Self::Verbose(rest == "on")),
            ("verbose", _) => Err("say on or off".into()),
            ("metadata", "") => Ok(Self::ShowMetadata),
            ("metadata", entries) => entries
                .split_whitespace()
                .map(metadata_entry)
                .collect::<Result<Vec<_>, _>>()
                .map(Self::Metadata)
                .map_err(|_| "write KEY=VALUE, or KEY= to remove an entry".into()),
            _ => return None,
        })
    }
}

/// A number that fits, or the configured one; `None` for anything else.
fn number<N: std::str::FromStr>(value: &str, fits: impl Fn(&N) -> bool) -> Option<Option<N>> {
    if value == DEFAULT {
        return Some(None);
    }
    value.parse().ok().filter(fits).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: CLI-82
    #[test]
    fn settings_have_the_words_of_the_configuration_and_their_bounds() {
        let parse = |line: &str| {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            SettingCommand::parse(word, rest)
        };
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        for (line, command) in [
            ("temperature", SettingCommand::ShowSampling),
            ("temperature 0.2", SettingCommand::Temperature(Some(0.2))),
            ("temperature default", SettingCommand::Temperature(None)),
            ("top_p 0.9", SettingCommand::TopP(Some(0.9))),
            ("max_tokens 500", SettingCommand::MaxTokens(Some(500))),
            ("verbosity", SettingCommand::ShowVerbosity),
            ("verbosity high", SettingCommand::Verbosity("high".to_owned())),
            ("verbosity default", SettingCommand::Verbosity(String::new())),
            ("verbose", SettingCommand::ShowVerbose),
            ("verbose on", SettingCommand::Verbose(true)),
            ("metadata", SettingCommand::ShowMetadata),
            (
                "metadata team=ops note=",
                SettingCommand::Metadata(vec![pair("team", "ops"), pair("note", "")]),
            ),
        ] {
            assert_eq!(parse(line), Some(Ok(command)), "{line}");
        }
        for line in [
            "temperature 2.1",
            "temperature NaN",
            "temperature warm",
            "top_p 0",
            "top_p 1.1",
            "max_tokens 0",
            "max_tokens -1",
            "verbosity loud",
            "verbose loud",
            "metadata team",
            "metadata =x",
        ] {
            assert!(matches!(parse(line), Some(Err(_))), "{line}");
        }
        assert_eq!(parse("model x"), None);
    }
}

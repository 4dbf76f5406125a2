//! Option values for jails.

use std::ffi::OsStr;
use std::path::Path;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, Command, ValueEnum};
use talon_jail::{Mode, Network, Profile};

use super::exit::JAIL_FAILED;
use crate::failure::Failure;

/// The largest profile file to read; the jail itself refuses much smaller ones by their number of bytes.
const PROFILE_FILE_MAX_BYTES: u64 = 4 << 20;

/// What a jailed command may connect to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum NetworkArg {
    /// Nothing.
    None,
    /// Itself, over a private loopback interface.
    Loopback,
    /// Everything that the host can reach.
    Full,
}

impl From<NetworkArg> for Network {
    fn from(word: NetworkArg) -> Self {
        match word {
            NetworkArg::None => Self::None,
            NetworkArg::Loopback => Self::Loopback,
            NetworkArg::Full => Self::Host { connect: None, bind: None },
        }
    }
}

/// What happens when a protection is not available.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ModeArg {
    /// The command does not run.
    Enforce,
    /// The command runs without it, and the output says so.
    BestEffort,
}

impl From<ModeArg> for Mode {
    fn from(word: ModeArg) -> Self {
        match word {
            ModeArg::Enforce => Self::Enforce,
            ModeArg::BestEffort => Self::BestEffort,
        }
    }
}

/// Accepts any text and offers the built-in profiles as completions.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProfileParser;

impl TypedValueParser for ProfileParser {
    type Value = String;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<Self::Value, clap::Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(Profile::names().map(PossibleValue::new)))
    }
}

/// A built-in profile by name, or a profile file: a word with a slash or the ending `.toml` is a path.
pub(super) fn profile(word: &str) -> Result<Profile, Failure> {
    let path = Path::new(word);
    if !word.contains('/') && path.extension().is_none_or(|extension| extension != "toml") {
        return Profile::builtin(word).ok_or_else(|| {
            let names: Vec<_> = Profile::names().collect();
            let names = names.join(", ");
            Failure::usage(format!(
                "there is no profile {word:?}: use {names}, or the path of a profile file"
            ))
        });
    }
    let unreadable = |why: &dyn std::fmt::Display| {
        Failure::usage(format!("cannot read the profile {}: {why}; check its path", path.display()))
    };
    let size = std::fs::metadata(path).map_err(|error| unreadable(&error))?.len();
    if size > PROFILE_FILE_MAX_BYTES {
        return Err(unreadable(&format!("it has {size} bytes, the most is {PROFILE_FILE_MAX_BYTES}")));
    }
    let text = std::fs::read_to_string(path).map_err(|error| unreadable(&error))?;
    Profile::parse(&text, word).map_err(|error| Failure::new(JAIL_FAILED, error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_a_name_or_a_file() {
        for name in Profile::names() {
            assert!(profile(name).is_ok(), "{name}");
        }
        let unknown = profile("strickt").err().unwrap().to_string();
        assert!(unknown.contains("strict, ") && unknown.contains("profile file"), "{unknown}");
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("own.toml");
        let file = file.to_str().unwrap();
        assert!(profile(file).err().unwrap().to_string().contains("check its path"));
        std::fs::write(file, "description = \"mine\"\nextends = \"strict\"\n").unwrap();
        assert!(profile(file).is_ok());
        std::fs::write(file, "nonsense").unwrap();
        assert_eq!(profile(file).err().unwrap().code(), JAIL_FAILED);
    }
}

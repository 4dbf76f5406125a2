//! Arguments of a call on the command line: `key=value` and `--arg-file key=FILE`, and how long it may take.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use talon_plugin_config::units::{self, ParseDurationError};

use crate::failure::Failure;
use crate::input::{InputError, InputSource};

/// The most bytes to read of a file. The supervisor enforces the real limit, `guard.max_argument_bytes` (1
/// MiB by default); this only keeps a wrong file, such as a device, from filling the memory.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// The arguments for an action.
#[derive(Debug, Default, Args)]
pub(crate) struct Arguments {
    /// All arguments as one JSON object, which keeps their types: "7" is a string, 7 a number. `-` is stdin.
    #[arg(long = "arguments", value_name = "JSON", conflicts_with_all = ["pairs", "files"])]
    json: Option<String>,
    /// The action's arguments.
    #[arg(value_name = "KEY=VALUE", value_parser = key_value)]
    pairs: Vec<(String, String)>,
    /// An argument whose value is the content of a file; `-` is stdin.
    #[arg(long = "arg-file", value_name = "KEY=FILE", value_parser = key_file)]
    files: Vec<(String, PathBuf)>,
}

/// Arguments as a request carries them: either form may be empty.
#[derive(Debug, Default)]
pub(crate) struct CollectedArguments {
    /// As texts.
    pub(crate) texts: BTreeMap<String, String>,
    /// As one JSON object.
    pub(crate) json: String,
}

impl Arguments {
    /// Reads the files and merges all arguments; a duplicate key is an error, and so is JSON that is no object.
    pub(crate) fn collect(self) -> Result<CollectedArguments, Failure> {
        let json = match self.json.as_deref() {
            None => String::new(),
            Some("-") => read(InputSource::Stdin)?,
            Some(json) => json.to_owned(),
        };
        if self.json.is_some() {
            talon_arguments::Arguments::parse(&json).map_err(|error| Failure::usage(error.to_string()))?;
            return Ok(CollectedArguments { texts: BTreeMap::new(), json });
        }
        let mut args = BTreeMap::new();
        for (key, value) in self.pairs {
            insert(&mut args, key, value)?;
        }
        let mut stdin_taken = false;
        for (key, file) in self.files {
            let source = InputSource::of(&file);
            if matches!(source, InputSource::Stdin) && std::mem::replace(&mut stdin_taken, true) {
                return Err(Failure::usage("stdin can be the value of one --arg-file only"));
            }
            let value = read(source)?;
            insert(&mut args, key, value)?;
        }
        Ok(CollectedArguments { texts: args, json })
    }
}

fn insert(args: &mut BTreeMap<String, String>, key: String, value: String) -> Result<(), Failure> {
    if args.contains_key(&key) {
        return Err(Failure::usage(format!("the argument {key:?} is given twice: give it once")));
    }
    args.insert(key, value);
    Ok(())
}

fn read(source: InputSource<'_>) -> Result<String, Failure> {
    let bytes = source.read(MAX_FILE_BYTES).map_err(|error| {
        Failure::usage(match error {
            InputError::TooLarge { name } => format!(
                "{name} is larger than {MAX_FILE_BYTES} bytes, more than any argument: give the plugin a path that it can \
                 read instead"
            ),
            error => error.to_string(),
        })
    })?;
    String::from_utf8(bytes).map_err(|error| {
        let (name, at) = (source.name(), error.utf8_error().valid_up_to());
        Failure::usage(format!(
            "{name} is not UTF-8 (byte {at}): arguments are text; encode it, as base64 for one"
        ))
    })
}

/// Why a word on the command line is no argument of a call. clap prints the word before it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ArgumentError {
    #[error("the key before `=` is empty")]
    NoKey,
    #[error("write it as {word}={what}")]
    NoEqualsSign { word: String, what: &'static str },
    #[error("the file after `=` is empty")]
    NoFile,
    #[error(transparent)]
    Duration(#[from] ParseDurationError),
    #[error("at least 1ms")]
    TooShort,
}

/// `key=value`; the value may hold more `=`.
pub(crate) fn key_value(text: &str) -> Result<(String, String), ArgumentError> {
    match split(text, "VALUE")? {
        ("", _) => Err(ArgumentError::NoKey),
        (key, value) => Ok((key.to_owned(), value.to_owned())),
    }
}

fn key_file(text: &str) -> Result<(String, PathBuf), ArgumentError> {
    match split(text, "FILE")? {
        ("", _) => Err(ArgumentError::NoKey),
        (_, "") => Err(ArgumentError::NoFile),
        (key, file) => Ok((key.to_owned(), file.into())),
    }
}

fn split<'t>(text: &'t str, what: &'static str) -> Result<(&'t str, &'t str), ArgumentError> {
    text.split_once('=').ok_or_else(|| ArgumentError::NoEqualsSign { word: text.to_owned(), what })
}

/// A duration, which may be nothing.
pub(crate) fn duration(text: &str) -> Result<Duration, ArgumentError> {
    Ok(text.parse::<units::Duration>()?.get())
}

/// A duration of at least a millisecond, the unit of the wire format.
pub(crate) fn timeout(text: &str) -> Result<Duration, ArgumentError> {
    let duration = duration(text)?;
    if duration < Duration::from_millis(1) {
        return Err(ArgumentError::TooShort);
    }
    Ok(duration)
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    fn arguments(pairs: &[&str], files: &[&str]) -> Arguments {
        Arguments {
            pairs: pairs.iter().map(|text| key_value(text).unwrap()).collect(),
            files: files.iter().map(|text| key_file(text).unwrap()).collect(),
            json: None,
        }
    }

    // Promises: CLI-6
    #[test]
    fn values_keep_their_equals_signs() {
        assert_eq!(key_value("a=b=c").unwrap(), ("a".to_owned(), "b=c".to_owned()));
        assert_eq!(key_value("a=").unwrap(), ("a".to_owned(), String::new()));
        assert!(key_value("a").unwrap_err().to_string().contains("a=VALUE"));
        assert!(key_value("=b").is_err());
        assert!(key_file("a=").is_err());
        assert!(key_file("a").unwrap_err().to_string().contains("a=FILE"));
    }

    #[test]
    fn a_key_given_twice_is_refused() {
        let failure = arguments(&["a=1", "a=2"], &[]).collect().unwrap_err();
        assert_eq!(failure.code(), crate::exit::USAGE);
        assert!(failure.to_string().contains("\"a\""));
    }

    // Promises: CLI-6
    #[test]
    fn files_are_read_whole_within_a_bound_and_must_be_text() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        std::fs::write(path("text"), "line\n").unwrap();
        std::fs::write(path("binary"), b"ab\xff").unwrap();
        File::create(path("large")).unwrap().set_len(MAX_FILE_BYTES + 1).unwrap();
        let arg = |name: &str| format!("f={}", path(name).display());

        let args = arguments(&["a=1"], &[&arg("text")]).collect().unwrap().texts;
        assert_eq!(args["f"], "line\n");
        for (name, said) in [("binary", "byte 2"), ("large", "larger than"), ("missing", "cannot open")] {
            let failure = arguments(&[], &[&arg(name)]).collect().unwrap_err();
            assert!(failure.to_string().contains(said), "{failure}");
        }
    }

    #[test]
    fn json_is_one_object_and_sent_as_it_is() {
        let json = |text: &str| Arguments { json: Some(text.to_owned()), ..Arguments::default() }.collect();
        assert_eq!(json(r#"{"a": "7"}"#).unwrap().json, r#"{"a": "7"}"#);
        for (bad, says) in [("[1]", "not an object"), (r#"{"a": 1, "a": 2}"#, "twice"), ("{", "EOF")] {
            let failure = json(bad).unwrap_err();
            assert_eq!(failure.code(), crate::exit::USAGE);
            assert!(failure.to_string().contains(says), "{failure}");
        }
    }

    // Promises: CLI-6
    #[test]
    fn timeouts_are_humane_and_never_zero() {
        assert_eq!(timeout("1m30s").unwrap(), Duration::from_secs(90));
        assert!(timeout("0s").is_err());
        assert!(timeout("soon").unwrap_err().to_string().contains("500ms"));
    }
}

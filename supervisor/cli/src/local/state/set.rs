//! `talon state set`.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use talon_proto::state::SetEntryRequest;
use talon_sanitize::sanitized;

use super::access::{Purpose, StateAccess};
use super::name;
use crate::exit;
use crate::failure::Failure;
use crate::global::Global;
use crate::input::{InputError, InputSource};
use crate::line::sanitized_line;
use crate::output::Output;
use crate::show::counted;

/// The largest value that the store accepts. Larger ones are refused before they are sent.
const MAX_VALUE_BYTES: u64 = 1 << 20;

/// Set the value of a key.
///
/// Quotas do not apply to operators. The plugin is not notified; it sees the value when it next reads the
/// key.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon state set notes greeting 'Hello there'
  talon state set notes picture --file picture.png
  date | talon state set notes seen -")]
pub(crate) struct SetArgs {
    /// The plugin's name.
    #[arg(value_name = "PLUGIN")]
    plugin: String,
    /// The key.
    #[arg(value_name = "KEY")]
    key: String,
    /// The value as text; `-` reads it from stdin, in any format.
    #[arg(value_name = "VALUE", required_unless_present = "file", allow_hyphen_values = true)]
    value: Option<String>,
    /// Read the value from this file.
    #[arg(long, value_name = "FILE", conflicts_with = "value")]
    file: Option<PathBuf>,
}

impl SetArgs {
    pub(super) async fn run(self, global: &Global, out: &mut Output) -> Result<u8, Failure> {
        let plugin = name::plugin(&self.plugin)?;
        let value = value(self.value, self.file)?;
        let bytes = value.len();
        let mut operator = StateAccess::find(global).await?.plugins(Purpose::Add).await?;
        let request = SetEntryRequest { plugin: plugin.clone(), key: self.key.clone(), value };
        operator.client.set_entry(request).await.map_err(|status| operator.failure(&status))?;
        if out.is_json() {
            out.json(&json!({ "plugin": plugin, "key": self.key, "bytes": bytes }));
        } else {
            let bytes = sanitized_line(counted(bytes as u64, "byte"));
            out.line(sanitized!("set {} of {}: {}", name::key(&self.key), sanitized_line(plugin), bytes));
        }
        Ok(exit::OK)
    }
}

fn value(value: Option<String>, file: Option<PathBuf>) -> Result<Vec<u8>, Failure> {
    match (value, file) {
        (_, Some(file)) => read(InputSource::File(&file)),
        (Some(text), None) if text == "-" => read(InputSource::Stdin),
        (text, None) => {
            let bytes = text.unwrap_or_default().into_bytes();
            if bytes.len() as u64 > MAX_VALUE_BYTES { Err(too_large("the value")) } else { Ok(bytes) }
        }
    }
}

fn read(source: InputSource<'_>) -> Result<Vec<u8>, Failure> {
    source.read(MAX_VALUE_BYTES).map_err(|error| match error {
        InputError::TooLarge { name } => too_large(&name),
        error => Failure::failed(error.to_string()),
    })
}

fn too_large(name: &str) -> Failure {
    Failure::usage(format!(
        "{name} is larger than {MAX_VALUE_BYTES} bytes, the most a value may have: keep it in a file, and its path here"
    ))
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn a_value_is_text_a_file_or_refused_for_its_size() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        std::fs::write(path("binary"), b"a\xff").unwrap();
        File::create(path("large")).unwrap().set_len(MAX_VALUE_BYTES + 1).unwrap();
        assert_eq!(value(Some("x".into()), None).unwrap(), b"x");
        assert_eq!(value(None, Some(path("binary"))).unwrap(), b"a\xff");
        for (name, code, said) in
            [("large", exit::USAGE, "larger than"), ("missing", exit::FAILED, "cannot open")]
        {
            let failure = value(None, Some(path(name))).unwrap_err();
            assert!(failure.code() == code && failure.to_string().contains(said), "{failure}");
        }
    }
}

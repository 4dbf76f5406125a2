//! The bundle as bytes, with all secrets: its only form outside a process, in a sealed memory file for the
//! agent alone.

use std::collections::BTreeMap;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::SettingsBundle;
use crate::{ConfirmPatternFile, ProviderEntry, Secret, Settings};

/// The most bytes that are read. 32 MiB: 8 MiB of files grow by a third, and the settings come from a file of
/// at most 1 MiB. The supervisor writes nothing larger.
pub const MAX_BUNDLE_BYTES: usize = 32 << 20;

/// Why bytes are no bundle.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// There are too many.
    #[error(
        "what the supervisor hands over has {0} bytes, and at most {MAX_BUNDLE_BYTES} are taken: remove files from models.providers"
    )]
    TooLong(usize),
    /// They cannot be parsed. The error repeats nothing of them.
    #[error(
        "what the supervisor hands over cannot be understood at line {line}, column {column}: both programs have to be of one release"
    )]
    Unreadable {
        /// The line of the error, from 1.
        line: usize,
        /// The column of the error, from 1.
        column: usize,
    },
}

#[derive(Serialize)]
struct Outgoing<'a> {
    settings: Value,
    environment: &'a BTreeMap<String, String>,
    files: BTreeMap<&'a PathBuf, String>,
    confirm_patterns: &'a Option<ConfirmPatternFile>,
    refused: &'a BTreeMap<PathBuf, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Incoming {
    settings: Settings,
    environment: BTreeMap<String, String>,
    files: BTreeMap<PathBuf, String>,
    confirm_patterns: Option<ConfirmPatternFile>,
    refused: BTreeMap<PathBuf, String>,
}

impl SettingsBundle {
    /// Encodes the bundle for [`SettingsBundle::from_bytes`]. The bytes contain all secrets: they are for the
    /// agent's process, and must not be stored.
    ///
    /// # Errors
    /// [`BundleError::TooLong`] if [`SettingsBundle::from_bytes`] would reject them.
    pub fn to_bytes(&self) -> Result<Vec<u8>, BundleError> {
        let outgoing = Outgoing {
            settings: revealed(&self.settings),
            environment: &self.environment,
            files: self.files.iter().map(|(path, bytes)| (path, STANDARD.encode(bytes))).collect(),
            confirm_patterns: &self.confirm_patterns,
            refused: &self.refused,
        };
        let bytes = serde_json::to_vec(&outgoing).map_err(unreadable)?;
        if bytes.len() > MAX_BUNDLE_BYTES { Err(BundleError::TooLong(bytes.len())) } else { Ok(bytes) }
    }

    /// Decodes what [`SettingsBundle::to_bytes`] wrote.
    ///
    /// # Errors
    /// [`BundleError`]; it contains nothing of the bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, BundleError> {
        if bytes.len() > MAX_BUNDLE_BYTES {
            return Err(BundleError::TooLong(bytes.len()));
        }
        let Incoming { settings, environment, files, confirm_patterns, refused } =
            serde_json::from_slice(bytes).map_err(unreadable)?;
        let decoded = |(path, text): (PathBuf, String)| Some((path, STANDARD.decode(text).ok()?));
        let files = files
            .into_iter()
            .map(decoded)
            .collect::<Option<_>>()
            .ok_or(BundleError::Unreadable { line: 0, column: 0 })?;
        Ok(Self { settings, environment, files, confirm_patterns, refused })
    }
}

/// Drops the library's own message, which may repeat a value, and so a key.
fn unreadable(error: serde_json::Error) -> BundleError {
    BundleError::Unreadable { line: error.line(), column: error.column() }
}

/// The settings with their secrets in plain text. A new [`Secret`] in the settings has to be added here; the
/// test of this module finds a missing one.
fn revealed(settings: &Settings) -> Value {
    let mut value = serde_json::to_value(settings).unwrap_or_default();
    for (name, entry) in &settings.models.providers.0 {
        let ProviderEntry { headers, proxy, .. } = entry;
        let shown = &mut value["models"]["providers"][name];
        for (header, secret) in headers {
            shown["headers"][header] = reveal(secret);
        }
        if let Some(proxy) = proxy {
            shown["proxy"] = reveal(proxy);
        }
    }
    value
}

fn reveal(secret: &Secret) -> Value {
    Value::String(secret.reveal().to_owned())
}

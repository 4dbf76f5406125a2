//! `${VAR}` and `${credential:NAME}` in the strings of a config file.
//!
//! Works on scalars after parsing, never on the raw text, so that a variable's value cannot become YAML.

use talon_plugin_config::document::yaml::MAX_TEXT_BYTES;

use super::environment::{CredentialError, Environment};

/// The prefix of a credential's name.
const CREDENTIAL: &str = "credential:";

/// Why a substitution failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SubstitutionError {
    #[error("environment variable {name} is not set")]
    Unset { name: String },
    #[error("environment variable {name} is not UTF-8")]
    NotUtf8 { name: String },
    #[error("\"${{\" without a \"}}\"")]
    Unclosed,
    #[error("{shown:?} is no name of a variable")]
    BadName { shown: String },
    #[error("there is no credential {name}: {why}")]
    NoCredential { name: String, why: CredentialError },
    #[error("is longer than {MAX_TEXT_BYTES} bytes once its variables and credentials are filled in")]
    TooLong,
}

impl SubstitutionError {
    /// What to do about it.
    pub(crate) fn help(&self) -> String {
        match self {
            Self::Unset { name } => format!("set it, or give a default: ${{{name}:-…}}"),
            Self::NotUtf8 { .. } => "give it a value in UTF-8".to_owned(),
            Self::Unclosed | Self::BadName { .. } => "write ${NAME}, or $$ for a dollar sign".to_owned(),
            Self::NoCredential { name, .. } => {
                format!(
                    "hand it to the service (LoadCredential={name}:/path), or give a default: ${{credential:{name}:-…}}"
                )
            }
            Self::TooLong => "shorten the value that is filled in".to_owned(),
        }
    }
}

/// Replaces `${VAR}` and `${VAR:-default}` by the variable's value, `${credential:NAME}` by the service
/// manager's credential of that name, and `$$` by `$`. Any other `$` stays. Also returns whether anything was
/// replaced.
pub(crate) fn substitute(text: &str, around: &Environment) -> Result<(String, bool), SubstitutionError> {
    let mut from_variable = false;
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(dollar) = rest.find('$') {
        out.push_str(&rest[..dollar]);
        let after = &rest[dollar + 1..];
        if let Some(after) = after.strip_prefix('$') {
            out.push('$');
            rest = after;
        } else if let Some(inside) = after.strip_prefix('{') {
            let end = inside.find('}').ok_or(SubstitutionError::Unclosed)?;
            out.push_str(&value(&inside[..end], around)?);
            from_variable = true;
            rest = &inside[end + 1..];
        } else {
            out.push('$');
            rest = after;
        }
        if out.len() > MAX_TEXT_BYTES {
            return Err(SubstitutionError::TooLong);
        }
    }
    out.push_str(rest);
    Ok((out, from_variable))
}

fn value(inside: &str, around: &Environment) -> Result<String, SubstitutionError> {
    let (name, default) = match inside.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inside, None),
    };
    if let Some(name) = name.strip_prefix(CREDENTIAL) {
        return match (around.credential(name), default) {
            (Ok(text), _) => Ok(text),
            (Err(_), Some(default)) => Ok(default.to_owned()),
            (Err(why), None) => {
                Err(SubstitutionError::NoCredential { name: name.chars().take(40).collect(), why })
            }
        };
    }
    let starts_well = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if !starts_well || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        return Err(SubstitutionError::BadName { shown: name.chars().take(40).collect() });
    }
    let set = around.env.get(name);
    match (set, default) {
        // As in a shell, an empty variable is replaced by the default, but without a default it is not an
        // error.
        (Some(value), Some(default)) if value.is_empty() => Ok(default.to_owned()),
        (Some(value), _) => value
            .to_str()
            .map(str::to_owned)
            .ok_or_else(|| SubstitutionError::NotUtf8 { name: name.to_owned() }),
        (None, Some(default)) => Ok(default.to_owned()),
        (None, None) => Err(SubstitutionError::Unset { name: name.to_owned() }),
    }
}

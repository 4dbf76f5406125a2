//! The lists of `tests/interop`: each program by its version, and what has to come of it.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::service::Route;

/// `servers.yaml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerList {
    /// What the local imitations of services answer.
    pub routes: Vec<Route>,
    /// The servers, in the table's order.
    pub servers: Vec<Value>,
}

/// An MCP server as a plugin.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Server {
    /// The plugin's name.
    pub name: String,
    /// Its entry in an editor's list, which is imported.
    pub editor: Map<String, Value>,
    /// What the operator adds to the imported entry: grants above all.
    #[serde(default)]
    pub entry: Map<String, Value>,
    /// Variables of the supervisor's environment: the secrets that the import left to it.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Exact versions of what its package depends on, where the newest no longer fit it: pip's constraints.
    #[serde(default)]
    pub constraints: Vec<String>,
    /// A package, with its version, whose HTTP server is started beside the supervisor, in a jail.
    pub remote: Option<Remote>,
    /// A call with a known answer.
    pub call: ServerCall,
    /// Why it is known to fail.
    pub fails: Option<KnownFailure>,
}

/// A server that is reached by its address.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Remote {
    /// The name of a row whose package it is.
    pub package_of: String,
    /// Arguments in place of those of that row.
    pub args: Vec<String>,
    /// Variables of its environment.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
}

/// A call and what its answer holds.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerCall {
    /// The tool.
    pub action: String,
    /// What is not a string travels as JSON text.
    #[serde(default)]
    pub args: BTreeMap<String, Value>,
    /// A part of the answer's text, or of its structured content.
    pub expect: String,
}

/// A failure that is known.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownFailure {
    /// A part of its message: another failure is not the known one.
    pub with: String,
    /// The reason, for the table.
    pub why: String,
}

/// `clients.yaml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ClientList {
    /// What does not come of any client: the check, and why. It joins each row's own.
    #[serde(default)]
    lacks: BTreeMap<String, String>,
    /// The clients, in the table's order.
    clients: Vec<Client>,
}

/// An MCP client of `talon mcp`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Client {
    /// Its name in the table; the directory of its packages.
    pub name: String,
    /// Packages with exact versions, in the syntax of pip.
    #[serde(default)]
    pub pypi: Vec<String>,
    /// Exact versions of what its packages depend on, where the newest no longer fit them: pip's constraints.
    #[serde(default)]
    pub constraints: Vec<String>,
    /// Packages with exact versions, in the syntax of npm.
    #[serde(default)]
    pub npm: Vec<String>,
    /// The program in `tests/interop/clients`.
    pub script: String,
    /// Arguments of the program before those of the server.
    #[serde(default)]
    pub args: Vec<String>,
    /// Where its packages are below `target/mcp`, if `make test` runs it.
    pub core: Option<String>,
    /// What does not come of it: the check, and why.
    #[serde(default)]
    pub lacks: BTreeMap<String, String>,
}

/// The clients, each with all that is known to be lacking.
///
/// # Errors
/// When `clients.yaml` is not a list.
pub fn clients() -> Result<Vec<Client>> {
    let ClientList { lacks, mut clients } = read("clients.yaml")?;
    for client in &mut clients {
        for (check, why) in &lacks {
            client.lacks.entry(check.clone()).or_insert_with(|| why.clone());
        }
    }
    Ok(clients)
}

/// Reads a list.
///
/// # Errors
/// When the file is not one.
pub fn read<T: DeserializeOwned>(file: &str) -> Result<T> {
    let path = super::sources().join(file);
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    serde_saphyr::from_str(&text).with_context(|| path.display().to_string())
}

/// A server's row with the places of this run.
///
/// # Errors
/// When the row is none.
pub fn server(row: &Value, places: &[(&str, &str)]) -> Result<Server> {
    serde_json::from_value(placed(row, places)).with_context(|| format!("the row {row}"))
}

/// The name of a row.
#[must_use]
pub fn name(row: &Value) -> &str {
    row["name"].as_str().unwrap_or("?")
}

/// The value with `{place}` in its texts replaced.
fn placed(value: &Value, places: &[(&str, &str)]) -> Value {
    match value {
        Value::String(text) => {
            let put =
                |text: String, (place, path): &(&str, &str)| text.replace(&format!("{{{place}}}"), path);
            Value::String(places.iter().fold(text.clone(), put))
        }
        Value::Array(values) => values.iter().map(|value| placed(value, places)).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| (key.clone(), placed(value, places)))
            .collect::<Map<_, _>>()
            .into(),
        other => other.clone(),
    }
}

/// A path as text.
///
/// # Panics
/// When it is none: the paths of this repository are.
#[must_use]
pub fn text(path: &Path) -> &str {
    path.to_str().expect("our paths are text")
}

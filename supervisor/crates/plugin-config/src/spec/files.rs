//! The host files that a plugin sees in addition to the system's own.

use std::borrow::Cow;
use std::path::PathBuf;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

// Constants, because `schemars` parses array expressions only where another crate enables that feature of
// `syn`.
const READ_EXAMPLE: [&str; 1] = ["/srv/code"];
const EXECUTE_EXAMPLE: [&str; 1] = ["/opt/python-3.13"];
const WRITE_EXAMPLE: [&str; 1] = ["/srv/index"];

/// Files and directories of the host's that a plugin sees, at the paths that they have on the host; a
/// directory with all that is in it. The file's own permissions still count: the plugin's uid has to be among
/// those whom they let in.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SandboxFs {
    /// What it may read. Sockets in it can be connected to before Linux 7.1.
    #[schemars(with = "Option<Vec<PathSchema>>", extend("x-default" = "nothing"), example = READ_EXAMPLE)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read: Option<Vec<PathBuf>>,
    /// What it may read and execute: an interpreter outside of `/usr` with its libraries.
    #[schemars(with = "Option<Vec<PathSchema>>", extend("x-default" = "nothing"), example = EXECUTE_EXAMPLE)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execute: Option<Vec<PathBuf>>,
    /// What it may read and write, make and remove. A socket that lies there can be connected to.
    #[schemars(with = "Option<Vec<PathSchema>>", extend("x-default" = "nothing"), example = WRITE_EXAMPLE)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write: Option<Vec<PathBuf>>,
}

/// The schema of a path in a list.
struct PathSchema;

impl JsonSchema for PathSchema {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Path".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "path" })
    }
}

impl SandboxFs {
    /// The lists with their names.
    #[must_use]
    pub fn lists(&self) -> [(&'static str, Option<&Vec<PathBuf>>); 3] {
        [("read", self.read.as_ref()), ("execute", self.execute.as_ref()), ("write", self.write.as_ref())]
    }

    /// Whether no list is set.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        self.lists().iter().all(|(_, list)| list.is_none())
    }

    /// These lists where they are set, otherwise the wider ones.
    #[must_use]
    pub fn with_defaults(&self, wider: &Self) -> Self {
        let list =
            |own: &Option<Vec<PathBuf>>, wider: &Option<Vec<PathBuf>>| own.clone().or_else(|| wider.clone());
        Self {
            read: list(&self.read, &wider.read),
            execute: list(&self.execute, &wider.execute),
            write: list(&self.write, &wider.write),
        }
    }
}

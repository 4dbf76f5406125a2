//! The roots that a server gets when it asks: what the operator wrote, within what the jail grants.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rmcp::model::ClientCapabilities;
use serde_json::{Value, json};
use talon_sdk::ToolError;
use url::Url;

/// The most roots: a server may read all of them at once.
const MAX_ROOTS: usize = 256;
/// The word for all that is granted.
const GRANTED: &str = "granted";

/// The roots of a server, as addresses; nothing if it gets none. Clones share them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Roots(Option<Arc<[String]>>);

impl Roots {
    /// Those that `config.roots` means, of what the jail grants.
    ///
    /// # Errors
    /// When it is something else, or names what is not granted.
    pub(crate) fn of(setting: Option<&Value>, granted: &[PathBuf]) -> Result<Self, ToolError> {
        let refused = |why: String| ToolError::new(format!("config.roots: {why}"));
        let paths = match setting {
            None => return Ok(Self::default()),
            Some(Value::String(word)) if word == GRANTED => granted.to_vec(),
            Some(Value::Array(paths)) => {
                let paths = paths.iter().map(|path| path.as_str().map(PathBuf::from));
                let paths: Option<Vec<PathBuf>> = paths.collect();
                paths.ok_or_else(|| refused("each is a path".to_owned()))?
            }
            Some(_) => return Err(refused("write granted, or a list of paths".to_owned())),
        };
        if paths.len() > MAX_ROOTS {
            return Err(refused(format!("at most {MAX_ROOTS} are taken, and these are {}", paths.len())));
        }
        let uri = |path: &Path| {
            if !granted.iter().any(|allowed| path.starts_with(allowed)) {
                let path = path.display();
                return Err(refused(format!(
                    "{path} is not granted: add it to sandbox.fs.read, or leave it out"
                )));
            }
            Url::from_file_path(path)
                .map(String::from)
                .map_err(|()| refused(format!("{} is no absolute path", path.display())))
        };
        let uris: Result<Vec<String>, ToolError> = paths.iter().map(|path| uri(path)).collect();
        Ok(Self(Some(uris?.into())))
    }

    /// The answer to `roots/list`; nothing if the server gets none.
    pub(crate) fn answer(&self) -> Option<Value> {
        let uris = self.0.as_ref()?;
        let roots: Vec<Value> = uris.iter().map(|uri| json!({ "uri": uri })).collect();
        Some(json!({ "roots": roots }))
    }

    /// What the bridge says that it can do.
    pub(crate) fn capabilities(&self, sampling: bool) -> ClientCapabilities {
        // Whether a question can be asked depends on who calls, and is decided then.
        let mut capabilities = json!({ "elicitation": { "form": {} } });
        if self.0.is_some() {
            capabilities["roots"] = json!({});
        }
        if sampling {
            capabilities["sampling"] = json!({});
        }
        serde_json::from_value(capabilities).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: MCP-36
    #[test]
    fn roots_are_what_the_operator_wrote_within_what_is_granted() {
        let granted = [PathBuf::from("/srv/a b"), PathBuf::from("/srv/c")];
        let of = |setting: Value| Roots::of(Some(&setting), &granted);
        let all = json!({ "roots": [{ "uri": "file:///srv/a%20b" }, { "uri": "file:///srv/c" }] });
        assert_eq!(of(json!("granted")).unwrap().answer(), Some(all));
        let one = json!({ "roots": [{ "uri": "file:///srv/c/d" }] });
        assert_eq!(of(json!(["/srv/c/d"])).unwrap().answer(), Some(one));
        assert_eq!(Roots::of(None, &granted).unwrap().answer(), None);
        for (bad, says) in [
            (json!("all"), "write granted"),
            (json!([7]), "a path"),
            (json!(["/etc"]), "/etc is not granted"),
            (json!(["/srv/cc"]), "not granted"),
            (json!(vec!["/srv/c"; 300]), "at most 256"),
        ] {
            let refused = of(bad).unwrap_err();
            assert!(refused.message().contains(says), "{refused}");
        }
    }
}

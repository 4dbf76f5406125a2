//! `talon mcp import --install`: from an editor's entry to a plugin's.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, Result, bail};
use serde_json::{Map, Value, json};
use talon_harness::{Scratch, program};
use tokio::process::Command;

use super::list::{Server, text};

/// The imported entry of the server, whose package lies below `packages` from now on.
///
/// # Errors
/// When the import leaves it out, or installs nothing.
pub async fn entry(server: &Server, scratch: &Scratch, packages: &Path) -> Result<Map<String, Value>> {
    let list = json!({ "mcpServers": { &server.name: server.editor } });
    let list = scratch.write("editor.json", &list.to_string());
    let written = scratch.join("imported.yaml");
    let constraints = constraints(server, packages)?;
    let output = Command::new(program("talon"))
        .args(["mcp", "import", text(&list), "--write", text(&written), "--install", text(packages)])
        .args(["--output", "json"])
        .env("PIP_CONSTRAINT", constraints)
        .env("PIP_CACHE_DIR", packages.join(".pip"))
        .env("npm_config_cache", packages.join(".npm"))
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if !output.status.success() {
        bail!("the import ended with {}: {said}", output.status);
    }
    let about: Value = serde_json::from_slice(&output.stdout).context("the import's report")?;
    if about["servers"][0]["result"] != "taken_over" {
        bail!("the import left it out: {} {said}", about["servers"][0]);
    }
    let config: Value = serde_saphyr::from_str(&std::fs::read_to_string(&written)?)?;
    match &config["plugins"]["tools"]["plugins"][&server.name] {
        Value::Object(entry) => Ok(entry.clone()),
        _ => bail!("the import wrote no entry {:?}: {config}", server.name),
    }
}

/// The file of the server's constraints. With others than before, its package is installed anew.
fn constraints(server: &Server, packages: &Path) -> Result<PathBuf> {
    std::fs::create_dir_all(packages)?;
    let file = packages.join(format!(".{}-constraints.txt", server.name));
    let text = server.constraints.join("\n");
    if std::fs::read_to_string(&file).unwrap_or_default() != text {
        let installed = packages.join(&server.name);
        if installed.exists() {
            std::fs::remove_dir_all(installed)?;
        }
    }
    std::fs::write(&file, text)?;
    Ok(file)
}

/// The entry with what the operator adds: objects are merged, anything else replaces what is there.
pub fn merge(entry: &mut Map<String, Value>, added: &Map<String, Value>) {
    for (key, value) in added {
        match (entry.get_mut(key), value) {
            (Some(Value::Object(old)), Value::Object(new)) => merge(old, new),
            _ => {
                entry.insert(key.clone(), value.clone());
            }
        }
    }
}

//! One MCP client: installed, and run against `talon mcp`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;
use serde_json::{Value, json};
use talon_harness::{Builder, Scratch, Supervisor, program};
use tokio::process::Command;

use super::import;
use super::list::{self, Client, ServerList, text};

/// What is tried with each client, in the table's order.
pub const CHECKS: [&str; 7] = ["list", "call", "error", "progress", "cancel", "structured", "image"];

/// One line of a client's program.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// One of [`CHECKS`].
    pub check: String,
    /// Whether it came as it should.
    pub ok: bool,
    /// What came instead.
    #[serde(default)]
    pub note: String,
}

/// What a client's program reported, by check.
pub type Report = BTreeMap<String, Check>;

/// What differs from the list: a check that fails without a reason, or passes in spite of one.
#[must_use]
pub fn differences(client: &Client, report: &Report) -> Vec<String> {
    let differs = |check: &&str| match (report.get(*check), client.lacks.get(*check)) {
        (Some(found), None) if !found.ok => Some(format!("{check}: {}", found.note)),
        (Some(found), Some(why)) if found.ok => {
            Some(format!("{check} works now: take it ({why}) out of `lacks`"))
        }
        (None, None) => Some(format!("{check}: not reported")),
        _ => None,
    };
    CHECKS.iter().filter_map(differs).collect()
}

/// Installs the client's packages, once.
///
/// # Errors
/// What the installer said.
pub async fn install(client: &Client, packages: &Path) -> Result<PathBuf> {
    let home = packages.join("clients").join(&client.name);
    let wanted = format!("{:?} {:?} {:?}", client.pypi, client.constraints, client.npm);
    let stamp = home.join(".stamp");
    if std::fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
        return Ok(home);
    }
    if home.exists() {
        std::fs::remove_dir_all(&home)?;
    }
    std::fs::create_dir_all(&home)?;
    let constraints = home.join("constraints.txt");
    std::fs::write(&constraints, client.constraints.join("\n"))?;
    if !client.pypi.is_empty() {
        let mut venv = Command::new("/usr/bin/python3");
        venv.args(["-I", "-m", "venv"]).arg(&home);
        installed(venv).await?;
        let mut pip = Command::new(home.join("bin/python"));
        pip.args(["-I", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
        pip.args(["--only-binary", ":all:"]).args(&client.pypi);
        pip.env("PIP_CONSTRAINT", constraints).env("PIP_CACHE_DIR", packages.join(".pip"));
        installed(pip).await?;
    }
    if !client.npm.is_empty() {
        let mut npm = Command::new("npm");
        npm.args(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", "--prefix"]);
        npm.arg(&home).arg("--").args(&client.npm).env("npm_config_cache", packages.join(".npm"));
        installed(npm).await?;
    }
    std::fs::write(stamp, wanted)?;
    Ok(home)
}

async fn installed(mut command: Command) -> Result<()> {
    let output = command.stdin(Stdio::null()).kill_on_drop(true).output().await?;
    if !output.status.success() {
        let said = [output.stdout, output.stderr].concat();
        bail!("{command:?} ended with {}: {}", output.status, String::from_utf8_lossy(&said));
    }
    Ok(())
}

/// Runs the client's program, whose packages are in `home`, against `talon mcp` of the supervisor.
///
/// # Errors
/// When the program fails as a whole.
pub async fn run(client: &Client, home: &Path, supervisor: &Supervisor) -> Result<Report> {
    let script = super::sources().join("clients").join(&client.script);
    // A module finds its packages beside itself, and what is installed may belong to another user.
    let beside = Scratch::new();
    let mut command = if script.extension().is_some_and(|extension| extension == "py") {
        let mut command = Command::new(home.join("bin/python"));
        // Without files of bytecode beside the sources.
        command.arg("-B").arg(&script);
        command
    } else {
        std::os::unix::fs::symlink(home.join("node_modules"), beside.join("node_modules"))?;
        for file in ["checks.mjs", &client.script] {
            std::fs::copy(script.with_file_name(file), beside.join(file))?;
        }
        let mut command = Command::new("/usr/bin/node");
        command.arg(beside.join(&client.script));
        command
    };
    let output = command
        .args(&client.args)
        .arg(program("talon"))
        .args(["--socket", text(&supervisor.socket()), "mcp"])
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await?;
    let (said, log) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let checks = said.lines().filter(|line| line.starts_with("{\"check\""));
    let report = checks
        .map(|line| {
            let check: Check = serde_json::from_str(line).with_context(|| line.to_owned())?;
            Ok((check.check.clone(), check))
        })
        .collect::<Result<Report>>()?;
    if !output.status.success() || report.is_empty() {
        bail!("it ended with {}, and said {said} {log}", output.status);
    }
    Ok(report)
}

/// A supervisor with what the clients use: the tools of the tests, and the server `everything` by its entry.
pub async fn supervisor(everything: &Value) -> Supervisor {
    let mut everything = everything.clone();
    // One of its tools answers with a picture.
    everything["media"] = json!(["image"]);
    let kit = json!({ "command": program("talon-test-tools") });
    let plugins = json!({ "kit": kit, "everything": everything });
    Builder::new().tools(&format!("plugins: {plugins}")).start().await
}

/// The entry of the server `everything`, as it is imported.
///
/// # Errors
/// When the server cannot be had.
pub async fn everything(packages: &Path) -> Result<Value> {
    let ServerList { servers, .. } = list::read("servers.yaml")?;
    let row = servers.iter().find(|row| list::name(row) == "everything");
    let server = list::server(row.context("the list has no server `everything`")?, &[])?;
    let mut entry = import::entry(&server, &Scratch::new(), &packages.join("servers")).await?;
    entry.insert("start_timeout".to_owned(), "55s".into());
    Ok(Value::Object(entry))
}

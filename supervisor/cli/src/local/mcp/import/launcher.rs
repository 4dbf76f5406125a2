//! Converts a server to a plugin's entry; handles `npx` and `uvx`, which download what they run.

use std::path::{Path, PathBuf};

use super::download::{Download, download};
use super::entry::Entry;
use super::error::ImportError;
use super::install::{self, Installed};
use super::paths::{environment_of, grant_arguments, grant_variables, interpreter_dir, program_dir};
use super::program_path::find;
use super::server::{LaunchMethod, Server};
use super::values::{ValueTranslator, literal};
use crate::output::Output;

/// What the user wants of each server.
#[derive(Debug, Clone, Copy)]
pub(super) struct ImportOptions<'o> {
    /// Where packages are installed.
    pub(super) install: Option<&'o Path>,
    /// Whether servers may write what they name.
    pub(super) grant_write: bool,
}

/// Creates the entry.
pub(super) fn prepare(
    plugin: &str,
    server: Server,
    options: ImportOptions<'_>,
    notes: &mut Vec<String>,
    out: &mut Output,
) -> Result<Entry, ImportError> {
    let mut values = ValueTranslator::of(plugin);
    let ImportOptions { install, grant_write } = options;
    let mut entry = Entry {
        plugin: plugin.to_owned(),
        enabled: server.enabled,
        may_write: grant_write,
        ..Entry::default()
    };
    for (name, value) in &server.env {
        entry.env.push((name.clone(), values.env(name, value)?));
    }
    match server.launch {
        LaunchMethod::Url { url, headers } => {
            if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization")) {
                notes.push(format!(
                    "is reached without credentials: if it asks for a login (OAuth), run `talon mcp login {plugin}`; a token \
                     goes into config.headers, as Authorization: \"Bearer ${{NAME}}\""
                ));
            }
            address(&mut entry, &mut values, &url, &headers)?;
        }
        LaunchMethod::Program { command, args, cwd } => {
            if cwd.is_some() {
                notes.push(
                    "its cwd is not imported: a plugin starts in its own directory; use absolute paths"
                        .to_owned(),
                );
            }
            let (command, args) = without_cmd(command, args);
            if is_ourselves(&command, &args) {
                return Err(ImportError::Talon);
            }
            let base = file_name(&command);
            if matches!(base, "docker" | "podman" | "nerdctl") {
                return Err(ImportError::Container { launcher: base.to_owned() });
            }
            match download(base, &args) {
                None => program(&mut entry, &mut values, &command, &args, notes)?,
                Some(Err(error)) => return Err(error.into()),
                Some(Ok(download)) => {
                    downloaded(&mut entry, &mut values, &command, &args, download, install, notes, out)?
                }
            }
            grant_variables(&mut entry, &server.env, notes);
            if server.enabled {
                notes.push(
                    "its jail has no network: if it needs some, give it sandbox.network: proxy and the hosts in sandbox.allow"
                        .to_owned(),
                );
            }
        }
    }
    entry.variables = values.variables.into_keys().collect();
    Ok(entry)
}

fn address(
    entry: &mut Entry,
    values: &mut ValueTranslator<'_>,
    url: &str,
    headers: &[(String, String)],
) -> Result<(), ImportError> {
    entry.url = Some(values.url(url)?);
    for (name, value) in headers {
        entry.headers.push((name.clone(), values.header(name, value)?));
    }
    Ok(())
}

/// Windows runs scripts such as npx through its shell.
fn without_cmd(command: String, args: Vec<String>) -> (String, Vec<String>) {
    let is_cmd = matches!(file_name(&command).to_ascii_lowercase().as_str(), "cmd" | "cmd.exe");
    match args.split_first() {
        Some((flag, rest)) if is_cmd && flag.eq_ignore_ascii_case("/c") => match rest.split_first() {
            Some((command, args)) => (command.clone(), args.to_vec()),
            None => (command, args),
        },
        _ => (command, args),
    }
}

fn is_ourselves(command: &str, args: &[String]) -> bool {
    file_name(command) == "talon-mcp"
        || (file_name(command) == "talon" && args.first().is_some_and(|arg| arg == "mcp"))
}

fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

/// An installed program.
fn program(
    entry: &mut Entry,
    values: &mut ValueTranslator<'_>,
    command: &str,
    args: &[String],
    notes: &mut Vec<String>,
) -> Result<(), ImportError> {
    if command.contains("${") {
        return Err(ImportError::VariableInCommand);
    }
    let path = match find(command) {
        Some(path) => path,
        None if command.contains('/') && !Path::new(command).is_absolute() => {
            return Err(ImportError::RelativeCommand { command: command.to_owned() });
        }
        None => {
            notes.push(format!(
                "there is no program {command} on this machine: install it, or correct the entry's command"
            ));
            PathBuf::from(command)
        }
    };
    if let Some(home) = interpreter_dir(&path) {
        notes.push(format!("its interpreter lies outside of /usr: its jail shows it {}", home.display()));
        entry.execute.push(literal(&home.display().to_string()));
    }
    if let Some(home) = environment_of(&path) {
        notes.push(format!("may read {}, the virtual environment of its program", home.display()));
        entry.execute.push(literal(&home.display().to_string()));
    }
    if entry.execute.is_empty() {
        match program_dir(&path) {
            Some(Ok(home)) => {
                notes.push(format!("may read and run what lies in {}, where its program is", home.display()));
                entry.execute.push(literal(&home.display().to_string()));
            }
            Some(Err(program)) => notes.push(format!(
                "its jail shows it {} alone: if it needs files beside it, name them in sandbox.fs.execute",
                program.display()
            )),
            None => {}
        }
    }
    entry.command = Some(literal(&path.display().to_string()));
    entry.args = values.args(args)?;
    grant_arguments(entry, args, notes);
    Ok(())
}

#[expect(clippy::too_many_arguments, reason = "what an entry is made of, and who is told")]
fn downloaded(
    entry: &mut Entry,
    values: &mut ValueTranslator<'_>,
    command: &str,
    args: &[String],
    download: Download,
    install: Option<&Path>,
    notes: &mut Vec<String>,
    out: &mut Output,
) -> Result<(), ImportError> {
    // A proxy to a remote server, for hosts that only support local ones.
    if file_name(&download.package).split('@').next() == Some("mcp-remote")
        && let Some(url) = download.args.first().filter(|url| url.starts_with("https://"))
    {
        notes.push(
            "mcp-remote is a relay to an address, which is taken over instead; what it does to log in is not"
                .to_owned(),
        );
        return address(entry, values, url, &[]);
    }
    let Some(directory) = install else {
        notes.push(format!(
            "downloads {} at each start, which its jail has no network for: run `talon mcp import` with --install DIR, which \
             runs `{}` once",
            download.package,
            install::command_line(&download, &Path::new("DIR").join(&entry.plugin))
        ));
        return program(entry, values, command, args, notes);
    };
    let home = directory.join(&entry.plugin);
    let Installed { command, leading_args: before, note } = install::install(&download, &home, out)?;
    notes.extend(note);
    entry.command = Some(literal(&command.display().to_string()));
    entry.args = before.iter().map(|arg| literal(arg)).collect();
    entry.args.extend(values.args(&download.args)?);
    // Shared libraries need execute permission to be loaded.
    let shown = if install::holds_machine_code(&home) { &mut entry.execute } else { &mut entry.read };
    shown.push(literal(&home.display().to_string()));
    if let Some(beside) = interpreter_dir(&command.canonicalize().unwrap_or(command)) {
        entry.execute.push(literal(&beside.display().to_string()));
    }
    grant_arguments(entry, &download.args, notes);
    Ok(())
}

#[cfg(test)]
#[path = "launcher_tests.rs"]
mod tests;

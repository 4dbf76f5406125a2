//! `talon setup`: a first configuration from what this machine has.
//!
//! | module | contents |
//! |---|---|
//! | `ollama` | asks an Ollama for its models |
//! | `discovery` | keys in the environment, and plugins |
//! | `file` | the text of the file |

mod discovery;
mod file;
mod ollama;

use std::fs::DirBuilder;
use std::io::Write as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use talon_sanitize::{Raw, sanitized};
use talon_supervisor::config::LoadOptions;

use self::file::Findings;
use self::ollama::{OllamaAddress, OllamaModel};
use super::configuration::{load, load_options};
use crate::confirm;
use crate::exit;
use crate::failure::Failure;
use crate::global::Global;
use crate::output::Output;
use crate::show::counted;

/// The file may come to name keys; the directory is the user's own.
const PRIVATE_DIR: u32 = 0o700;
/// The variable that says where Ollama listens.
const OLLAMA_VARIABLE: &str = "OLLAMA_HOST";
/// Other models that the output names.
const MAX_OTHERS: usize = 8;

/// Write a first configuration from what this machine has.
///
/// Looks for an Ollama (`OLLAMA_HOST`, or its default address), for API keys in the environment, and for
/// installed plugins; shows the file, asks once, and writes it. Keys themselves are never written: the file names
/// their variables. An existing configuration is never changed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon setup
  talon setup --yes --ollama-model qwen3:8b
  talon --config ./talon.yaml setup")]
pub(crate) struct SetupArgs {
    /// Write the file without asking.
    #[arg(long, short)]
    yes: bool,
    /// The model of Ollama to use. Otherwise the most recently changed one that can call tools.
    #[arg(long, value_name = "MODEL")]
    ollama_model: Option<String>,
}

impl SetupArgs {
    pub(crate) async fn run(self, global: &Global, out: &mut Output) -> Result<u8, Failure> {
        let options = load_options(global);
        let path = configuration_path(&options)?;
        if path.symlink_metadata().is_ok() {
            return Err(Failure::new(
                exit::REFUSED,
                format!(
                    "{} is there already and stays as it is: see `talon config show`, or name another file with --config",
                    path.display()
                ),
            ));
        }
        if !self.yes && (out.is_json() || !confirm::is_interactive()) {
            return Err(Failure::usage(
                "there is no terminal to ask at: --yes writes the file without a question",
            ));
        }
        let mut found = Findings::default();
        let others = self.find_ollama(&mut found, out).await?;
        for provider in discovery::keyed_providers(|name| std::env::var_os(name)) {
            out.err_line(sanitized!(
                "found {} in the environment: {}/{}",
                provider.variable,
                provider.name,
                provider.model
            ));
            found.keyed.push(provider);
        }
        found.plugins = discovery::plugin_directory(data_home(&options).as_deref());
        match &found.plugins {
            Some(dir) => out.err_line(sanitized!(
                "found {} in {}",
                Raw::from(counted(dir.plugins as u64, "plugin")).line(),
                Raw::of(dir.path.display()).line()
            )),
            None => out.err_line("found no plugins: models answer without tools; docs/README.md says how to write or import one"),
        }
        if !found.has_model() {
            return Err(Failure::new(
                exit::REFUSED,
                format!(
                    "no model can be asked, and nothing was written: start Ollama and `ollama pull` a model, or set {}; then \
                     run `talon setup` again (docs/providers.md has all kinds of providers)",
                    discovery::key_variables()
                ),
            ));
        }
        if !others.is_empty() {
            let names =
                Raw::from(others.iter().take(MAX_OTHERS).cloned().collect::<Vec<_>>().join(", ")).line();
            out.err_line(sanitized!("--ollama-model takes another one: {}", names));
        }
        let text = found.file_text();
        if !self.yes {
            out.err_line(sanitized!("\n{}", Raw::from(&text).text()));
            if !confirm::is_confirmed(sanitized!("Write this to {}?", Raw::of(path.display()).line()), out)? {
                return Err(Failure::new(exit::REFUSED, "nothing was written"));
            }
        }
        write(&path, &text, &options)?;
        print_written(&path, global, out);
        Ok(exit::OK)
    }

    /// Looks for an Ollama; returns the names of the models that were not chosen.
    async fn find_ollama(&self, found: &mut Findings, out: &mut Output) -> Result<Vec<String>, Failure> {
        let variable = std::env::var(OLLAMA_VARIABLE).unwrap_or_default();
        let wanted = self.ollama_model.as_deref();
        let Some(address) = OllamaAddress::parse(&variable) else {
            out.err_line("OLLAMA_HOST is no address of plain HTTP, so no Ollama is asked: docs/providers.md has the others");
            return Ok(Vec::new());
        };
        let models = match address.models().await {
            Ok(models) => models,
            Err(error) if wanted.is_some() => {
                return Err(Failure::new(
                    exit::UNREACHABLE,
                    format!("{error}: start it, or leave out --ollama-model"),
                ));
            }
            Err(error) => {
                out.err_line(sanitized!("{}", Raw::of(error).line()));
                return Ok(Vec::new());
            }
        };
        let Some(chosen) = choose(&models, wanted) else {
            if let Some(wanted) = wanted {
                let message =
                    format!("Ollama has no model {wanted} that answers: `ollama pull {wanted}` gets it");
                return Err(Failure::new(exit::REFUSED, message));
            }
            out.err_line("found Ollama, but no model in it: `ollama pull` gets one");
            return Ok(Vec::new());
        };
        let tools = if chosen.can_call_tools { "can call tools" } else { "calls no tools" };
        out.err_line(sanitized!(
            "found Ollama at {}: {} ({})",
            Raw::from(address.base_url()).line(),
            Raw::from(&chosen.name).line(),
            tools
        ));
        let others = models.iter().filter(|model| model.name != chosen.name).map(|model| model.name.clone());
        let others = others.collect();
        found.ollama = Some((address, chosen.clone()));
        Ok(others)
    }
}

/// The model that was asked for, else the first that can call tools, else the first.
fn choose<'m>(models: &'m [OllamaModel], wanted: Option<&str>) -> Option<&'m OllamaModel> {
    match wanted {
        Some(name) => {
            models.iter().find(|model| model.name == name || model.name == format!("{name}:latest"))
        }
        None => models.iter().find(|model| model.can_call_tools).or(models.first()),
    }
}

/// The file that the supervisor will read.
fn configuration_path(options: &LoadOptions) -> Result<PathBuf, Failure> {
    let around = &options.environment;
    let named = options.file.clone().or_else(|| around.var("TALON_CONFIG").map(PathBuf::from));
    named.map(|path| around.cwd.join(path)).or_else(|| around.default_paths().config_file).ok_or_else(|| {
        Failure::usage("there is no home directory for the configuration: name the file with --config")
    })
}

/// The user's directory for data: `$XDG_DATA_HOME`, or `~/.local/share`.
fn data_home(options: &LoadOptions) -> Option<PathBuf> {
    let around = &options.environment;
    let named = around.var("XDG_DATA_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    named.or_else(|| Some(around.home.as_ref()?.join(".local/share")))
}

/// Writes the file, if the supervisor would take it, whole or not at all; never over another one.
fn write(path: &Path, text: &str, options: &LoadOptions) -> Result<(), Failure> {
    let failed = |error: std::io::Error| {
        Failure::failed(format!(
            "cannot write {}: {error}; nothing was written, --config names another file",
            path.display()
        ))
    };
    let dir = path.parent().unwrap_or(Path::new("/"));
    DirBuilder::new().recursive(true).mode(PRIVATE_DIR).create(dir).map_err(failed)?;
    // Only its owner can read it: `tempfile` creates it with mode 0600.
    let mut new =
        tempfile::Builder::new().prefix(".talon-setup").suffix(".yaml").tempfile_in(dir).map_err(failed)?;
    new.write_all(text.as_bytes()).and_then(|()| new.as_file().sync_all()).map_err(failed)?;
    load(&LoadOptions { file: Some(new.path().to_owned()), ..options.clone() })?;
    new.persist_noclobber(path).map(drop).map_err(|error| failed(error.error))
}

fn print_written(path: &Path, global: &Global, out: &mut Output) {
    // A file that was named here has to be named again.
    let talon = match &global.config {
        Some(_) => format!("talon --config {}", path.display()),
        None => "talon".to_owned(),
    };
    if out.is_json() {
        out.json(&json!({ "file": path.display().to_string(), "next": format!("{talon} chat") }));
        return;
    }
    let talon = Raw::from(talon).line();
    out.line(sanitized!("wrote {}", Raw::of(path.display()).line()));
    out.line(sanitized!(
        "next: `{} ask 'What can you do here?'` or `{} chat`, which start a supervisor for you; `{} serve` runs one for good",
        talon,
        talon,
        talon
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_that_can_call_tools_is_preferred_and_a_named_one_is_taken() {
        let model =
            |name: &str, can_call_tools| OllamaModel { name: name.into(), can_call_tools, context: None };
        let models = [model("a:latest", false), model("b:1b", true)];
        let name = |wanted| choose(&models, wanted).map(|model| model.name.as_str());
        assert_eq!(name(None), Some("b:1b"));
        assert_eq!(name(Some("a")), Some("a:latest"));
        assert_eq!(name(Some("c")), None);
        assert_eq!(choose(&models[..1], None).map(|model| model.name.as_str()), Some("a:latest"));
    }
}

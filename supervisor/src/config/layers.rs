//! The sources of a configuration, weakest first: built-in defaults, the file, the environment, flags.
//!
//! Each is walked along the schema, which finds every problem with its line and column. figment merges the
//! results; its own providers for files and variables stop at the first problem, and know the source of a
//! value but not its position.

use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use talon_plugin_config::document::names::{check_key, unknown_key};
use talon_plugin_config::document::origin::{InputSource, KeyPath, Mark, Source};
use talon_plugin_config::document::problem::Problem;
use talon_plugin_config::document::shape::{KeyKind, Shape, ShapeKind};
use talon_plugin_config::document::walk::{ResolveContext, SchemaWalker, VariableExpander, WalkResult};
use talon_plugin_config::document::yaml::{self, MAX_TEXT_BYTES, Node};

use super::environment::Environment;
use super::options::{LoadOptions, Override};
use super::regular_file::{self, OpenError};
use super::substitute::substitute;

/// The prefix of our variables.
pub(super) const PREFIX: &str = "TALON_";

/// Our variables that are not configuration keys, with their descriptions.
pub(super) const OTHER_VARIABLES: [(&str, &str); 9] = [
    ("TALON_CONFIG", "the config file, as `--config`"),
    ("TALON_LOG", "what is logged; wins over `log.level`"),
    ("TALON_JOURNAL_SOCKET", "where the journal is, if it is not the machine's own"),
    ("TALON_HOST_SOCKET", "the socket that commands talk to, as `--socket`"),
    ("TALON_FDSTORE", "set by the systemd unit: it has a store for the supervisor's descriptors"),
    ("TALON_LISTEN_FD", "given to plugins: a listening socket that they inherit"),
    ("TALON_PROXY_SOCKET", "given to plugins with `network: proxy`: their way out"),
    ("TALON_STATE_SOCKET", "given to plugins: where their own state is kept"),
    ("TALON_MODEL_SOCKET", "given to plugins that may ask language models: where"),
];

/// The prefix of variables of the handshake with plugins.
pub(super) const HANDSHAKE_PREFIX: &str = "TALON_PLUGIN_";

/// The file to read, and whether it must exist because it was named explicitly.
pub(crate) fn file_to_read(options: &LoadOptions) -> Option<(PathBuf, bool)> {
    let around = &options.environment;
    if let Some(file) = &options.file {
        return Some((file.clone(), true));
    }
    if let Some(file) = around.var("TALON_CONFIG") {
        return Some((PathBuf::from(file), true));
    }
    around.default_paths().config_file.map(|file| (file, false))
}

/// Reads and walks the file. `None` if it does not exist and need not.
pub(crate) fn file(root: &Shape, path: &Path, must_exist: bool, around: &Environment) -> Option<WalkResult> {
    let shared: Arc<Path> = path.into();
    let speaker = InputSource::File(shared);
    let whole_file = |message: String| {
        let problem = Problem::new(speaker.at(Mark::default()), KeyPath::top(), message);
        WalkResult { problems: vec![problem], ..WalkResult::default() }
    };
    let (text, warning) = match read(&around.cwd.join(path)) {
        Ok(read) => read,
        Err(ReadError::NotFound) if !must_exist => return None,
        Err(error) => return Some(whole_file(error.to_string())),
    };
    let said = match yaml::parse(&text) {
        Ok(None) => WalkResult::default(),
        Ok(Some(node)) => walk(root, speaker.clone(), around).document(&node),
        Err(refusal) => failed(refusal.into_problem(&speaker, KeyPath::top())),
    };
    match warning {
        None => Some(said),
        Some(message) => {
            let mut said = said;
            said.problems.push(Problem::new(speaker.at(Mark::default()), KeyPath::top(), message));
            Some(said)
        }
    }
}

/// A walk through the values of a source, with the environment that they may refer to.
pub(super) fn walk<'a>(root: &'a Shape, speaker: InputSource, around: &'a Environment) -> SchemaWalker<'a> {
    let (base, fill) = match &speaker {
        InputSource::File(path) => {
            let fill: Box<VariableExpander<'a>> = Box::new(|text: &str| {
                substitute(text, around).map_err(|error| (error.to_string(), error.help()))
            });
            (around.cwd.join(path.parent().unwrap_or(Path::new("."))), Some(fill))
        }
        // Values from the environment are used as they are; only files may refer to variables.
        InputSource::Variable(_) | InputSource::Flag(_) => (around.cwd.clone(), None),
    };
    SchemaWalker::new(
        root,
        speaker,
        ResolveContext { base: Some(base), home: around.home.as_deref(), expand: fill },
    )
}

#[derive(Debug, thiserror::Error)]
enum ReadError {
    #[error("no such file (create it, or leave out --config and TALON_CONFIG to run on defaults)")]
    NotFound,
    #[error("cannot be read: {} ({})", .0, talon_jail::descriptor_help(.0).unwrap_or("check its path and permissions"))]
    Io(std::io::Error),
    #[error("cannot be read: {0} (name a file; a pipe would be empty at the next reload)")]
    NotRegular(OpenError),
    #[error("is longer than {MAX_TEXT_BYTES} bytes (a configuration is much shorter; is it the right file?)")]
    TooLong,
    #[error("is not UTF-8 from byte {0} on (save it as UTF-8)")]
    NotUtf8(usize),
}

impl From<OpenError> for ReadError {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Io(error) => match error.kind() {
                ErrorKind::NotFound | ErrorKind::NotADirectory => Self::NotFound,
                _ => Self::Io(error),
            },
            OpenError::NotRegular(_) => Self::NotRegular(error),
            OpenError::TooLong(_) => Self::TooLong,
        }
    }
}

/// The file's text, and a warning about its permissions.
fn read(path: &Path) -> Result<(String, Option<String>), ReadError> {
    const WRITABLE_BY_OTHERS: u32 = 0o002;
    let file = regular_file::open(path)?;
    let untrusted = (file.metadata().map_err(ReadError::Io)?.mode() & WRITABLE_BY_OTHERS != 0)
        .then(|| "everybody may write to it, and so decide what runs (chmod o-w it)".to_owned());
    let bytes = regular_file::read_opened(file, MAX_TEXT_BYTES)?;
    let text =
        String::from_utf8(bytes).map_err(|error| ReadError::NotUtf8(error.utf8_error().valid_up_to()))?;
    Ok((text, untrusted))
}

/// The values from the environment, and warnings.
pub(crate) fn environment(root: &Shape, around: &Environment) -> (Vec<WalkResult>, Vec<Problem>) {
    let mut said = Vec::new();
    let mut warnings = Vec::new();
    for (name, value) in &around.env {
        let Some(rest) = name.strip_prefix(PREFIX) else { continue };
        if name.starts_with(HANDSHAKE_PREFIX) || OTHER_VARIABLES.iter().any(|(other, _)| other == name) {
            continue;
        }
        let source = Source::Variable(name.clone());
        let one = match key_of_variable(root, rest) {
            Ok((shape, path)) => match value.to_str() {
                Some(value) => {
                    value_at_key(root, InputSource::Variable(name.clone()), value, shape, &path, around)
                }
                None => failed(Problem::new(source, path, "is not UTF-8").help("give it a value in UTF-8")),
            },
            // Container platforms set variables such as TALON_PORT or TALON_SERVICE_HOST for a service called
            // "talon"; only a variable with our separator is surely meant for us.
            Err(problem) if !rest.contains("__") => {
                warnings.push(Problem { at: source, ..problem });
                continue;
            }
            Err(problem) => failed(Problem { at: source, ..problem }),
        };
        said.push(one);
    }
    (said, warnings)
}

/// The values from flags, in their order.
pub(crate) fn flags(root: &Shape, overrides: &[Override], around: &Environment) -> Vec<WalkResult> {
    let one = |flag: &Override| {
        let steps = flag.key.split('.').map(str::to_owned);
        match descend(root, steps, |_, step| step.to_owned()) {
            Ok((shape, path)) => {
                value_at_key(root, InputSource::Flag(flag.flag.clone()), &flag.value, shape, &path, around)
            }
            Err(problem) => failed(Problem { at: Source::Flag(flag.flag.clone()), ..problem }),
        }
    };
    overrides.iter().map(one).collect()
}

fn failed(problem: Problem) -> WalkResult {
    WalkResult { problems: vec![problem], ..WalkResult::default() }
}

/// The key for a variable's name (without the prefix). Names of keys and plugins are written in capitals,
/// with `_` for `-`; names that the operator chooses keep their case.
fn key_of_variable<'s>(root: &'s Shape, name: &str) -> Result<(&'s Shape, KeyPath), Problem> {
    let steps = name.split("__").map(str::to_owned);
    descend(root, steps, |kind, step| match kind {
        ShapeKind::Map { key: KeyKind::Plugin | KeyKind::Provider, .. } => {
            step.to_ascii_lowercase().replace('_', "-")
        }
        // The keys in a plugin's free `config` are the plugin's, and may have any case.
        ShapeKind::Map { value, .. } if value.kind == ShapeKind::Any => step.to_ascii_lowercase(),
        ShapeKind::Map { .. } => step.to_owned(),
        _ => step.to_ascii_lowercase(),
    })
}

/// Follows steps down the shape. A returned problem has no place yet.
fn descend(
    root: &Shape,
    steps: impl Iterator<Item = String>,
    spelled: impl Fn(&ShapeKind, &str) -> String,
) -> Result<(&Shape, KeyPath), Problem> {
    /// The shape of everything inside a plugin's free `config`.
    static ANYTHING: Shape = Shape { kind: ShapeKind::Any, nullable: true };
    let mut shape = root;
    let mut path = KeyPath::top();
    for step in steps {
        let step = spelled(&shape.kind, &step);
        let below = path.key(&step);
        let problem = |(message, help): (String, Option<String>)| Problem {
            help,
            ..Problem::new(Source::Default, below.clone(), message)
        };
        shape = match &shape.kind {
            ShapeKind::Object(_) | ShapeKind::OneOf(_) => match shape.field(&step) {
                Some(field) => &field.shape,
                None => return Err(problem(unknown_key(root, shape, &path, &step))),
            },
            ShapeKind::Map { key, value } => {
                check_key(*key, &step).map_err(problem)?;
                value
            }
            ShapeKind::Any if step.is_empty() => return Err(problem(("an empty key".to_owned(), None))),
            ShapeKind::Any => &ANYTHING,
            _ => {
                let message = format!("unknown key: {path} is {}, which has no keys", shape.name());
                return Err(problem((message, None)));
            }
        };
        path = below;
    }
    Ok((shape, path))
}

/// Walks the value that a variable or a flag gives to a key: a scalar as it stands, anything else as YAML.
fn value_at_key(
    root: &Shape,
    speaker: InputSource,
    text: &str,
    shape: &Shape,
    path: &KeyPath,
    around: &Environment,
) -> WalkResult {
    let is_yaml = matches!(
        shape.kind,
        ShapeKind::Object(_)
            | ShapeKind::OneOf(_)
            | ShapeKind::Map { .. }
            | ShapeKind::List(_)
            | ShapeKind::Any
    );
    let walk = walk(root, speaker.clone(), around);
    if !is_yaml {
        return walk.at_key(&Node::scalar(text, Mark::default(), true), shape, path);
    }
    match yaml::parse(text) {
        Ok(Some(node)) => walk.at_key(&node, shape, path),
        Ok(None) => walk.at_key(&Node::scalar("", Mark::default(), true), shape, path),
        Err(refusal) => failed(refusal.into_problem(&speaker, path.clone())),
    }
}

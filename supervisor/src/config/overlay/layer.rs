//! The overlay's values, between those of the file and those of the environment.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use talon_plugin_config::document::origin::{InputSource, KeyPath, Mark};
use talon_plugin_config::document::problem::Problem;
use talon_plugin_config::document::shape::Shape;
use talon_plugin_config::document::walk::{ResolveContext, SchemaWalker, WalkResult};
use talon_plugin_config::document::yaml::{self, Node, NodeKind};

use super::document::OverlayDocument;
use super::keys::OverlayKeys;
use super::{DEFAULT_KEYS, MAX_OVERLAY_BYTES, OverlayUse, path_in};
use crate::config::regular_file::{self, OpenError};
use crate::config::types::Config;

/// What the overlay says, and where it is.
#[derive(Debug, Default)]
pub(in crate::config) struct OverlayLayer {
    pub(in crate::config) read: WalkResult,
    /// What it says and does not count.
    pub(in crate::config) warnings: Vec<Problem>,
    /// Its file; `None` if it is ignored.
    pub(in crate::config) path: Option<PathBuf>,
}

/// Reads the overlay. `stronger` and the file say where it is, and which keys it may hold.
pub(in crate::config) fn layer(
    root: &Shape,
    overlay: &OverlayUse,
    defaults: &Config,
    sources: &[&WalkResult],
) -> OverlayLayer {
    if *overlay == OverlayUse::Ignore {
        return OverlayLayer::default();
    }
    let data_dir = said(sources, &["state", "data_dir"]).and_then(|dir| Some(PathBuf::from(dir.as_str()?)));
    let path = path_in(&data_dir.unwrap_or_else(|| defaults.state.data_dir.clone()));
    let keys = said(sources, &["gateway", "config_keys"]).and_then(serde_json::Value::as_array);
    let keys: Vec<String> = match keys {
        Some(keys) => keys.iter().filter_map(|key| key.as_str().map(str::to_owned)).collect(),
        None => DEFAULT_KEYS.map(str::to_owned).into(),
    };
    let source = InputSource::File(path.as_path().into());
    let whole = |message: String| Problem::new(source.at(Mark::default()), KeyPath::top(), message);
    let mut layer = OverlayLayer { path: Some(path.clone()), ..OverlayLayer::default() };
    let text = match overlay {
        OverlayUse::Candidate(text) => text.to_string(),
        _ => match read(&path) {
            Ok(Some(text)) => text,
            Ok(None) => return layer,
            // Who may not read it is not its supervisor.
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                layer
                    .warnings
                    .push(whole(format!("cannot be read, so what it says is not known here: {error}")));
                return layer;
            }
            Err(error) => {
                let problem = whole(format!("cannot be read: {error}"));
                layer.read.problems.push(problem.help(HELP));
                return layer;
            }
        },
    };
    let node = match yaml::parse(&text) {
        Ok(Some(node)) => node,
        Ok(None) => return layer,
        Err(error) => {
            layer.read.problems.push(error.into_problem(&source, KeyPath::top()).help(HELP));
            return layer;
        }
    };
    let node = allowed(&node, &text, &path, &OverlayKeys::new(&keys), &source, &mut layer.warnings);
    // Without variables, and without a base for paths, since it has none.
    layer.read = SchemaWalker::new(root, source, ResolveContext::default()).document(&node);
    // Who asks for a change has written no file.
    if *overlay == OverlayUse::Read {
        for problem in &mut layer.read.problems {
            let help = problem.help.take().map_or_else(|| HELP.to_owned(), |help| format!("{help}; {HELP}"));
            problem.help = Some(help);
        }
    }
    layer
}

/// What to do if the overlay is wrong.
const HELP: &str = "correct it, or start with `talon serve --no-overlay`";

/// The strongest value of a key. `sources` are the weakest first.
fn said<'v>(sources: &[&'v WalkResult], key: &[&str]) -> Option<&'v serde_json::Value> {
    let at = |source: &&&'v WalkResult| {
        let (first, rest) = key.split_first()?;
        rest.iter().try_fold(source.values.get(*first)?, |value, step| value.as_object()?.get(*step))
    };
    sources.iter().rev().find_map(|source| at(&source))
}

fn read(path: &Path) -> std::io::Result<Option<String>> {
    let bytes = match regular_file::read(path, MAX_OVERLAY_BYTES) {
        Ok(bytes) => bytes,
        Err(OpenError::Io(error))
            if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
        {
            return Ok(None);
        }
        Err(OpenError::Io(error)) => return Err(error),
        Err(error) => return Err(std::io::Error::other(error.to_string())),
    };
    String::from_utf8(bytes).map(Some).map_err(|_| std::io::Error::other("it is not UTF-8"))
}

/// The tree without keys that the overlay may not hold: they may have been opened when they were written. Each is told.
fn allowed(
    node: &Rc<Node>,
    text: &str,
    path: &Path,
    keys: &OverlayKeys,
    source: &InputSource,
    warnings: &mut Vec<Problem>,
) -> Node {
    let mut tree = Node::clone(node);
    let Ok(document) = OverlayDocument::parse(text, path) else { return tree };
    let mut refused = Vec::new();
    for key in leaves(&document) {
        let value = document.get(&key).cloned().unwrap_or_default();
        if let Some(why) = keys.refusal(&key, &value) {
            let problem =
                Problem::new(source.at(Mark::default()), key.clone(), format!("does not count: it {why}"));
            warnings.push(problem);
            refused.push(key);
        }
    }
    for key in refused {
        remove(&mut tree, key.steps());
    }
    tree
}

/// The keys of all values that are no maps, or are empty ones.
fn leaves(document: &OverlayDocument) -> Vec<KeyPath> {
    fn walk(values: &serde_json::Map<String, serde_json::Value>, path: &KeyPath, to: &mut Vec<KeyPath>) {
        for (key, value) in values {
            let below = path.key(key);
            match value {
                serde_json::Value::Object(values) if !values.is_empty() => walk(values, &below, to),
                _ => to.push(below),
            }
        }
    }
    let mut keys = Vec::new();
    walk(&document.values, &KeyPath::top(), &mut keys);
    keys
}

/// Removes a key, and maps that are empty without it.
fn remove(node: &mut Node, steps: &[String]) {
    let (Some((first, rest)), NodeKind::Map(entries)) = (steps.split_first(), &mut node.kind) else { return };
    entries.retain_mut(|entry| {
        if entry.key != *first {
            return true;
        }
        if rest.is_empty() {
            return false;
        }
        let below = Rc::make_mut(&mut entry.value);
        remove(below, rest);
        !matches!(&below.kind, NodeKind::Map(entries) if entries.is_empty())
    });
}

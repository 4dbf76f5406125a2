//! Checks a YAML tree against a shape.
//!
//! The result holds the values in the form that the types read, the origin of each value, and all problems. A
//! wrong value is left out, so that later checks see only valid values and report nothing twice.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::names::{check_key, unknown_key};
use super::origin::{InputSource, KeyPath, Mark, Origin, Origins};
use super::problem::Problem;
use super::scalar;
use super::scalar_reader::{ExpandedScalar, ScalarReader};
use super::shape::{KeyKind, Shape, ShapeKind};
use super::yaml::{Entry, Node, NodeKind};

/// The most problems that are collected from one source: more than a person reads. A hostile file could hold
/// very many.
const MAX_PROBLEMS: usize = 1000;

/// How paths and variables in a text are resolved. The default resolves nothing.
#[derive(Default)]
pub struct ResolveContext<'a> {
    /// The base of relative paths and programs; `None` leaves them unchanged.
    pub base: Option<PathBuf>,
    /// The expansion of `~/`.
    pub home: Option<&'a Path>,
    /// Expands variables.
    pub expand: Option<Box<VariableExpander<'a>>>,
}

/// Expands the variables in one scalar. Returns the text and whether it contained a variable, or the message
/// and the help.
pub type VariableExpander<'a> = dyn Fn(&str) -> Result<(String, bool), (String, String)> + 'a;

/// The result for one source.
#[derive(Debug, Default)]
pub struct WalkResult {
    /// The valid values, in the form that the types read.
    pub values: Map<String, Value>,
    /// The position of each value.
    pub origins: Origins,
    /// The problems.
    pub problems: Vec<Problem>,
}

/// Walks the tree of one source.
pub struct SchemaWalker<'a> {
    root: &'a Shape,
    source: InputSource,
    expand: Option<Box<VariableExpander<'a>>>,
    reader: ScalarReader<'a>,
    origins: Origins,
    problems: Vec<Problem>,
}

impl<'a> SchemaWalker<'a> {
    /// A new walker. `root` is the shape of the whole document, in which misplaced keys are searched.
    #[must_use]
    pub fn new(root: &'a Shape, source: InputSource, ground: ResolveContext<'a>) -> Self {
        let ResolveContext { base, home, expand } = ground;
        let reader = ScalarReader { base, home };
        Self { root, source, expand, reader, origins: Origins::default(), problems: Vec::new() }
    }

    /// Walks a whole document.
    #[must_use]
    pub fn document(mut self, node: &Node) -> WalkResult {
        let root = self.root;
        let values = match self.value(node, root, &KeyPath::top()) {
            Some(Value::Object(values)) => values,
            _ => Map::new(),
        };
        WalkResult { values, origins: self.origins, problems: self.problems }
    }

    /// Walks the value of one key, as given by a variable or a flag.
    #[must_use]
    pub fn at_key(mut self, node: &Node, shape: &Shape, path: &KeyPath) -> WalkResult {
        let mut value = self.value(node, shape, path);
        for step in path.steps().iter().rev() {
            value = value.map(|value| Value::Object(Map::from_iter([(step.clone(), value)])));
        }
        let values = match value {
            Some(Value::Object(values)) => values,
            _ => Map::new(),
        };
        WalkResult { values, origins: self.origins, problems: self.problems }
    }

    fn problem(&mut self, at: Mark, key: &KeyPath, message: impl Into<String>, help: Option<String>) {
        if self.problems.len() >= MAX_PROBLEMS {
            return;
        }
        let problem = Problem::new(self.source.at(at), key.clone(), message);
        self.problems.push(Problem { help, ..problem });
    }

    fn note(&mut self, at: Mark, path: &KeyPath, substituted: bool, list: bool) {
        let origin = Origin { source: self.source.at(at), substituted, list };
        self.origins.note(path.clone(), origin);
    }

    fn value(&mut self, node: &Node, shape: &Shape, path: &KeyPath) -> Option<Value> {
        match (&shape.kind, &node.kind) {
            (ShapeKind::Any, _) => self.untyped_value(node, path),
            (ShapeKind::Object(_), NodeKind::Map(entries)) => Some(self.object(node, entries, shape, path)),
            (ShapeKind::OneOf(_), NodeKind::Map(entries)) => self.one_of(node, entries, shape, path),
            (ShapeKind::Map { key, value }, NodeKind::Map(entries)) => {
                Some(self.map(node, entries, *key, value, path))
            }
            (ShapeKind::List(item), NodeKind::List(items)) => {
                self.note(node.at, path, false, true);
                let items = items.iter().enumerate();
                Some(items.filter_map(|(i, node)| self.value(node, item, &path.index(i))).collect())
            }
            (kind, NodeKind::Scalar { .. }) => {
                let collection = matches!(
                    kind,
                    ShapeKind::Object(_) | ShapeKind::OneOf(_) | ShapeKind::Map { .. } | ShapeKind::List(_)
                );
                let filled = self.expand_scalar(node, path)?;
                if filled.plain && scalar::is_null(&filled.text) {
                    // A section whose keys are all commented out.
                    if collection && !shape.nullable {
                        return None;
                    }
                    if shape.nullable {
                        self.note(node.at, path, filled.substituted, collection);
                        return Some(Value::Null);
                    }
                    let help = match kind {
                        ShapeKind::Text => "write \"\" for the empty text, or remove the key",
                        _ => "give it a value, or remove the key",
                    };
                    let message = format!("expected {}, found nothing", shape.name());
                    self.problem(node.at, path, message, Some(help.to_owned()));
                    return None;
                }
                match self.reader.read(&filled, shape) {
                    Ok(value) => {
                        self.note(node.at, path, filled.substituted, false);
                        Some(value)
                    }
                    Err((message, help)) => {
                        self.problem(node.at, path, message, help);
                        None
                    }
                }
            }
            (_, NodeKind::Map(_)) => self.report_type_mismatch(node, shape, path, "a map"),
            (_, NodeKind::List(_)) => self.report_type_mismatch(node, shape, path, "a list"),
        }
    }

    fn report_type_mismatch(
        &mut self,
        node: &Node,
        shape: &Shape,
        path: &KeyPath,
        found: &str,
    ) -> Option<Value> {
        self.problem(node.at, path, format!("expected {}, found {found}", shape.name()), None);
        None
    }

    fn object(&mut self, node: &Node, entries: &[Entry], shape: &Shape, path: &KeyPath) -> Value {
        self.note(node.at, path, false, false);
        let mut values = Map::new();
        for entry in self.unique_entries(entries, path) {
            let Some(field) = shape.field(&entry.key) else {
                self.unknown_key(entry, shape, path);
                continue;
            };
            let below = path.key(&field.name);
            if values.contains_key(&field.name) {
                let message = format!("is there twice, once as {}", entry.key);
                self.problem(entry.key_at, &below, message, Some("keep one of them".to_owned()));
                continue;
            }
            if let Some(value) = self.value(&entry.value, &field.shape, &below) {
                values.insert(field.name.clone(), value);
            }
        }
        Value::Object(values)
    }

    fn one_of(&mut self, node: &Node, entries: &[Entry], shape: &Shape, path: &KeyPath) -> Option<Value> {
        let known = entries.iter().filter(|entry| shape.field(&entry.key).is_some()).count();
        let value = self.object(node, entries, shape, path);
        if known == 1 {
            // Empty if the value of the key is wrong, which was reported.
            return value.as_object().is_some_and(|values| values.len() == 1).then_some(value);
        }
        // Unknown keys were reported one by one.
        if known > 1 || entries.is_empty() {
            let help = "keep one of them".to_owned();
            let message = format!("expected {}, found {known} of them", shape.name());
            self.problem(node.at, path, message, (known > 1).then_some(help));
        }
        None
    }

    fn unknown_key(&mut self, entry: &Entry, shape: &Shape, path: &KeyPath) {
        let (message, help) = unknown_key(self.root, shape, path, &entry.key);
        self.problem(entry.key_at, &path.key(&entry.key), message, help);
    }

    fn map(&mut self, node: &Node, entries: &[Entry], key: KeyKind, shape: &Shape, path: &KeyPath) -> Value {
        self.note(node.at, path, false, false);
        let mut values = Map::new();
        for entry in self.unique_entries(entries, path) {
            let below = path.key(&entry.key);
            if let Err((message, help)) = check_key(key, &entry.key) {
                self.problem(entry.key_at, &below, message, help);
                continue;
            }
            self.note(entry.key_at, &below, false, false);
            match self.value(&entry.value, shape, &below) {
                Some(value) => values.insert(entry.key.clone(), value),
                // An empty entry is still an entry; a missing required key is reported later.
                None if matches!(shape.kind, ShapeKind::Object(_)) => {
                    values.insert(entry.key.clone(), Value::Object(Map::new()))
                }
                None => None,
            };
        }
        Value::Object(values)
    }

    /// The entries without duplicate keys, which are reported.
    fn unique_entries<'e>(&mut self, entries: &'e [Entry], path: &KeyPath) -> Vec<&'e Entry> {
        let mut first = std::collections::BTreeMap::new();
        let mut unique = Vec::with_capacity(entries.len());
        for entry in entries {
            if let Some(mark) = first.get(&entry.key) {
                let Mark { line, column } = *mark;
                let help = Some("keep one of the two".to_owned());
                let message = format!("stands here a second time; first at line {line}, column {column}");
                self.problem(entry.key_at, &path.key(&entry.key), message, help);
            } else {
                first.insert(&entry.key, entry.key_at);
                unique.push(entry);
            }
        }
        unique
    }

    fn untyped_value(&mut self, node: &Node, path: &KeyPath) -> Option<Value> {
        match &node.kind {
            NodeKind::Scalar { .. } => {
                let filled = self.expand_scalar(node, path)?;
                self.note(node.at, path, filled.substituted, false);
                match scalar::resolve(&filled.text, filled.plain) {
                    Some(value) => Some(value),
                    None => {
                        let message =
                            "is a number that JSON does not know, or that versions of YAML read differently";
                        let help = "put it in quotes, or write it in the usual way".to_owned();
                        self.problem(node.at, path, message, Some(help));
                        None
                    }
                }
            }
            NodeKind::List(items) => {
                self.note(node.at, path, false, true);
                let items = items.iter().enumerate();
                Some(items.filter_map(|(i, node)| self.untyped_value(node, &path.index(i))).collect())
            }
            NodeKind::Map(entries) => {
                self.note(node.at, path, false, false);
                let mut values = Map::new();
                for entry in self.unique_entries(entries, path) {
                    if let Some(value) = self.untyped_value(&entry.value, &path.key(&entry.key)) {
                        values.insert(entry.key.clone(), value);
                    }
                }
                Some(Value::Object(values))
            }
        }
    }

    fn expand_scalar(&mut self, node: &Node, path: &KeyPath) -> Option<ExpandedScalar> {
        let NodeKind::Scalar { text, plain } = &node.kind else { return None };
        let Some(fill) = &self.expand else {
            return Some(ExpandedScalar { text: text.clone(), plain: *plain, substituted: false });
        };
        match fill(text) {
            Ok((text, substituted)) => Some(ExpandedScalar { text, plain: *plain, substituted }),
            Err((message, help)) => {
                self.problem(node.at, path, message, Some(help));
                None
            }
        }
    }
}

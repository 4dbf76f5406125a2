//! Where a value comes from, and the path of keys to it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use serde::{Serialize, Serializer};

/// The source of a value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Source {
    /// A built-in default.
    Default,
    /// A file.
    File {
        /// The file.
        path: Arc<Path>,
        /// The line, counted from 1; 0 means the file as a whole.
        line: usize,
        /// The column in characters, counted from 1.
        column: usize,
    },
    /// An environment variable.
    Variable(String),
    /// A command line flag.
    Flag(String),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line: 0, .. } => write!(f, "{}", path.display()),
            Self::File { path, line, column } => write!(f, "{}:{line}:{column}", path.display()),
            Self::Variable(name) => write!(f, "${name}"),
            Self::Flag(flag) => f.write_str(flag),
        }
    }
}

impl Serialize for Source {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A position in the text: line and column, counted from 1. Line 0 means the text as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Mark {
    /// The line.
    pub line: usize,
    /// The column, in characters.
    pub column: usize,
}

/// The source of the text.
#[derive(Debug, Clone)]
pub enum InputSource {
    /// A file, by its path in messages.
    File(Arc<Path>),
    /// An environment variable, by its name.
    Variable(String),
    /// A flag.
    Flag(String),
}

impl InputSource {
    /// The source at this position.
    #[must_use]
    pub fn at(&self, mark: Mark) -> Source {
        match self {
            Self::File(path) => Source::File { path: Arc::clone(path), line: mark.line, column: mark.column },
            Self::Variable(name) => Source::Variable(name.clone()),
            Self::Flag(flag) => Source::Flag(flag.clone()),
        }
    }
}

/// The keys from the root to one value. An element of a list has a step like `[2]`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct KeyPath(Vec<String>);

impl KeyPath {
    /// The root.
    #[must_use]
    pub fn top() -> Self {
        Self::default()
    }

    /// The path of these keys.
    #[must_use]
    pub fn of(keys: &[&str]) -> Self {
        Self(keys.iter().map(|&key| key.to_owned()).collect())
    }

    /// The path of a key below this one.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        let mut steps = self.0.clone();
        steps.push(key.to_owned());
        Self(steps)
    }

    /// The path of an element of the list at this path.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        self.key(&format!("[{index}]"))
    }

    /// The path one step up, or `None` at the root.
    #[must_use]
    pub fn parent(&self) -> Option<Self> {
        let (_, rest) = self.0.split_last()?;
        Some(Self(rest.to_vec()))
    }

    /// The last step.
    #[must_use]
    pub fn last(&self) -> Option<&str> {
        self.0.last().map(String::as_str)
    }

    /// The steps.
    #[must_use]
    pub fn steps(&self) -> &[String] {
        &self.0
    }

    fn is_below(&self, other: &Self) -> bool {
        self.0.len() > other.0.len() && self.0.starts_with(&other.0)
    }
}

impl fmt::Display for KeyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// A longer key is not a known one, and messages need not repeat it in full.
        const SHOWN_CHARS: usize = 80;
        let plain = |key: &str| {
            !key.is_empty()
                && key.chars().count() <= SHOWN_CHARS
                && key.chars().all(|c| c.is_alphanumeric() || "_-[]".contains(c))
        };
        for (number, step) in self.0.iter().enumerate() {
            if number > 0 && !step.starts_with('[') {
                f.write_str(".")?;
            }
            if plain(step) {
                f.write_str(step)?;
            } else {
                let short: String = step.chars().take(SHOWN_CHARS).collect();
                write!(f, "{short:?}")?;
            }
        }
        Ok(())
    }
}

/// The origin of one value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The source.
    pub source: Source,
    /// Whether it contained `${VAR}`. Then it may be a secret that only the environment should hold.
    pub substituted: bool,
    /// Whether it is a list. A stronger source replaces lists as a whole, but merges maps.
    pub list: bool,
}

/// The origins of all values that were set. A value without an origin is a default.
#[derive(Debug, Clone, Default)]
pub struct Origins(BTreeMap<KeyPath, Origin>);

impl Origins {
    /// Records the origin of a value.
    pub fn note(&mut self, path: KeyPath, origin: Origin) {
        if origin.list {
            // Paths below a path sort directly after it.
            let below = |known: &&KeyPath| known.is_below(&path);
            let gone: Vec<KeyPath> = self
                .0
                .range(&path..)
                .map(|(known, _)| known)
                .skip_while(|known| **known == path)
                .take_while(below)
                .cloned()
                .collect();
            for path in gone {
                self.0.remove(&path);
            }
        }
        self.0.insert(path, origin);
    }

    /// The origin of one value.
    #[must_use]
    pub fn get(&self, path: &KeyPath) -> Option<&Origin> {
        self.0.get(path)
    }

    /// The position for a message about this value: its own, or that of the closest parent that was set.
    #[must_use]
    pub fn nearest(&self, path: &KeyPath) -> Source {
        let mut at = Some(path.clone());
        while let Some(path) = at {
            if let Some(origin) = self.0.get(&path) {
                return origin.source.clone();
            }
            at = path.parent();
        }
        Source::Default
    }

    /// The position for a message about a missing part: that of the value, or of the first thing in it.
    #[must_use]
    pub fn within(&self, path: &KeyPath) -> Source {
        let here = self.0.range(path..).next().filter(|(known, _)| *known == path || known.is_below(path));
        here.map_or_else(|| self.nearest(path), |(_, origin)| origin.source.clone())
    }

    /// Adds the origins of a stronger source.
    pub fn extend(&mut self, stronger: Self) {
        // A list sorts before its elements, so recording the list does not remove its new elements.
        for (path, origin) in stronger.0 {
            self.note(path, origin);
        }
    }
}

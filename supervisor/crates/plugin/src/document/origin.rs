//! Where a value comes from, and the path of keys that leads to it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use serde::{Serialize, Serializer};

/// Where something was said.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Source {
    /// Nowhere: a built-in default.
    Default,
    /// In a file.
    File {
        /// The file.
        path: Arc<Path>,
        /// The line, counted from 1; 0 means the file as a whole.
        line: usize,
        /// The column in characters, counted from 1.
        column: usize,
    },
    /// In an environment variable.
    Variable(String),
    /// On the command line.
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

/// The keys from the top to one value. An element of a list has a step like `[2]`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct KeyPath(Vec<String>);

impl KeyPath {
    /// The top.
    #[must_use]
    pub fn top() -> Self {
        Self::default()
    }

    /// From keys.
    #[must_use]
    pub fn of(keys: &[&str]) -> Self {
        Self(keys.iter().map(|&key| key.to_owned()).collect())
    }

    /// One key further down.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        let mut steps = self.0.clone();
        steps.push(key.to_owned());
        Self(steps)
    }

    /// One element of the list here.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        self.key(&format!("[{index}]"))
    }

    /// One step up, or `None` at the top.
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
        /// Longer keys are not ours; a message need not repeat them whole.
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

/// What is known about where one value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// Where it was said.
    pub source: Source,
    /// Whether `${VAR}` stood in it: then it may be a secret that only the environment was to know.
    pub substituted: bool,
    /// Whether it is a list, which a stronger source replaces whole where maps are merged.
    pub list: bool,
}

/// Where every value that somebody set comes from. What is missing is a default.
#[derive(Debug, Clone, Default)]
pub struct Origins(BTreeMap<KeyPath, Origin>);

impl Origins {
    /// Notes where a value comes from.
    pub fn note(&mut self, path: KeyPath, origin: Origin) {
        if origin.list {
            // What lies below a path sorts directly behind it.
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

    /// What is known about one value.
    #[must_use]
    pub fn get(&self, path: &KeyPath) -> Option<&Origin> {
        self.0.get(path)
    }

    /// Where a message about this value should point: to it, or to the closest thing around it that was set.
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

    /// Where a message about something that lacks a part should point: to it, or to the first thing in it.
    #[must_use]
    pub fn within(&self, path: &KeyPath) -> Source {
        let here = self.0.range(path..).next().filter(|(known, _)| *known == path || known.is_below(path));
        here.map_or_else(|| self.nearest(path), |(_, origin)| origin.source.clone())
    }

    /// Adds what a stronger source said.
    pub fn extend(&mut self, stronger: Self) {
        // A list sorts before its elements, so that clearing its place does not take them away again.
        for (path, origin) in stronger.0 {
            self.note(path, origin);
        }
    }
}

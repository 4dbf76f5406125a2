//! Resolves the paths of each module to the files that define what they name.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::module::{ModuleGraph, ModulePath};

/// Each importing file, with the files that define what it imports, and the names.
pub(super) type Imports = BTreeMap<PathBuf, BTreeMap<PathBuf, BTreeSet<String>>>;

/// Re-exports of re-exports are followed this far. Code that compiles has no endless chain, except of globs.
const MAX_REEXPORTS: usize = 16;

impl ModuleGraph {
    /// Who imports what from whom.
    pub(super) fn imports(&self) -> Imports {
        let mut imports = Imports::new();
        for (path, module) in &self.modules {
            for written in &module.paths {
                let Some((target, name)) = self.definition(path, written, 0) else { continue };
                let file = &self.modules[&target].file;
                if *file != module.file {
                    let from = imports.entry(module.file.clone()).or_default();
                    from.entry(file.clone()).or_default().insert(name);
                }
            }
        }
        imports
    }

    /// The module that defines what a path inside `from` names, and the name; `None` for the names of other
    /// crates.
    fn definition(
        &self,
        from: &ModulePath,
        written: &[String],
        depth: usize,
    ) -> Option<(ModulePath, String)> {
        if depth > MAX_REEXPORTS {
            return None;
        }
        let (mut path, mut rest) = self.start(from, written)?;
        loop {
            let (name, after) = rest.split_first()?;
            if name == "*" {
                return Some((path, name.clone()));
            }
            let module = self.modules.get(&path)?;
            if module.children.contains(name) {
                // A module alone, as in `use crate::audit;`, is no import: the paths through it are.
                if after.is_empty() {
                    return None;
                }
                path.push(name.clone());
                rest = after;
                continue;
            }
            if module.definitions.contains(name) {
                return Some((path, name.clone()));
            }
            let joined = |prefix: &[String], rest: &[String]| [prefix, rest].concat();
            if let Some(target) = module.aliases.get(name) {
                return self.definition(&path, &joined(target, after), depth + 1);
            }
            return module
                .globs
                .iter()
                .find_map(|glob| self.definition(&path, &joined(glob, rest), depth + 1));
        }
    }

    /// The module at which a path begins, and the rest of the path.
    fn start<'a>(&self, from: &ModulePath, written: &'a [String]) -> Option<(ModulePath, &'a [String])> {
        let mut path = from.clone();
        match written.first()?.as_str() {
            "crate" => Some((Vec::new(), &written[1..])),
            "self" => Some((path, &written[1..])),
            "super" => {
                let levels = written.iter().take_while(|segment| *segment == "super").count();
                path.truncate(path.len().checked_sub(levels)?);
                Some((path, &written[levels..]))
            }
            name => {
                let module = self.modules.get(from)?;
                // A single imported name is not followed: its import was counted.
                let known =
                    module.children.contains(name) || module.aliases.contains_key(name) && written.len() > 1;
                known.then_some((path, written))
            }
        }
    }
}

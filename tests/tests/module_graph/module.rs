//! What one module declares and names.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// A module's path below the crate's root, which is empty.
pub(super) type ModulePath = Vec<String>;

/// A module, which is a file or a part of one.
#[derive(Default)]
pub(super) struct Module {
    /// The file that it stands in.
    pub(super) file: PathBuf,
    /// The modules that it declares.
    pub(super) children: BTreeSet<String>,
    /// The items that it defines.
    pub(super) definitions: BTreeSet<String>,
    /// Imported and re-exported names, each with the path that it stands for.
    pub(super) aliases: BTreeMap<String, Vec<String>>,
    /// Modules whose public names are all re-exported here.
    pub(super) globs: Vec<Vec<String>>,
    /// The paths that its code names, as written.
    pub(super) paths: BTreeSet<Vec<String>>,
}

/// The modules of one crate.
pub(crate) struct ModuleGraph {
    /// The directory of its source.
    pub(super) source: PathBuf,
    pub(super) modules: BTreeMap<ModulePath, Module>,
}

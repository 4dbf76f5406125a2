//! Finds the files that import from each other.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use super::graph::Imports;
use super::module::ModuleGraph;

/// Files that import from each other, directly or through others.
#[derive(Debug)]
pub(crate) struct Circle {
    /// The files, below the crate's source directory.
    pub(crate) files: Vec<String>,
    /// The imports between them, one a line.
    pub(crate) ties: Vec<String>,
}

impl fmt::Display for Circle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.files.join(", "))?;
        self.ties.iter().try_for_each(|tie| write!(f, "\n    {tie}"))
    }
}

/// The circles of a crate.
pub(crate) fn circles(graph: &ModuleGraph) -> Vec<Circle> {
    let imports = graph.imports();
    let reachable: BTreeMap<&Path, BTreeSet<&Path>> =
        imports.keys().map(|file| (file.as_path(), reachable(&imports, file))).collect();
    let mut seen = BTreeSet::new();
    let mut circles = Vec::new();
    for (&file, reached) in &reachable {
        if seen.contains(file) || !reached.contains(file) {
            continue;
        }
        let returns = |other: &Path| reachable.get(other).is_some_and(|back| back.contains(file));
        let members: BTreeSet<&Path> = reached.iter().copied().filter(|other| returns(other)).collect();
        seen.extend(members.iter().copied());
        circles.push(circle(&graph.source, &imports, &members));
    }
    circles
}

fn circle(source: &Path, imports: &Imports, members: &BTreeSet<&Path>) -> Circle {
    let shown = |file: &Path| file.strip_prefix(source).unwrap_or(file).display().to_string();
    let mut ties = Vec::new();
    for &from in members {
        for (to, names) in
            imports.get(from).into_iter().flatten().filter(|(to, _)| members.contains(to.as_path()))
        {
            let names = names.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
            ties.push(format!("{} imports from {}: {names}", shown(from), shown(to)));
        }
    }
    Circle { files: members.iter().map(|file| shown(file)).collect(), ties }
}

/// The files that a file imports from, directly or through others.
fn reachable<'a>(imports: &'a Imports, from: &Path) -> BTreeSet<&'a Path> {
    let of = |file: &Path| imports.get(file).into_iter().flat_map(BTreeMap::keys).map(PathBuf::as_path);
    let mut reached = BTreeSet::new();
    let mut open: Vec<&Path> = of(from).collect();
    while let Some(file) = open.pop() {
        if reached.insert(file) {
            open.extend(of(file));
        }
    }
    reached
}

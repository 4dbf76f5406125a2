//! Reads the modules of a crate from its files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use syn::visit::Visit as _;
use syn::{Item, ItemMod};

use super::module::{Module, ModuleGraph, ModulePath};
use super::syntax::{ItemReader, attributes, defined_name, is_for_tests, path_attribute};

/// Reads a crate from its root file, such as `src/lib.rs`.
///
/// # Errors
/// A file that cannot be read or parsed, or a `mod` without a file.
pub(crate) fn read_crate(root: &Path) -> Result<ModuleGraph, String> {
    let source = parent(root).to_owned();
    let mut modules = BTreeMap::new();
    read_file(&mut modules, root, &source, Vec::new())?;
    Ok(ModuleGraph { source, modules })
}

type Modules = BTreeMap<ModulePath, Module>;

/// Reads a file and the modules below it; `directory` is where their files are.
fn read_file(modules: &mut Modules, file: &Path, directory: &Path, path: ModulePath) -> Result<(), String> {
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
    let text = std::fs::read_to_string(file).map_err(|error| failed(&error))?;
    let syntax = syn::parse_file(&text).map_err(|error| failed(&error))?;
    read_items(modules, &syntax.items, file, directory, path)
}

fn read_items(
    modules: &mut Modules,
    items: &[Item],
    file: &Path,
    directory: &Path,
    path: ModulePath,
) -> Result<(), String> {
    let mut module = Module { file: file.to_owned(), ..Module::default() };
    let mut declared = Vec::new();
    for item in items.iter().filter(|item| !is_for_tests(attributes(item))) {
        if let Item::Mod(child) = item {
            module.children.insert(child.ident.to_string());
            declared.push(child);
            continue;
        }
        module.definitions.extend(defined_name(item));
        ItemReader::new(&mut module).visit_item(item);
    }
    modules.insert(path.clone(), module);
    for child in declared {
        let name = child.ident.to_string();
        let below = directory.join(&name);
        let mut child_path = path.clone();
        child_path.push(name);
        match &child.content {
            Some((_, items)) => read_items(modules, items, file, &below, child_path)?,
            None => {
                let (found, below) = file_of(child, file, directory)?;
                read_file(modules, &found, &below, child_path)?;
            }
        }
    }
    Ok(())
}

/// The file of a `mod` without a body, and the directory of the modules that it declares.
fn file_of(child: &ItemMod, file: &Path, directory: &Path) -> Result<(PathBuf, PathBuf), String> {
    let name = child.ident.to_string();
    if let Some(written) = child.attrs.iter().find_map(path_attribute) {
        let found = parent(file).join(written);
        let below = parent(&found).to_owned();
        return Ok((found, below));
    }
    let below = directory.join(&name);
    let candidates = [directory.join(format!("{name}.rs")), below.join("mod.rs")];
    let found = candidates.into_iter().find(|candidate| candidate.is_file());
    found.map(|found| (found, below)).ok_or_else(|| format!("{}: `mod {name}` has no file", file.display()))
}

fn parent(file: &Path) -> &Path {
    file.parent().unwrap_or(Path::new("."))
}

//! Reads what the syntax of an item defines, imports and names.

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, ExprLit, Item, Lit, UseTree, Visibility};

use super::module::Module;

/// Adds the paths that an item names to a module, and the names that it imports.
pub(super) struct ItemReader<'m> {
    module: &'m mut Module,
}

impl<'m> ItemReader<'m> {
    pub(super) fn new(module: &'m mut Module) -> Self {
        Self { module }
    }

    fn read_use(&mut self, tree: &UseTree, mut prefix: Vec<String>, exported: bool) {
        match tree {
            UseTree::Path(path) => {
                prefix.push(path.ident.to_string());
                self.read_use(&path.tree, prefix, exported);
            }
            UseTree::Name(name) => self.import(prefix, &name.ident.to_string(), None, exported),
            UseTree::Rename(rename) => {
                let alias = Some(rename.rename.to_string());
                self.import(prefix, &rename.ident.to_string(), alias, exported);
            }
            UseTree::Glob(_) if exported => self.module.globs.push(prefix),
            UseTree::Glob(_) => {
                prefix.push("*".to_owned());
                self.module.paths.insert(prefix);
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.read_use(tree, prefix.clone(), exported);
                }
            }
        }
    }

    fn import(&mut self, mut path: Vec<String>, name: &str, alias: Option<String>, exported: bool) {
        if name != "self" {
            path.push(name.to_owned());
        }
        let Some(last) = path.last() else { return };
        self.module.aliases.insert(alias.unwrap_or_else(|| last.clone()), path.clone());
        // A re-export is no import: who uses the name imports from the file that defines it.
        if !exported {
            self.module.paths.insert(path);
        }
    }

    /// A macro's arguments have no syntax tree: paths are found among their tokens.
    fn read_tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(name) => {
                    if colons != 2 {
                        self.add_path(&mut path);
                    }
                    path.push(name.to_string());
                    colons = 0;
                }
                TokenTree::Punct(mark) if mark.as_char() == ':' => colons += 1,
                TokenTree::Group(group) => {
                    self.add_path(&mut path);
                    colons = 0;
                    self.read_tokens(group.stream());
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => {
                    self.add_path(&mut path);
                    colons = 0;
                }
            }
        }
        self.add_path(&mut path);
    }

    /// Only qualified paths: what a single name stands for was imported or is defined in this file.
    fn add_path(&mut self, path: &mut Vec<String>) {
        let path = std::mem::take(path);
        if path.len() > 1 {
            self.module.paths.insert(path);
        }
    }
}

impl<'ast> Visit<'ast> for ItemReader<'_> {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let exported = !matches!(item.vis, Visibility::Inherited);
        self.read_use(&item.tree, Vec::new(), exported);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.add_path(&mut path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, called: &'ast syn::Macro) {
        self.read_tokens(called.tokens.clone());
        visit::visit_macro(self, called);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        if !is_for_tests(&function.attrs) {
            visit::visit_impl_item_fn(self, function);
        }
    }
}

/// Whether an item exists only in tests.
pub(super) fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let condition = || attribute.meta.require_list().map(|list| list.tokens.to_string());
        attribute.path().is_ident("test")
            || attribute.path().is_ident("cfg")
                && condition().is_ok_and(|text| text == "test" || text.starts_with("all (test"))
    })
}

/// The value of `#[path = "…"]`.
pub(super) fn path_attribute(attribute: &Attribute) -> Option<String> {
    let value = attribute.meta.require_name_value().ok().filter(|value| value.path.is_ident("path"))?;
    match &value.value {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
        _ => None,
    }
}

pub(super) fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::ForeignMod(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::TraitAlias(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// The name that an item defines. What a macro such as `pin_project!` defines is the item among its tokens.
pub(super) fn defined_name(item: &Item) -> Option<String> {
    Some(match item {
        Item::Const(item) => item.ident.to_string(),
        Item::Enum(item) => item.ident.to_string(),
        Item::Fn(item) => item.sig.ident.to_string(),
        Item::Macro(item) => match &item.ident {
            Some(name) => name.to_string(),
            None => defined_in(item.mac.tokens.clone())?,
        },
        Item::Static(item) => item.ident.to_string(),
        Item::Struct(item) => item.ident.to_string(),
        Item::Trait(item) => item.ident.to_string(),
        Item::Type(item) => item.ident.to_string(),
        Item::Union(item) => item.ident.to_string(),
        _ => return None,
    })
}

fn defined_in(tokens: TokenStream) -> Option<String> {
    let mut tokens = tokens.into_iter();
    tokens.find(|token| {
        matches!(token, TokenTree::Ident(word) if word == "struct" || word == "enum" || word == "static")
    })?;
    match tokens.next()? {
        TokenTree::Ident(name) => Some(name.to_string()),
        _ => None,
    }
}

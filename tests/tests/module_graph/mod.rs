//! Which file of a crate imports from which, read from the source: the graph behind the rule that modules
//! form no circle.
//!
//! File A imports from file B when A's code outside tests names something that B defines, through `use` or a
//! qualified path. A name that a module only re-exports counts as an import from the file that defines it. So
//! a `mod.rs` that declares and re-exports its children is in no circle.

mod circle;
mod graph;
mod module;
mod read;
mod syntax;

#[cfg(test)]
mod tests;

pub(crate) use circle::circles;
pub(crate) use read::read_crate;

use std::path::Path;

use tempfile::TempDir;

use super::circle::{Circle, circles};
use super::read::read_crate;

/// A crate of these files, whose root is `lib.rs`.
fn crate_of(files: &[(&str, &str)]) -> TempDir {
    let directory = TempDir::new().expect("a temporary directory");
    for (name, text) in files {
        let path = directory.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a file has a parent")).expect("it takes directories");
        std::fs::write(path, text).expect("it takes files");
    }
    directory
}

fn circles_in(files: &[(&str, &str)]) -> Vec<Circle> {
    let directory = crate_of(files);
    circles(&read_crate(&directory.path().join("lib.rs")).expect("the crate is read"))
}

/// The files of the only circle.
fn only_circle(files: &[(&str, &str)]) -> Vec<String> {
    let mut found = circles_in(files);
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0).files
}

#[test]
fn a_circle_is_found_with_its_ties() {
    let found = circles_in(&[
        ("lib.rs", "mod a; mod b; mod c; use a::A;"),
        ("a.rs", "use crate::b::B; pub struct A(B);"),
        ("b.rs", "use crate::c::C; pub struct B(C);"),
        ("c.rs", "pub struct C; pub fn c() { super::a::f(); crate::a::A::new(); }"),
    ]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].files, ["a.rs", "b.rs", "c.rs"]);
    assert_eq!(
        found[0].ties,
        ["a.rs imports from b.rs: B", "b.rs imports from c.rs: C", "c.rs imports from a.rs: A"]
    );
}

#[test]
fn imports_in_one_direction_are_no_circle() {
    let found = circles_in(&[
        ("lib.rs", "mod a; mod b; pub use a::A;"),
        ("a.rs", "use crate::b::B; use std::fmt; pub struct A(B);"),
        ("b.rs", "pub struct B;"),
    ]);
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn a_module_that_re_exports_is_in_no_circle() {
    let files = [
        ("lib.rs", "mod room;"),
        ("room/mod.rs", "mod a; mod b; pub use a::A; pub use b::*;"),
        ("room/a.rs", "use super::B; pub struct A(B);"),
        ("room/b.rs", "pub struct B;"),
    ];
    let found = circles_in(&files);
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn a_re_export_does_not_hide_a_circle() {
    let files = only_circle(&[
        ("lib.rs", "mod room;"),
        ("room/mod.rs", "mod a; mod b; pub use a::A; pub use b::*;"),
        ("room/a.rs", "use super::B; pub struct A(B);"),
        ("room/b.rs", "use crate::room::A; pub struct B; pub type Other = A;"),
    ]);
    assert_eq!(files, ["room/a.rs", "room/b.rs"]);
}

#[test]
fn tests_may_import_from_everywhere() {
    let found = circles_in(&[
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "use crate::b::B; pub struct A(B);"),
        (
            "b.rs",
            "pub struct B; #[cfg(test)] use crate::a::A; #[cfg(test)] mod tests { use crate::a::A; } \
             #[cfg(all(test, unix))] fn made() -> crate::a::A { todo!() }",
        ),
    ]);
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn a_path_in_a_macro_counts() {
    let files = only_circle(&[
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "pub const A: u8 = 1; pub fn a() { crate::b::b(); }"),
        ("b.rs", "pub fn b() { println!(\"{}\", [crate::a::A][0]); }"),
    ]);
    assert_eq!(files, ["a.rs", "b.rs"]);
}

#[test]
fn what_a_macro_defines_is_found() {
    let files = only_circle(&[
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "use crate::b::b; pin_project! { /** Docs. */ pub struct A { inner: u8 } }"),
        ("b.rs", "pub fn b() -> super::a::A { todo!() }"),
    ]);
    assert_eq!(files, ["a.rs", "b.rs"]);
}

#[test]
fn a_module_under_another_path_is_read() {
    let files = only_circle(&[
        ("lib.rs", "#[path = \"elsewhere/a.rs\"] mod a; mod b;"),
        ("elsewhere/a.rs", "use crate::b::B; pub struct A(B);"),
        ("b.rs", "use crate::a as other; pub struct B; pub fn b() -> other::A { todo!() }"),
    ]);
    assert_eq!(files, ["b.rs", "elsewhere/a.rs"]);
}

#[test]
fn a_module_without_a_file_is_an_error() {
    let directory = crate_of(&[("lib.rs", "mod gone;")]);
    let error = read_crate(&directory.path().join("lib.rs")).err().expect("there is no such file");
    assert!(error.ends_with("`mod gone` has no file"), "{error}");
    assert!(read_crate(Path::new("/nowhere/lib.rs")).is_err());
}

//! The lists of layers in the documentation, held against the order in the code.

use talon_guard::LayerKind;

/// The layers of the code, without the service inside them.
fn layers() -> Vec<&'static str> {
    let all = LayerKind::ALL.into_iter().filter(|layer| *layer != LayerKind::Instance);
    all.map(LayerKind::as_str).collect()
}

/// The first cells of the table that begins with this header.
fn first_cells<'t>(text: &'t str, header: &str) -> Vec<&'t str> {
    let mut lines = text.lines().map(|line| line.trim_start_matches("//!").trim());
    assert!(lines.any(|line| line.starts_with(header)), "there is no table {header}");
    let rows = lines.skip(1).map_while(|line| line.strip_prefix('|'));
    rows.filter_map(|row| Some(row.split('|').next()?.trim().trim_matches(['[', ']', '`']))).collect()
}

#[test]
fn the_operators_page_lists_the_layers_in_their_order() {
    let page = include_str!("../../../../docs/guard.md");
    assert_eq!(first_cells(page, "| layer | what it does |"), layers());
}

#[test]
fn the_documentation_of_the_crate_lists_the_layers_in_their_order() {
    let page = include_str!("../src/lib.rs");
    assert_eq!(first_cells(page, "| layer | request |"), layers());
    let drawn = page.lines().find(|line| line.contains("Call ─► ")).expect("there is a picture");
    let drawn: Vec<&str> = drawn.trim_start_matches("//!").split(" ─► ").map(str::trim).collect();
    assert_eq!(drawn, [&["Call"], layers().as_slice(), &["plugin"]].concat());
}

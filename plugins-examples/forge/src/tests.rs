use cap_std::ambient_authority;
use cap_std::fs::Dir;

use crate::analyze::report;

fn code(files: &[(&str, &str)]) -> (tempfile::TempDir, Dir) {
    let root = tempfile::tempdir().expect("a directory");
    for (path, text) in files {
        let path = root.path().join(path);
        std::fs::create_dir_all(path.parent().expect("below the root")).expect("made");
        std::fs::write(path, text).expect("written");
    }
    let dir = Dir::open_ambient_dir(root.path(), ambient_authority()).expect("opened");
    (root, dir)
}

#[test]
fn it_finds_what_a_reviewer_stumbles_over() {
    let long = format!("fn long() {{\n{}}}\n", "    step();\n".repeat(90));
    let (_root, dir) = code(&[
        ("src/a.rs", "// TODO: say why\nlet x = y.unwrap();\nlet z = 1; // never .unwrap() here\n"),
        ("src/b.rs", &long),
        ("target/made.rs", "// TODO\n"),
        ("README.md", "TODO\n"),
    ]);
    let found = report(&dir, "").expect("a report");
    let kinds: Vec<_> = found.findings.iter().map(|finding| finding.kind).collect();
    assert_eq!(kinds, ["todo", "unwrap", "long-function"]);
    let one = report(&dir, "src/b.rs").expect("a report");
    assert_eq!(one.findings.len(), 1);
}

#[test]
fn nothing_outside_is_looked_at() {
    let (_root, dir) = code(&[("a.rs", "// TODO\n")]);
    for path in ["..", "/etc", "../a.rs", "nowhere"] {
        let error = report(&dir, path).expect_err("refused");
        assert!(error.message().contains("below the root"), "{path}: {}", error.message());
    }
}

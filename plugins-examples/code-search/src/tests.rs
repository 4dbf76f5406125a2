use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::{Value, json};
use talon_sdk::testing::Call;
use talon_sdk::{Output, Plugin, Tool, ToolError};
use tempfile::TempDir;

use crate::list::list_files;
use crate::read::read_range;
use crate::search::search;
use crate::workspace::Workspace;

/// A root with files of every kind, and next to it a directory that must never be shown.
fn tree() -> TempDir {
    let dir = tempfile::tempdir().expect("dir");
    let write = |path: &str, text: &[u8]| {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().expect("has one")).expect("made");
        fs::write(path, text).expect("written");
    };
    write("secret.txt", b"the needle outside\n");
    write("root/a.rs", b"fn one() {}\n// a needle\nfn two() {}\n");
    write("root/sub/b.md", b"Needle in prose\r\nand more\n");
    write("root/sub/c.bin", b"needle\0binary\n");
    write("root/.hidden/d.rs", b"needle hidden\n");
    write("root/ignored.rs", b"needle ignored\n");
    write("root/.gitignore", b"ignored.rs\n");
    write("root/long.txt", &[b'x'; 100_000]);
    let root = dir.path().join("root");
    symlink("../secret.txt", root.join("out.txt")).expect("linked");
    symlink("..", root.join("up")).expect("linked");
    symlink("/etc", root.join("etc")).expect("linked");
    symlink("sub", root.join("inside")).expect("linked");
    dir
}

async fn run(tool: Tool, root: &Path, args: Value) -> Result<Output, ToolError> {
    let workspace = Workspace::open(&root.join("root")).expect("opens");
    Call::new(tool).with(workspace).args(args).run().await
}

fn paths(output: &Output) -> Vec<String> {
    let lines =
        output.structured_content().expect("structured")["lines"].as_array().cloned().expect("a list");
    lines.iter().map(|line| line["path"].as_str().expect("text").to_owned()).collect()
}

#[test]
fn the_plugin_is_whole() {
    Plugin::new("code-search").tools([search(), list_files(), read_range()]).check().expect("servable");
}

#[tokio::test]
async fn search_finds_text_and_skips_what_is_binary_hidden_ignored_or_outside() {
    let dir = tree();
    let output = run(search(), dir.path(), json!({"pattern": "needle"})).await.expect("found");
    assert_eq!(output.content(), "a.rs:2: // a needle\n1 matches; 3 files searched, 1 skipped");
    let args = json!({"pattern": "needle", "case_insensitive": true});
    let output = run(search(), dir.path(), args).await.expect("found");
    assert_eq!(paths(&output), ["a.rs", "sub/b.md"]);
    assert!(output.content().contains("sub/b.md:1: Needle in prose\n"), "{}", output.content());
}

#[tokio::test]
async fn context_surrounds_a_match() {
    let dir = tree();
    let output = run(search(), dir.path(), json!({"pattern": "needle", "context": 1})).await.expect("found");
    let shown = "a.rs-1- fn one() {}\na.rs:2: // a needle\na.rs-3- fn two() {}\n";
    assert!(output.content().starts_with(shown), "{}", output.content());
}

#[tokio::test]
async fn path_and_glob_narrow_the_search() {
    let dir = tree();
    for (args, expected) in [
        (json!({"pattern": "(?i)needle", "path": "sub"}), vec!["sub/b.md"]),
        (json!({"pattern": "(?i)needle", "path": "inside"}), vec!["sub/b.md"]),
        (json!({"pattern": "(?i)needle", "path": "./sub/b.md"}), vec!["sub/b.md"]),
        (json!({"pattern": "(?i)needle", "glob": "*.rs"}), vec!["a.rs"]),
        (json!({"pattern": "(?i)needle", "glob": "!*.rs"}), vec!["sub/b.md"]),
        (json!({"pattern": "(?i)needle", "path": dir.path().join("root/sub")}), vec!["sub/b.md"]),
    ] {
        assert_eq!(paths(&run(search(), dir.path(), args.clone()).await.expect("found")), expected, "{args}");
    }
}

// Promises: EX-3
#[tokio::test]
async fn a_search_stops_at_its_limits_and_says_so() {
    let dir = tree();
    let output = run(search(), dir.path(), json!({"pattern": "fn", "max_results": 1})).await.expect("found");
    assert_eq!(paths(&output), ["a.rs"]);
    assert!(output.content().contains("stopped after 1 matches"), "{}", output.content());
    let many: String = (0..10_000).map(|number| format!("hay {number}\n")).collect();
    fs::write(dir.path().join("root/many.txt"), many).expect("written");
    let output =
        run(search(), dir.path(), json!({"pattern": "hay", "max_results": 9999})).await.expect("found");
    assert_eq!(output.structured_content().expect("structured")["matches"], 300);
    let output = run(search(), dir.path(), json!({"pattern": "x+"})).await.expect("found");
    assert!(output.content().len() < 1000, "a long line is cut: {} bytes", output.content().len());
}

#[tokio::test]
async fn bad_patterns_and_globs_are_explained() {
    let dir = tree();
    for (args, says) in [
        (json!({"pattern": "(open"}), "pattern: "),
        (json!({"pattern": ""}), "1 to 1000 bytes"),
        (json!({"pattern": "x".repeat(1001)}), "1 to 1000 bytes"),
        (json!({"pattern": "(\\w{500}){500}"}), "pattern: "),
        (json!({"pattern": "x", "glob": "a{b"}), "glob: "),
        (json!({"pattern": "x", "path": "nowhere"}), "`nowhere` does not exist"),
    ] {
        let error = run(search(), dir.path(), args).await.expect_err("refused");
        assert!(error.message().contains(says), "expected {says:?} in {error:?}");
    }
}

// Promises: EX-2
#[tokio::test]
async fn nothing_leads_outside_the_root() {
    let dir = tree();
    let outside = dir.path().join("secret.txt");
    for path in [
        "../secret.txt",
        "out.txt",
        "up",
        "up/secret.txt",
        "etc/passwd",
        "/etc/passwd",
        "sub/../../secret.txt",
    ]
    .into_iter()
    .chain(outside.to_str())
    {
        for (tool, args) in [
            (read_range(), json!({"path": path})),
            (search(), json!({"pattern": "needle", "path": path})),
            (list_files(), json!({"path": path})),
        ] {
            let name = tool.name().to_owned();
            let error = run(tool, dir.path(), args).await.expect_err(path);
            assert!(error.message().contains("outside the root"), "{name} {path}: {error:?}");
        }
    }
}

#[tokio::test]
async fn files_are_listed_in_order() {
    let dir = tree();
    let output = run(list_files(), dir.path(), json!({})).await.expect("listed");
    assert_eq!(output.content(), "a.rs\nlong.txt\nsub/b.md\nsub/c.bin\n4 files");
    let output = run(list_files(), dir.path(), json!({"max": 1})).await.expect("listed");
    assert_eq!(output.content(), "a.rs\nstopped after 1 files; narrow the path or glob to see others");
    let output = run(list_files(), dir.path(), json!({"glob": "*.py"})).await.expect("listed");
    assert_eq!(output.content(), "no files");
}

#[tokio::test]
async fn a_range_is_read_with_numbers() {
    let dir = tree();
    let read = async |args| run(read_range(), dir.path(), args).await;
    let output = read(json!({"path": "a.rs", "start": 2, "end": 2})).await.expect("read");
    assert_eq!(output.content(), "2\t// a needle\n");
    assert_eq!(
        output.structured_content(),
        Some(&json!({"path": "a.rs", "start": 2, "end": 2, "more": true}))
    );
    let output = read(json!({"path": "inside/b.md"})).await.expect("read through a link inside");
    assert_eq!(output.content(), "1\tNeedle in prose\r\n2\tand more\n");
    let output = read(json!({"path": "a.rs", "start": 9})).await.expect("read");
    assert_eq!(output.content(), "the file ends before line 9");
    assert_eq!(output.structured_content().expect("structured")["end"], 8);
    let output = read(json!({"path": ".hidden/d.rs"})).await.expect("asked for by name");
    assert_eq!(output.content(), "1\tneedle hidden\n");
}

// Promises: EX-3
#[tokio::test]
async fn reading_is_bounded_and_for_text_only() {
    let dir = tree();
    let output = run(read_range(), dir.path(), json!({"path": "long.txt"})).await.expect("read");
    assert!(output.content().len() < 41 << 10, "{} bytes", output.content().len());
    assert!(output.content().contains("(cut here"));
    for (args, says) in [
        (json!({"path": "sub/c.bin"}), "binary file"),
        (json!({"path": "sub"}), "no regular file"),
        (json!({"path": "none"}), "does not exist"),
        (json!({"path": "a.rs/x"}), "does not exist"),
        (json!({"path": "a.rs", "start": 0}), "count from 1"),
        (json!({"path": "a.rs", "start": 3, "end": 2}), "comes before start"),
        (json!({"path": "x".repeat(5000)}), "at most 4096 bytes"),
        (json!({"path": "a\0b"}), "no zero byte"),
    ] {
        let error = run(read_range(), dir.path(), args).await.expect_err("refused");
        assert!(error.message().contains(says), "expected {says:?} in {error:?}");
    }
}

#[tokio::test]
async fn a_named_pipe_does_not_hold_a_call() {
    let dir = tree();
    let pipe = dir.path().join("root/pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR).expect("made");
    let error = run(read_range(), dir.path(), json!({"path": "pipe"})).await.expect_err("refused");
    assert!(error.message().contains("no regular file"), "{error:?}");
}

#[test]
fn a_root_that_is_no_directory_is_refused() {
    let dir = tree();
    for root in ["root/a.rs", "root/nowhere"] {
        let error = Workspace::open(&dir.path().join(root)).expect_err("refused");
        assert!(error.message().starts_with("config: "), "{error:?}");
    }
}

use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::{Value, json};
use talon_sdk::Tool;
use talon_sdk::testing::Call;

use super::*;

async fn call(root: &Path, tool: Tool, args: Value) -> Result<String, String> {
    let shared = Root::open(root).map_err(|error| error.message().to_owned())?;
    let call = Call::new(tool).args(args).with(shared);
    call.run().await.map(|output| output.content().to_owned()).map_err(|error| error.message().to_owned())
}

#[tokio::test]
async fn what_was_written_is_listed_and_read() {
    let dir = tempfile::tempdir().unwrap();
    let text = "äöü ".repeat(20_000);
    let wrote = call(dir.path(), write::write(), json!({"path": "a/b.txt", "text": text})).await.unwrap();
    assert_eq!(wrote, format!("{} bytes are in a/b.txt", text.len()));
    assert_eq!(call(dir.path(), list::list(), json!({})).await.unwrap(), "a/\n");
    let listed = call(dir.path(), list::list(), json!({"path": "a"})).await.unwrap();
    assert_eq!(listed, format!("b.txt\t{} bytes\n", text.len()), "nothing else is left there");

    let mut read = String::new();
    let mut offset = 0;
    loop {
        let args = json!({"path": dir.path().join("a/b.txt"), "offset": offset});
        let piece = call(dir.path(), read::read(), args).await.unwrap();
        let Some((text, note)) = piece.split_once("\n(cut here; read on with offset=") else {
            read.push_str(&piece);
            break;
        };
        read.push_str(text);
        offset = note.trim_end_matches(')').parse().unwrap();
    }
    assert_eq!(read, text, "not one character is cut in two");
}

#[tokio::test]
async fn a_file_is_replaced_only_if_asked_and_then_whole() {
    let dir = tempfile::tempdir().unwrap();
    let args = |text: &str, replace: bool| json!({"path": "x", "text": text, "replace": replace});
    call(dir.path(), write::write(), args("one", false)).await.unwrap();
    let error = call(dir.path(), write::write(), args("two", false)).await.unwrap_err();
    assert_eq!(error, "`x` exists already; say replace=true to replace it");
    assert_eq!(std::fs::read_to_string(dir.path().join("x")).unwrap(), "one");
    call(dir.path(), write::write(), args("two", true)).await.unwrap();
    assert_eq!(std::fs::read_to_string(dir.path().join("x")).unwrap(), "two");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "nothing else is left there");
    let error = call(dir.path(), write::write(), args(&"x".repeat((512 << 10) + 1), true)).await.unwrap_err();
    assert_eq!(error, "a text has at most 524288 bytes");
}

#[tokio::test]
async fn nothing_leads_outside() {
    let (outside, dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::write(outside.path().join("secret"), "s3cret").unwrap();
    symlink(outside.path(), dir.path().join("door")).unwrap();
    symlink("../../../../../../etc", dir.path().join("far")).unwrap();
    for path in ["../secret", "door/secret", "far/passwd", "/etc/passwd", "a/../../x"] {
        for (tool, args) in [
            (list::list(), json!({"path": path})),
            (read::read(), json!({"path": path})),
            (write::write(), json!({"path": path, "text": "x", "replace": true})),
        ] {
            let error = call(dir.path(), tool, args).await.unwrap_err();
            assert!(
                error.contains("outside the root") || error.contains("does not exist"),
                "{path}: {error}"
            );
        }
    }
    assert_eq!(std::fs::read_to_string(outside.path().join("secret")).unwrap(), "s3cret");
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn what_is_no_text_file_is_said_to_be_none() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("binary"), [1, 0, 2]).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        dir.path().join("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    for (path, says) in [
        ("binary", "binary"),
        ("pipe", "is no file"),
        (".", "is no file"),
        ("gone", "`gone` does not exist; `list` shows what does"),
        ("binary/x", "no directory"),
        ("a\0b", "no zero byte"),
    ] {
        let error = call(dir.path(), read::read(), json!({"path": path})).await.unwrap_err();
        assert!(error.contains(says), "{path}: {error}");
    }
    let error = call(dir.path(), read::read(), json!({"path": "binary", "offset": 9})).await.unwrap_err();
    assert!(error.contains("the file has 3 bytes"), "{error}");
    let error = call(dir.path(), write::write(), json!({"path": ".", "text": "x"})).await.unwrap_err();
    assert!(error.contains("no file's name"), "{error}");
    assert_eq!(
        call(dir.path(), list::list(), json!({})).await.unwrap(),
        "binary\t3 bytes\npipe\tspecial file\n"
    );
}

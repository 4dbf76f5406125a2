//! The helper for Go.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;
use talon_tests::ask::ask;
use talon_tests::provider::{Provider, ScriptedReply};
use talon_tests::{Builder, Scratch, repository, skip, target};

use crate::{repeats, says, text, with_models};

/// A plugin in Go with the helper's client, or nothing where there is no compiler.
fn go_plugin(test: &str, scratch: &Scratch) -> Option<PathBuf> {
    let (compiler, libraries) = ("/usr/bin/go", "/usr/share/gocode");
    for needed in [compiler, libraries] {
        if !Path::new(needed).exists() {
            skip(test, &format!("there is no {needed} (tests/scripts/deps.sh test installs it)"));
            return None;
        }
    }
    let root = repository();
    let made = scratch.join("asks/asks");
    for dir in ["asks", "gopath/src"] {
        std::fs::create_dir_all(scratch.join(dir)).expect("the scratch directory takes directories");
    }
    symlink(root.join("plugins-examples/go/talonplugin"), scratch.join("gopath/src/talonplugin"))
        .expect("it takes a link");
    let source = scratch.install(&root.join("tests/models/asks.go"), "source/main.go");
    let output = Command::new(compiler)
        .current_dir(source.parent().expect("it is in a directory"))
        .env("GO111MODULE", "off")
        .env("CGO_ENABLED", "0")
        .env("GOFLAGS", "")
        .env("GOCACHE", target().join("go/cache"))
        .env("GOPATH", format!("{}:{libraries}", scratch.join("gopath").display()))
        .args(["build", "-trimpath", "-o"])
        .arg(&made)
        .output()
        .expect("the compiler starts");
    assert!(output.status.success(), "{output:?}");
    Some(made)
}

// Promises: EXT-120
#[tokio::test]
async fn a_plugin_in_go_asks_by_its_helper() {
    let provider = Provider::responding(|question| {
        let last = question["messages"].as_array().and_then(|all| all.last()).cloned().unwrap_or_default();
        let said = last["content"].as_str().unwrap_or_default();
        match last["role"].as_str() {
            Some("tool") => says(&format!("the tool: {said}")),
            _ if said.starts_with("P:") => repeats(said),
            _ => {
                let model = if said == "another" { "away" } else { "priced" };
                let arguments = json!({"text": "P:go", "model": model});
                ScriptedReply::ToolCalls(vec![("asks__ask".to_owned(), arguments)])
            }
        }
    })
    .await;
    let builder = Builder::new();
    let Some(program) = go_plugin("a_plugin_in_go_asks_by_its_helper", builder.scratch()) else { return };
    let builder = builder.plugin("asks", &program, &[], "models: { allow: [auto, priced] }");
    let supervisor = with_models(builder, &provider, "").start().await;
    let asked = ask(&supervisor, "go", &[]).await;
    assert!(text(&asked).contains("of auto priced: said <P:go> by local/priced, stop, 100+10"), "{asked:?}");
    assert_eq!(asked.said["cost_pico_usd"], json!(1_100_000_000), "{asked:?}");
    let refused = ask(&supervisor, "another", &[]).await;
    assert!(text(&refused).contains("refused unknown_model"), "{refused:?}");
    supervisor.stop().await;
}

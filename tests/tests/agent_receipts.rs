//! Receipts against a real supervisor: a session's record that was changed behind its back, and what a backup, a
//! restore, an export and an import do to receipts, their keys and the rules of approvals.

use std::path::{Path, PathBuf};
use std::process::Output;

use prost::Message as _;
use serde_json::{Value, json};
use talon_proto::host::Receipt;
use talon_tests::ask::{ask, with_agent};
use talon_tests::provider::{Provider, ScriptedReply};
use talon_tests::{Builder, Supervisor, example};

fn text(path: &Path) -> &str {
    path.to_str().expect("our paths are text")
}

fn greets(name: &str) -> ScriptedReply {
    ScriptedReply::ToolCalls(vec![("hello__greet".to_owned(), json!({ "name": name }))])
}

fn says(text: &str) -> ScriptedReply {
    ScriptedReply::Text(text.to_owned())
}

fn hello() -> Builder {
    Builder::new().plugin("hello", &example("hello"), &[], "")
}

/// A verb that needs the configuration, since it opens the agent's database.
async fn with_config(supervisor: &Supervisor, args: &[&str]) -> Output {
    let config = text(supervisor.config()).to_owned();
    let output = supervisor.cli(&[args, &["--config", &config]].concat()).await;
    assert!(output.status.success(), "{args:?}: {output:?}");
    output
}

/// The exit code of `session verify`, and status and reason of each call.
async fn verified(supervisor: &Supervisor, session: &str) -> (i32, Vec<(String, String)>) {
    let output = supervisor.cli(&["session", "verify", session, "--output", "json"]).await;
    let said: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let word = |call: &Value, key: &str| call[key].as_str().unwrap_or_default().to_owned();
    let calls = said["calls"].as_array().expect("a list");
    let calls = calls.iter().map(|call| (word(call, "status"), word(call, "why"))).collect();
    (output.status.code().expect("it exits"), calls)
}

fn statuses(calls: &[(String, String)]) -> Vec<&str> {
    calls.iter().map(|(status, _)| status.as_str()).collect()
}

/// The session's file of an export.
struct Exported(PathBuf);

impl Exported {
    async fn of(supervisor: &Supervisor, session: &str, name: &str) -> Self {
        let directory = supervisor.scratch.join(name);
        with_config(supervisor, &["export", text(&directory), "--only", "agent"]).await;
        let path = directory.join(format!("sessions/{session}.yaml"));
        assert!(path.exists(), "{path:?}");
        Self(path)
    }

    fn read(&self) -> String {
        std::fs::read_to_string(&self.0).expect("it was exported")
    }
}

/// All receipts of a text, in hex, in their order.
fn receipts(yaml: &str) -> Vec<String> {
    let pieces = yaml.split("receipt:").skip(1);
    pieces
        .map(|rest| {
            let rest = rest.trim_start_matches([' ', '"', '\'', '\n', '\\']);
            rest.chars().take_while(char::is_ascii_hexdigit).collect()
        })
        .collect()
}

fn changed(receipt: &str, change: impl FnOnce(&mut Receipt)) -> String {
    let bytes: Vec<u8> = (0..receipt.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&receipt[at..at + 2], 16).expect("hexadecimal"))
        .collect();
    let mut receipt = Receipt::decode(&*bytes).expect("a receipt");
    change(&mut receipt);
    receipt.encode_to_vec().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Puts a changed record in the session's place, as who has the agent's database could.
async fn replace(supervisor: &Supervisor, session: &str, name: &str, yaml: &str) {
    let deleted = supervisor.cli(&["session", "delete", session, "--yes"]).await;
    assert!(deleted.status.success(), "{deleted:?}");
    supervisor.scratch.write(&format!("{name}/sessions/{session}.yaml"), yaml);
    with_config(supervisor, &["import", text(&supervisor.scratch.join(name))]).await;
}

// Promises: AUDIT-17
#[tokio::test]
async fn a_record_that_was_changed_is_found_call_by_call() {
    let script = [greets("Ada"), greets("Bob"), says("Done."), greets("Cyd"), says("Done.")];
    let provider = Provider::start(script).await;
    let supervisor = with_agent(hello(), &provider, "", "").start().await;
    let asked = ask(&supervisor, "Greet them", &[]).await;
    let session = asked.text("session_id").to_owned();
    let other = ask(&supervisor, "Greet her", &[]).await.text("session_id").to_owned();
    let (code, calls) = verified(&supervisor, &session).await;
    assert_eq!((code, statuses(&calls)), (0, vec!["proven", "proven"]), "{calls:?}");

    let whole = Exported::of(&supervisor, &session, "whole").await.read();
    let [ada, bob] = &receipts(&whole)[..] else { panic!("two receipts: {whole}") };
    let [foreign] = &receipts(&Exported::of(&supervisor, &other, "other").await.read())[..] else {
        panic!("one receipt")
    };
    let forged_mac = changed(ada, |receipt| receipt.mac[0] ^= 1);
    let forged_call = changed(ada, |receipt| receipt.action = "shout".to_owned());
    let unknown = changed(ada, |receipt| receipt.key_id = "01KBQ0000000000000000000AA".to_owned());
    let swapped = whole.replace(ada, "first").replace(bob, ada).replace("first", bob);
    let removed = whole.replacen(ada, "", 1);
    for (name, yaml, code, states, why) in [
        ("untouched", whole.clone(), 0, ["proven", "proven"], ""),
        ("answer", whole.replace("Hello, Ada", "Hello, Eve"), 1, ["altered", "proven"], "answer"),
        ("mac", whole.replace(ada, &forged_mac), 1, ["forged", "proven"], "did not make"),
        ("action", whole.replace(ada, &forged_call), 1, ["forged", "proven"], "did not make"),
        ("order", swapped, 1, ["altered", "altered"], "arguments were others"),
        ("twice", whole.replace(bob, ada), 1, ["proven", "altered"], ""),
        ("foreign", whole.replace(ada, foreign), 1, ["altered", "proven"], "another session"),
        ("missing", removed, 3, ["unverified", "proven"], "no receipt"),
        ("unknown", whole.replace(ada, &unknown), 3, ["unknown_key", "proven"], "not the key"),
        ("rubbish", whole.replace(ada, "ff00"), 1, ["forged", "proven"], "cannot be read"),
    ] {
        replace(&supervisor, &session, name, &yaml).await;
        let (exit, calls) = verified(&supervisor, &session).await;
        assert_eq!((exit, statuses(&calls)), (code, states.to_vec()), "{name}: {calls:?}");
        assert!(calls[0].1.contains(why), "{name}: {calls:?}");
    }
    supervisor.stop().await;
}

// Promises: AUDIT-18
#[tokio::test]
async fn a_backup_has_receipts_and_rules_and_not_the_keys() {
    let clean =
        || ScriptedReply::ToolCalls(vec![("shell__run".to_owned(), json!({ "command": "rm -rf build" }))]);
    let provider = Provider::start([clean(), says("Gone."), clean(), says("Gone again.")]).await;
    let builder = hello().plugin("shell", &example("shell"), &[], "");
    let first = with_agent(builder, &provider, "", "").start().await;
    let asked = ask(&first, "Clean up", &["--no-wait"]).await;
    let session = asked.text("session_id").to_owned();
    let id = asked.said["approvals"][0]["id"].as_str().expect("an approval").to_owned();
    let approved = first.cli(&["approval", "approve", &id, "--scope", "always"]).await;
    assert!(approved.status.success(), "{approved:?}");
    talon_tests::ask::wait_session_text(&first, &session, "Gone.").await;

    let file = first.scratch.join("backup.tar");
    let made = with_config(&first, &["backup", text(&file), "--output", "json"]).await;
    let made: Value = serde_json::from_slice(&made.stdout).expect("JSON");
    let keys = first.scratch.join("data/receipts");
    assert!(made["left_out"].to_string().contains(text(&keys)), "{made}");
    let bytes = std::fs::read(&file).expect("a backup");
    for key in std::fs::read_dir(&keys).expect("the keys") {
        let key = std::fs::read(key.expect("a key").path()).expect("a key");
        assert!(!bytes.windows(key.len()).any(|part| part == key), "the backup has a key");
    }

    // On the same machine the calls are proven after a restore, and the rule holds.
    let revoked = rules(&first).await[0]["id"].as_str().expect("a rule").to_owned();
    assert!(first.cli(&["approval", "revoke", &revoked]).await.status.success());
    assert!(rules(&first).await.is_empty());
    let restored = with_config(&first, &["restore", text(&file)]).await;
    let said = String::from_utf8_lossy(&restored.stdout).into_owned();
    assert!(said.contains("restart the supervisor"), "{said}");
    let stopped = first.stop().await;
    let again = Builder::on_leftovers(stopped.left).plugin("hello", &example("hello"), &[], "").plugin(
        "shell",
        &example("shell"),
        &[],
        "",
    );
    let first = with_agent(again, &provider, "", "").start().await;
    assert_eq!(rules(&first).await.len(), 1);
    assert_eq!(verified(&first, &session).await, (0, vec![("proven".to_owned(), String::new())]));
    let again = ask(&first, "Clean up again", &["--no-wait"]).await;
    assert_eq!(again.text("text"), "Gone again.", "{again:?}");

    // On another one they cannot be checked, until it has the keys.
    let second = with_agent(hello(), &provider, "", "").start().await;
    with_config(&second, &["restore", text(&file)]).await;
    let (code, calls) = verified(&second, &session).await;
    assert_eq!((code, statuses(&calls)), (3, vec!["unknown_key"]), "{calls:?}");
    let said = second.cli(&["session", "verify", &session]).await;
    assert!(String::from_utf8_lossy(&said.stderr).contains("receipts/"), "{said:?}");
    let theirs = second.scratch.join("data/receipts");
    let stopped = second.stop().await;
    for key in std::fs::read_dir(&keys).expect("the keys") {
        let key = key.expect("a key");
        std::fs::copy(key.path(), theirs.join(key.file_name())).expect("a copy");
    }
    let second = with_agent(Builder::on_leftovers(stopped.left), &provider, "", "");
    let second = second.plugin("hello", &example("hello"), &[], "").start().await;
    let (code, calls) = verified(&second, &session).await;
    assert_eq!((code, statuses(&calls)), (0, vec!["proven"]), "{calls:?}");
    assert_eq!(rules(&second).await.len(), 1, "rules are in the backup");

    // What is forgotten is forgotten here, and a backup is not changed by that.
    let sender = rules(&second).await[0]["sender"].as_str().expect("a sender").to_owned();
    let forgotten = second.cli(&["forget", &sender, "--output", "json"]).await;
    let forgotten: Value = serde_json::from_slice(&forgotten.stdout).expect("JSON");
    assert_eq!((&forgotten["sessions"], &forgotten["rules"]), (&json!(1), &json!(1)), "{forgotten}");
    assert!(rules(&second).await.is_empty());
    second.stop().await;
    first.stop().await;
}

async fn rules(supervisor: &Supervisor) -> Vec<Value> {
    let listed = supervisor.cli(&["approval", "rules", "--output", "json"]).await;
    let listed: Value = serde_json::from_slice(&listed.stdout).expect("JSON");
    listed["rules"].as_array().cloned().unwrap_or_default()
}

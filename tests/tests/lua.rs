//! Lua scripts through real processes: a supervisor, an agent, `talon-lua` in its jail, and a provider on loopback.

use std::path::Path;

use talon_tests::ask::{ask, with_agent};
use talon_tests::provider::{Provider, ScriptedReply};
use talon_tests::{Builder, Supervisor, repository};

fn says(text: &str) -> ScriptedReply {
    ScriptedReply::Text(text.to_owned())
}

/// Writes a script as editors do: beside, and then in its place.
fn write(dir: &Path, name: &str, source: &str) {
    let beside = dir.join(format!("{name}.new"));
    std::fs::write(&beside, source).expect("written");
    std::fs::rename(beside, dir.join(name)).expect("renamed");
}

fn founding(name: &str) -> String {
    let path = repository().join("plugins-examples/lua").join(name);
    std::fs::read_to_string(path).expect("it is there")
}

/// A supervisor with these scripts.
async fn with_scripts(provider: &Provider, scripts: &[(&str, &str)], more: &str) -> Supervisor {
    let builder = Builder::new();
    let dir = builder.scratch().join("scripts");
    std::fs::create_dir(&dir).expect("made");
    for (name, source) in scripts {
        write(&dir, name, source);
    }
    with_agent(builder.lua(&dir, more), provider, "", "").start().await
}

// Promises: LUA-44
#[tokio::test]
async fn founding_scripts_look_at_messages_and_answers_without_an_entry() {
    let provider = Provider::start([says("I fixed the bug asap.")]).await;
    let scripts =
        ["filter.lua", "expert_classify.lua", "vocabulary_guard.lua"].map(|name| (name, founding(name)));
    let scripts: Vec<(&str, &str)> = scripts.iter().map(|(name, source)| (*name, source.as_str())).collect();
    let supervisor = with_scripts(&provider, &scripts, "").await;
    let list = supervisor.cli(&["extension", "list"]).await;
    let list = String::from_utf8_lossy(&list.stdout).into_owned();
    assert!(list.contains("filter.lua") && list.contains("vocabulary_guard.lua"), "{list}");
    assert!(!list.contains("failing") && !list.contains("waiting"), "{list}");

    let answered = ask(&supervisor, "an urgent bug", &[]).await;
    let text = "I fixed the defect with high priority.";
    assert_eq!((answered.code, answered.text("text")), (Some(0), text), "{answered:?}");
    let dropped = ask(&supervisor, "buy my spam", &[]).await;
    assert_eq!(dropped.text("reason"), "dropped", "{dropped:?}");
    assert!(dropped.said.to_string().contains("blocked word: spam"), "{dropped:?}");
    assert_eq!(provider.questions().len(), 1);
    supervisor.stop().await;
}

// Promises: LUA-45
#[tokio::test]
async fn metadata_flows_from_script_to_script_and_new_scripts_join() {
    let provider = Provider::responding(|_| says("yes")).await;
    let first = "function pre_hook(ctx) ctx.metadata.seen = 'first' end";
    let last = "function post_hook(ctx) ctx.message = ctx.message .. ' ' .. tostring(ctx.metadata.seen) end";
    let supervisor = with_scripts(&provider, &[("a.lua", first), ("b.lua", last)], "").await;
    let answered = ask(&supervisor, "Hello", &[]).await;
    assert_eq!((answered.code, answered.text("text")), (Some(0), "yes first"), "{answered:?}");
    let dir = supervisor.scratch.join("scripts");
    // A changed one, and then one that was not there.
    write(&dir, "a.lua", "function pre_hook(ctx) ctx.metadata.seen = 'changed' end");
    wait_for_answer(&supervisor, "yes changed").await;
    write(&dir, "c.lua", "function post_hook(ctx) ctx.message = ctx.message:upper() end");
    wait_for_answer(&supervisor, "YES CHANGED").await;
    // Another directory in its place, as deployments do.
    let next = supervisor.scratch.join("next");
    std::fs::create_dir(&next).expect("made");
    for name in ["a.lua", "b.lua", "c.lua"] {
        let _ = std::fs::copy(dir.join(name), next.join(name)).expect("copied");
    }
    write(&next, "a.lua", "function pre_hook(ctx) ctx.metadata.seen = 'swapped' end");
    std::fs::rename(&dir, supervisor.scratch.join("before")).expect("moved");
    std::fs::rename(&next, &dir).expect("moved");
    wait_for_answer(&supervisor, "YES SWAPPED").await;
    supervisor.stop().await;
}

/// Asks until the answer is this one.
async fn wait_for_answer(supervisor: &Supervisor, wanted: &str) {
    supervisor
        .client
        .wait_until(wanted, async |_| ask(supervisor, "Hello", &[]).await.text("text") == wanted)
        .await;
}

// Promises: LUA-46
#[tokio::test]
async fn a_script_that_hangs_or_is_broken_fails_its_turn_and_leaves_the_jail_alone() {
    let provider = Provider::start((0..20).map(|_| says("yes"))).await;
    let hangs = "function pre_hook(ctx) if ctx.message == 'hang' then while true do pcall(function() while true do end end) end end end";
    let supervisor = with_scripts(&provider, &[("a.lua", hangs)], "limits: { timeout_seconds: 1 }").await;
    let hung = ask(&supervisor, "hang", &[]).await;
    assert_ne!(hung.code, Some(0), "{hung:?}");
    assert!(hung.said.to_string().contains("time limit"), "{hung:?}");
    let good = ask(&supervisor, "Hello", &[]).await;
    assert_eq!((good.code, good.text("text")), (Some(0), "yes"), "{good:?}");
    let status = supervisor.cli(&["call", "lua.status"]).await;
    let status = String::from_utf8_lossy(&status.stdout).into_owned();
    assert!(status.contains("sha256"), "{status}");
    supervisor.stop().await;
}

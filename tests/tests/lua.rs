//! Lua scripts through real processes: a supervisor, an agent, `talon-lua` in its jail, and a provider on loopback.

use std::path::Path;
use std::process::{Output, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use talon_tests::ask::{ask, with_agent};
use talon_tests::provider::{Provider, ScriptedReply};
use talon_tests::{Builder, Scratch, Supervisor, cli, program, repository};
use tokio::io::AsyncWriteExt as _;

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

/// What `talon status` says of a script.
async fn script_status(supervisor: &Supervisor, name: &str) -> serde_json::Value {
    let status = supervisor.cli(&["status", "--output", "json"]).await;
    let status: serde_json::Value = serde_json::from_slice(&status.stdout).expect("it is JSON");
    let plugins = status["plugins"].as_array().expect("a list");
    let mut scripts = plugins.iter().filter_map(|plugin| plugin["scripts"].as_array()).flatten();
    scripts.find(|script| script["name"] == name).cloned().unwrap_or_default()
}

/// Waits until the status says of a script what is wanted.
async fn wait_for_script(
    supervisor: &Supervisor,
    name: &str,
    what: &str,
    wanted: impl Fn(&serde_json::Value) -> bool,
) -> serde_json::Value {
    supervisor.client.wait_until(what, async |_| wanted(&script_status(supervisor, name).await)).await;
    script_status(supervisor, name).await
}

// Promises: LUA-71, LUA-72, LUA-73
#[tokio::test]
async fn status_events_and_audit_say_what_runs_of_each_script() {
    let provider = Provider::responding(|_| says("yes")).await;
    let good = "function pre_hook(ctx) ctx.metadata.seen = 'first' end";
    let hangs = "function filter(ctx) if ctx.message == 'hang' then while true do end end end";
    let supervisor =
        with_scripts(&provider, &[("a.lua", good), ("b.lua", hangs)], "limits: { timeout_seconds: 1 }").await;
    let first = wait_for_script(&supervisor, "a", "it is loaded", |script| script["state"] == "loaded").await;
    assert_eq!(first["functions"], serde_json::json!(["pre_hook"]), "{first}");
    let digest = first["sha256"].as_str().expect("a digest").to_owned();
    assert_eq!(digest.len(), 64, "{first}");

    // A version that is broken: the good one runs on, and all say so.
    let dir = supervisor.scratch.join("scripts");
    write(&dir, "a.lua", "function pre_hook(ctx)\n  ctx.message = = 1\nend");
    let refused =
        wait_for_script(&supervisor, "a", "it is refused", |script| script["state"] == "outdated").await;
    assert_eq!(refused["sha256"], first["sha256"]);
    assert!(refused["problem"].as_str().is_some_and(|text| text.contains("a.lua:2:")), "{refused}");
    let shown = supervisor.cli(&["status"]).await;
    let shown = text(&shown.stdout);
    assert!(shown.contains("lua/a") && shown.contains("outdated") && shown.contains("a.lua:2:"), "{shown}");
    assert_eq!(supervisor.cli(&["status", "--check"]).await.status.code(), Some(1), "it needs attention");
    write(&dir, "a.lua", "function pre_hook(ctx) ctx.metadata.seen = 'mended' end");
    let mended = wait_for_script(&supervisor, "a", "it is mended", |script| {
        script["state"] == "loaded" && script["sha256"] != first["sha256"]
    })
    .await;
    assert_eq!(mended["loads"], 2, "{mended}");
    let listed = async |kind: &str| {
        let listed = supervisor.cli(&["event", "list", "--output", "json"]).await;
        let listed = text(&listed.stdout);
        let events = listed.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
        events.filter(|event| event["kind"] == kind).collect::<Vec<_>>()
    };
    supervisor.client.wait_until("the event", async |_| listed("script.loaded").await.len() == 1).await;
    let events = listed("script.refused").await;
    assert_eq!((events.len(), &events[0]["fields"]["script"]), (1, &"a".into()), "{events:?}");

    // Calls that pass their time limit are counted.
    let hung = ask(&supervisor, "hang", &[]).await;
    assert_ne!(hung.code, Some(0), "{hung:?}");
    let counted = wait_for_script(&supervisor, "b", "it is counted", |script| {
        let count = |name: &str| script[name].as_u64().unwrap_or_default();
        count("ended_by_interrupt") + count("ended_with_process") == 1
    })
    .await;
    assert_eq!(counted["loads"], 1, "{counted}");

    // Each load is in the audit log, with its digest.
    std::fs::remove_file(dir.join("b.lua")).expect("removed");
    let records = async || {
        let shown = supervisor.cli(&["audit", "show", "--output", "json"]).await;
        text(&shown.stdout)
    };
    supervisor.client.wait_until("the record", async |_| records().await.contains("remove_script")).await;
    let records = records().await;
    for digest in [&digest, mended["sha256"].as_str().expect("a digest")] {
        assert!(records.contains(&format!("lua/a sha256:{digest}")), "{digest} is missing in {records}");
    }
    assert!(records.contains("load_script") && records.contains("a.lua:2:"), "{records}");
    supervisor.stop().await;
}

// Promises: LUA-78
#[tokio::test]
async fn a_plugin_that_dies_is_started_again_with_its_scripts() {
    let provider = Provider::responding(|_| says("yes")).await;
    let script = "function post_hook(ctx) ctx.message = ctx.message:upper() end";
    let supervisor = with_scripts(&provider, &[("a.lua", script)], "").await;
    let pid = supervisor.client.plugin("lua").await.instances[0].pid;
    kill(Pid::from_raw(pid.cast_signed()), Signal::SIGABRT).expect("it runs");
    supervisor
        .client
        .wait_for("lua", "started again", |plugin| {
            plugin.state == "ready" && plugin.instances[0].pid != pid && !plugin.restarts.is_empty()
        })
        .await;
    wait_for_answer(&supervisor, "YES").await;
    let again = wait_for_script(&supervisor, "a", "it is loaded", |script| script["state"] == "loaded").await;
    assert_eq!(again["loads"], 1, "{again}");
    supervisor.stop().await;
}

// Promises: LUA-79
#[tokio::test]
async fn the_tools_obey_the_limits_of_the_configuration() {
    let scratch = Scratch::new();
    let slow = "function filter(ctx) local t = {} for i = 1, 4e5 do t[i] = { i } end end";
    scratch.write("s/slow.lua", slow);
    scratch.write("elsewhere/slow.lua", slow);
    let dir = scratch.join("s").display().to_string();
    let block = "limits: { memory_mb: 8 }, scripts: { more: { libraries: [utf8] } }";
    let config = format!("plugins: {{ lua: {{ scripts_dir: {dir}, {block} }} }}");
    let config = scratch.write("talon.yaml", &config).display().to_string();
    let run = async |file: &Path| {
        let file = file.display().to_string();
        cli(&["lua", "run", &file, "filter", "--config", &config]).await
    };
    let limited = run(&scratch.join("s/slow.lua")).await;
    assert_eq!(limited.status.code(), Some(1), "{limited:?}");
    assert!(text(&limited.stderr).contains("memory: the script passed its memory limit"), "{limited:?}");
    // A script elsewhere is none of the configuration's.
    let other = run(&scratch.join("elsewhere/slow.lua")).await;
    assert_eq!(other.status.code(), Some(0), "{other:?}");
    // What one script may have, it alone has.
    let utf8 = "local char = utf8.char function filter(ctx) end";
    scratch.write("s/more.lua", utf8);
    let checked = cli(&["lua", "check", "--config", &config]).await;
    assert_eq!(checked.status.code(), Some(0), "{checked:?}");
    scratch.write("s/less.lua", utf8);
    let checked = cli(&["lua", "check", "--config", &config]).await;
    assert_eq!(checked.status.code(), Some(1), "{checked:?}");
    assert!(text(&checked.stderr).contains("less.lua"), "{checked:?}");
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs the command line with this on its stdin.
async fn cli_with_input(args: &[&str], input: &str) -> Output {
    let mut child = tokio::process::Command::new(program("talon"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("talon starts");
    let mut stdin = child.stdin.take().expect("it is piped");
    // It may have ended before it read anything.
    let _ = stdin.write_all(input.as_bytes()).await;
    drop(stdin);
    child.wait_with_output().await.expect("it ends")
}

/// The scripts of the cookbook, where every uid may read them.
fn cookbook(scratch: &Scratch) -> String {
    let dir = scratch.join("cookbook");
    std::fs::create_dir(&dir).expect("made");
    for file in std::fs::read_dir(repository().join("plugins-examples/lua")).expect("it is there") {
        let file = file.expect("an entry");
        let _ = std::fs::copy(file.path(), dir.join(file.file_name())).expect("copied");
    }
    dir.display().to_string()
}

// Promises: LUA-60, LUA-61
#[tokio::test]
async fn the_cookbook_passes_its_checks_and_tests_in_the_jail() {
    let scratch = Scratch::new();
    let dir = cookbook(&scratch);
    let checked = cli(&["lua", "check", &dir]).await;
    assert_eq!(checked.status.code(), Some(0), "{}", text(&checked.stderr));
    assert!(text(&checked.stdout).contains("on_call.lua: on_event, task"), "{checked:?}");
    let tested = cli(&["lua", "test", &dir]).await;
    assert_eq!(tested.status.code(), Some(0), "{}{}", text(&tested.stdout), text(&tested.stderr));
    assert!(text(&tested.stdout).starts_with("TAP version 14\nok 1 - "), "{tested:?}");
    // One file is given with its tests, and nothing else of its directory.
    let one = cli(&["lua", "test", &format!("{dir}/filter.lua"), "--output", "json"]).await;
    let tests: serde_json::Value = serde_json::from_slice(&one.stdout).expect("it is JSON");
    assert_eq!(tests["tests"][0]["script"], "filter.lua", "{tests}");
    // Without a path, the directory of the configuration.
    let config = scratch.write("talon.yaml", &format!("plugins: {{ lua: {{ scripts_dir: {dir} }} }}"));
    let config = config.display().to_string();
    let junit = cli(&["lua", "test", "--report", "junit", "--config", &config]).await;
    assert!(text(&junit.stdout).contains("classname=\"glossary.lua\""), "{junit:?}");
    let none = scratch.write("none.yaml", "").display().to_string();
    let none = cli(&["lua", "check", "--config", &none]).await;
    assert_eq!(none.status.code(), Some(2), "{none:?}");
    assert!(text(&none.stderr).contains("no plugins.lua"), "{none:?}");
}

// Promises: LUA-60, LUA-61, LUA-62
#[tokio::test]
async fn what_fails_ends_with_1_and_says_where() {
    let scratch = Scratch::new();
    scratch.write(
        "s/a.lua",
        "local function inner()\n  error('no luck')\nend\nfunction filter(ctx)\n  inner()\nend",
    );
    scratch.write("s/a_test.lua", "function test_a()\n  filter(context {})\nend");
    let dir = scratch.join("s").display().to_string();
    let tested = cli(&["lua", "test", &dir]).await;
    let said = text(&tested.stdout);
    assert_eq!(tested.status.code(), Some(1), "{said}");
    assert!(said.contains("not ok 1 - a.lua test_a") && said.contains("a.lua:2: no luck"), "{said}");
    assert!(said.contains("a.lua:5") && said.contains("a_test.lua:2"), "the way there: {said}");
    let file = format!("{dir}/a.lua");
    let ran = cli(&["lua", "run", &file, "filter"]).await;
    assert_eq!(ran.status.code(), Some(1), "{ran:?}");
    assert!(text(&ran.stderr).contains("raised: a.lua:2: no luck"), "{ran:?}");
    scratch.write("s/b.lua", "function filter(ctx)\n  return = 1\nend");
    let checked = cli(&["lua", "check", &dir]).await;
    assert_eq!(checked.status.code(), Some(1), "{checked:?}");
    assert!(text(&checked.stderr).contains("b.lua:2:"), "{checked:?}");
    let missing = cli(&["lua", "run", &format!("{dir}/c.lua"), "filter"]).await;
    assert_eq!(missing.status.code(), Some(2), "{missing:?}");
    assert!(text(&missing.stderr).contains("c.lua"), "{missing:?}");
}

// Promises: LUA-62, LUA-63
#[tokio::test]
async fn run_shows_what_a_call_changed_and_ends_a_script_that_hangs() {
    let scratch = Scratch::new();
    let dir = cookbook(&scratch);
    let file = format!("{dir}/smart_preprocess.lua");
    let ran =
        cli(&["lua", "run", &file, "pre_hook", "--message", "Guten Tag", "--llm", "de", "--llm", "Good day"])
            .await;
    let expected = "- message: Guten Tag\n+ message: Good day\n+ metadata.original_language: de\n";
    assert_eq!(text(&ran.stdout), expected, "{ran:?}");
    // What acts on a terminal is written out, whoever it is from.
    scratch.write("s/a.lua", "function filter(ctx) return { drop = true, reason = 'a\\27[2Jb' } end");
    let file = scratch.join("s/a.lua").display().to_string();
    let dropped = cli(&["lua", "run", &file, "filter"]).await;
    let said = text(&dropped.stdout);
    assert!(said.starts_with("dropped: a") && !said.contains('\u{1b}'), "{said:?}");
    scratch.write(
        "s/hang.lua",
        "function filter(ctx) while true do pcall(function() while true do end end) end end",
    );
    let file = scratch.join("s/hang.lua").display().to_string();
    let hung = cli(&["lua", "run", &file, "filter"]).await;
    assert_eq!(hung.status.code(), Some(1), "{hung:?}");
    assert!(text(&hung.stderr).contains("deadline: the script passed its time limit"), "{hung:?}");
}

// Promises: LUA-64
#[tokio::test]
async fn a_session_evaluates_lines_in_the_jail() {
    let scratch = Scratch::new();
    let dir = cookbook(&scratch);
    let lines = "count = 20\ncount + 1\nfunction twice(x)\n  return 2 * x\nend\ntwice(count), ctx.message\nfilter(ctx).drop\n";
    let file = format!("{dir}/filter.lua");
    let args = ["lua", "repl", &file, "--message", "good morning"];
    let output = cli_with_input(&args, lines).await;
    assert_eq!(text(&output.stdout), "21\n40\t\"good morning\"\nfalse\n", "{output:?}");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let failed = cli_with_input(&["lua", "repl"], "error('no')\n1 + 1\n").await;
    assert_eq!((failed.status.code(), text(&failed.stdout).as_str()), (Some(1), "2\n"), "{failed:?}");
    assert!(text(&failed.stderr).contains("line:1: no"), "{failed:?}");
    scratch.write("s/bad.lua", "function filter(");
    let bad = scratch.join("s/bad.lua").display().to_string();
    let bad = cli_with_input(&["lua", "repl", &bad], "1\n").await;
    assert_eq!(bad.status.code(), Some(1), "{bad:?}");
    assert!(text(&bad.stderr).contains("bad.lua:1:"), "{bad:?}");
}

// Promises: LUA-65
#[tokio::test]
async fn a_new_script_passes_its_tests_and_looks_at_messages() {
    let scratch = Scratch::new();
    let dir = scratch.join("scripts").display().to_string();
    let made = cli(&["--output", "json", "new", "lua", "urgent", &dir]).await;
    let report: serde_json::Value = serde_json::from_slice(&made.stdout).expect("it is JSON");
    assert_eq!(
        report["files"],
        serde_json::json!(["urgent.lua", "urgent_test.lua", "talon.d.luau", ".luaurc"])
    );
    let tested = cli(&["lua", "test", &dir]).await;
    assert_eq!(tested.status.code(), Some(0), "{tested:?}");
    assert!(text(&tested.stdout).ends_with("1..2\n"), "{tested:?}");
    // The line that it says to try, without the shell.
    let line = report["try"].as_str().expect("a line");
    assert!(line.starts_with("talon lua run ") && line.ends_with("--message 'This is urgent.'"), "{line}");
    let ran =
        cli(&["lua", "run", &format!("{dir}/urgent.lua"), "pre_hook", "--message", "This is urgent."]).await;
    assert_eq!(text(&ran.stdout), "+ metadata.priority: high\n", "{ran:?}");
    // And the entry is one that a configuration takes.
    let config = format!("plugins:\n  {}\n", report["entry"].as_str().expect("an entry"));
    let config = scratch.write("talon.yaml", &config).display().to_string();
    let checked = cli(&["config", "check", "--skip-plugins", "--config", &config]).await;
    assert!(checked.status.success(), "{checked:?}");
    let refused = cli(&["new", "lua", "x", "--role", "filter"]).await;
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
}

async fn schedule_json(supervisor: &Supervisor, args: &[&str]) -> serde_json::Value {
    let output = supervisor.cli(&[&["schedule"], args, &["--output", "json"]].concat()).await;
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// Waits until the script's job is in this state with these times.
async fn wait_for_proposal(supervisor: &Supervisor, state: &str, when: &str) {
    let what = format!("a job that is {state} {when}");
    supervisor
        .client
        .wait_until(&what, async |_| {
            let listed = schedule_json(supervisor, &["list"]).await;
            let proposals = listed["proposals"].as_array().expect("a list").iter();
            let mut of_script = proposals.filter(|one| one["job"] == "lua.tick");
            of_script.any(|one| one["state"] == state && one["when"] == when)
        })
        .await;
}

// Promises: LUA-82, LUA-83
#[tokio::test]
async fn a_scripts_task_runs_once_its_job_is_accepted_and_a_saved_change_is_proposed_again() {
    let provider = Provider::responding(|_| says("yes")).await;
    let script = |every: &str| {
        format!("schedule = {{ every = '{every}' }} function task(ctx) return 'ran ' .. ctx.run.job end")
    };
    let supervisor = with_scripts(&provider, &[("tick.lua", &script("1s"))], "").await;
    wait_for_proposal(&supervisor, "proposed", "every 1s").await;
    assert!(
        schedule_json(&supervisor, &["history"]).await["occurrences"].as_array().expect("a list").is_empty()
    );
    schedule_json(&supervisor, &["accept", "lua.tick"]).await;
    supervisor
        .client
        .wait_until("a run of the script", async |_| {
            let history = schedule_json(&supervisor, &["history"]).await;
            let all = history["occurrences"].as_array().expect("a list").clone();
            all.iter().any(|run| run["state"] == "done" && run["result"] == "ran lua.tick")
        })
        .await;
    write(&supervisor.scratch.join("scripts"), "tick.lua", &script("300d"));
    wait_for_proposal(&supervisor, "proposed", "every 300d").await;
    let listed = schedule_json(&supervisor, &["list"]).await;
    assert_eq!(listed["jobs"][0]["when"], "every 1s", "what was accepted goes on: {listed}");
    schedule_json(&supervisor, &["reject", "lua.tick"]).await;
    wait_for_proposal(&supervisor, "rejected", "every 300d").await;
    supervisor.stop().await;
}

//! The program under the SDK's mock host: real workers, real files.

#[path = "../crates/engine/tests/corpus/mod.rs"]
mod corpus;
mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use corpus::{Expect, FILES, corpus};
use serde_json::json;
use support::{PROGRAM, error, hook, launch, scripts, status, wait_for, write};
use talon_sdk::ScriptStatus;
use talon_sdk::testing::{Answer, CannedModel, Host, MemoryState, Notice};

/// One operation that takes long, and that no interrupt reaches.
const LONG: &str = "function pre_hook(ctx) while true do table.move({ 1 }, 1, 2e9, 2, {}) end end";
const UPPER: &str = "function pre_hook(ctx) ctx.message = ctx.message:upper() end";

// Promises: LUA-20, LUA-82
#[tokio::test]
async fn scripts_are_actions_in_roles() {
    let dir = scripts(&[
        ("filter.lua", include_str!("../../../plugins-examples/lua/filter.lua")),
        ("both.lua", "function hook(ctx) ctx.metadata.seen = ctx.phase return ctx end"),
        ("notify.lua", "function on_event(ctx) ctx.log('warn', ctx.event.kind .. ': ' .. ctx.message) end"),
        (
            "nightly.lua",
            "schedule = { every = '1d' } function task(ctx) return ctx.run.job .. ' ' .. ctx.args.days end",
        ),
    ]);
    let host = launch(dir.path(), json!({})).await;
    let passed =
        host.call_role("filter", "filter-filter", json!({"message": "good"})).await.expect("answers");
    assert_eq!(passed.structured, Some(json!({"verdict": "pass"})));
    let dropped =
        host.call_role("filter", "filter-filter", json!({"message": "spam"})).await.expect("answers");
    assert_eq!(dropped.structured, Some(json!({"verdict": "drop", "reason": "blocked word: spam"})));
    // What a script does not define lets every message pass.
    let other = host
        .call_role("response_hook", "filter-post_hook", json!({"message": "spam"}))
        .await
        .expect("answers");
    assert_eq!(other.structured, Some(json!({"verdict": "pass"})));
    for (role, action, phase) in
        [("request_hook", "both-pre_hook", "pre"), ("response_hook", "both-post_hook", "post")]
    {
        let noted = host.call_role(role, action, json!({})).await.expect("answers");
        assert_eq!(noted.structured, Some(json!({"verdict": "annotate", "metadata": {"seen": phase}})));
    }
    let told = host.call_role("notification_sink", "notify-on_event", json!({})).await.expect("answers");
    assert_eq!(told.structured, Some(json!({"status": "delivered"})));
    let _ = host.wait_for_log("plugin.failed: The plugin code-search failed").await;
    let ran = host.call_role("scheduled_task", "nightly-task", json!({"days": 3})).await.expect("answers");
    assert_eq!(ran.content, "nightly 3");
    let capabilities = host.capabilities().await.expect("it has some");
    let task = capabilities.actions.iter().find(|action| action.name == "nightly-task").expect("declared");
    assert!(task.description.contains("every: \"1d\""), "{}", task.description);
    let proposed = host.proposed_jobs().await.expect("it has some");
    let [(action, job)] = proposed.as_slice() else { panic!("{proposed:?}") };
    assert_eq!((action.as_str(), job.name.as_str()), ("nightly-task", "nightly"));
    assert_eq!((job.every.as_str(), job.cron.as_str(), job.timezone.as_str()), ("1d", "", ""));
    assert!(host.shutdown().await.expect("ends").success());
}

// Promises: LUA-21
#[tokio::test]
async fn what_no_interrupt_reaches_ends_with_its_worker_and_leaves_others_alone() {
    let dir = scripts(&[
        ("long.lua", LONG),
        ("loop.lua", "function pre_hook(ctx) while true do pcall(function() while true do end end) end end"),
        ("upper.lua", UPPER),
        ("count.lua", "n = 0 function pre_hook(ctx) n = n + 1 ctx.message = tostring(n) end"),
    ]);
    let one = json!({"workers": 1, "limits": {"timeout_seconds": 1}});
    let host = launch(dir.path(), one).await;
    assert_eq!(
        hook(&host, "count-pre_hook", "x").await.structured,
        Some(json!({"verdict": "replace", "message": "1"}))
    );
    let (long, upper) = tokio::join!(hook(&host, "long-pre_hook", "x"), hook(&host, "upper-pre_hook", "a"));
    assert!(error(&long).contains("cannot be interrupted"), "{long:?}");
    assert_eq!(upper.structured, Some(json!({"verdict": "replace", "message": "A"})));
    // Its neighbours run again in another process, from their beginning.
    assert_eq!(
        hook(&host, "count-pre_hook", "x").await.structured,
        Some(json!({"verdict": "replace", "message": "1"}))
    );
    let ended = hook(&host, "loop-pre_hook", "x").await;
    assert!(error(&ended).contains("time limit"), "{ended:?}");
    let counts = &status(&host).await["counts"];
    let number = |name: &str| counts[name].as_u64().expect("a number");
    assert!(number("ended_with_worker") >= 1, "{counts}");
    // On a busy machine the worker may be ended before its interrupt comes.
    assert_eq!(number("ended_with_worker") + number("ended_by_interrupt"), 2, "{counts}");
    assert_eq!(number("worker_crashes"), 0, "{counts}");
}

#[tokio::test]
async fn scripts_that_load_at_once_are_spread_over_the_workers() {
    let dir = scripts(&[
        ("count.lua", "n = 0 function pre_hook(ctx) n = n + 1 ctx.message = tostring(n) end"),
        ("long.lua", LONG),
    ]);
    let host =
        launch(dir.path(), json!({"workers": 2, "scripts": {"long": {"limits": {"timeout_seconds": 1}}}}))
            .await;
    let counted = |n: &str| Some(json!({"verdict": "replace", "message": n}));
    assert_eq!(hook(&host, "count-pre_hook", "x").await.structured, counted("1"));
    let long = hook(&host, "long-pre_hook", "x").await;
    assert!(error(&long).contains("cannot be interrupted"), "{long:?}");
    assert_eq!(hook(&host, "count-pre_hook", "x").await.structured, counted("2"), "its state is kept");
}

// Promises: LUA-21
#[tokio::test]
async fn every_uninterruptible_case_of_the_corpus_ends() {
    let cases = corpus();
    let cases: Vec<_> = cases.iter().filter(|case| case.expect == Expect::Uninterruptible).collect();
    let dir = scripts(&[("upper.lua", UPPER)]);
    for case in &cases {
        write(dir.path(), &format!("{}.lua", case.name), &case.source);
    }
    let host = launch(dir.path(), json!({"limits": {"timeout_seconds": 1}})).await;
    for case in &cases {
        let ended = hook(&host, &format!("{}-pre_hook", case.name), "x").await;
        assert!(error(&ended).contains("limit"), "{}: {ended:?}", case.name);
        let good = hook(&host, "upper-pre_hook", "a").await;
        assert_eq!(
            good.structured,
            Some(json!({"verdict": "replace", "message": "A"})),
            "after {}",
            case.name
        );
    }
}

// Promises: LUA-22
#[tokio::test]
async fn a_saved_file_takes_its_place_and_a_broken_one_does_not() {
    let dir = scripts(&[("v.lua", "function pre_hook(ctx) ctx.message = 'one' end")]);
    let host = launch(dir.path(), json!({})).await;
    let first = status(&host).await["scripts"][0]["sha256"].clone();
    assert_eq!(first.as_str().map(str::len), Some(64));
    write(dir.path(), "v.lua", "function pre_hook(ctx) ctx.message = 'two' end");
    let now = wait_for(&host, |status| status["scripts"][0]["sha256"] != first).await;
    assert_eq!(
        hook(&host, "v-pre_hook", "x").await.structured,
        Some(json!({"verdict": "replace", "message": "two"}))
    );

    write(dir.path(), "v.lua", "function pre_hook(ctx)\n  ctx.message = = 3\nend");
    let broken = wait_for(&host, |status| !status["scripts"][0]["failure"].is_null()).await;
    assert!(
        broken["scripts"][0]["failure"].as_str().is_some_and(|text| text.contains("v.lua:2:")),
        "{broken}"
    );
    assert_eq!(broken["scripts"][0]["sha256"], now["scripts"][0]["sha256"]);
    assert_eq!(
        hook(&host, "v-pre_hook", "x").await.structured,
        Some(json!({"verdict": "replace", "message": "two"}))
    );

    // With tests beside it, it has to pass them first.
    write(
        dir.path(),
        "v_test.lua",
        "function test_it() local c = context {} pre_hook(c) expect(c.message, 'four') end",
    );
    write(dir.path(), "v.lua", "function pre_hook(ctx) ctx.message = 'three' end");
    let failed = wait_for(&host, |status| {
        status["scripts"][0]["failure"].as_str().is_some_and(|text| text.contains("test_it fails"))
    })
    .await;
    assert_eq!(failed["scripts"][0]["sha256"], now["scripts"][0]["sha256"]);
    write(dir.path(), "v.lua", "function pre_hook(ctx) ctx.message = 'four' end");
    let passed = wait_for(&host, |status| status["scripts"][0]["failure"].is_null()).await;
    assert_eq!(passed["scripts"][0]["tests_passed"], 1);
    assert_eq!(
        hook(&host, "v-pre_hook", "x").await.structured,
        Some(json!({"verdict": "replace", "message": "four"}))
    );

    fs::remove_file(dir.path().join("v.lua")).expect("removed");
    let _ = wait_for(&host, |status| status["scripts"] == json!([])).await;
    assert!(error(&hook(&host, "v-pre_hook", "x").await).contains("there is no script v.lua any more"));
}

// Promises: LUA-70
#[tokio::test]
async fn the_host_is_told_what_runs_of_each_script() {
    let dir = scripts(&[("a.lua", UPPER), ("b.lua", "function filter(ctx) return = end")]);
    let host = launch(dir.path(), json!({})).await;
    let mut notices = host.listen().await.expect("it listens");
    let mut next = async || loop {
        match notices.next().await.expect("the stream is whole").expect("the stream goes on") {
            Notice::Script(status) => return status,
            Notice::ScriptRemoved(name) => return ScriptStatus { name, ..ScriptStatus::default() },
            _ => {}
        }
    };
    let (first, second) = (next().await, next().await);
    assert_eq!((first.name.as_str(), first.loads, first.sha256.len()), ("a", 1, 64), "{first:?}");
    assert_eq!(first.functions, ["pre_hook"]);
    assert!(
        second.name == "b" && second.sha256.is_empty() && second.problem.contains("b.lua:1:"),
        "{second:?}"
    );
    write(dir.path(), "a.lua", "function pre_hook(ctx) while true do end end");
    let changed = next().await;
    assert!(changed.loads == 2 && changed.sha256 != first.sha256, "{changed:?}");
    assert!(error(&hook(&host, "a-pre_hook", "x").await).contains("time limit"));
    let counted = next().await;
    // On a busy machine the worker may be ended before its interrupt comes.
    assert_eq!(counted.ended_by_interrupt + counted.ended_with_process, 1, "{counted:?}");
    fs::remove_file(dir.path().join("b.lua")).expect("removed");
    let gone = next().await;
    assert_eq!((gone.name.as_str(), gone.problem.as_str()), ("b", ""), "{gone:?}");
    // Another listener gets what there is.
    let mut again = host.listen().await.expect("it listens");
    assert!(matches!(again.next().await, Ok(Some(Notice::Script(status))) if status == counted));
    let Ok(Some(Notice::ScriptRemoved(name))) = again.next().await else { panic!("of what is gone, too") };
    assert_eq!(name, "b");
}

// Promises: LUA-23
#[tokio::test]
async fn what_is_no_script_is_refused_by_name() {
    let dir = scripts(&[("good.lua", UPPER), ("bad name.lua", UPPER), ("notes.txt", "no script")]);
    let path = |name: &str| dir.path().join(name);
    fs::create_dir(path("directory.lua")).expect("made");
    std::os::unix::fs::symlink("/etc/hostname", path("out.lua")).expect("linked");
    std::os::unix::fs::symlink("good.lua", path("within.lua")).expect("linked");
    fs::write(path("bytes.lua"), b"local s = '\xff'").expect("written");
    fs::File::create(path("huge.lua")).and_then(|file| file.set_len(1 << 30)).expect("a sparse file");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        path("fifo.lua"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o644),
        0,
    )
    .expect("a FIFO");
    write(dir.path(), "open.lua", UPPER);
    fs::set_permissions(path("open.lua"), fs::Permissions::from_mode(0o666)).expect("set");
    let _socket = std::os::unix::net::UnixListener::bind(path("socket.lua")).expect("bound");
    let host = launch(dir.path(), json!({})).await;
    let status = status(&host).await;
    let failures: Vec<(&str, &str)> = status["scripts"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|script| {
            (script["name"].as_str().unwrap_or_default(), script["failure"].as_str().unwrap_or_default())
        })
        .collect();
    for (name, _, says) in FILES {
        let (_, failure) = failures.iter().find(|(of, _)| *of == name).expect("it is listed");
        assert!(failure.contains(says) && failure.is_empty() == says.is_empty(), "{name}: {failure}");
    }
    assert!(status["problems"][0].as_str().is_some_and(|text| text.contains("bad name.lua")), "{status}");
    assert!(error(&hook(&host, "within-pre_hook", "a").await).is_empty());
    assert!(error(&hook(&host, "out-filter", "a").await).contains("not loaded"), "its hooks fail");
}

// Promises: LUA-7
#[tokio::test]
async fn values_belong_to_one_script_and_outlive_the_process() {
    let count = "function pre_hook(ctx) local n = (ctx.kv_get('n') or 0) + 1 ctx.kv_set('n', n) ctx.message = tostring(n) end";
    let dir = scripts(&[("a.lua", count), ("b.lua", count)]);
    let state = MemoryState::new();
    let launch = async || {
        let host =
            Host::builder(PROGRAM).config(json!({"scripts_dir": dir.path()})).state(&state).launch().await?;
        let _ = host.capabilities().await.expect("it has some");
        Ok::<_, talon_sdk::testing::LaunchError>(host)
    };
    let host = launch().await.expect("it launches");
    let said = |answer: Answer| answer.structured.map(|data| data["message"].clone());
    assert_eq!(said(hook(&host, "a-pre_hook", "x").await), Some(json!("1")));
    assert_eq!(said(hook(&host, "a-pre_hook", "x").await), Some(json!("2")));
    assert_eq!(said(hook(&host, "b-pre_hook", "x").await), Some(json!("1")));
    assert!(host.shutdown().await.expect("ends").success());
    let host = launch().await.expect("it launches");
    assert_eq!(said(hook(&host, "a-pre_hook", "x").await), Some(json!("3")));
    assert_eq!(state.get("a/n"), Some(b"3.0".to_vec()));
    // A store that is away fails the hook; nothing starts again at zero.
    state.set_available(false);
    assert!(!error(&hook(&host, "a-pre_hook", "x").await).is_empty());
}

// Promises: LUA-25
#[tokio::test]
async fn a_script_asks_the_models_that_the_operator_grants() {
    let dir = scripts(&[
        ("ask.lua", "function pre_hook(ctx) ctx.message = ctx.llm('Translate: ' .. ctx.message) end"),
        (
            "why.lua",
            "function pre_hook(ctx) local text, why = ctx.llm('x', 'other') ctx.message = tostring(text) .. ' ' .. why end",
        ),
    ]);
    let config = json!({"scripts_dir": dir.path(), "default_model": "small"});
    let model = CannedModel::new(["small"], |_| Ok("Good morning".to_owned()));
    let host =
        Host::builder(PROGRAM).config(config.clone()).model(&model).launch().await.expect("it launches");
    let _ = host.capabilities().await.expect("it has some");
    let answer = hook(&host, "ask-pre_hook", "Guten Morgen").await;
    assert_eq!(answer.structured, Some(json!({"verdict": "replace", "message": "Good morning"})));
    let asked = model.requests();
    assert_eq!(
        (asked[0].alias(), asked[0].messages()[0].text.as_str()),
        ("small", "Translate: Guten Morgen")
    );
    let without = Host::builder(PROGRAM).config(config).launch().await.expect("it launches");
    let _ = without.capabilities().await.expect("it has some");
    let answer = hook(&without, "why-pre_hook", "x").await;
    let text = answer.structured.expect("data")["message"].as_str().expect("a text").to_owned();
    assert!(text.starts_with("nil ") && text.len() > 10, "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn who_goes_away_ends_a_call_that_waits_for_its_turn_or_for_a_model() {
    let dir = scripts(&[(
        "ask.lua",
        "function pre_hook(ctx) if ctx.message == 'slow' then ctx.llm('x') end ctx.message = 'done' end",
    )]);
    let (asked, mut was_asked) = tokio::sync::mpsc::unbounded_channel();
    // The model answers when the test is over.
    let (over, until_over) = std::sync::mpsc::channel::<()>();
    let until_over = std::sync::Mutex::new(until_over);
    let model = CannedModel::new(["small"], move |_| {
        asked.send(()).expect("the test listens");
        let _ = until_over.lock().expect("not poisoned").recv();
        Ok("late".to_owned())
    });
    let config = json!({
        "scripts_dir": dir.path(), "default_model": "small", "limits": {"llm_timeout_seconds": 300},
    });
    let host = Host::builder(PROGRAM).config(config).model(&model).launch().await.expect("it launches");
    let _ = host.capabilities().await.expect("it has some");
    // One asks the model, the other waits for its turn, and both go away.
    tokio::select! {
        answer = hook(&host, "ask-pre_hook", "slow") => panic!("nobody answers: {answer:?}"),
        answer = hook(&host, "ask-pre_hook", "slow") => panic!("nobody answers: {answer:?}"),
        _ = was_asked.recv() => {}
    }
    let answer = hook(&host, "ask-pre_hook", "x").await;
    assert_eq!(answer.structured, Some(json!({"verdict": "replace", "message": "done"})));
    drop(over);
}

#[tokio::test]
async fn a_bad_config_is_refused_with_its_reason() {
    for (config, says) in [
        (json!({}), "missing field `scripts_dir`"),
        (json!({"scripts_dir": "x", "limits": {"memory_mb": 0}}), "memory_mb is a number from 1 to 4096"),
    ] {
        let error = Host::builder(PROGRAM).config(config).launch().await.expect_err("refused").to_string();
        assert!(error.contains(says), "expected {says:?} in {error:?}");
    }
}

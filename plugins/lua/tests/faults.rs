//! Faults that are injected: workers that crash, and scripts that fill their memory.

mod support;

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use support::{error, hook, launch, scripts, status, until, wait_for};
use talon_sdk::testing::{CannedModel, Host, MemoryState};

/// The worker processes, by their parent.
fn workers(host: &Host) -> Vec<i32> {
    let processes = fs::read_dir("/proc").expect("it is there").flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| {
        // What stands before the last parenthesis is a name, which may hold anything.
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let parent = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1)?.parse::<i32>().ok());
        parent == Some(host.pid())
    })
    .collect()
}

/// The machine aborts: what a defect in its memory would do.
fn crash(pid: i32) {
    kill_process(Pid::from_raw(pid).expect("a process id"), Signal::ABORT).expect("it runs");
}

/// A line of `/proc/PID/status`, in KiB.
fn memory_kib(pid: i32, line: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let value = status.lines().find_map(|found| found.strip_prefix(line)?.strip_prefix(':'));
    value.and_then(|value| value.trim().strip_suffix(" kB")?.trim().parse().ok()).unwrap_or_default()
}

/// A time some seconds from now, as a message for [`SPIN`]: long enough that all of them have begun.
fn soon() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    (now.as_secs() + 10).to_string()
}

/// Runs until the time in its message, without asking for anything.
const SPIN: &str = "function pre_hook(ctx)
  ctx.log('info', 'begun ' .. ctx.message)
  while os.time() < tonumber(ctx.message) do end
  ctx.message = 'done'
end";
const UPPER: &str = "function pre_hook(ctx) ctx.message = ctx.message:upper() end";

// Promises: LUA-76
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_crash_of_the_machine_loses_one_invocation() {
    let dir = scripts(&[
        ("ask.lua", "function pre_hook(ctx) ctx.kv_set('k', 1) ctx.log('info', 'asked') ctx.llm('x') end"),
        ("spin.lua", SPIN),
        ("upper.lua", UPPER),
    ]);
    // The model answers when the test is over.
    let (over, until_over) = std::sync::mpsc::channel::<()>();
    let until_over = std::sync::Mutex::new(until_over);
    let model = CannedModel::new(["small"], move |_| {
        let _ = until_over.lock().expect("not poisoned").recv();
        Ok("late".to_owned())
    });
    let config = json!({
        "scripts_dir": dir.path(), "workers": 1, "default_model": "small", "limits": {"timeout_seconds": 60},
    });
    let (state, builder) = (MemoryState::new(), Host::builder(support::PROGRAM).config(config));
    let host = builder.state(&state).model(&model).launch().await.expect("it launches");
    let _ = host.capabilities().await.expect("it has some");
    let [worker] = workers(&host)[..] else { panic!("one worker") };

    // One call is at work: it is lost, and the next begins in another worker.
    let crashing = async {
        let _ = host.wait_for_log("asked").await;
        crash(worker);
    };
    let (lost, ()) = tokio::join!(hook(&host, "ask-pre_hook", "x"), crashing);
    assert!(error(&lost).contains("its worker process crashed"), "{lost:?}");
    let good = hook(&host, "upper-pre_hook", "a").await;
    assert_eq!(good.structured, Some(json!({"verdict": "replace", "message": "A"})));
    let [next] = workers(&host)[..] else { panic!("one worker") };
    assert_ne!(next, worker);
    let counts = wait_for(&host, |status| status["counts"]["worker_crashes"] == 1).await;
    assert_eq!(counts["scripts"].as_array().map(Vec::len), Some(3), "{counts}");

    // Two are at work, and nobody knows whose it was: who had asked for something is lost, and the other is made again.
    let time = soon();
    let crashing = async {
        let _ = host.wait_for_log(&format!("begun {time}")).await;
        let log = async || host.log().matches("asked").count();
        let _ = until(log, |asked| *asked == 2).await;
        crash(next);
    };
    let (lost, made_again, ()) =
        tokio::join!(hook(&host, "ask-pre_hook", "x"), hook(&host, "spin-pre_hook", &time), crashing);
    assert!(error(&lost).contains("its worker process crashed"), "{lost:?}");
    assert_eq!(made_again.structured, Some(json!({"verdict": "replace", "message": "done"})));
    assert_eq!(status(&host).await["counts"]["worker_crashes"], 2);
    drop(over);
}

// Promises: LUA-76
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scripts_in_another_worker_do_not_notice_a_crash() {
    let count = "n = 0 function pre_hook(ctx) n = n + 1 ctx.message = tostring(n) end";
    let dir = scripts(&[("count.lua", count), ("spin.lua", SPIN)]);
    let host = launch(dir.path(), json!({"workers": 2, "limits": {"timeout_seconds": 60}})).await;
    let counted = |n: &str| Some(json!({"verdict": "replace", "message": n}));
    assert_eq!(hook(&host, "count-pre_hook", "x").await.structured, counted("1"));
    let before = workers(&host);
    assert_eq!(before.len(), 2);
    let time = soon();
    let crashing = async {
        let _ = host.wait_for_log(&format!("begun {time}")).await;
        // The one that works is the one that spins.
        let begun: Vec<u64> = before.iter().map(|pid| cpu_ticks(*pid)).collect();
        let worked = async || before.iter().zip(&begun).position(|(pid, begun)| cpu_ticks(*pid) > begun + 20);
        let spins = until(worked, Option::is_some).await.expect("one of them");
        crash(before[spins]);
    };
    let (lost, ()) = tokio::join!(hook(&host, "spin-pre_hook", &time), crashing);
    assert!(error(&lost).contains("its worker process crashed"), "{lost:?}");
    assert_eq!(hook(&host, "count-pre_hook", "x").await.structured, counted("2"), "its state is kept");
}

/// The time of the processor that a process has had.
fn cpu_ticks(pid: i32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields: Vec<&str> =
        stat.rsplit_once(") ").map(|(_, rest)| rest.split(' ').collect()).unwrap_or_default();
    fields.get(11..13).unwrap_or_default().iter().filter_map(|field| field.parse::<u64>().ok()).sum()
}

// Promises: LUA-77
#[tokio::test]
async fn memory_that_a_script_filled_is_given_back() {
    const FILL: &str = "function pre_hook(ctx)
      if ctx.message == 'fill' then
        local t = {}
        while true do t[#t + 1] = { #t, tostring(#t) } end
      end
    end";
    let dir = scripts(&[("fill.lua", FILL), ("upper.lua", UPPER)]);
    let host =
        launch(dir.path(), json!({"workers": 1, "limits": {"memory_mb": 64, "timeout_seconds": 60}})).await;
    let _ = hook(&host, "fill-pre_hook", "x").await;
    let [worker] = workers(&host)[..] else { panic!("one worker") };
    let before = memory_kib(worker, "VmRSS");
    let filled = hook(&host, "fill-pre_hook", "fill").await;
    assert!(error(&filled).contains("memory limit"), "{filled:?}");
    let peak = memory_kib(worker, "VmHWM");
    assert!(peak > before + (48 << 10), "it filled {peak} KiB, from {before}");
    assert_eq!(workers(&host), [worker], "the worker lives");
    let kept = until(async || memory_kib(worker, "VmRSS"), |now| *now < before + (16 << 10)).await;
    println!("{before} KiB before, {peak} at most, {kept} after");
    let good = hook(&host, "upper-pre_hook", "a").await;
    assert_eq!(good.structured, Some(json!({"verdict": "replace", "message": "A"})));
}

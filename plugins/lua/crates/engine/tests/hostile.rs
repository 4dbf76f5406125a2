//! A corpus of hostile scripts: each gets the limit or the policy, and leaves others alone.

mod corpus;
mod support;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use corpus::{Case, Expect, corpus};
use support::{MemoryHost, context};
use talon_lua_engine::{CallError, Library, Limits, MAX_ERROR_BYTES, Outcome, Point, Script};

/// How many cases run at once: twice the processors of a small machine.
const THREADS: usize = 4;

/// Those that pass their time are given a second of it, in which a busy machine loads them; all others so much that it does not
/// change what they get.
fn limits(expect: Expect) -> Limits {
    let loops = matches!(expect, Expect::Fails("deadline", _))
        || matches!(expect, Expect::NotLoaded(says) if says.contains("time limit"));
    let execution = if loops { Duration::from_secs(1) } else { Duration::from_secs(60) };
    Limits { memory_bytes: 4 << 20, execution, llm_calls: 3 }
}

/// What a call ended with, and the bytes that its machine used then; the error of a source that does not load.
type CallRun = Result<Result<(Outcome, usize), (CallError, usize)>, String>;

fn run(source: &[u8], limits: &Limits) -> CallRun {
    // As an operator who allows everything.
    let mut script =
        Script::load("case.lua", source, limits, &Library::ALL).map_err(|error| error.to_string())?;
    let point = script.points()[0];
    let outcome = script.call(point, &context("Hello"), MemoryHost::new());
    let memory = script.used_memory();
    Ok(outcome.map(|outcome| (outcome, memory)).map_err(|error| (error, memory)))
}

// Promises: LUA-1, LUA-2, LUA-3
#[test]
fn each_gets_its_limit_and_leaves_others_alone() {
    let cases = corpus();
    assert!(cases.len() >= 100, "there are {} cases", cases.len());
    let cases: Vec<_> = cases.iter().filter(|case| case.expect != Expect::Uninterruptible).collect();
    // Many last until their time is over: some at once, so that the whole is short.
    let next = AtomicUsize::new(0);
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(|| run_cases(&cases, &next))).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("others go on")).collect()
    });
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

/// Runs cases until there is none left, each beside a script that goes on. Returns what is wrong.
fn run_cases(cases: &[&Case], next: &AtomicUsize) -> Vec<String> {
    let mut good = Script::load(
        "good.lua",
        b"function pre_hook(ctx) ctx.message = ctx.message:upper() end",
        &Limits::default(),
        &[],
    )
    .expect("it loads");
    let mut wrong = Vec::new();
    while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
        let got = run(&case.source, &limits(case.expect));
        let fits = match (&got, case.expect) {
            (Err(said), Expect::NotLoaded(says)) => said.contains(says) && said.len() <= MAX_ERROR_BYTES,
            (Ok(Err((error, memory))), Expect::Fails(kind, says)) => {
                let thrown_away = matches!(kind, "deadline" | "memory");
                error.kind.as_str() == kind
                    && error.message.contains(says)
                    && error.message.len() <= MAX_ERROR_BYTES
                    && !error.message.contains('\u{1b}')
                    && (*memory == 0) == thrown_away
                    && *memory <= limits(case.expect).memory_bytes
            }
            (Ok(Ok(_)), Expect::Harmless) => true,
            _ => false,
        };
        if !fits {
            let shown = format!("{got:?}");
            wrong.push(format!(
                "{}: expected {:?}, got {}",
                case.name,
                case.expect,
                &shown[..shown.len().min(300)]
            ));
        }
        let outcome = good.call(Point::PreHook, &context("Hello"), MemoryHost::new()).expect("others go on");
        assert_eq!(
            outcome,
            Outcome::Continue { message: Some("HELLO".to_owned()), metadata: Default::default() }
        );
    }
    wrong
}

//! A corpus of hostile scripts: each gets the limit or the policy, and leaves others alone.

mod corpus;
mod support;

use std::time::Duration;

use corpus::{Expect, corpus};
use support::{MemoryHost, context};
use talon_lua_engine::{CallError, Library, Limits, MAX_ERROR_BYTES, Outcome, Point, Script};

/// Those that pass their time are given little of it; all others so much that a busy machine does not change what they get.
fn limits(expect: Expect) -> Limits {
    let loops = matches!(expect, Expect::Fails("deadline", _))
        || matches!(expect, Expect::NotLoaded(says) if says.contains("time limit"));
    let execution = if loops { Duration::from_millis(100) } else { Duration::from_secs(60) };
    Limits { memory_bytes: 4 << 20, execution, llm_calls: 3 }
}

fn run(source: &[u8], limits: &Limits) -> Result<Result<(Outcome, usize), (CallError, usize)>, String> {
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
    let mut good = Script::load(
        "good.lua",
        b"function pre_hook(ctx) ctx.message = ctx.message:upper() end",
        &Limits::default(),
        &[],
    )
    .expect("it loads");
    let mut wrong = Vec::new();
    for case in cases.iter().filter(|case| case.expect != Expect::Uninterruptible) {
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
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

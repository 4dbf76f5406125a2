//! A corpus of hostile scripts: each gets the limit or the policy, and leaves others alone.

mod corpus;
mod support;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use corpus::{Case, Expect, FILES, corpus, sections};
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

/// The longest part of a script that the table shows, in characters.
const MAX_SHOWN: usize = 160;
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../../docs/hostile-scripts.md");
const HEAD: &str = "# Hostile scripts

Each of these runs in a machine with 4 MB and one second, beside a script that has to go on; the tests fail if one of them gets
anything else than what stands here. Those without an interrupt run in a worker of `talon-lua`. A test writes this page.
";

// Promises: LUA-81
#[test]
fn the_page_says_what_becomes_of_each() {
    let page = page();
    if std::env::var_os("TALON_REWRITE_DOCS").is_some() {
        std::fs::write(PAGE, &page).expect("it can be written");
    }
    let written = std::fs::read_to_string(PAGE).unwrap_or_default();
    assert!(written == page, "docs/hostile-scripts.md is another: run this test with TALON_REWRITE_DOCS=1");
}

fn page() -> String {
    let mut page = HEAD.to_owned();
    for (title, cases) in sections() {
        page += &format!("\n## {title}\n\n| script | what it does | what becomes of it |\n|---|---|---|\n");
        for case in &cases {
            page += &format!("| `{}` | {} | {} |\n", case.name, shown(&case.source), outcome(case.expect));
        }
    }
    page += "\n## Files\n\n| script | what is there | what becomes of it |\n|---|---|---|\n";
    for (name, what, says) in FILES {
        let becomes = if says.is_empty() { "runs".to_owned() } else { format!("not loaded: {says}") };
        page += &format!("| `{name}` | {what} | {becomes} |\n");
    }
    page
}

/// The script as code on one line, without the function around it; of a long one the beginning and the length.
fn shown(source: &[u8]) -> String {
    let text = String::from_utf8_lossy(source);
    let body = text.strip_prefix("function pre_hook(ctx)\n").and_then(|text| text.strip_suffix("\nend"));
    let body = body.unwrap_or(&text);
    let line: String = body
        .chars()
        .take(MAX_SHOWN)
        .map(|c| match c {
            '\n' | '\t' => ' ',
            c if c.is_control() || c == char::REPLACEMENT_CHARACTER => '·',
            c => c,
        })
        .collect();
    // A cell of a table knows neither a bar nor the code's own mark.
    let code = line.replace('`', "'").replace('|', "\\|");
    match (code.trim(), body.chars().count() > MAX_SHOWN) {
        ("", _) => "nothing".to_owned(),
        (code, true) => format!("`{code}` … ({} bytes)", source.len()),
        (code, false) => format!("`{code}`"),
    }
}

fn outcome(expect: Expect) -> String {
    let says =
        |text: &str| if text.is_empty() { String::new() } else { format!(": {}", text.replace('|', "\\|")) };
    match expect {
        Expect::NotLoaded(text) => format!("not loaded{}", says(text)),
        Expect::Fails("deadline", _) => "ends at its time limit, and its machine is thrown away".to_owned(),
        Expect::Fails("memory", _) => "ends at its memory limit, and its machine is thrown away".to_owned(),
        Expect::Fails(_, text) => format!("the call fails{}", says(text)),
        Expect::Harmless => "does no harm".to_owned(),
        Expect::Uninterruptible => "ends with its worker, 50 ms after its time limit".to_owned(),
    }
}

//! Patterns in a script: what ends them, and what a script can do to the functions that match them.

mod support;

use std::rc::Rc;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use support::{MemoryHost, context};
use talon_lua_engine::{CancelFlag, FailureKind, Host, KvValue, Limits, LogLevel, Outcome, Point, Script};

/// Scripts of which each goes on for minutes in one function of `string`.
const ENDLESS: [&str; 7] = [
    "local found = string.find(('a'):rep(5000), ('.-'):rep(30) .. 'b')",
    "pcall(string.match, ('a'):rep(5000), ('a*'):rep(30) .. 'b') return ctx",
    "(('a'):rep(5000)):gsub(('a-'):rep(30) .. 'b', 'x')",
    "for _ in (('a'):rep(5000)):gmatch(('a?a*'):rep(20) .. 'b') do end",
    "(('('):rep(2e6)):find('%b()')",
    "(('ab'):rep(5e5)):find('(.*)%1x')",
    "(('z'):rep(1e6)):find('[' .. ('a'):rep(1e6) .. 'z]+b')",
];

fn load(body: &str, limits: &Limits) -> Script {
    let source = format!("kept = 0\nfunction pre_hook(ctx) kept = kept + 1\n{body}\nend");
    Script::load("hook.lua", source.as_bytes(), limits, &[]).expect("it loads")
}

// Promises: LUA-86
#[test]
fn a_pattern_ends_at_the_deadline_and_its_machine_is_thrown_away() {
    let limits = Limits { execution: Duration::from_secs(1), ..Limits::default() };
    let ends = |body: &&str| {
        let mut script = load(body, &limits);
        let error = script.call(Point::PreHook, &context("x"), MemoryHost::new()).expect_err("it ends");
        assert_eq!(error.kind, FailureKind::Deadline, "{body}: {error}");
        assert_eq!(script.used_memory(), 0, "{body}");
    };
    std::thread::scope(|scope| {
        for body in &ENDLESS {
            let _ = scope.spawn(|| ends(body));
        }
    });
}

/// Tells of the first line that is logged.
struct Announcer(Sender<()>);

impl Host for Announcer {
    fn log(&self, _: LogLevel, _: &str) {
        let _ = self.0.send(());
    }

    fn kv_get(&self, _: &str) -> Result<Option<KvValue>, String> {
        Ok(None)
    }

    fn kv_set(&self, _: &str, _: KvValue) -> Result<(), String> {
        Ok(())
    }

    fn kv_delete(&self, _: &str) -> Result<bool, String> {
        Ok(false)
    }

    fn llm(&self, _: &str, _: Option<&str>) -> Result<String, String> {
        Err("there is no model".to_owned())
    }
}

// Promises: LUA-86
#[test]
fn a_pattern_ends_when_the_call_is_cancelled() {
    let body = format!("ctx.log('info', 'it begins')\n{}", ENDLESS[0]);
    let mut script = load(&body, &Limits { execution: Duration::from_secs(600), ..Limits::default() });
    let (begun, began) = channel();
    let flag = CancelFlag::default();
    let canceller = std::thread::spawn({
        let flag = flag.clone();
        move || {
            began.recv().expect("it begins");
            flag.cancel();
        }
    });
    let error = script
        .call_until(Point::PreHook, &context("x"), Rc::new(Announcer(begun)), &flag)
        .expect_err("it is cancelled");
    assert_eq!(error.kind, FailureKind::Cancelled, "{error}");
    canceller.join().expect("it cancels");
}

// Promises: LUA-87
#[test]
fn a_result_over_the_memory_limit_ends_the_call_as_elsewhere() {
    let limits = Limits { memory_bytes: 8 << 20, execution: Duration::from_secs(60), llm_calls: 0 };
    for body in [
        "return { message = string.rep('x', 1e8) }",
        "return { message = string.gsub(('x'):rep(1e5), 'x', ('y'):rep(1e4)) }",
        "return { message = string.gsub(('x'):rep(1e5), 'x', { x = ('y'):rep(1e4) }) }",
        "local s = ('y'):rep(1e4) return { message = string.gsub(('x'):rep(1e5), 'x', function() return s end) }",
        "return { message = string.gsub('x', 'x', function() return ('y'):rep(1e8) end) }",
        "local t, s = {}, ('x'):rep(1e6) while true do t[#t + 1] = s:match('.(.*)') s = s .. 'x' end",
    ] {
        let mut script = load(body, &limits);
        let error = script.call(Point::PreHook, &context("x"), MemoryHost::new()).expect_err("it ends");
        assert_eq!(error.kind, FailureKind::Memory, "{body}: {error}");
        assert_eq!(script.used_memory(), 0, "{body}");
    }
    let mut script = load("return { message = (string.gsub(('x'):rep(1e5), 'x', 'yy')) }", &limits);
    let outcome = script.call(Point::PreHook, &context("x"), MemoryHost::new()).expect("it fits");
    assert!(matches!(outcome, Outcome::Continue { message: Some(text), .. } if text == "y".repeat(200_000)));
}

// Promises: LUA-89
#[test]
fn methods_of_texts_reach_the_same_functions_and_nobody_can_change_them() {
    let body = r#"
        for _, name in ipairs { "find", "match", "gmatch", "gsub" } do
            assert(string[name] == ("x")[name], name)
            assert(type(string[name]) == "function", name)
            local ok, why = pcall(function() string[name] = print end)
            assert(not ok and why:find("readonly table", 1, true), why)
            assert(not pcall(function() ("x")[name] = print end), name)
        end
        assert(string.gfind == nil and getfenv == nil and setfenv == nil and debug == nil)
        ctx.message = ("find me"):gsub("me", string.upper)
    "#;
    let mut script = load(body, &Limits::default());
    let outcome = script.call(Point::PreHook, &context("x"), MemoryHost::new()).expect("it runs");
    assert!(matches!(outcome, Outcome::Continue { message: Some(text), .. } if text == "find ME"));
}

#[test]
fn an_error_names_the_line_of_the_script() {
    let mut script = load("local text = ctx.message\nreturn text:find('[')", &Limits::default());
    let error = script.call(Point::PreHook, &context("x"), MemoryHost::new()).expect_err("it is malformed");
    assert_eq!(error.kind, FailureKind::Raised);
    assert!(error.message.starts_with("hook.lua:4: malformed pattern (missing ']')"), "{error}");
}

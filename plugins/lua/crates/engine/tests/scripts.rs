//! What scripts can do, and what their returns mean.

mod support;

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use proptest::prelude::*;
use support::{MemoryHost, context};
use talon_lua_engine::{
    CallError, CancelFlag, Context, DeliveryStatus, FailureKind, KvValue, Library, Limits, LoadError,
    MAX_LOG_LINES, Outcome, Phase, Point, Script,
};

fn load(source: &str) -> Script {
    Script::load("test.lua", source.as_bytes(), &Limits::default(), &[]).expect("it loads")
}

fn call(source: &str, context: &Context) -> Result<Outcome, CallError> {
    let mut script = load(source);
    let point = script.points()[0];
    script.call(point, context, MemoryHost::new())
}

fn changed(message: &str) -> Outcome {
    Outcome::Continue { message: Some(message.to_owned()), metadata: BTreeMap::new() }
}

// Promises: LUA-5
#[test]
fn a_new_table_the_changed_one_and_nothing_mean_the_same() {
    for body in [
        "return { message = 'b' }",
        "ctx.message = 'b' return ctx",
        "ctx.message = 'b'",
        "ctx.message = 'b' return nil",
    ] {
        let outcome = call(&format!("function pre_hook(ctx) {body} end"), &context("a"));
        assert_eq!(outcome, Ok(changed("b")), "{body}");
    }
    for body in ["return { message = ctx.message }", "return ctx", "", "return {}", "ctx.message = 'a'"] {
        let outcome = call(&format!("function pre_hook(ctx) {body} end"), &context("a"));
        assert_eq!(outcome, Ok(Outcome::Continue { message: None, metadata: BTreeMap::new() }), "{body}");
    }
    for body in ["return { drop = true, reason = 'no' }", "ctx.drop = true ctx.reason = 'no'"] {
        let outcome = call(&format!("function pre_hook(ctx) {body} end"), &context("a"));
        assert_eq!(outcome, Ok(Outcome::Drop { reason: "no".to_owned() }), "{body}");
    }
}

// Promises: LUA-6
#[test]
fn ctx_says_whose_message_it_is_and_where() {
    let source = "function hook(ctx) return { message = table.concat({ ctx.session_id, ctx.sender, ctx.channel, ctx.phase, \
                  ctx.metadata.k, ctx.turn, tostring(ctx.nothing) }, ' ') } end";
    let mut context = context("a");
    context.phase = Some(Phase::Post);
    let _ = context.metadata.insert("k".to_owned(), "v".to_owned());
    let _ = context.fields.insert("turn".to_owned(), 7.into());
    let _ = context.fields.insert("nothing".to_owned(), serde_json::Value::Null);
    assert_eq!(call(source, &context), Ok(changed("s1 ada cli post v 7 nil")));
}

#[test]
fn metadata_is_told_as_far_as_it_is_new() {
    let mut context = context("a");
    let _ = context.metadata.insert("old".to_owned(), "1".to_owned());
    let source = "function pre_hook(ctx) ctx.metadata.new = 'x' ctx.metadata.n = 3 ctx.metadata.b = true end";
    let Ok(Outcome::Continue { metadata, .. }) = call(source, &context) else { panic!("it goes on") };
    let pairs: Vec<(&str, &str)> =
        metadata.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    assert_eq!(pairs, [("b", "true"), ("n", "3"), ("new", "x")]);
}

#[test]
fn events_are_delivered_refused_or_tried_again() {
    let delivered = |status, reason: &str, after_seconds| {
        Ok(Outcome::Delivery { status, reason: reason.to_owned(), after_seconds })
    };
    for (body, expected) in [
        ("", delivered(DeliveryStatus::Delivered, "", None)),
        ("return true", delivered(DeliveryStatus::Delivered, "", None)),
        ("return false", delivered(DeliveryStatus::Retry, "", None)),
        (
            "return { retry = true, reason = 'busy', after_seconds = 1.5 }",
            delivered(DeliveryStatus::Retry, "busy", Some(2)),
        ),
        ("return { refused = true, reason = 'no' }", delivered(DeliveryStatus::Refused, "no", None)),
    ] {
        assert_eq!(call(&format!("function on_event(ctx) {body} end"), &context("a")), expected, "{body}");
    }
    let both = call("function on_event(ctx) return { retry = true, refused = true } end", &context("a"));
    assert_eq!(both.expect_err("it fails").kind, FailureKind::Returned);
}

#[test]
fn a_task_has_a_schedule_and_says_a_text() {
    let mut script = load(
        "schedule = { cron = '0 9 * * 1-5', timezone = 'Europe/Berlin' }\nfunction task(ctx) return 'done' end",
    );
    let schedule = script.schedule().expect("it has one");
    assert_eq!(schedule.0.get("cron").map(String::as_str), Some("0 9 * * 1-5"));
    let outcome = script.call(Point::Task, &context(""), MemoryHost::new());
    assert_eq!(outcome, Ok(Outcome::Text("done".to_owned())));
}

// Promises: LUA-7
#[test]
fn key_values_keep_their_types() {
    let mut script = load(
        "function pre_hook(ctx) local n = ctx.kv_get('n') or 0 ctx.kv_set('n', n + 1) ctx.kv_set('t', 'x') \
         ctx.kv_set('b', false) if n == 2 then ctx.message = tostring(ctx.kv_delete('n')) .. tostring(ctx.kv_delete('n')) end end",
    );
    let host = MemoryHost::new();
    for _ in 0..2 {
        let _ = script.call(Point::PreHook, &context("a"), host.clone()).expect("an outcome");
    }
    assert_eq!(host.values.borrow().get("n"), Some(&KvValue::Number(2.0)));
    assert_eq!(host.values.borrow().get("b"), Some(&KvValue::Boolean(false)));
    assert_eq!(script.call(Point::PreHook, &context("a"), host.clone()), Ok(changed("truefalse")));
    assert_eq!(host.values.borrow().get("n"), None);
}

// Promises: LUA-8
#[test]
fn errors_name_the_line_and_the_way_there() {
    let source = "local function deep()\n  error('broken')\nend\nfunction pre_hook(ctx)\n  deep()\nend";
    let error = call(source, &context("a")).expect_err("it fails");
    assert_eq!(error.kind, FailureKind::Raised);
    for part in ["test.lua:2: broken", "stack traceback:", "test.lua:5"] {
        assert!(error.message.contains(part), "expected {part:?} in {error}");
    }
    let Err(LoadError::Syntax(said)) = Script::load("bad.lua", b"\n\nlocal = 5", &Limits::default(), &[])
    else {
        panic!("it does not load")
    };
    assert!(said.starts_with("bad.lua:3:"), "{said}");
}

// Promises: LUA-2
#[test]
fn a_broken_machine_is_built_again_without_what_it_kept() {
    let limits = Limits { execution: Duration::from_secs(1), ..Limits::default() };
    let source = b"count = 0\nfunction pre_hook(ctx) count = count + 1 if ctx.message == 'loop' then while true do end end ctx.message = tostring(count) end";
    let mut script = Script::load("test.lua", source, &limits, &[]).expect("it loads");
    let mut say = |message| script.call(Point::PreHook, &context(message), MemoryHost::new());
    assert_eq!((say("a"), say("a")), (Ok(changed("1")), Ok(changed("2"))));
    assert_eq!(say("loop").expect_err("it fails").kind, FailureKind::Deadline);
    assert_eq!(say("a"), Ok(changed("1")));
}

// Promises: LUA-2
#[test]
fn waiting_for_a_model_does_not_count() {
    struct Slow;
    impl talon_lua_engine::Host for Slow {
        fn log(&self, _: talon_lua_engine::LogLevel, _: &str) {}
        fn kv_get(&self, _: &str) -> Result<Option<KvValue>, String> {
            Ok(None)
        }
        fn kv_set(&self, _: &str, _: KvValue) -> Result<(), String> {
            Ok(())
        }
        fn kv_delete(&self, _: &str) -> Result<bool, String> {
            Ok(false)
        }
        #[expect(
            clippy::disallowed_methods,
            reason = "time that passes is what is tested: more than the whole call may run"
        )]
        fn llm(&self, _: &str, _: Option<&str>) -> Result<String, String> {
            std::thread::sleep(Duration::from_millis(2500));
            Ok("late".to_owned())
        }
    }
    let limits = Limits { execution: Duration::from_secs(2), ..Limits::default() };
    let source = b"function pre_hook(ctx) ctx.message = ctx.llm('x') end";
    let mut script = Script::load("test.lua", source, &limits, &[]).expect("it loads");
    assert_eq!(script.call(Point::PreHook, &context("a"), Rc::new(Slow)), Ok(changed("late")));
}

#[test]
fn another_thread_ends_a_call() {
    let flag = CancelFlag::default();
    let canceller = flag.clone();
    let other = std::thread::spawn(move || canceller.cancel());
    let mut script =
        load("function pre_hook(ctx) while true do pcall(function() while true do end end) end end");
    let outcome = script.call_until(Point::PreHook, &context("a"), MemoryHost::new(), &flag);
    assert_eq!(outcome.expect_err("it ends").kind, FailureKind::Cancelled);
    other.join().expect("it cancelled");
}

#[test]
fn further_libraries_are_there_where_they_are_named() {
    let source = b"function pre_hook(ctx) ctx.message = tostring(utf8.len(ctx.message)) end";
    let mut with = Script::load("test.lua", source, &Limits::default(), &[Library::Utf8]).expect("it loads");
    assert_eq!(with.call(Point::PreHook, &context("äö"), MemoryHost::new()), Ok(changed("2")));
    let mut without = Script::load("test.lua", source, &Limits::default(), &[]).expect("it loads");
    assert!(without.call(Point::PreHook, &context("äö"), MemoryHost::new()).is_err());
}

#[test]
fn a_flood_of_lines_is_counted() {
    let host = MemoryHost::new();
    let mut script = load("function pre_hook(ctx) for i = 1, 1000 do ctx.log('info', 'x') end end");
    let _ = script.call(Point::PreHook, &context("a"), host.clone()).expect("an outcome");
    let log = host.log.borrow();
    assert_eq!(log.len(), MAX_LOG_LINES + 1);
    assert!(log[MAX_LOG_LINES].1.starts_with("900 further lines"), "{:?}", log[MAX_LOG_LINES]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    // Promises: LUA-5
    #[test]
    fn a_message_that_is_returned_as_it_came_is_no_replacement(message in ".{0,200}") {
        let outcome = call("function pre_hook(ctx) return { message = ctx.message } end", &context(&message));
        prop_assert_eq!(outcome, Ok(Outcome::Continue { message: None, metadata: BTreeMap::new() }));
    }

    #[test]
    fn a_message_comes_back_byte_for_byte(message in "\\PC{0,100}[\0-\u{1f}]{0,5}") {
        let outcome = call("function pre_hook(ctx) return { message = ctx.message .. '!' } end", &context(&message));
        prop_assert_eq!(outcome, Ok(changed(&format!("{message}!"))));
    }

    #[test]
    fn no_source_panics_or_is_anything_but_text(source in proptest::collection::vec(any::<u8>(), 0..300)) {
        let limits = Limits { execution: Duration::from_millis(50), memory_bytes: 1 << 20, llm_calls: 0 };
        let _ = Script::load("any.lua", &source, &limits, &[]);
    }
}

// Promises: LUA-9
#[test]
fn a_script_has_tests_beside_it() {
    let source =
        b"function pre_hook(ctx) ctx.kv_set('n', 1) ctx.log('info', 'x') ctx.message = ctx.llm('q') end";
    let tests = b"function test_good() local ctx = context { message = 'a', answers = { 'b' } } pre_hook(ctx)\n\
                  expect(ctx.message, 'b') expect(ctx.kv, { n = 1 }) expect(ctx.logs, { { level = 'info', message = 'x' } }) end\n\
                  function test_bad() expect({ a = 1 }, { a = 2 }, 'sum') end\n\
                  function test_loop() while true do end end";
    let limits = Limits { execution: Duration::from_secs(1), ..Limits::default() };
    let report =
        talon_lua_engine::run_tests(("s.lua", source), ("s_test.lua", tests), &limits, &[]).expect("it runs");
    let failures: Vec<(&str, Option<&str>)> =
        report.results.iter().map(|result| (result.name.as_str(), result.failure.as_deref())).collect();
    assert_eq!(failures.len(), 3);
    assert_eq!((failures[1].0, failures[1].1), ("test_good", None));
    assert!(
        failures[0].1.is_some_and(|why| why.contains("s_test.lua:3: sum: expected { a = 2 }, got { a = 1 }")),
        "{failures:?}"
    );
    assert!(failures[2].1.is_some_and(|why| why.contains("time limit")), "{failures:?}");
    let none = talon_lua_engine::run_tests(("s.lua", source), ("s_test.lua", b""), &limits, &[]);
    assert!(none.is_err_and(|error| error.to_string().contains("defines no test")));
}

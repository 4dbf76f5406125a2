//! Sessions: what an author types, line by line.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::time::Duration;

use talon_lua_engine::{Evaluation, Limits, MAX_SHOWN_BYTES, Session};

fn session(script: Option<(&str, &[u8])>) -> Session {
    Session::begin(script, "it's \"new\"\n\\", &Limits::default(), &[]).unwrap()
}

fn text(session: &mut Session, line: &str) -> String {
    match session.evaluate(line).unwrap() {
        Evaluation::Text(text) => text,
        Evaluation::Incomplete => panic!("{line} is incomplete"),
    }
}

// Promises: LUA-64
#[test]
fn lines_see_what_earlier_ones_set_and_values_are_shown() {
    let mut session = session(None);
    assert_eq!(text(&mut session, "x = 20 + 1"), "");
    assert_eq!(text(&mut session, "x * 2, 'a'"), "42\t\"a\"");
    assert_eq!(text(&mut session, "-- nothing"), "");
    assert_eq!(text(&mut session, "nil"), "nil");
    assert_eq!(text(&mut session, "{ a = { 1 } }"), "{ a = { 1 = 1 } }");
    assert_eq!(text(&mut session, "ctx.message == 'it\\'s \"new\"\\n\\\\'"), "true");
    assert_eq!(session.evaluate("function f()").unwrap(), Evaluation::Incomplete);
    assert_eq!(text(&mut session, "function f()\nreturn 1\nend"), "");
    assert_eq!(text(&mut session, "f()"), "1");
    assert!(session.evaluate("x = = 1").unwrap_err().to_string().starts_with("line:1:"));
    assert!(session.evaluate("error('no')").unwrap_err().to_string().contains("line:1: no"));
    assert_eq!(text(&mut session, "string.rep('x', 100000)").len(), MAX_SHOWN_BYTES);
    assert!(session.evaluate("io").unwrap() == Evaluation::Text("nil".to_owned()));
}

// Promises: LUA-64
#[test]
fn a_script_is_there_and_a_line_that_hangs_ends() {
    let source = b"function pre_hook(ctx) ctx.metadata.seen = ctx.message end";
    let limits = Limits { execution: Duration::from_secs(1), ..Limits::default() };
    let mut session = Session::begin(Some(("a.lua", source)), "Hello", &limits, &[]).unwrap();
    assert_eq!(session.points().len(), 1);
    assert_eq!(text(&mut session, "pre_hook(ctx)"), "");
    assert_eq!(text(&mut session, "ctx.metadata"), "{ seen = \"Hello\" }");
    let error = session.evaluate("while true do pcall(function() while true do end end) end").unwrap_err();
    assert!(error.to_string().contains("time limit") && error.to_string().contains("is gone"), "{error}");
    assert_eq!(text(&mut session, "ctx.metadata"), "{  }");
    assert!(Session::begin(Some(("a.lua", b"x = 1")), "", &limits, &[]).is_err());
}

//! The functions of `string` beside those of the language, which say what is right.

use mlua::{Function, Lua, MultiValue, Value};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, TestRunner};

use super::install;
use crate::CancelFlag;
use crate::clock::Clock;

/// How many cases each property is tried with.
const CASES: u32 = 4000;
const MEMORY_BYTES: usize = 64 << 20;

/// Calls a function by name: from a native function, from a line of this chunk, or as a method. Errors become values.
const DRIVER: &str = include_str!("string_functions_tests.lua");

/// A machine with either kind of functions.
struct Machine {
    lua: Lua,
    driver: Function,
}

impl Machine {
    fn new(ours: bool) -> Self {
        let lua = Lua::new();
        let clock = Clock::default();
        clock.start(std::time::Duration::from_secs(3600), &CancelFlag::default());
        if ours {
            install(&lua, &clock, MEMORY_BYTES).unwrap();
        }
        lua.sandbox(true).unwrap();
        let driver = lua.load(DRIVER).set_name("=driver").eval().unwrap();
        Self { lua, driver }
    }

    fn call(&self, call: &Call) -> Vec<Plain> {
        let argument = |argument: &Argument| match argument {
            Argument::Nil => Value::Nil,
            Argument::Bool(value) => Value::Boolean(*value),
            Argument::Number(value) => Value::Number(*value),
            Argument::Text(text) => Value::String(self.lua.create_string(text).unwrap()),
            // The driver knows these by a function of no arguments.
            Argument::Named(name) => {
                self.lua.globals().get::<mlua::Table>("named").unwrap().get::<Value>(*name).unwrap()
            }
        };
        let mut values = MultiValue::new();
        for name in [call.how, call.function] {
            values.push_back(Value::String(self.lua.create_string(name).unwrap()));
        }
        values.extend(call.arguments.iter().map(argument));
        plain(self.driver.call(values).unwrap())
    }

    /// What an expression gives, or its error.
    fn evaluate(&self, expression: &str) -> Vec<Plain> {
        let chunk = format!("return pcall(function()\n return {expression}\nend)");
        plain(self.lua.load(chunk).set_name("=case").eval().unwrap())
    }
}

#[derive(Debug, Clone)]
struct Call {
    how: &'static str,
    function: &'static str,
    arguments: Vec<Argument>,
}

#[derive(Debug, Clone)]
enum Argument {
    Nil,
    Bool(bool),
    Number(f64),
    Text(Vec<u8>),
    Named(&'static str),
}

/// A value that can be compared with one of another machine.
#[derive(Debug, PartialEq)]
enum Plain {
    Nil,
    Bool(bool),
    Number(u64),
    Text(String),
    Other(&'static str),
}

fn plain(values: MultiValue) -> Vec<Plain> {
    let plain = |value| match value {
        Value::Nil => Plain::Nil,
        Value::Boolean(value) => Plain::Bool(value),
        Value::Integer(value) => Plain::Number((value as f64).to_bits()),
        Value::Number(value) => Plain::Number(value.to_bits()),
        Value::String(text) => Plain::Text(text.as_bytes().escape_ascii().to_string()),
        other => Plain::Other(other.type_name()),
    };
    values.into_iter().map(plain).collect()
}

fn byte() -> impl Strategy<Value = u8> {
    prop_oneof![
        6 => select(b"aaabbA1 ".to_vec()),
        1 => select(b"-%]^[.()_\n\x0b\0\xc3\xa9\xff~\x7f".to_vec()),
    ]
}

fn subject() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        8 => vec(byte(), 0..14),
        1 => "[aé1 \u{2003}]{0,6}".prop_map(String::into_bytes),
        1 => vec(any::<u8>(), 0..8),
    ]
}

/// A part of a set.
fn set_part() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        byte().prop_map(|byte| vec![byte]),
        (byte(), byte()).prop_map(|(first, last)| vec![first, b'-', last]),
        select(b"aAdDsSwWzZ]%-^b".to_vec()).prop_map(|class| vec![b'%', class]),
        select(vec!["a-%%", "-", "^", "]", "a-", "%a-z"]).prop_map(|text| text.as_bytes().to_vec()),
    ]
}

fn set() -> impl Strategy<Value = Vec<u8>> {
    (any::<bool>(), vec(set_part(), 1..4)).prop_map(|(not, parts)| {
        let mut set = if not { b"[^".to_vec() } else { b"[".to_vec() };
        set.extend(parts.concat());
        set.push(b']');
        set
    })
}

/// What stands for one byte.
fn single() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => byte().prop_map(|byte| vec![byte]),
        2 => Just(b".".to_vec()),
        3 => select(b"acdglpsuwxzACDGLPSUWXZ%.bf-(k\0".to_vec()).prop_map(|class| vec![b'%', class]),
        2 => set(),
    ]
}

fn item() -> impl Strategy<Value = Vec<u8>> {
    let repeated = || {
        (single(), select(vec!["", "", "", "*", "+", "-", "?"]))
            .prop_map(|(single, suffix)| [single, suffix.as_bytes().to_vec()].concat())
    };
    prop_oneof![
        8 => repeated(),
        3 => repeated().prop_map(|item| [b"(".to_vec(), item, b")".to_vec()].concat()),
        1 => (byte(), byte()).prop_map(|(first, last)| vec![b'%', b'b', first, last]),
        1 => set().prop_map(|set| [b"%f".to_vec(), set].concat()),
        1 => select(vec!["()", "%1", "%2", "%0", "(", ")", "$", "^"]).prop_map(|text| text.as_bytes().to_vec()),
    ]
}

fn pattern() -> impl Strategy<Value = Vec<u8>> {
    let grammar = (select(vec!["", "", "^"]), vec(item(), 0..5), select(vec!["", "", "$", "%", "["]))
        .prop_map(|(begin, items, end)| {
            [begin.as_bytes().to_vec(), items.concat(), end.as_bytes().to_vec()].concat()
        });
    let rubbish = vec(select(b"%[]^()-*+?$.fb1a\0".to_vec()), 0..8);
    prop_oneof![6 => grammar, 1 => rubbish]
}

/// A number as scripts give it, and what is none.
fn number() -> impl Strategy<Value = Argument> {
    prop_oneof![
        4 => (-18_i32..18).prop_map(|number| Argument::Number(number.into())),
        1 => select(vec![1.5, -1.5, 0.0, 1e10, -1e10, f64::INFINITY, f64::NAN, 2_147_483_647.0, -2_147_483_648.5])
            .prop_map(Argument::Number),
        1 => select(vec!["2", "-1", " 3 ", "0x2", "x", ""]).prop_map(|text| Argument::Text(text.into())),
        1 => rubbish(),
    ]
}

/// An argument of a type that may be wrong.
fn rubbish() -> impl Strategy<Value = Argument> {
    prop_oneof![
        Just(Argument::Nil),
        any::<bool>().prop_map(Argument::Bool),
        select(vec![0.0, -0.0, 12.0, 1.25, 1e300, f64::NAN]).prop_map(Argument::Number),
        select(vec!["table", "nothing", "coroutine"]).prop_map(Argument::Named),
    ]
}

fn text(text: impl Strategy<Value = Vec<u8>>) -> impl Strategy<Value = Argument> {
    prop_oneof![24 => text.prop_map(Argument::Text), 1 => rubbish()]
}

fn replacement() -> impl Strategy<Value = Argument> {
    let part = prop_oneof![
        byte().prop_map(|byte| vec![byte]),
        select(b"0123%az".to_vec()).prop_map(|digit| vec![b'%', digit]),
    ];
    let functions = vec![
        "upper",
        "nothing",
        "falsy",
        "number",
        "join",
        "nested",
        "bad",
        "raises",
        "raises_above",
        "raises_table",
    ];
    prop_oneof![
        4 => vec(part, 0..5).prop_map(|parts| Argument::Text(parts.concat())),
        1 => Just(Argument::Named("table")),
        4 => select(functions).prop_map(Argument::Named),
        1 => rubbish(),
    ]
}

fn how() -> impl Strategy<Value = &'static str> {
    select(vec!["native", "line", "method"])
}

/// Checks that both machines give the same, for each of many calls.
fn agree(calls: impl Strategy<Value = Call>) {
    let (ours, theirs) = (Machine::new(true), Machine::new(false));
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::with_cases(CASES) });
    let checked = runner.run(&calls, |call| {
        prop_assert_eq!(ours.call(&call), theirs.call(&call), "{:?}", call);
        Ok(())
    });
    checked.unwrap_or_else(|error| panic!("{error}"));
}

fn cut(function: &'static str, how: &'static str, mut arguments: Vec<Argument>, count: usize) -> Call {
    arguments.truncate(count);
    Call { how, function, arguments }
}

// Promises: LUA-85
#[test]
fn find_and_match_are_those_of_the_language() {
    let flag =
        prop_oneof![Just(Argument::Nil), Just(Argument::Bool(false)), Just(Argument::Bool(true)), rubbish()];
    let calls =
        (select(vec!["find", "match"]), how(), text(subject()), text(pattern()), number(), flag, 0_usize..12)
            .prop_map(|(function, how, subject, pattern, init, flag, count)| {
                // Most calls have the first two.
                let count = if count > 4 { 2 + count % 3 } else { count };
                cut(function, how, vec![subject, pattern, init, flag], count)
            });
    agree(calls);
}

// Promises: LUA-85
#[test]
fn plain_finds_are_those_of_the_language() {
    let few = || vec(select(b"aab\0%".to_vec()), 0..5);
    let calls = (how(), vec(select(b"aab\0%".to_vec()), 0..20), few(), number()).prop_map(
        |(how, subject, text, init)| {
            let arguments = vec![Argument::Text(subject), Argument::Text(text), init, Argument::Bool(true)];
            Call { how, function: "find", arguments }
        },
    );
    agree(calls);
}

// Promises: LUA-85
#[test]
fn gsub_is_that_of_the_language() {
    let calls = (how(), text(subject()), text(pattern()), replacement(), number(), 0_usize..14).prop_map(
        |(how, subject, pattern, replacement, most, count)| {
            let count = if count > 4 { 3 + count % 2 } else { count };
            cut("gsub", how, vec![subject, pattern, replacement, most], count)
        },
    );
    agree(calls);
}

/// What random calls meet rarely.
const EDGES: &[&str] = &[
    "string.find()",
    "string.find(nil)",
    "string.find(nil, 'a')",
    "string.find('a')",
    "string.find('a', nil)",
    "string.find({}, 'a')",
    "string.find('a', print)",
    "string.find('a', 'a', {})",
    "string.find('a', 'a', 'b')",
    "string.find(12345, 34)",
    "string.match(1.5, '%d%.%d')",
    "string.match(2^53, '.*')",
    "('x'):find('%')",
    "('x'):find('x%')",
    "('x'):find('y%')",
    "('x'):find('[')",
    "('x'):find('[^')",
    "('x'):find('[]')",
    "('x'):find('[^]')",
    "('x'):find('[%')",
    "('x'):find('[%]')",
    "(']'):find('[a-%%]')",
    "('x'):find('%b')",
    "('x'):find('%bx')",
    "('x'):find('%f')",
    "('x'):find('%fx')",
    "('\\0x'):find('%f[%z]')",
    "('x'):match('%f[%z]()')",
    "('x'):find('%1')",
    "('x'):find('%0')",
    "('x'):find('(x)%2')",
    "('x'):find('(%1)')",
    "('xx'):find('()%1')",
    "('x'):find('(')",
    "('x'):find(')')",
    "('x'):match(')')",
    "('x'):find('(()')",
    "('x'):gsub('(', 'y')",
    "('x'):gsub('(', '%1')",
    "('x'):gsub('x', '%')",
    "('x'):gsub('x', '%z')",
    "('x'):gsub('x', '%2')",
    "('x'):gsub('x', '%1%0')",
    "('x'):gsub('()x', '%1')",
    "('x'):gsub('x', true)",
    "('x'):gsub('x')",
    "('x'):gsub('x', nil)",
    "('x'):gsub('x', nil, {})",
    "('x'):gsub('x', 'y', {})",
    "('x'):gsub('x', 7)",
    "('x'):gsub('x', function() return {} end)",
    "('x'):gsub('x', function() return true end)",
    "('x'):gsub('x', function() end)",
    "('x'):gsub('x', function() error('why', 0) end)",
    "('x'):gsub('x', function() error('why', 1) end)",
    "('x'):gsub('x', function() error('why', 2) end)",
    "('x'):gsub('x', function() error() end)",
    "('x'):gsub('x', function() error({}) end)",
    "('x'):gsub('x', function() local a = nil return a.b end)",
    "('x'):gsub('x', function() return ('y'):find('[') end)",
    "('x'):gsub('x', function() return coroutine.yield() end)",
    "('abc'):gsub('', '-')",
    "('abc'):gsub('^a', 'x')",
    "('aaa'):gsub('^a', 'x')",
    "('aaa'):gsub('^', 'x')",
    "('abc'):gsub('$', 'x')",
    "('abc'):gsub('%w', '%0%0', 2)",
    "('abc'):gsub('%w', '%0%0', 0)",
    "('abc'):gsub('%w', '%0%0', -1)",
    "('abc'):gsub('%w', '%0%0', math.huge)",
    "('abc'):gsub('%w', '%0%0', 1e10)",
    "('abc'):gsub('%w', '%0%0', '2')",
    "('abc'):gsub('b*', '-')",
    "('hello world'):gsub('o', { o = 0 })",
    "('hello world'):gsub('o', { o = {} })",
    "('hello world'):gsub('(l)(o)', { l = 'L' })",
    "('abc'):find('', 4)",
    "('abc'):find('', 5)",
    "('abc'):find('b', -2)",
    "('abc'):find('a', -100)",
    "('abc'):find('a', 1e10)",
    "('abc'):find('a', -1e10)",
    "('abc'):find('a', math.huge)",
    "('abc'):find('a', 0/0)",
    "('a.c'):find('.', 1, true)",
    "('a.c'):find('.', 2, 'yes')",
    "('a\\0b'):find('\\0')",
    "('a\\0b'):find('\\0b', 1, true)",
    "('a\\0b'):match('%z(.)')",
    "pcall(string.find, 'x', '[')",
    "pcall(string.gsub, 'x', 'x', error)",
    "pcall(string.gsub)",
    "('a'):rep(32):find(('(a)'):rep(32))",
    "('a'):rep(33):find(('(a)'):rep(33))",
    "('b'):find(('(a)'):rep(33))",
    "('a'):rep(200):find(('a?'):rep(199))",
    "('a'):rep(220):find(('a?'):rep(200))",
    "('a'):rep(220):find(('a?'):rep(220))",
    "('a'):rep(300):match(('a*'):rep(210))",
    "('a'):rep(3000):match('.-b')",
    "('a'):rep(1000):match('(.*)(.*)%1$')",
    "#('a'):rep(100000):gsub('a', 'bc')",
    "('THE (quick) fox'):find('%((%a+)%)')",
    "('key = value'):match('^(%w+)%s*=%s*(%w+)$')",
    "('f(a(b)c)d'):match('%b()')",
    "('THE (quick) fox'):gsub('%f[%a]%a+', string.lower)",
];

// Promises: LUA-85
#[test]
fn edges_are_those_of_the_language() {
    let (ours, theirs) = (Machine::new(true), Machine::new(false));
    for edge in EDGES {
        assert_eq!(ours.evaluate(edge), theirs.evaluate(edge), "{edge}");
    }
}

#[test]
fn a_function_of_a_substitution_may_call_itself_and_errors_pass_through_all_of_them() {
    let ours = Machine::new(true);
    let nested = "(function() local function f(n) return (('x'):gsub('x', function() \
                  return n == 0 and error({}) or f(n - 1) end)) end return f(20) end)()";
    assert_eq!(ours.evaluate(nested), [Plain::Bool(false), Plain::Other("table")]);
    let returned = nested.replace("error({})", "'y'");
    assert_eq!(ours.evaluate(&returned), [Plain::Bool(true), Plain::Text("y".to_owned())]);
}

// Promises: LUA-89
#[test]
fn none_of_the_languages_own_is_left() {
    let (ours, theirs) = (Machine::new(true), Machine::new(false));
    let what = |machine: &Machine, name: &str| {
        let string: mlua::Table = machine.lua.globals().get("string").unwrap();
        string.get::<Function>(name).unwrap().info().what
    };
    for name in ["find", "match", "gsub"] {
        assert_eq!((what(&ours, name), what(&theirs, name)), ("Lua", "C"), "{name}");
    }
}

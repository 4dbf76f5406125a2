//! `string.find`, `string.match` and `string.gsub`: those of the language ask for an interrupt at every step, and the binding makes
//! each of these cost more than the step itself. These have a meter instead. `string.gmatch` stays the language's own: its interrupts
//! cost less than a way from the machine to Rust and back for each match.

mod arguments;
mod failure;
mod result_text;
mod returned;
mod substitution;

use mlua::chunk::Compiler;
use mlua::{Function, Lua, MultiValue, Table, Value};

use self::arguments::Arguments;
use self::failure::Failure;
use self::returned::{Returned, number, value};
use crate::clock::Clock;
use crate::pattern::{Matcher, Meter, PatternError, find_plain, is_plain};

/// Around those in Rust: it raises their errors.
const WRAPPERS: &str = include_str!("string_functions.lua");
/// What stands in a traceback for a function of the language's own.
const NATIVE: &str = "=[C]";

/// Puts them into `string`, in the place of the language's own. Before the sandbox makes that table read-only.
pub(crate) fn install(lua: &Lua, clock: &Clock, memory_bytes: usize) -> mlua::Result<()> {
    let raw = lua.create_table()?;
    let add = |name: &'static str, function: Box<dyn Fn(&Arguments<'_>) -> Returned>| {
        let made = lua.create_function(move |lua, values: MultiValue| {
            match function(&Arguments::new(lua, name, values)) {
                Ok(returned) => Ok(returned),
                Err(failure) => failure.into_returned(lua),
            }
        })?;
        raw.raw_set(name, made)
    };
    let with = |function: fn(&Arguments<'_>, &Clock) -> Returned| {
        let clock = clock.clone();
        Box::new(move |arguments: &Arguments<'_>| function(arguments, &clock))
    };
    add("find", with(find))?;
    add("match", with(match_once))?;
    let pcall: Function = lua.globals().raw_get("pcall")?;
    let with_clock = clock.clone();
    add("gsub", Box::new(move |arguments| substitution::gsub(arguments, &with_clock, &pcall, memory_bytes)))?;

    let error: Function = lua.globals().raw_get("error")?;
    // Without lines: a function of the language has none either, and errors name the line of who called it.
    let compiler = Compiler::new().set_optimization_level(1).set_debug_level(0);
    let chunk = lua.load(WRAPPERS).set_name(NATIVE).set_compiler(compiler);
    let (find, match_once, gsub): (Function, Function, Function) = chunk.call((raw, error))?;
    let string: Table = lua.globals().raw_get("string")?;
    string.raw_set("find", find)?;
    string.raw_set("match", match_once)?;
    string.raw_set("gsub", gsub)
}

/// `string.find(subject, pattern, init, plain)`
fn find(arguments: &Arguments<'_>, clock: &Clock) -> Returned {
    search(arguments, clock, true)
}

/// `string.match(subject, pattern, init)`
fn match_once(arguments: &Arguments<'_>, clock: &Clock) -> Returned {
    search(arguments, clock, false)
}

fn search(arguments: &Arguments<'_>, clock: &Clock, finds: bool) -> Returned {
    let (subject, pattern) = (arguments.text(1)?, arguments.text(2)?);
    let (subject, pattern) = (&*subject.as_bytes(), &*pattern.as_bytes());
    let not_found = || Ok(MultiValue::from_iter([Value::Nil]));
    let Some(begin) = begin(arguments.integer(3, 1)?, subject.len()) else {
        return not_found();
    };
    let is_over = || clock.stopped().is_some();
    let mut meter = Meter::new(&is_over);
    if finds && (arguments.is_true(4) || is_plain(pattern)) {
        return match find_plain(subject, pattern, begin, &mut meter)? {
            Some(found) => Ok(place(found.start, found.end).into_iter().collect()),
            None => not_found(),
        };
    }
    let anchored = pattern.strip_prefix(b"^");
    let mut matcher = Matcher::new(subject, anchored.unwrap_or(pattern), meter);
    let found = match anchored {
        Some(_) => matcher.match_at(begin)?.map(|end| begin..end),
        None => matcher.search(begin)?,
    };
    let Some(found) = found else {
        return not_found();
    };
    let mut returned = MultiValue::new();
    // Besides its place, a find has the captures of the pattern and no whole.
    let count = if finds {
        returned.extend(place(found.start, found.end));
        matcher.capture_count()
    } else {
        matcher.capture_count().max(1)
    };
    for index in 0..count {
        returned.push_back(value(arguments.lua(), matcher.capture(index, &found)?)?);
    }
    Ok(returned)
}

/// Where a search begins, from 0: negative counts from the end, and what is before the first byte is the first. Nothing if it is
/// after the end.
fn begin(init: i32, length: usize) -> Option<usize> {
    // A text has at most 1 GiB.
    let length = i32::try_from(length).unwrap_or(i32::MAX);
    let init = if init < 0 { init.saturating_add(length).saturating_add(1) } else { init };
    let begin = init.max(1) - 1;
    usize::try_from(begin).ok().filter(|_| begin <= length)
}

/// A place as scripts count: both ends belong to it.
fn place(begin: usize, end: usize) -> [Value; 2] {
    [number(begin + 1), number(end)]
}

#[cfg(test)]
#[path = "string_functions_tests.rs"]
mod tests;

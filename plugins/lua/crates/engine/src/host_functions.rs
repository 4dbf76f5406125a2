//! The functions of `ctx`: made once for a machine; each call puts its host behind them.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use mlua::{Error, Function, Lua, LuaString, MultiValue, Table, Value};

use crate::clock::{self, Clock};
use crate::limits::{
    MAX_KV_CALLS, MAX_KV_KEY_BYTES, MAX_KV_VALUE_BYTES, MAX_LOG_BYTES, MAX_LOG_LINES, MAX_PROMPT_BYTES,
};
use crate::{Host, KvValue, LogLevel};

/// The call under way, and what it has used.
#[derive(Default)]
pub(crate) struct CallSlot {
    host: RefCell<Option<Rc<dyn Host>>>,
    llm_limit: Cell<u32>,
    llm_calls: Cell<u32>,
    kv_calls: Cell<usize>,
    log_lines: Cell<usize>,
}

impl CallSlot {
    pub(crate) fn begin(&self, host: Rc<dyn Host>, llm_limit: u32) {
        *self.host.borrow_mut() = Some(host);
        self.llm_limit.set(llm_limit);
        self.llm_calls.set(0);
        self.kv_calls.set(0);
        self.log_lines.set(0);
    }

    /// The call has ended. What it logged beyond the limit is said in one line.
    pub(crate) fn end(&self) {
        let host = self.host.borrow_mut().take();
        let lost = self.log_lines.get().saturating_sub(MAX_LOG_LINES);
        if let Some(host) = host.filter(|_| lost > 0) {
            host.log(
                LogLevel::Warn,
                &format!("{lost} further lines of this call are left out: {MAX_LOG_LINES} are the most"),
            );
        }
    }

    fn host(&self) -> mlua::Result<Rc<dyn Host>> {
        self.host.borrow().clone().ok_or_else(|| raise("there is no call under way"))
    }

    /// One more operation on key-values, if that is allowed.
    fn count_kv(&self) -> mlua::Result<Rc<dyn Host>> {
        let calls = self.kv_calls.get();
        if calls >= MAX_KV_CALLS {
            return Err(raise(format!("one call may use its key-values {MAX_KV_CALLS} times: keep fewer")));
        }
        self.kv_calls.set(calls + 1);
        self.host()
    }
}

fn raise(text: impl Into<String>) -> Error {
    Error::RuntimeError(text.into())
}

/// The functions that every `ctx` has.
pub(crate) struct HostFunctions(Vec<(&'static str, Function)>);

impl HostFunctions {
    pub(crate) fn new(lua: &Lua, slot: &Rc<CallSlot>, clock: &Clock) -> mlua::Result<Self> {
        let mut functions = Vec::new();
        let mut add =
            |name: &'static str,
             function: fn(&Lua, &CallSlot, &Clock, MultiValue) -> mlua::Result<MultiValue>| {
                let (slot, clock) = (Rc::clone(slot), clock.clone());
                let made = lua.create_function(move |lua, args: MultiValue| {
                    if clock.stopped().is_some() {
                        return Err(clock::time_is_over());
                    }
                    function(lua, &slot, &clock, args)
                })?;
                functions.push((name, made));
                mlua::Result::Ok(())
            };
        add("log", log)?;
        add("kv_get", kv_get)?;
        add("kv_set", kv_set)?;
        add("kv_delete", kv_delete)?;
        add("llm", llm)?;
        Ok(Self(functions))
    }

    /// Puts them into `ctx`.
    pub(crate) fn add_to(&self, ctx: &Table) -> mlua::Result<()> {
        self.0.iter().try_for_each(|(name, function)| ctx.raw_set(*name, function))
    }
}

fn log(_: &Lua, slot: &CallSlot, _: &Clock, args: MultiValue) -> mlua::Result<MultiValue> {
    const FORM: &str = "ctx.log(level, message)";
    let level = text(args.front(), FORM, "the level")?;
    let Some(level) = LogLevel::of(&level.to_string_lossy()) else {
        return Err(raise("the level of ctx.log is debug, info, warn or error"));
    };
    let message = match args.get(1) {
        Some(Value::String(text)) => text.to_string_lossy(),
        // What a script looks at while it is written.
        Some(Value::Nil) | None => "nil".to_owned(),
        Some(Value::Boolean(value)) => value.to_string(),
        Some(Value::Integer(value)) => value.to_string(),
        Some(Value::Number(value)) => value.to_string(),
        Some(other) => {
            return Err(raise(format!("the message of {FORM} is a {}: it is a text", other.type_name())));
        }
    };
    let lines = slot.log_lines.get();
    slot.log_lines.set(lines.saturating_add(1));
    let host = slot.host()?;
    if lines < MAX_LOG_LINES {
        host.log(level, cut(&message));
    }
    Ok(MultiValue::new())
}

fn cut(message: &str) -> &str {
    let mut end = message.len().min(MAX_LOG_BYTES);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    &message[..end]
}

fn kv_get(lua: &Lua, slot: &CallSlot, _: &Clock, args: MultiValue) -> mlua::Result<MultiValue> {
    let key = key(args.front(), "ctx.kv_get(key)")?;
    let value = match slot.count_kv()?.kv_get(&key).map_err(raise)? {
        None => Value::Nil,
        Some(KvValue::Boolean(value)) => Value::Boolean(value),
        Some(KvValue::Number(value)) => Value::Number(value),
        Some(KvValue::Text(text)) => Value::String(lua.create_string(text)?),
    };
    Ok(MultiValue::from_iter([value]))
}

fn kv_set(_: &Lua, slot: &CallSlot, _: &Clock, args: MultiValue) -> mlua::Result<MultiValue> {
    const FORM: &str = "ctx.kv_set(key, value)";
    let key = key(args.front(), FORM)?;
    let value = match args.get(1) {
        Some(Value::String(text)) if text.as_bytes().len() > MAX_KV_VALUE_BYTES => {
            return Err(raise(format!("the value of {FORM} has more than {MAX_KV_VALUE_BYTES} bytes")));
        }
        Some(Value::String(text)) => match text.to_str() {
            Ok(text) => KvValue::Text(text.to_owned()),
            Err(_) => return Err(raise(format!("the value of {FORM} is not UTF-8"))),
        },
        Some(Value::Boolean(value)) => KvValue::Boolean(*value),
        Some(Value::Integer(value)) => KvValue::Number(*value as f64),
        Some(Value::Number(value)) if value.is_finite() => KvValue::Number(*value),
        Some(Value::Number(_)) => return Err(raise(format!("the value of {FORM} is no finite number"))),
        Some(Value::Nil) | None => {
            return Err(raise(format!("{FORM} has no value: ctx.kv_delete(key) deletes it")));
        }
        Some(other) => {
            return Err(raise(format!(
                "the value of {FORM} is a {}: it is a text, a number or a boolean",
                other.type_name()
            )));
        }
    };
    slot.count_kv()?.kv_set(&key, value).map_err(raise)?;
    Ok(MultiValue::new())
}

fn kv_delete(_: &Lua, slot: &CallSlot, _: &Clock, args: MultiValue) -> mlua::Result<MultiValue> {
    let key = key(args.front(), "ctx.kv_delete(key)")?;
    let existed = slot.count_kv()?.kv_delete(&key).map_err(raise)?;
    Ok(MultiValue::from_iter([Value::Boolean(existed)]))
}

fn llm(lua: &Lua, slot: &CallSlot, clock: &Clock, args: MultiValue) -> mlua::Result<MultiValue> {
    const FORM: &str = "ctx.llm(prompt, model)";
    let prompt = utf8(text(args.front(), FORM, "the prompt")?, FORM, "the prompt")?;
    let model = match args.get(1) {
        None | Some(Value::Nil) => None,
        model => Some(utf8(text(model, FORM, "the model")?, FORM, "the model")?),
    };
    let failed =
        |message: String| Ok(MultiValue::from_iter([Value::Nil, Value::String(lua.create_string(message)?)]));
    if prompt.len() > MAX_PROMPT_BYTES {
        return failed(format!("the prompt has {} bytes, and {MAX_PROMPT_BYTES} are the most", prompt.len()));
    }
    let (calls, limit) = (slot.llm_calls.get(), slot.llm_limit.get());
    if calls >= limit {
        return failed(format!(
            "one call may ask a model {limit} times: ask less often, or raise limits.llm_max_calls"
        ));
    }
    slot.llm_calls.set(calls + 1);
    let host = slot.host()?;
    match clock.pause(|| host.llm(&prompt, model.as_deref())) {
        Ok(answer) => Ok(MultiValue::from_iter([Value::String(lua.create_string(answer)?)])),
        Err(message) => failed(message),
    }
}

fn text<'v>(value: Option<&'v Value>, form: &str, what: &str) -> mlua::Result<&'v LuaString> {
    match value {
        Some(Value::String(text)) => Ok(text),
        Some(Value::Table(_)) => {
            Err(raise(format!("{what} of {form} is a table: call it with a dot, not a colon")))
        }
        other => {
            let kind = other.map_or("nil", Value::type_name);
            Err(raise(format!("{what} of {form} is a {kind}: it is a text")))
        }
    }
}

fn utf8(text: &LuaString, form: &str, what: &str) -> mlua::Result<String> {
    match text.to_str() {
        Ok(text) => Ok(text.to_owned()),
        Err(_) => Err(raise(format!("{what} of {form} is not UTF-8"))),
    }
}

fn key(value: Option<&Value>, form: &str) -> mlua::Result<String> {
    let key = utf8(text(value, form, "the key")?, form, "the key")?;
    if key.is_empty() || key.len() > MAX_KV_KEY_BYTES {
        return Err(raise(format!("the key of {form} has 1 to {MAX_KV_KEY_BYTES} bytes")));
    }
    Ok(key)
}

//! A machine: one sandbox with one script in it.

use std::rc::Rc;

use mlua::chunk::{ChunkMode, Compiler};
use mlua::{Function, Lua, LuaOptions, MultiValue, Table, Value, VmState};

use crate::clock::{self, CancelFlag, Clock};
use crate::error::{CallError, LoadError, syntax};
use crate::host_functions::{CallSlot, HostFunctions};
use crate::limits::{Limits, MIN_MEMORY_BYTES};
use crate::{Context, Host, Library, Outcome, Point, library, outcome_reader, string_functions};

/// A script that is loaded: its top level has run.
pub(crate) struct Machine {
    lua: Lua,
    clock: Clock,
    slot: Rc<CallSlot>,
    functions: HostFunctions,
    points: Vec<(Point, Function)>,
    limits: Limits,
}

impl Machine {
    /// Compiles a script and runs its top level.
    pub(crate) fn load(
        name: &str,
        source: &str,
        limits: &Limits,
        libraries: &[Library],
    ) -> Result<Self, LoadError> {
        let bytecode = compile(name, source, libraries)?;
        let mut machine = Self::without_script(limits, libraries)?;
        execute(&machine.lua, name, bytecode, limits, &machine.clock)?;
        machine.points = points(&machine.lua)?;
        Ok(machine)
    }

    /// A machine in which nothing is defined yet.
    pub(crate) fn without_script(limits: &Limits, libraries: &[Library]) -> Result<Self, LoadError> {
        let clock = Clock::default();
        let (lua, slot, functions) = sandbox(limits, libraries, &clock)
            .map_err(|error| LoadError::Run(CallError::of(&error, &clock)))?;
        Ok(Self { lua, clock, slot, functions, points: Vec::new(), limits: *limits })
    }

    /// Runs another chunk in it, which sees what the script defined.
    pub(crate) fn add(&self, name: &str, source: &str, libraries: &[Library]) -> Result<(), LoadError> {
        let bytecode = compile(name, source, libraries)?;
        execute(&self.lua, name, bytecode, &self.limits, &self.clock)
    }

    /// The names of its global functions that begin so, in order.
    pub(crate) fn functions_named(&self, prefix: &str) -> Vec<String> {
        let globals = self.lua.globals();
        let named = globals.pairs::<String, Value>().flatten();
        let named = named.filter(|(name, value)| name.starts_with(prefix) && value.is_function());
        let mut names: Vec<String> = named.map(|(name, _)| name).collect();
        names.sort();
        names
    }

    /// Calls a global function without arguments.
    pub(crate) fn run_function(&self, name: &str) -> Result<(), CallError> {
        self.clock.start(self.limits.execution, &CancelFlag::default());
        let function = self.lua.globals().raw_get::<Function>(name);
        let called = function.and_then(|function| function.call::<()>(()));
        match self.clock.stop() {
            Some(stop) => Err(CallError::stopped(stop)),
            None => called.map_err(|error| CallError::of(&error, &self.clock)),
        }
    }

    /// Runs a chunk, and gives each value that it returns to the function that another chunk returns, which makes a text of it.
    pub(crate) fn evaluate(
        &self,
        (name, source): (&str, &str),
        (show_name, show): (&str, &str),
        libraries: &[Library],
    ) -> Result<Vec<String>, LoadError> {
        let chunk = compile(name, source, libraries)?;
        let show = compile(show_name, show, libraries)?;
        let load = |bytecode: Vec<u8>, name: &str| {
            self.lua.load(bytecode).set_name(format!("={name}")).set_mode(ChunkMode::Binary)
        };
        self.clock.start(self.limits.execution, &CancelFlag::default());
        let evaluated = load(chunk, name).eval::<MultiValue>().and_then(|values| {
            let show: Function = load(show, show_name).eval()?;
            let text =
                |value: Value| show.call::<mlua::LuaString>((value, 0)).map(|text| text.to_string_lossy());
            values.into_iter().map(text).collect()
        });
        match self.clock.stop() {
            Some(stop) => Err(LoadError::Run(CallError::stopped(stop))),
            None => evaluated.map_err(|error| LoadError::Run(CallError::of(&error, &self.clock))),
        }
    }

    pub(crate) fn points(&self) -> impl Iterator<Item = Point> {
        self.points.iter().map(|(point, _)| *point)
    }

    /// A global of the script, without metamethods.
    pub(crate) fn global(&self, name: &str) -> Option<Value> {
        self.lua.globals().raw_get(name).ok()
    }

    /// The memory that it has now, in bytes.
    pub(crate) fn used_memory(&self) -> usize {
        self.lua.used_memory()
    }

    pub(crate) fn call(
        &self,
        point: Point,
        context: &Context,
        host: Rc<dyn Host>,
        cancel: &CancelFlag,
    ) -> Result<Outcome, CallError> {
        let Some((_, function)) = self.points.iter().find(|(defined, _)| *defined == point) else {
            return Err(CallError::new(
                crate::FailureKind::Returned,
                format!("the script defines no function {}", point.as_str()),
            ));
        };
        self.slot.begin(host, self.limits.llm_calls);
        self.clock.start(self.limits.execution, cancel);
        let returned = self.run(function, context);
        self.slot.end();
        // Whatever the script made of the error: once its time was over, the call has failed.
        if let Some(stop) = self.clock.stop() {
            return Err(CallError::stopped(stop));
        }
        let (ctx, returned) = returned.map_err(|error| CallError::of(&error, &self.clock))?;
        outcome_reader::read(point, context, ctx, &returned)
    }

    fn run(&self, function: &Function, context: &Context) -> mlua::Result<(Table, Value)> {
        let ctx = context.to_table(&self.lua)?;
        self.functions.add_to(&ctx)?;
        let returned = function.call::<Value>(&ctx)?;
        Ok((ctx, returned))
    }
}

/// The bytecode of a source.
fn compile(name: &str, source: &str, libraries: &[Library]) -> Result<Vec<u8>, LoadError> {
    let forbidden = library::forbidden_builtins(libraries)
        .map_err(|error| LoadError::Run(CallError::of(&error, &Clock::default())))?;
    Compiler::new()
        .set_optimization_level(1)
        .set_debug_level(1)
        .set_disabled_builtins(forbidden)
        .compile(source)
        .map_err(|error| named(name, syntax(&error)))
}

/// Runs the top level of what [`compile`] made of text: never a file's bytecode.
fn execute(
    lua: &Lua,
    name: &str,
    bytecode: Vec<u8>,
    limits: &Limits,
    clock: &Clock,
) -> Result<(), LoadError> {
    clock.start(limits.execution, &CancelFlag::default());
    let loaded = lua.load(bytecode).set_name(format!("={name}")).set_mode(ChunkMode::Binary).exec();
    match clock.stop() {
        Some(stop) => Err(LoadError::Run(CallError::stopped(stop))),
        None => loaded.map_err(|error| LoadError::Run(CallError::of(&error, clock))),
    }
}

/// A machine without a script.
fn sandbox(
    limits: &Limits,
    libraries: &[Library],
    clock: &Clock,
) -> mlua::Result<(Lua, Rc<CallSlot>, HostFunctions)> {
    let lua = Lua::new_with(library::opened(libraries), LuaOptions::new())?;
    library::keep_allowed(&lua, libraries)?;
    let memory_bytes = limits.memory_bytes.max(MIN_MEMORY_BYTES);
    string_functions::install(&lua, clock, memory_bytes)?;
    lua.sandbox(true)?;
    let slot = Rc::new(CallSlot::default());
    let functions = HostFunctions::new(&lua, &slot, clock)?;
    lua.set_memory_limit(memory_bytes)?;
    let interrupts = clock.clone();
    // It only looks at the clock: an interrupt may come while the machine is in the middle of something.
    lua.set_interrupt(move |_| match interrupts.interrupted() {
        None => Ok(VmState::Continue),
        Some(_) => Err(clock::time_is_over()),
    });
    Ok((lua, slot, functions))
}

fn named(name: &str, error: LoadError) -> LoadError {
    match error {
        // The compiler counts lines and knows no file.
        LoadError::Syntax(text) => LoadError::Syntax(format!("{name}:{}", text.trim_start_matches(':'))),
        other => other,
    }
}

/// The functions by the names of points.
fn points(lua: &Lua) -> Result<Vec<(Point, Function)>, LoadError> {
    let mut points = Vec::new();
    for point in Point::ALL {
        let value: Value = lua.globals().raw_get(point.as_str()).unwrap_or(Value::Nil);
        match value {
            Value::Nil => {}
            Value::Function(function) => points.push((point, function)),
            other => {
                return Err(LoadError::Points(format!(
                    "`{}` is a {}: it is a function",
                    point.as_str(),
                    other.type_name()
                )));
            }
        }
    }
    let has = |wanted: Point| points.iter().any(|(point, _)| *point == wanted);
    if points.is_empty() {
        let names: Vec<String> = Point::ALL.iter().map(|point| format!("{}(ctx)", point.as_str())).collect();
        return Err(LoadError::Points(format!(
            "it defines nothing that is called: define one of {}, without `local`",
            names.join(", ")
        )));
    }
    if has(Point::Hook) && (has(Point::PreHook) || has(Point::PostHook)) {
        return Err(LoadError::Points(
            "it defines hook(ctx), which runs both ways, and pre_hook or post_hook beside it: keep either"
                .to_owned(),
        ));
    }
    Ok(points)
}

//! A script: its source, and the machine that runs it now.

use std::collections::BTreeMap;
use std::rc::Rc;

use mlua::Value;
use serde::{Deserialize, Serialize};

use crate::clock::CancelFlag;
use crate::error::{CallError, FailureKind, LoadError};
use crate::limits::{MAX_SCHEDULE_BYTES, MAX_SOURCE_BYTES};
use crate::machine::Machine;
use crate::{Context, Host, Library, Limits, Outcome, Point};

/// When a task would like to run, as its table `schedule` says: `cron`, `every`, `timezone` and the like. An operator's entry decides.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule(pub BTreeMap<String, String>);

/// A script. Not to be sent to other threads: its machine belongs to the thread that loaded it.
pub struct Script {
    name: String,
    source: String,
    limits: Limits,
    libraries: Vec<Library>,
    points: Vec<Point>,
    schedule: Option<Schedule>,
    /// `None` after a call that broke it, until the next.
    machine: Option<Machine>,
}

impl Script {
    /// Compiles a script and runs its top level.
    ///
    /// # Errors
    /// [`LoadError`]: the source is too large, no text, or does not compile; its top level failed; it defines no point.
    pub fn load(
        name: &str,
        source: &[u8],
        limits: &Limits,
        libraries: &[Library],
    ) -> Result<Self, LoadError> {
        let source = source_text(source)?;
        let machine = Machine::load(name, source, limits, libraries)?;
        let points: Vec<Point> = machine.points().collect();
        let schedule = schedule(&machine, &points)?;
        Ok(Self {
            name: name.to_owned(),
            source: source.to_owned(),
            limits: *limits,
            libraries: libraries.to_vec(),
            points,
            schedule,
            machine: Some(machine),
        })
    }

    /// What it defines.
    #[must_use]
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// When its task would like to run.
    #[must_use]
    pub fn schedule(&self) -> Option<&Schedule> {
        self.schedule.as_ref()
    }

    /// The memory of its machine, in bytes; nothing while it has none.
    #[must_use]
    pub fn used_memory(&self) -> usize {
        self.machine.as_ref().map_or(0, Machine::used_memory)
    }

    /// Calls one of its functions. It gets a new machine first if the one before was thrown away.
    ///
    /// # Errors
    /// [`CallError`]: it raised an error, passed a limit, or returned something that means nothing.
    pub fn call(
        &mut self,
        point: Point,
        context: &Context,
        host: Rc<dyn Host>,
    ) -> Result<Outcome, CallError> {
        self.call_until(point, context, host, &CancelFlag::default())
    }

    /// [`call`](Self::call), which another thread may end.
    ///
    /// # Errors
    /// As [`call`](Self::call), and [`FailureKind::Cancelled`].
    pub fn call_until(
        &mut self,
        point: Point,
        context: &Context,
        host: Rc<dyn Host>,
        cancel: &CancelFlag,
    ) -> Result<Outcome, CallError> {
        let machine = match self.machine.take() {
            Some(machine) => machine,
            None => Machine::load(&self.name, &self.source, &self.limits, &self.libraries)
                .map_err(|error| reloaded(&error))?,
        };
        let outcome = machine.call(point, context, host, cancel);
        let broken = outcome.as_ref().is_err_and(CallError::breaks_machine);
        self.machine = (!broken).then_some(machine);
        outcome
    }
}

/// The text of a source, without a mark of its byte order.
///
/// # Errors
/// [`LoadError::TooLarge`], [`LoadError::NotText`]
pub fn source_text(source: &[u8]) -> Result<&str, LoadError> {
    if source.len() > MAX_SOURCE_BYTES {
        return Err(LoadError::TooLarge { bytes: source.len() });
    }
    let text =
        std::str::from_utf8(source).map_err(|error| LoadError::NotText { offset: error.valid_up_to() })?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

fn reloaded(error: &LoadError) -> CallError {
    let kind = match error {
        LoadError::Run(error) => error.kind,
        _ => FailureKind::Raised,
    };
    CallError::new(kind, format!("its machine could not be built again: {error}"))
}

/// The table `schedule` of a script with a task.
fn schedule(machine: &Machine, points: &[Point]) -> Result<Option<Schedule>, LoadError> {
    let invalid = |text: String| Err(LoadError::Points(text));
    let table = match machine.global("schedule") {
        Some(Value::Table(table)) => table,
        None | Some(Value::Nil) if !points.contains(&Point::Task) => return Ok(None),
        _ if !points.contains(&Point::Task) => {
            return invalid("it has a `schedule`, and no function task(ctx) beside it".to_owned());
        }
        _ => {
            return invalid(
                "task(ctx) needs a table beside it: schedule = { cron = \"0 9 * * 1-5\" }".to_owned(),
            );
        }
    };
    if !points.contains(&Point::Task) {
        return invalid("it has a `schedule`, and no function task(ctx) beside it".to_owned());
    }
    let mut schedule = Schedule::default();
    for key in ["cron", "every", "timezone"] {
        match table.raw_get::<Value>(key) {
            Ok(Value::Nil) => {}
            Ok(Value::String(text)) if text.as_bytes().len() <= MAX_SCHEDULE_BYTES => {
                let _ = schedule.0.insert(key.to_owned(), text.to_string_lossy());
            }
            _ => return invalid(format!("schedule.{key} is a text of at most {MAX_SCHEDULE_BYTES} bytes")),
        }
    }
    if schedule.0.contains_key("cron") == schedule.0.contains_key("every") {
        return invalid("`schedule` has either `cron` or `every`, such as { every = \"1h\" }".to_owned());
    }
    Ok(Some(schedule))
}

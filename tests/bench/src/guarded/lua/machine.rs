//! The hook in the machine of `talon-lua`, without a process around it: what `ctx` costs is part of it.

use std::hint::black_box;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use talon_lua_engine::{Context, Host, KvValue, Limits, LogLevel, Outcome, Phase, Point, Script};

use super::script::SCRIPT;

/// The least time that is measured in a turn: more than a thousand calls.
const TURN: Duration = Duration::from_millis(40);
/// How many calls are made between two looks at the clock.
const BATCH: u32 = 64;

/// A script that is loaded, and what it is called with.
pub(super) struct MachineHook {
    script: Script,
    context: Context,
    host: Rc<dyn Host>,
}

impl MachineHook {
    pub(super) fn load(message: &str) -> Result<Self> {
        let script = Script::load("rule.lua", SCRIPT.as_bytes(), &Limits::default(), &[])?;
        let context = Context {
            message: message.to_owned(),
            session_id: "s1".to_owned(),
            sender: "ada".to_owned(),
            channel: "cli".to_owned(),
            phase: Some(Phase::Pre),
            ..Context::default()
        };
        Ok(Self { script, context, host: Rc::new(NoHost) })
    }

    /// The time of one call, in microseconds.
    pub(super) fn microseconds(&mut self) -> Result<f64> {
        let (begin, mut calls) = (Instant::now(), 0_u32);
        loop {
            for _ in 0..BATCH {
                let outcome = self.script.call(Point::PreHook, &self.context, Rc::clone(&self.host))?;
                ensure!(
                    matches!(black_box(&outcome), Outcome::Continue { message: None, .. }),
                    "the rules fit: {outcome:?}"
                );
            }
            calls += BATCH;
            let took = begin.elapsed();
            if took >= TURN {
                return Ok(took.as_secs_f64() * 1e6 / f64::from(calls));
            }
        }
    }
}

/// A host that has nothing; the script asks for nothing.
struct NoHost;

impl Host for NoHost {
    fn log(&self, _: LogLevel, _: &str) {}

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

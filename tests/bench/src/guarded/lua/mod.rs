//! Lua: a rule hook in the machine of `talon-lua` beside other interpreters, and the same hook through guard and jail.

mod interpreter;
mod machine;
mod plugin;
mod script;

use std::path::PathBuf;

use anyhow::Result;

use self::interpreter::Interpreter;
use self::machine::MachineHook;
use self::plugin::LuaPlugin;
use crate::figures::Unit;
use crate::turns::{self, Measurement};

/// The case of the machine and its rivals.
const RULE_HOOK: &str = "lua/rule hook, 1 KiB";
/// The length of the message: a page of text.
const MESSAGE_BYTES: usize = 1 << 10;

/// Measures the machine in turns, with `rivals`: the programs of other interpreters.
pub(super) async fn serve_machine(rivals: Vec<PathBuf>) -> Result<()> {
    let message = message();
    let mut ours = MachineHook::load(&message)?;
    let mut rivals: Vec<Interpreter> =
        rivals.iter().map(|program| Interpreter::start(program, &message)).collect::<Result<_>>()?;
    turns::serve_turns(async || {
        let mut told = Vec::new();
        let mut add =
            |name: &str, time| told.push(Measurement::new(RULE_HOOK, name, "time", Unit::Microseconds, time));
        add("talon-lua", ours.microseconds()?);
        for rival in &mut rivals {
            let time = rival.microseconds()?;
            add(rival.name(), time);
        }
        Ok(told)
    })
    .await
}

/// Measures the plugin in turns: a configuration with `plugins.lua`, and the directory of its scripts.
pub(super) async fn serve_plugin(config: PathBuf, scripts_dir: PathBuf, quick: bool) -> Result<()> {
    let mut plugin = LuaPlugin::start(config, scripts_dir, message()).await?;
    let memory = plugin.memory_of_scripts().await?;
    let calls = if quick { 300 } else { 2000 };
    let served = turns::serve_turns(async || {
        let mut told = vec![memory.clone()];
        told.extend(plugin.hook_times(calls).await?);
        told.push(plugin.save_to_live().await?);
        Ok(told)
    })
    .await;
    plugin.end().await;
    served
}

fn message() -> String {
    let mut text = "The quarterly report is due on Friday, and nobody has begun with it. ".repeat(16);
    text.truncate(MESSAGE_BYTES);
    text
}

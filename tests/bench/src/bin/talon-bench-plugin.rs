//! A plugin written with the SDK whose answers are prepared in advance.

use std::process::ExitCode;
use std::sync::Arc;

use parking_lot::Mutex;
use talon_sdk::{Context, HookRequest, Plugin, StateError, ToolError, Verdict};

/// The allocator that the guide recommends for plugins with large answers.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[talon_sdk::args]
struct SayArgs {
    /// How much.
    bytes: usize,
}

/// The previous answer; loads ask for one length at a time.
static TEXT: Mutex<Option<Arc<str>>> = Mutex::new(None);

/// Says so many bytes of text.
#[talon_sdk::tool(read_only)]
async fn say(args: SayArgs) -> Result<String, ToolError> {
    let mut text = TEXT.lock();
    let text = match &mut *text {
        Some(text) if text.len() == args.bytes => text,
        other => other.insert(talon_bench::content::text(args.bytes).into()),
    };
    Ok(text.to_string())
}

#[talon_sdk::args]
struct LogArgs {
    /// How many.
    lines: usize,
}

/// Logs so many lines.
#[talon_sdk::tool]
async fn log(args: LogArgs) -> Result<String, ToolError> {
    talon_bench::content::log(args.lines).map_err(|error| ToolError::new(error.to_string()))?;
    Ok(String::new())
}

#[talon_sdk::args]
struct KeepArgs {
    /// What it stands under.
    key: String,
    /// What is kept.
    value: String,
}

/// Keeps a text, and says what is kept.
#[talon_sdk::tool]
async fn keep(args: KeepArgs, cx: Context) -> Result<String, ToolError> {
    let told = |error: StateError| ToolError::new(error.to_string());
    let state = cx.state().map_err(told)?;
    state.set(&args.key, args.value).await.map_err(told)?;
    let kept = state.get(&args.key).await.map_err(told)?;
    String::from_utf8(kept.unwrap_or_default()).map_err(|error| ToolError::new(error.to_string()))
}

/// Lets every message pass.
#[talon_sdk::filter(read_only)]
async fn filter(_asked: HookRequest) -> Result<Verdict, ToolError> {
    Ok(Verdict::pass())
}

/// Lets every message pass.
#[talon_sdk::request_hook(read_only)]
async fn look(_asked: HookRequest) -> Result<Verdict, ToolError> {
    Ok(Verdict::pass())
}

/// Lets every answer pass.
#[talon_sdk::response_hook(read_only)]
async fn look_after(_asked: HookRequest) -> Result<Verdict, ToolError> {
    Ok(Verdict::pass())
}

fn main() -> ExitCode {
    Plugin::new(talon_bench::guarded::PLUGIN)
        .description("Says so many bytes of text.")
        .tool(say())
        .tool(log())
        .tool(keep())
        .tool(filter())
        .tool(look())
        .tool(look_after())
        .serve()
}

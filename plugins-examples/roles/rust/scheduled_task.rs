//! A scheduled task: says which run it is.

use std::process::ExitCode;

use talon_sdk::serde_json::{Value, json};
use talon_sdk::{Json, Plugin, ScheduledRun, ToolError};

#[talon_sdk::args]
struct Task {
    run: ScheduledRun,
    /// How many things to do; one unless the job says otherwise.
    #[serde(default = "one")]
    count: u32,
}

fn one() -> u32 {
    1
}

/// Does what the job is for.
#[talon_sdk::scheduled_task]
async fn run(args: Task) -> Result<Json<Value>, ToolError> {
    Ok(Json(json!({"job": args.run.job, "count": args.count})))
}

fn main() -> ExitCode {
    Plugin::new("hello").description("Runs at planned times.").tool(run()).serve()
}

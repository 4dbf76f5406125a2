//! A scheduled task: says which run it is.

use std::process::ExitCode;

use talon_sdk::serde_json::{Value, json};
use talon_sdk::{Json, Plugin, ProposedJob, ScheduledRun, ToolError};

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
    // The job that the plugin would like to have: `talon schedule accept` has it run.
    let wanted = ProposedJob::cron("30 3 * * *").timezone("Europe/Berlin").argument("count", 2);
    Plugin::new("hello").description("Runs at planned times.").tool(run().propose_job(wanted)).serve()
}

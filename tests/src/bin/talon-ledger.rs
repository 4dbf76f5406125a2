//! A plugin that counts how often each entry was written, so that a test sees what was lost and what was done
//! twice.

use std::collections::BTreeMap;
use std::process::ExitCode;

use talon_sdk::{Context, Json, OrToolError, Plugin, State, ToolError};

#[talon_sdk::args]
struct Add {
    /// What to count.
    entry: String,
}

/// Counts an entry once more and gives its count.
#[talon_sdk::tool]
async fn add(args: Add, cx: Context) -> Result<String, ToolError> {
    let state = state(&cx)?;
    let counted = state.update_json(&args.entry, |count: &mut u64| {
        *count += 1;
        *count
    });
    Ok(counted.await.or_tool_error("the entry could not be counted")?.to_string())
}

#[talon_sdk::args]
struct Counts {
    /// Entries, with commas between them.
    entries: String,
}

/// Gives the counts of entries; one that was never counted has 0.
#[talon_sdk::tool(read_only)]
async fn counts(args: Counts, cx: Context) -> Result<Json<BTreeMap<String, u64>>, ToolError> {
    let state = state(&cx)?;
    let mut counts = BTreeMap::new();
    for entry in args.entries.split(',') {
        let count: Option<u64> = state.get_json(entry).await.or_tool_error("the entry cannot be read")?;
        counts.insert(entry.to_owned(), count.unwrap_or_default());
    }
    Ok(Json(counts))
}

fn state(cx: &Context) -> Result<State, ToolError> {
    cx.state().or_tool_error("a ledger needs a host that keeps state")
}

fn main() -> ExitCode {
    Plugin::new("ledger").description("Counts entries.").tool(add()).tool(counts()).serve()
}

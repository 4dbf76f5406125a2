//! Stores issues in the plugin's state: the other half of "analyze the code, file an issue, propose a change"
//! besides `forge`.

use std::collections::BTreeMap;
use std::process::ExitCode;

use serde::{Deserialize, Serialize};
use talon_sdk::{Context, Json, OrToolError, Plugin, StateError, ToolError};

/// The only key.
const KEY: &str = "issues";
/// The most issues there can be: with the longest texts they fit into one value of 1 MiB.
const MAX_ISSUES: usize = 100;
/// The longest title, in bytes.
const MAX_TITLE_BYTES: usize = 200;
/// The longest description, in bytes.
const MAX_DESCRIPTION_BYTES: usize = 8 << 10;

#[derive(Debug, Default, Serialize, Deserialize)]
struct Issues {
    last: u64,
    open: BTreeMap<u64, Issue>,
}

/// One issue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Issue {
    title: String,
    description: String,
}

#[talon_sdk::args]
struct Create {
    /// What is wrong, in a line.
    title: String,
    /// Where, and how it shows.
    #[serde(default)]
    description: String,
}

/// Files an issue and gives its number.
#[talon_sdk::tool]
async fn create_issue(args: Create, cx: Context) -> Result<String, ToolError> {
    let issue = Issue { title: args.title, description: args.description };
    if issue.title.trim().is_empty()
        || issue.title.len() > MAX_TITLE_BYTES
        || issue.description.len() > MAX_DESCRIPTION_BYTES
    {
        return Err(ToolError::new(
            "an issue has a title of 1 to 200 bytes and a description of at most 8 KiB",
        ));
    }
    let state = cx.state().or_tool_error("issues need a host that keeps state")?;
    let number = state.update_json(KEY, |issues: &mut Issues| {
        if issues.open.len() == MAX_ISSUES {
            return Err(ToolError::new("there are 100 open issues already"));
        }
        issues.last += 1;
        issues.open.insert(issues.last, issue.clone());
        Ok(issues.last)
    });
    Ok(format!("filed as #{}", number.await.map_err(tool_error)??))
}

/// Lists the issues: numbers and titles. `get_issue` has the rest of one.
#[talon_sdk::tool(read_only)]
async fn list_issues(cx: Context) -> Result<Json<BTreeMap<u64, String>>, ToolError> {
    Ok(Json(open(&cx).await?.into_iter().map(|(number, issue)| (number, issue.title)).collect()))
}

#[talon_sdk::args]
struct Get {
    /// The issue's number.
    number: u64,
}

/// Shows an issue.
#[talon_sdk::tool(read_only)]
async fn get_issue(args: Get, cx: Context) -> Result<Json<Issue>, ToolError> {
    let found = open(&cx).await?.remove(&args.number);
    found.map(Json).or_tool_error("there is no issue of that number; `list_issues` has them")
}

async fn open(cx: &Context) -> Result<BTreeMap<u64, Issue>, ToolError> {
    let state = cx.state().or_tool_error("issues need a host that keeps state")?;
    let issues: Option<Issues> = state.get_json(KEY).await.map_err(tool_error)?;
    Ok(issues.unwrap_or_default().open)
}

fn tool_error(error: StateError) -> ToolError {
    ToolError::new("the issues are not available for now: try again later").because(error)
}

fn main() -> ExitCode {
    Plugin::new("tracker")
        .description("Keeps issues.")
        .tools([create_issue().destructive(false), list_issues(), get_issue()])
        .serve()
}

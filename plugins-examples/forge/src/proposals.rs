//! `create_pr` and `list_prs`: proposals to change the code, stored in the plugin's state.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use talon_sdk::{Context, Json, OrToolError, StateError, ToolError};

/// The only key.
const KEY: &str = "proposals";
/// The most proposals there can be: with the longest texts they fit into one value of 1 MiB.
const MAX_PROPOSALS: usize = 50;
/// The longest title, in bytes.
const MAX_TITLE_BYTES: usize = 200;
/// The longest text, in bytes.
const MAX_BODY_BYTES: usize = 16 << 10;

#[derive(Debug, Default, Serialize, Deserialize)]
struct Proposals {
    last: u64,
    open: BTreeMap<u64, Proposal>,
}

/// One proposal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Proposal {
    title: String,
    body: String,
    branch: String,
}

#[talon_sdk::args]
pub(crate) struct Create {
    /// What is proposed, in a line.
    title: String,
    /// Why, and how; names the issue that it closes.
    body: String,
    /// The branch with the change.
    #[serde(default)]
    branch: Option<String>,
}

/// Proposes a change and gives the proposal's number.
#[talon_sdk::tool]
pub(crate) async fn create_pr(args: Create, cx: Context) -> Result<String, ToolError> {
    let Create { title, body, branch } = args;
    if title.trim().is_empty() || title.len() > MAX_TITLE_BYTES || body.len() > MAX_BODY_BYTES {
        return Err(ToolError::new("a proposal has a title of 1 to 200 bytes and a body of at most 16 KiB"));
    }
    let proposal = Proposal { title, body, branch: branch.unwrap_or_else(|| "main".to_owned()) };
    let state = cx.state().or_tool_error("proposals need a host that keeps state")?;
    let number = state.update_json(KEY, |proposals: &mut Proposals| {
        if proposals.open.len() == MAX_PROPOSALS {
            return Err(ToolError::new("there are 50 open proposals already"));
        }
        proposals.last += 1;
        proposals.open.insert(proposals.last, proposal.clone());
        Ok(proposals.last)
    });
    Ok(format!("proposed as !{}", number.await.map_err(tool_error)??))
}

/// Lists the open proposals: numbers and titles. `get_pr` has the rest of one.
#[talon_sdk::tool(read_only)]
pub(crate) async fn list_prs(cx: Context) -> Result<Json<BTreeMap<u64, String>>, ToolError> {
    let open = open(&cx).await?.into_iter();
    Ok(Json(open.map(|(number, proposal)| (number, proposal.title)).collect()))
}

#[talon_sdk::args]
pub(crate) struct Get {
    /// The proposal's number.
    number: u64,
}

/// Shows a proposal.
#[talon_sdk::tool(read_only)]
pub(crate) async fn get_pr(args: Get, cx: Context) -> Result<Json<Proposal>, ToolError> {
    let found = open(&cx).await?.remove(&args.number);
    found.map(Json).or_tool_error("there is no proposal of that number; `list_prs` has them")
}

async fn open(cx: &Context) -> Result<BTreeMap<u64, Proposal>, ToolError> {
    let state = cx.state().or_tool_error("proposals need a host that keeps state")?;
    let proposals: Option<Proposals> = state.get_json(KEY).await.map_err(tool_error)?;
    Ok(proposals.unwrap_or_default().open)
}

fn tool_error(error: StateError) -> ToolError {
    ToolError::new("the proposals are not available for now: try again later").because(error)
}

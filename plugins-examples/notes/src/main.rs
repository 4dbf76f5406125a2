//! Notes that survive the plugin's process: the whole list is one value of its state, changed by
//! compare-and-set.

use std::collections::BTreeMap;
use std::process::ExitCode;

use serde::{Deserialize, Serialize};
use talon_sdk::{Context, Json, OrToolError, Plugin, StateError, ToolError};

/// The only key. Every change writes the whole list, so this suits short lists; for a longer one use a key
/// for each note, found by [`talon_sdk::State::keys`].
const KEY: &str = "notes";
/// The most notes there can be: with the longest texts they still fit into one value, which may have 1 MiB.
const MAX_NOTES: usize = 200;
/// The longest note, in bytes.
const MAX_NOTE_BYTES: usize = 4096;

#[derive(Default, Serialize, Deserialize)]
struct Notes {
    /// Numbers are never reused, so a number always means the same note.
    last: u64,
    texts: BTreeMap<u64, String>,
}

#[talon_sdk::args]
struct Add {
    /// What to note, at most 4096 bytes.
    text: String,
}

/// Keeps a note and gives its number.
#[talon_sdk::tool]
async fn add(args: Add, cx: Context) -> Result<String, ToolError> {
    if args.text.trim().is_empty() || args.text.len() > MAX_NOTE_BYTES {
        return Err(ToolError::new("a note has 1 to 4096 bytes"));
    }
    let number = update(&cx, |notes| {
        if notes.texts.len() == MAX_NOTES {
            return Err(ToolError::new("there are 200 notes already: remove one first"));
        }
        notes.last += 1;
        notes.texts.insert(notes.last, args.text.clone());
        Ok(notes.last)
    });
    Ok(format!("kept as note {}", number.await?))
}

/// Lists the notes with their numbers.
#[talon_sdk::tool(read_only)]
async fn list(cx: Context) -> Result<Json<BTreeMap<u64, String>>, ToolError> {
    let notes: Option<Notes> = state(&cx)?.get_json(KEY).await.map_err(tool_error)?;
    Ok(Json(notes.unwrap_or_default().texts))
}

#[talon_sdk::args]
struct Remove {
    /// The note's number, as `list` gives it.
    number: u64,
}

/// Removes a note.
#[talon_sdk::tool]
async fn remove(args: Remove, cx: Context) -> Result<String, ToolError> {
    let text = update(&cx, |notes| {
        notes.texts.remove(&args.number).or_tool_error("there is no note of that number")
    });
    Ok(format!("removed: {}", text.await?))
}

/// Changes the notes without losing concurrent changes, of this process or of another instance.
async fn update<R>(
    cx: &Context,
    change: impl FnMut(&mut Notes) -> Result<R, ToolError>,
) -> Result<R, ToolError> {
    state(cx)?.update_json(KEY, change).await.map_err(tool_error)?
}

fn state(cx: &Context) -> Result<talon_sdk::State, ToolError> {
    cx.state().or_tool_error("notes need a host that keeps state")
}

/// Tells the caller what can be done about the error.
fn tool_error(error: StateError) -> ToolError {
    let message = match &error {
        StateError::QuotaExceeded { .. } => "there is no room for more notes: remove one first",
        StateError::Unavailable { .. } => "the notes are not available for now: try again later",
        _ => "the notes cannot be used; the plugin's log says why",
    };
    ToolError::new(message).because(error)
}

fn main() -> ExitCode {
    Plugin::new("notes").description("Keeps notes.").tool(add()).tool(list()).tool(remove()).serve()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use talon_sdk::testing::{Call, MemoryState};

    use super::*;

    async fn add_to(state: &MemoryState, text: &str) -> Result<String, String> {
        let call = Call::new(add()).args(json!({"text": text})).state(state);
        call.run().await.map(|output| output.content().to_owned()).map_err(|error| error.message().to_owned())
    }

    #[tokio::test]
    async fn a_full_list_and_a_used_up_quota_say_what_helps() {
        let state = MemoryState::new();
        assert_eq!(add_to(&state, "milk").await.expect("kept"), "kept as note 1");
        state.set_quota(50, 1);
        let error = add_to(&state, &"bread ".repeat(10)).await.expect_err("no room");
        assert_eq!(error, "there is no room for more notes: remove one first");
        state.set_quota(1 << 20, 1);
        for _ in 1..MAX_NOTES {
            add_to(&state, "more").await.expect("kept");
        }
        let error = add_to(&state, "one more").await.expect_err("full");
        assert_eq!(error, "there are 200 notes already: remove one first");
        Call::new(remove()).args(json!({"number": 7})).state(&state).run().await.expect("removed");
        assert_eq!(add_to(&state, "one more").await.expect("kept"), "kept as note 201");
    }

    #[tokio::test]
    async fn the_fullest_list_fits_into_one_value() {
        let state = MemoryState::new();
        for _ in 0..MAX_NOTES {
            add_to(&state, &"é".repeat(MAX_NOTE_BYTES / 2)).await.expect("kept");
        }
    }

    #[tokio::test]
    async fn while_the_state_is_away_notes_say_so() {
        let state = MemoryState::new();
        state.set_available(false);
        let error = add_to(&state, "milk").await.expect_err("away");
        assert_eq!(error, "the notes are not available for now: try again later");
    }
}

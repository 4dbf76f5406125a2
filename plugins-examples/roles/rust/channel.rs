//! A channel: each file in a directory is a message, named after its sender (`ada.1`), and answers go into its log.
//!
//! Its entry has `config: { dir: /var/lib/chat }`, `sandbox: { fs: { write: [/var/lib/chat] } }` and `events: { per_minute: 600 }`. Write a
//! message elsewhere, and move it there: then it is whole.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, SystemTime};

use talon_sdk::channel::{CLOSED_TOPIC, ChannelOp, ChannelReply, ChannelRequest, MESSAGE_TOPIC};
use talon_sdk::{EventSource, Plugin, SourceEvent, ToolError, tracing};

/// How often the directory is looked at.
const INTERVAL: Duration = Duration::from_secs(1);

#[talon_sdk::args]
struct Settings {
    /// The directory of the messages. Without one nobody is heard.
    dir: Option<PathBuf>,
}

fn nanos(time: SystemTime) -> u128 {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos()
}

/// The event of a message. Its id is the same whenever it is told, so that a message is one turn; of another message it is another one.
fn message(path: &Path) -> Option<SourceEvent> {
    let name = path.file_name()?.to_str()?;
    let sender = name.split('.').next().filter(|sender| !sender.is_empty())?;
    let (text, changed) = (fs::read_to_string(path).ok()?, fs::metadata(path).ok()?.modified().ok()?);
    let id: String = name.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '.').take(80).collect();
    let event =
        SourceEvent::new(format!("{id}/{}", nanos(changed)), MESSAGE_TOPIC, format!("A message of {sender}"));
    // An answer goes to the conversation. In a group there is a field `group_id`, too.
    Some(
        event
            .field("conversation", sender)
            .field("sender_id", sender)
            .field("sender_name", sender)
            .details(text),
    )
}

/// Tells of each message, and removes it once the host has all that were told on its disk.
fn listen(dir: &Path, events: &EventSource) {
    let mut told = BTreeSet::new();
    loop {
        let entries = fs::read_dir(dir).into_iter().flatten().flatten();
        for path in entries.map(|entry| entry.path()) {
            if let Some(event) = message(&path).filter(|_| !told.contains(&path)) {
                if events.tell(event).is_err() {
                    // The others wait in the directory.
                    break;
                }
                told.insert(path);
            }
        }
        if events.waiting() == 0 {
            for path in std::mem::take(&mut told) {
                if let Err(error) = fs::remove_file(&path) {
                    tracing::warn!("{}: {error}", path.display());
                }
            }
        }
        thread::sleep(INTERVAL);
    }
}

/// Writes an answer into the log.
#[talon_sdk::channel]
async fn talk(asked: ChannelRequest) -> Result<ChannelReply, ToolError> {
    Ok(match asked.op {
        // A service that wants a credential gets it here: it comes with each call.
        ChannelOp::Open | ChannelOp::Typing => ChannelReply::delivered(),
        ChannelOp::Send => {
            // The id is the same in every attempt: a service that knows it already drops it.
            tracing::warn!(id = asked.id, to = asked.conversation, "{}", asked.text);
            ChannelReply::delivered()
        }
        ChannelOp::Fetch => ChannelReply::refused("messages have no files"),
    })
}

fn main() -> ExitCode {
    let events = EventSource::new();
    let source = events.clone();
    Plugin::new("hello")
        .description("People talk to the agent by files.")
        .events(events)
        .tool(talk())
        .init(move |settings: Settings| {
            let events = source.clone();
            async move {
                // Asks the agent to open the channel.
                let id = format!("closed/{}", nanos(SystemTime::now()));
                let closed = SourceEvent::new(id, CLOSED_TOPIC, "The channel's plugin has started");
                events.tell(closed).map_err(|error| ToolError::new(error.to_string()))?;
                if let Some(dir) = settings.dir {
                    thread::spawn(move || listen(&dir, &events));
                }
                Ok(())
            }
        })
        .serve()
}

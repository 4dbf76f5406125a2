//! A channel: each file in a directory is a message, named after its sender (`ada.1`), and answers go into its log.
//!
//! Its entry has `config: { dir: /var/lib/chat }`, `sandbox: { fs: { write: [/var/lib/chat] } }` and `events: { per_minute: 600 }`. Write a
//! message elsewhere, and move it there: then it is whole.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};
use std::{fs, io, thread};

use talon_sdk::channel::{CLOSED_TOPIC, ChannelOp, ChannelReply, ChannelRequest, MESSAGE_TOPIC};
use talon_sdk::{EventReceipt, EventRefusedError, EventSource, Plugin, SourceEvent, ToolError, tracing};

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
fn message(path: &Path) -> io::Result<SourceEvent> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let sender = name.split('.').next().unwrap_or_default();
    let text = String::from_utf8_lossy(&fs::read(path)?).into_owned();
    let changed = fs::metadata(path)?.modified()?;
    let id: String = name.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '.').take(80).collect();
    let event =
        SourceEvent::new(format!("{id}/{}", nanos(changed)), MESSAGE_TOPIC, format!("A message of {sender}"));
    // An answer goes to the conversation. In a group there is a field `group_id`, too.
    Ok(event
        .field("conversation", sender)
        .field("sender_id", sender)
        .field("sender_name", sender)
        .details(text))
}

/// The messages in the directory, by their names. What begins with a dot is none.
fn messages(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if !entry.file_name().to_string_lossy().starts_with('.') && entry.path().is_file() {
            paths.push(entry.path());
        }
    }
    paths.sort();
    Ok(paths)
}

/// Removes a message that the host has on its disk; one that it refuses is put aside as `.NAME`.
fn settle(path: &Path, settlement: &Result<(), EventRefusedError>) -> io::Result<()> {
    let Err(refusal) = settlement else { return fs::remove_file(path) };
    tracing::warn!("{}: {refusal}", path.display());
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    fs::rename(path, path.with_file_name(format!(".{name}")))
}

/// Tells of each message until the host has it on its disk.
fn listen(dir: &Path, events: &EventSource) {
    let mut told: BTreeMap<PathBuf, EventReceipt> = BTreeMap::new();
    let warn = |path: &Path, error: io::Error| tracing::warn!("{}: {error}", path.display());
    loop {
        let found = messages(dir).unwrap_or_else(|error| {
            warn(dir, error);
            Vec::new()
        });
        for path in found {
            if told.contains_key(&path) {
                continue;
            }
            match message(&path).map(|event| events.tell(event)) {
                Ok(Ok(receipt)) => {
                    told.insert(path, receipt);
                }
                // Too many wait for the host: the others wait in the directory.
                Ok(Err(_)) => break,
                // The others are told all the same.
                Err(error) => warn(&path, error),
            }
        }
        told.retain(|path, receipt| {
            let Some(settlement) = receipt.settlement() else { return true };
            if let Err(error) = settle(path, &settlement) {
                warn(path, error);
            }
            false
        });
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

//! Exports a store: files, in chunks, as fast as the client reads.

use talon_child::session_file;
use talon_child::yaml::YamlWriter;
use talon_proto::state::{
    ExportChunk, ExportDone, ExportEnd, ExportFile, ExportPlanned, Layers, export_chunk::Kind,
};
use talon_store::{
    Error, JobProposals, KeyValues, Message, Outbox, PluginId, Schedule, Session, SessionId, Store,
};
use tokio::sync::mpsc;

use super::limits::CHUNK_BYTES;
use super::{approval_rules, layout, media, memories, notifications, occurrences, proposals, shadow, source};

/// Why an export ended before it was done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The store could not be read.
    #[error("the state cannot be read")]
    Store(#[from] Error),
    /// The client has gone.
    #[error("the client no longer reads the export")]
    Disconnected,
    /// A session was deleted after a part of it was written.
    #[error("session {0} was deleted while it was exported; export again")]
    Deleted(SessionId),
    /// Neither or both kinds of state were asked for.
    #[error("an export is of the key-values or of the conversations")]
    NoLayers,
}

/// Writes everything of the opened layers to `to`: first the number of files, then the files. A file and its
/// records are one consistent snapshot; different files may not be. Only one page of records is held in
/// memory.
///
/// # Errors
/// [`ExportError`]. The chunks that were sent before are incomplete then, and `done` was not sent.
pub async fn export(store: &Store, layers: Layers, to: mpsc::Sender<ExportChunk>) -> Result<(), ExportError> {
    let mut out = ExportSink { to, buffer: Vec::new(), files: 0, records: 0 };
    match layers {
        Layers::KeyValues => key_values(store, &mut out).await?,
        Layers::Conversations => conversations(store, &mut out).await?,
        Layers::Unspecified => return Err(ExportError::NoLayers),
    }
    let done = ExportDone { files: out.files, records: out.records };
    out.send(Kind::Done(done)).await
}

async fn key_values(store: &Store, out: &mut ExportSink) -> Result<(), ExportError> {
    let store = store.key_values();
    let mut plugins: Vec<PluginId> = Vec::new();
    let mut after = None;
    loop {
        // Ids are short and plugins are few, so the list fits in memory.
        let page = source::plugins(&*store, after).await?;
        plugins.extend(page.items.into_iter().filter(|(_, usage)| usage.keys > 0).map(|(plugin, _)| plugin));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    out.send(Kind::Planned(ExportPlanned { files: plugins.len() as u64 })).await?;
    for plugin in plugins {
        let mut file = ExportedFile::new(layout::plugin_path(&plugin));
        let mut after = None;
        loop {
            let page = source::entries(&*store, &plugin, after).await?;
            for entry in page.items {
                file.yaml.bytes(entry.key.as_str(), &entry.value);
                file.record(out).await?;
            }
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        file.end(out).await?;
    }
    Ok(())
}

async fn conversations(store: &Store, out: &mut ExportSink) -> Result<(), ExportError> {
    let (sessions, memory) = (store.sessions(), store.memory());
    let (key_values, schedule) = (store.key_values(), store.schedule());
    let outbox = store.outbox();
    let finished = source::occurrences(&*schedule, None).await?.items;
    let mut files = u64::from(!source::memories(&*memory, None).await?.items.is_empty())
        + u64::from(!source::approval_rules(&*key_values, None).await?.items.is_empty())
        + u64::from(finished.iter().any(occurrences::is_finished))
        + u64::from(store.job_proposals().list().await?.iter().any(proposals::is_decided))
        + u64::from(!source::notifications(&*outbox, None).await?.items.is_empty())
        + u64::from(
            source::shadow(&*key_values, None)
                .await?
                .items
                .iter()
                .any(|one| shadow::is_exported(one.key.as_str())),
        );
    files += sessions_with_media(&*key_values).await?;
    let mut after = None;
    loop {
        let page = source::sessions(&*sessions, after).await?;
        files += page.items.len() as u64;
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    out.send(Kind::Planned(ExportPlanned { files })).await?;
    let mut after = None;
    loop {
        let page = source::sessions(&*sessions, after).await?;
        for listed in page.items {
            // The page may have been read an hour ago.
            if let Some(session) = sessions.get(listed.id).await? {
                conversation(&*sessions, &session, out).await?;
            }
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    let mut file = ExportedFile::new(layout::MEMORIES.to_owned());
    let mut after = None;
    loop {
        let page = source::memories(&*memory, after).await?;
        for memory in page.items {
            memories::write(&mut file.yaml, &memory);
            file.record(out).await?;
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    file.end(out).await?;
    approval_rules(&*key_values, out).await?;
    session_media(&*key_values, out).await?;
    occurrences(&*schedule, out).await?;
    proposals(&*store.job_proposals(), out).await?;
    notifications(&*outbox, out).await?;
    shadow_loop(&*key_values, out).await
}

/// What the shadow loop keeps.
async fn shadow_loop(store: &dyn KeyValues, out: &mut ExportSink) -> Result<(), ExportError> {
    let mut file = ExportedFile::new(layout::SHADOW.to_owned());
    let mut after = None;
    loop {
        let page = source::shadow(store, after).await?;
        for entry in page.items.iter().filter(|entry| shadow::is_exported(entry.key.as_str())) {
            file.yaml.bytes(entry.key.as_str(), &entry.value);
            file.record(out).await?;
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    file.end(out).await
}

/// What the operator decided about proposed jobs.
async fn proposals(store: &dyn JobProposals, out: &mut ExportSink) -> Result<(), ExportError> {
    let mut file = ExportedFile::new(layout::PROPOSALS.to_owned());
    for proposal in store.list().await?.iter().filter(|proposal| proposals::is_decided(proposal)) {
        proposals::write(&mut file.yaml, proposal);
        file.record(out).await?;
    }
    file.end(out).await
}

/// What people were told, or were to be told.
async fn notifications(store: &dyn Outbox, out: &mut ExportSink) -> Result<(), ExportError> {
    let mut file = ExportedFile::new(layout::NOTIFICATIONS.to_owned());
    let mut after = None;
    loop {
        let page = source::notifications(store, after).await?;
        for notification in page.items {
            notifications::write(&mut file.yaml, notification);
            file.record(out).await?;
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    file.end(out).await
}

/// What jobs did; what they will do follows from the configuration.
async fn occurrences(store: &dyn Schedule, out: &mut ExportSink) -> Result<(), ExportError> {
    let mut file = ExportedFile::new(layout::OCCURRENCES.to_owned());
    let mut after = None;
    loop {
        let page = source::occurrences(store, after).await?;
        for occurrence in page.items.into_iter().filter(occurrences::is_finished) {
            occurrences::write(&mut file.yaml, occurrence);
            file.record(out).await?;
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    file.end(out).await
}

/// Counts the sessions that have images or files.
async fn sessions_with_media(store: &dyn KeyValues) -> Result<u64, ExportError> {
    let (mut count, mut last, mut after) = (0, None, None);
    loop {
        let page = source::media_sizes(store, after).await?;
        for size in page.items {
            let session = media::split(size.key.as_str()).map(|(session, _)| session);
            if session.is_some() && session != last {
                count += 1;
                last = session;
            }
        }
        after = page.next;
        if after.is_none() {
            return Ok(count);
        }
    }
}

/// Writes images and files, those of a session into one file.
async fn session_media(store: &dyn KeyValues, out: &mut ExportSink) -> Result<(), ExportError> {
    let mut open: Option<(SessionId, ExportedFile)> = None;
    let mut after = None;
    loop {
        let page = source::media(store, after).await?;
        for entry in page.items {
            let Some((session, piece)) = media::split(entry.key.as_str()) else { continue };
            if open.as_ref().is_none_or(|(of, _)| *of != session) {
                if let Some((_, file)) = open.take() {
                    file.end(out).await?;
                }
                open = Some((session, ExportedFile::new(session_file::media_path(session))));
            }
            if let Some((_, file)) = &mut open {
                file.yaml.bytes(piece, &entry.value);
                file.record(out).await?;
            }
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    match open {
        Some((_, file)) => file.end(out).await,
        None => Ok(()),
    }
}

async fn approval_rules(store: &dyn KeyValues, out: &mut ExportSink) -> Result<(), ExportError> {
    let mut file = ExportedFile::new(layout::APPROVAL_RULES.to_owned());
    let mut after = None;
    loop {
        let page = source::approval_rules(store, after).await?;
        for entry in page.items {
            file.yaml.bytes(approval_rules::id(entry.key.as_str()), &entry.value);
            file.record(out).await?;
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    file.end(out).await
}

async fn conversation(
    store: &dyn talon_store::Sessions,
    session: &Session,
    out: &mut ExportSink,
) -> Result<(), ExportError> {
    let mut file = ExportedFile::new(session_file::session_path(session.id));
    session_file::write_head(&mut file.yaml, session);
    file.yaml.key("messages");
    let mut any = false;
    let mut after = None;
    loop {
        let page = match source::messages(store, session.id, after).await {
            // Deleted before anything of it was sent: then there is no such file.
            Err(Error::NoSession(_)) if !file.begun => return Ok(()),
            Err(Error::NoSession(id)) => return Err(ExportError::Deleted(id)),
            page => page?,
        };
        for message in page.items {
            let Some(message) = message_as_of(session, message) else { continue };
            file.yaml.raw(if any { "" } else { "\n" });
            any = true;
            session_file::write_message(&mut file.yaml, &message);
            file.send_full_chunks(out).await?;
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    file.yaml.raw(if any { "" } else { " []\n" });
    file.record(out).await?;
    file.end(out).await
}

/// The message as it was when the session was read: a log only grows, so a higher number is newer.
fn message_as_of(session: &Session, mut message: Message) -> Option<Message> {
    message.replaced_by = message.replaced_by.filter(|summary| *summary < session.next_sequence);
    (message.sequence < session.next_sequence).then_some(message)
}

/// One file. It begins with its first bytes: an empty file is not sent.
struct ExportedFile {
    path: String,
    yaml: YamlWriter,
    begun: bool,
    records: u64,
}

impl ExportedFile {
    fn new(path: String) -> Self {
        Self { path, yaml: YamlWriter::default(), begun: false, records: 0 }
    }

    /// Counts what was just written as one record.
    async fn record(&mut self, out: &mut ExportSink) -> Result<(), ExportError> {
        self.records += 1;
        self.send_full_chunks(out).await
    }

    /// Sends all complete chunks.
    async fn send_full_chunks(&mut self, out: &mut ExportSink) -> Result<(), ExportError> {
        if !self.begun {
            self.begun = true;
            out.files += 1;
            out.send(Kind::Begin(ExportFile { path: self.path.clone() })).await?;
        }
        out.buffer.extend_from_slice(self.yaml.take().as_bytes());
        while out.buffer.len() >= CHUNK_BYTES {
            let rest = out.buffer.split_off(CHUNK_BYTES);
            let chunk = std::mem::replace(&mut out.buffer, rest);
            out.send(Kind::Data(chunk)).await?;
        }
        Ok(())
    }

    async fn end(mut self, out: &mut ExportSink) -> Result<(), ExportError> {
        if !self.begun {
            return Ok(());
        }
        self.send_full_chunks(out).await?;
        if !out.buffer.is_empty() {
            let rest = std::mem::take(&mut out.buffer);
            out.send(Kind::Data(rest)).await?;
        }
        out.records += self.records;
        out.send(Kind::End(ExportEnd { records: self.records })).await
    }
}

struct ExportSink {
    to: mpsc::Sender<ExportChunk>,
    /// Always shorter than a chunk.
    buffer: Vec<u8>,
    files: u64,
    records: u64,
}

impl ExportSink {
    async fn send(&self, kind: Kind) -> Result<(), ExportError> {
        self.to.send(ExportChunk { kind: Some(kind) }).await.map_err(|_| ExportError::Disconnected)
    }
}

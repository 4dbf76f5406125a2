//! Imports into a store: file by file, record by record, with a report of each record that was refused.

use std::collections::BTreeSet;

use talon_proto::state::{
    ImportCounts, ImportDone, ImportRefused, ImportReport, ImportedFile, Layers, import_report::Kind,
};
use talon_store::limits::MAX_NAME_BYTES;
use talon_store::{
    APPROVALS_NAMESPACE, Error, MEDIA_NAMESPACE, Namespace, PluginId, SHADOW_NAMESPACE, SessionId, Store,
    Timestamp,
};
use tokio::sync::mpsc;

use super::excerpt::{excerpt, excerpt_within};
use super::layout::FileKind;
use super::limits::{MAX_FILE_BYTES, MAX_RECORDS, MEDIA_QUOTA, PATH_EXCERPT_CHARS, READ_AHEAD};
use super::node::{Mark, Node, Problem};
use super::omitted::OmittedFields;
use super::read::{self, Item, Shape};
use super::record_writer::{Outcome, PendingWrites, RecordWriter};
use super::sessions::{SessionReader, UNKNOWN_NAME, is_name};
use super::{
    approval_rules, entries, media, memories, messages, notifications, occurrences, proposals, shadow,
};

/// Why an import cannot continue. An invalid record is not a reason: it is reported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The store cannot be used. What was imported so far stays, and a second import continues from there.
    #[error(
        "the state cannot be written; what was imported so far is kept, and a second import continues from there"
    )]
    Store(#[from] Error),
    /// The client no longer reads the reports.
    #[error("the client no longer reads the import's reports")]
    Disconnected,
}

/// Imports files, one after the other.
#[derive(Debug)]
pub struct Importer {
    layers: Layers,
    writer: RecordWriter,
    /// Whose the sessions are that name no sender.
    sender: String,
    /// The plugins of the files so far.
    plugins: BTreeSet<PluginId>,
    files: u64,
    counts: ImportCounts,
}

impl Importer {
    /// An import into the layers that `store` was opened for. With `dry_run` nothing is changed, and the
    /// reports say what would be.
    #[must_use]
    pub fn new(store: Store, layers: Layers, dry_run: bool) -> Self {
        Self {
            layers,
            writer: RecordWriter::new(store, dry_run),
            sender: UNKNOWN_NAME.to_owned(),
            plugins: BTreeSet::new(),
            files: 0,
            counts: ImportCounts::default(),
        }
    }

    /// Gives sessions that name no sender to this one.
    ///
    /// # Errors
    /// What is wrong with a name that no sender has.
    pub fn with_sender(self, sender: &str) -> Result<Self, String> {
        if is_name(sender) {
            return Ok(Self { sender: sender.to_owned(), ..self });
        }
        Err(format!("a sender has 1 to {MAX_NAME_BYTES} bytes without control characters"))
    }

    /// Imports one file. Sends a report for each record that is refused, then one for the file.
    ///
    /// # Errors
    /// [`ImportError`]; a part of the file may have been imported.
    pub async fn import_file(
        &mut self,
        path: &str,
        bytes: Vec<u8>,
        to: &mpsc::Sender<ImportReport>,
    ) -> Result<(), ImportError> {
        let mut report = FileReport::of(path, to);
        match FileKind::parse(path) {
            Ok(place) if place.layers() != self.layers => {
                let whose = match place {
                    FileKind::Plugin(_) => "the plugins' key-values, which are not what is open here",
                    _ => "the conversations and memories, which are not what is open here",
                };
                report
                    .refuse("", Problem { at: Mark::default(), reason: format!("belongs to {whose}") })
                    .await?;
            }
            Ok(FileKind::Plugin(plugin)) if !self.plugins.insert(plugin.clone()) => {
                let reason = format!(
                    "another file of this import was taken for the plugin {plugin}: give one of them another name"
                );
                report.refuse("", Problem { at: Mark::default(), reason }).await?;
            }
            Ok(FileKind::Plugin(plugin)) => {
                let is_renamed = path.split('/').nth(1) != Some(plugin.as_str());
                report.plugin = if is_renamed { plugin.to_string() } else { String::new() };
                self.plugin(plugin, bytes, &mut report).await?;
            }
            Ok(FileKind::Memories) => self.memories(bytes, &mut report).await?,
            Ok(FileKind::ApprovalRules) => self.approval_rules(bytes, &mut report).await?,
            Ok(FileKind::Media(session)) => self.media(session, bytes, &mut report).await?,
            Ok(FileKind::Occurrences) => self.occurrences(bytes, &mut report).await?,
            Ok(FileKind::Proposals) => self.proposals(bytes, &mut report).await?,
            Ok(FileKind::Notifications) => self.notifications(bytes, &mut report).await?,
            Ok(FileKind::Shadow) => self.shadow(bytes, &mut report).await?,
            Ok(FileKind::Session(stem)) => self.session(&stem, bytes, &mut report).await?,
            Err(error) => {
                report.refuse("", Problem { at: Mark::default(), reason: error.to_string() }).await?;
            }
        }
        self.finish(report).await
    }

    /// Refuses a file of more than [`MAX_FILE_BYTES`] without reading it, and reports on it as on any other.
    ///
    /// # Errors
    /// [`ImportError::Disconnected`].
    pub async fn refuse_large_file(
        &mut self,
        path: &str,
        to: &mpsc::Sender<ImportReport>,
    ) -> Result<(), ImportError> {
        let mut report = FileReport::of(path, to);
        let reason = format!(
            "the file is larger than {MAX_FILE_BYTES} bytes, the most that is read, and nothing of it was imported: \
             spread its records over several imports"
        );
        report.refuse("", Problem { at: Mark::default(), reason }).await?;
        self.finish(report).await
    }

    async fn finish(&mut self, report: FileReport<'_>) -> Result<(), ImportError> {
        self.files += 1;
        self.counts.imported += report.counts.imported;
        self.counts.unchanged += report.counts.unchanged;
        self.counts.refused += report.counts.refused;
        let file = ImportedFile {
            path: report.path.clone(),
            counts: Some(report.counts),
            plugin: report.plugin.clone(),
        };
        report.send(Kind::File(file)).await
    }

    /// The last report.
    #[must_use]
    pub fn into_report(self) -> ImportReport {
        let done = ImportDone { files: self.files, counts: Some(self.counts) };
        ImportReport { kind: Some(Kind::Done(done)) }
    }

    async fn plugin(
        &mut self,
        plugin: PluginId,
        bytes: Vec<u8>,
        report: &mut FileReport<'_>,
    ) -> Result<(), ImportError> {
        self.writer.begin_namespace(Namespace::of(plugin)).await?;
        self.entries(bytes, entries::read, report).await
    }

    async fn approval_rules(
        &mut self,
        bytes: Vec<u8>,
        report: &mut FileReport<'_>,
    ) -> Result<(), ImportError> {
        let plugin = PluginId::new(APPROVALS_NAMESPACE).map_err(Error::from)?;
        self.writer.begin_namespace(Namespace::of(plugin)).await?;
        self.entries(bytes, approval_rules::read, report).await
    }

    async fn shadow(&mut self, bytes: Vec<u8>, report: &mut FileReport<'_>) -> Result<(), ImportError> {
        let plugin = PluginId::new(SHADOW_NAMESPACE).map_err(Error::from)?;
        self.writer.begin_namespace(Namespace::of(plugin)).await?;
        self.entries(bytes, shadow::read, report).await
    }

    async fn media(
        &mut self,
        session: SessionId,
        bytes: Vec<u8>,
        report: &mut FileReport<'_>,
    ) -> Result<(), ImportError> {
        let plugin = PluginId::new(MEDIA_NAMESPACE).map_err(Error::from)?;
        self.writer.begin_namespace(Namespace { plugin, quota: MEDIA_QUOTA }).await?;
        let read =
            |key: Node, value: Node, seen: &mut entries::SeenKeys| media::read(session, key, value, seen);
        self.entries(bytes, read, report).await
    }

    /// The entries of a namespace.
    async fn entries(
        &mut self,
        bytes: Vec<u8>,
        read: impl Fn(Node, Node, &mut entries::SeenKeys) -> (String, Result<entries::Entry, Problem>),
        report: &mut FileReport<'_>,
    ) -> Result<(), ImportError> {
        let mut items = RecordStream::read(bytes, Shape::Map);
        let mut seen = entries::SeenKeys::default();
        let mut writes = PendingWrites::default();
        while let Some(item) = items.next().await {
            let Item::Entry(key, value) = item else { continue };
            let (record, entry) = read(key, value, &mut seen);
            match entry {
                Ok((at, key, value)) => {
                    self.writer.entry(&mut writes, record, at, key, value).await?;
                    report.report_write(writes.next_if_full().await?).await?;
                }
                Err(problem) => report.refuse(&record, problem).await?,
            }
        }
        report.drain(&mut writes).await?;
        items.end(report).await
    }

    async fn occurrences(&mut self, bytes: Vec<u8>, report: &mut FileReport<'_>) -> Result<(), ImportError> {
        let mut items = RecordStream::read(bytes, Shape::Map);
        let mut seen = entries::SeenKeys::default();
        while let Some(item) = items.next().await {
            let Item::Entry(key, value) = item else { continue };
            let at = key.at;
            let (record, occurrence) = occurrences::read(key, value, &mut seen);
            match occurrence {
                Ok(occurrence) => {
                    let outcome = self.writer.occurrence(occurrence).await?;
                    report.report_write(Some((record, at, outcome))).await?;
                }
                Err(problem) => report.refuse(&record, problem).await?,
            }
        }
        items.end(report).await
    }

    async fn proposals(&mut self, bytes: Vec<u8>, report: &mut FileReport<'_>) -> Result<(), ImportError> {
        let mut items = RecordStream::read(bytes, Shape::Map);
        let mut seen = entries::SeenKeys::default();
        while let Some(item) = items.next().await {
            let Item::Entry(key, value) = item else { continue };
            let at = key.at;
            let (record, proposal) = proposals::read(key, value, &mut seen);
            match proposal {
                Ok(proposal) => {
                    let outcome = self.writer.proposal(proposal).await?;
                    report.report_write(Some((record, at, outcome))).await?;
                }
                Err(problem) => report.refuse(&record, problem).await?,
            }
        }
        items.end(report).await
    }

    async fn notifications(
        &mut self,
        bytes: Vec<u8>,
        report: &mut FileReport<'_>,
    ) -> Result<(), ImportError> {
        let mut items = RecordStream::read(bytes, Shape::Map);
        let mut seen = entries::SeenKeys::default();
        while let Some(item) = items.next().await {
            let Item::Entry(key, value) = item else { continue };
            let at = key.at;
            let (record, notification) = notifications::read(key, value, &mut seen);
            match notification {
                Ok(notification) => {
                    let outcome = self.writer.notification(notification).await?;
                    report.report_write(Some((record, at, outcome))).await?;
                }
                Err(problem) => report.refuse(&record, problem).await?,
            }
        }
        items.end(report).await
    }

    async fn memories(&mut self, bytes: Vec<u8>, report: &mut FileReport<'_>) -> Result<(), ImportError> {
        let mut items = RecordStream::read(bytes, Shape::List);
        let mut left_out = OmittedFields::default();
        let mut writes = PendingWrites::default();
        let now = Timestamp::now();
        while let Some(item) = items.next().await {
            let Item::Element(node) = item else { continue };
            let (record, at) = (memories::name(&node), node.at);
            match memories::read(node, now, &mut left_out) {
                Ok(memory) => {
                    self.writer.memory(&mut writes, record, at, memory).await?;
                    report.report_write(writes.next_if_full().await?).await?;
                }
                Err(problem) => report.refuse(&record, problem).await?,
            }
        }
        report.drain(&mut writes).await?;
        report.report_omitted("", left_out).await?;
        items.end(report).await
    }

    async fn session(
        &mut self,
        stem: &str,
        bytes: Vec<u8>,
        report: &mut FileReport<'_>,
    ) -> Result<(), ImportError> {
        let mut items =
            RecordStream::read(bytes, Shape::MapWith { items: "messages", skip: messages::FILES });
        let mut reading = SessionReader::default();
        let mut any = false;
        while let Some(item) = items.next().await {
            any = true;
            match item {
                Item::Entry(key, value) => reading.field(key, value),
                Item::Element(message) => reading.message(message),
            }
        }
        let record = reading.name().unwrap_or_else(|| excerpt(stem));
        if let Some(problem) = items.problem().await {
            return report.refuse(&record, problem).await;
        }
        if !any {
            let problem = Problem { at: Mark::default(), reason: "the file says nothing".into() };
            return report.refuse(&record, problem).await;
        }
        match reading.finish(stem, &self.sender) {
            Ok((session, left_out)) => {
                let outcome = self.writer.session(session).await?;
                // The omitted fields of a refused session do not matter.
                let taken = !matches!(outcome, Outcome::Refused(_));
                report.report_write(Some((record.clone(), Mark { line: 1, column: 1 }, outcome))).await?;
                if taken { report.report_omitted(&record, left_out).await } else { Ok(()) }
            }
            Err(problem) => report.refuse(&record, problem).await,
        }
    }
}

/// The records of a file, parsed on a separate thread: parsing a long file takes much processor time.
struct RecordStream {
    items: mpsc::Receiver<Item>,
    reader: tokio::task::JoinHandle<Result<(), Problem>>,
}

impl RecordStream {
    fn read(bytes: Vec<u8>, shape: Shape) -> Self {
        let (send, items) = mpsc::channel(READ_AHEAD);
        let reader = tokio::task::spawn_blocking(move || {
            let text = read::check(&bytes)?;
            let mut records = 0;
            let mut full = false;
            read::read(text, shape, &mut |item| {
                full = records == MAX_RECORDS;
                records += 1;
                !full && send.blocking_send(item).is_ok()
            })?;
            if full {
                let reason = format!("the file has more than {MAX_RECORDS} records; the rest was not read");
                return Err(Problem { at: Mark::default(), reason });
            }
            Ok(())
        });
        Self { items, reader }
    }

    async fn next(&mut self) -> Option<Item> {
        self.items.recv().await
    }

    /// The problem that ended the file early, if there is one.
    async fn problem(self) -> Option<Problem> {
        drop(self.items);
        match self.reader.await {
            Ok(result) => result.err(),
            Err(_) => Some(Problem {
                at: Mark::default(),
                reason: "the file cannot be read: its reader failed".into(),
            }),
        }
    }

    async fn end(self, report: &mut FileReport<'_>) -> Result<(), ImportError> {
        match self.problem().await {
            Some(problem) => report.refuse("", problem).await,
            None => Ok(()),
        }
    }
}

/// The report on a file.
struct FileReport<'a> {
    path: String,
    counts: ImportCounts,
    /// The plugin's id, where it is another than the path's.
    plugin: String,
    to: &'a mpsc::Sender<ImportReport>,
}

impl<'a> FileReport<'a> {
    fn of(path: &str, to: &'a mpsc::Sender<ImportReport>) -> Self {
        Self {
            path: excerpt_within(path, PATH_EXCERPT_CHARS),
            counts: ImportCounts::default(),
            plugin: String::new(),
            to,
        }
    }

    async fn send(&self, kind: Kind) -> Result<(), ImportError> {
        self.to.send(ImportReport { kind: Some(kind) }).await.map_err(|_| ImportError::Disconnected)
    }

    async fn refuse(&mut self, record: &str, problem: Problem) -> Result<(), ImportError> {
        self.counts.refused += 1;
        let Problem { at: Mark { line, column }, reason } = problem;
        self.send(Kind::Refused(ImportRefused {
            path: self.path.clone(),
            line: line as u64,
            column: column as u64,
            record: record.to_owned(),
            reason,
        }))
        .await
    }

    async fn report_omitted(&mut self, record: &str, left_out: OmittedFields) -> Result<(), ImportError> {
        for (part, problem) in left_out.problems() {
            let record = if record.is_empty() { part } else { format!("{record}: {part}") };
            self.refuse(&record, problem).await?;
        }
        Ok(())
    }

    async fn report_write(&mut self, written: Option<(String, Mark, Outcome)>) -> Result<(), ImportError> {
        match written {
            None => Ok(()),
            Some((_, _, Outcome::Imported)) => {
                self.counts.imported += 1;
                Ok(())
            }
            Some((_, _, Outcome::Unchanged)) => {
                self.counts.unchanged += 1;
                Ok(())
            }
            Some((record, at, Outcome::Refused(reason))) => {
                self.refuse(&record, Problem { at, reason }).await
            }
        }
    }

    async fn drain(&mut self, writes: &mut PendingWrites) -> Result<(), ImportError> {
        while let Some(written) = writes.next().await? {
            self.report_write(Some(written)).await?;
        }
        Ok(())
    }
}

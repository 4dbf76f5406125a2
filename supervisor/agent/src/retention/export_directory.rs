//! Sessions as files in the agent's own directory, in the layout of `talon export`.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use talon_child::session_file::{media_path, session_path, write_head, write_message, write_owner};
use talon_child::yaml::YamlWriter;
use talon_store::{
    Error, KeyValues, MEDIA_NAMESPACE, PageRequest, PluginId, Session, SessionId, Sessions, View,
};
use tokio::fs::{self, DirBuilder, File, OpenOptions};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::Mutex;

/// Records read at once.
const PAGE: u32 = 200;
/// Who may read a file, and a directory: the agent.
const FILE_MODE: u32 = 0o600;
const DIRECTORY_MODE: u32 = 0o700;
/// The directories of the layout.
const PARTS: [&str; 2] = ["sessions", "media"];
/// What the name of a file that is being written ends with; it begins with a dot, and `talon import` reads none of these.
const UNFINISHED: &str = ".new";
/// The most files that are counted. A million, as `talon import` takes; beyond it nothing more is written.
const MAX_FILES: u64 = 1_000_000;

/// Why a session is not written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExportError {
    /// The directory cannot be used.
    #[error("{} cannot be written", path.display())]
    Io {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// There would be too much.
    #[error(
        "the exports in {} would have more than {most} bytes (agent.sessions.export_bytes) or {MAX_FILES} files: move some of them elsewhere",
        path.display()
    )]
    Full { path: PathBuf, most: u64 },
    /// The session cannot be read.
    #[error("the session cannot be read")]
    Store(#[from] Error),
}

/// What a directory of exports holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ExportUsage {
    pub(crate) files: u64,
    pub(crate) bytes: u64,
}

/// Where sessions are read.
pub(crate) struct ExportSource<'s> {
    pub(crate) sessions: &'s dyn Sessions,
    pub(crate) key_values: &'s dyn KeyValues,
}

/// A directory of exports. It is created with the first one.
#[derive(Debug)]
pub(crate) struct ExportDirectory {
    path: PathBuf,
    /// Files are written or deleted, never both: who deletes what is unfinished must not meet what is being written.
    changes: Mutex<()>,
}

impl ExportDirectory {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, changes: Mutex::default() }
    }

    /// Its path, for people.
    pub(crate) fn display(&self) -> String {
        self.path.display().to_string()
    }

    /// The path of a session's file, below the agent's directory.
    pub(crate) fn file_of(&self, session: SessionId) -> String {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        format!("{name}/{}", session_path(session))
    }

    /// Counts its files. What a process left unfinished that was killed is deleted.
    ///
    /// # Errors
    /// [`ExportError::Io`]
    pub(crate) async fn usage(&self) -> Result<ExportUsage, ExportError> {
        let _changes = self.changes.lock().await;
        let mut usage = ExportUsage::default();
        for part in PARTS {
            let directory = self.path.join(part);
            let failed = |source| ExportError::Io { path: directory.clone(), source };
            let mut entries = match fs::read_dir(&directory).await {
                Ok(entries) => entries,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(failed(error)),
            };
            while let Some(entry) = entries.next_entry().await.map_err(failed)? {
                if is_unfinished(&entry.file_name()) {
                    fs::remove_file(entry.path()).await.map_err(failed)?;
                    continue;
                }
                match entry.metadata().await {
                    Ok(metadata) => usage.bytes = usage.bytes.saturating_add(metadata.len()),
                    // The operator moves files away meanwhile.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                    Err(error) => return Err(failed(error)),
                }
                usage.files += 1;
                if usage.files > MAX_FILES {
                    return Ok(usage);
                }
            }
        }
        Ok(usage)
    }

    /// Deletes the files of a sender's sessions. Returns of how many. Whose a file is that was left unfinished, or images without their
    /// session, nobody can say: those go, too.
    ///
    /// # Errors
    /// [`ExportError::Io`]
    pub(crate) async fn forget(&self, sender: &str) -> Result<u64, ExportError> {
        let _changes = self.changes.lock().await;
        let mut forgotten = 0;
        for path in self.files("sessions").await? {
            let Some(id) = session_of(&path) else { continue };
            let failed = |source| ExportError::Io { path: path.clone(), source };
            let mut yaml = YamlWriter::default();
            write_owner(&mut yaml, id, sender);
            let begins = yaml.take();
            let file = match File::open(&path).await {
                Ok(file) => file,
                // The operator moves files away meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(failed(error)),
            };
            let mut head = Vec::new();
            file.take(begins.len() as u64).read_to_end(&mut head).await.map_err(failed)?;
            if head != begins.as_bytes() {
                continue;
            }
            remove(self.path.join(media_path(id))).await?;
            remove(path).await?;
            forgotten += 1;
        }
        for path in self.files("media").await? {
            if let Some(id) = session_of(&path)
                && !self.has_session(id).await
            {
                remove(path).await?;
            }
        }
        Ok(forgotten)
    }

    /// The files of a part of the layout. What a process left unfinished is deleted.
    async fn files(&self, part: &str) -> Result<Vec<PathBuf>, ExportError> {
        let directory = self.path.join(part);
        let failed = |source| ExportError::Io { path: directory.clone(), source };
        let mut entries = match fs::read_dir(&directory).await {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(error)),
        };
        let mut files = Vec::new();
        while let Some(entry) = entries.next_entry().await.map_err(failed)? {
            match is_unfinished(&entry.file_name()) {
                true => remove(entry.path()).await?,
                false => files.push(entry.path()),
            }
        }
        Ok(files)
    }

    async fn has_session(&self, id: SessionId) -> bool {
        fs::symlink_metadata(self.path.join(session_path(id))).await.is_ok()
    }

    /// Writes a session, which nobody writes to meanwhile, with its images and files. It is on the disk, and whole, when this returns.
    /// An earlier export of the same session is replaced.
    ///
    /// # Errors
    /// [`ExportError`]; then nothing new is there, or a whole file that might not outlive a power failure.
    pub(crate) async fn write(
        &self,
        source: &ExportSource<'_>,
        session: &Session,
        usage: &mut ExportUsage,
        most: u64,
    ) -> Result<(), ExportError> {
        let _changes = self.changes.lock().await;
        self.create().await?;
        let written = async {
            // First, so that a session that is there has its images.
            self.write_media(source, session, usage, most).await?;
            self.write_session(source, session, usage, most).await
        };
        let written = written.await;
        // Without their session nobody could say whose they are.
        if written.is_err() && !self.has_session(session.id).await {
            let media = self.path.join(media_path(session.id));
            if let Ok(metadata) = fs::symlink_metadata(&media).await {
                // If it stays, the next `forget` deletes it.
                if remove(media).await.is_ok() {
                    usage.files = usage.files.saturating_sub(1);
                    usage.bytes = usage.bytes.saturating_sub(metadata.len());
                }
            }
        }
        written
    }

    /// Makes what is missing of the layout.
    async fn create(&self) -> Result<(), ExportError> {
        for part in PARTS {
            let directory = self.path.join(part);
            let made = DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(&directory).await;
            made.map_err(|source| ExportError::Io { path: directory, source })?;
        }
        // A file outlives a power failure only if its directories do. It costs next to nothing where none is new.
        for directory in self.path.ancestors().take(2) {
            let synced = async { File::open(directory).await?.sync_all().await };
            synced.await.map_err(|source| ExportError::Io { path: directory.to_owned(), source })?;
        }
        Ok(())
    }

    async fn write_session(
        &self,
        source: &ExportSource<'_>,
        session: &Session,
        usage: &mut ExportUsage,
        most: u64,
    ) -> Result<(), ExportError> {
        let mut draft = self.begin(&session_path(session.id), usage, most).await?;
        let mut yaml = YamlWriter::default();
        write_head(&mut yaml, session);
        yaml.key("messages");
        let (mut any, mut page) = (false, PageRequest::first(PAGE));
        loop {
            let read = source.sessions.messages(session.id, View::All, &page).await?;
            for message in &read.items {
                yaml.raw(if any { "" } else { "\n" });
                any = true;
                write_message(&mut yaml, message);
            }
            draft.write(&yaml.take()).await?;
            let Some(next) = read.next else { break };
            page = PageRequest::after(next, PAGE);
        }
        draft.write(if any { "" } else { " []\n" }).await?;
        draft.finish(usage).await
    }

    async fn write_media(
        &self,
        source: &ExportSource<'_>,
        session: &Session,
        usage: &mut ExportUsage,
        most: u64,
    ) -> Result<(), ExportError> {
        let plugin = PluginId::new(MEDIA_NAMESPACE).map_err(Error::from)?;
        let prefix = format!("{}/", session.id);
        let (mut draft, mut page) = (None, PageRequest::first(PAGE));
        loop {
            let read = source.key_values.entries(&plugin, &prefix, &page).await?;
            let mut yaml = YamlWriter::default();
            for entry in &read.items {
                let piece = entry.key.as_str().strip_prefix(&prefix).unwrap_or_default();
                yaml.bytes(piece, &entry.value);
            }
            if draft.is_none() && !read.items.is_empty() {
                draft = Some(self.begin(&media_path(session.id), usage, most).await?);
            }
            if let Some(draft) = &mut draft {
                draft.write(&yaml.take()).await?;
            }
            let Some(next) = read.next else { break };
            page = PageRequest::after(next, PAGE);
        }
        match draft {
            Some(draft) => draft.finish(usage).await,
            None => Ok(()),
        }
    }

    async fn begin(&self, path: &str, usage: &ExportUsage, most: u64) -> Result<Draft, ExportError> {
        let target = self.path.join(path);
        let name = target.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let unfinished = target.with_file_name(format!(".{name}{UNFINISHED}"));
        let before = fs::symlink_metadata(&target).await.ok().map(|metadata| metadata.len());
        // One that is written anew takes the place of the earlier one.
        let used = usage.bytes.saturating_sub(before.unwrap_or_default());
        if before.is_none() && usage.files >= MAX_FILES {
            return Err(ExportError::Full { path: self.path.clone(), most });
        }
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(FILE_MODE);
        let file = options
            .open(&unfinished)
            .await
            .map_err(|source| ExportError::Io { path: unfinished.clone(), source })?;
        let (root, room) = (self.path.clone(), most.saturating_sub(used));
        Ok(Draft { file, unfinished, target, root, before, written: 0, room, most })
    }
}

/// A file that is being written.
struct Draft {
    file: File,
    unfinished: PathBuf,
    target: PathBuf,
    root: PathBuf,
    /// The bytes of the file in whose place it comes.
    before: Option<u64>,
    written: u64,
    room: u64,
    most: u64,
}

impl Draft {
    async fn write(&mut self, text: &str) -> Result<(), ExportError> {
        self.written = self.written.saturating_add(text.len() as u64);
        if self.written > self.room {
            // If it stays, the next pass deletes it.
            let _stays = fs::remove_file(&self.unfinished).await;
            return Err(ExportError::Full { path: self.root.clone(), most: self.most });
        }
        let written = self.file.write_all(text.as_bytes()).await;
        written.map_err(|source| ExportError::Io { path: self.unfinished.clone(), source })
    }

    async fn finish(mut self, usage: &mut ExportUsage) -> Result<(), ExportError> {
        let directory = self.target.parent().map(Path::to_owned).unwrap_or_default();
        let finished = async {
            self.file.flush().await?;
            self.file.sync_all().await?;
            fs::rename(&self.unfinished, &self.target).await
        };
        let finished = finished.await;
        let failed = |source| ExportError::Io { path: self.target.clone(), source };
        finished.map_err(failed)?;
        // It is there, even if it would not outlive a power failure.
        usage.files += u64::from(self.before.is_none());
        usage.bytes =
            usage.bytes.saturating_sub(self.before.unwrap_or_default()).saturating_add(self.written);
        let synced = async { File::open(&directory).await?.sync_all().await };
        synced.await.map_err(failed)
    }
}

/// Whether it is the name of a file that is being written, or was when a process was killed.
fn is_unfinished(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    name.starts_with('.') && name.ends_with(UNFINISHED)
}

/// The session of a file; `None` for a file of somebody else.
fn session_of(path: &Path) -> Option<SessionId> {
    path.file_name()?.to_str()?.strip_suffix(".yaml")?.parse().ok()
}

/// Deletes a file, if it is there.
async fn remove(path: PathBuf) -> Result<(), ExportError> {
    match fs::remove_file(&path).await {
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(ExportError::Io { path, source }),
        _ => Ok(()),
    }
}

#[cfg(test)]
#[path = "export_directory_tests.rs"]
mod tests;

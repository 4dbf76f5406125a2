//! Read-only views: what was checked is what runs.
//!
//! An interpreter opens its script by path after we have checked it, and a plugin opens files of its
//! directory at any time. So scripts and directories are copied and hashed in one pass, and run from the
//! copy, which only we can change:
//!
//! ```text
//! <data_dir>/views/<supervisor>/     one for each runtime directory; its lock says whether it is in use
//!   lock
//!   1/  2/  …                        0750, ours; the group is the plugin's; files 0444 or 0555, directories 0555
//! ```
//!
//! A script that only root may change, below `/usr` and the like, runs in place: it may need the files beside
//! it, and is as safe as its interpreter.
//!
//! Views are in the data directory, because `/run`, the usual place of the runtime directory, is in memory
//! and often mounted noexec.

mod digest_cache;
mod handover;

use std::collections::{BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use rustix::fs::{Gid, Mode, OFlags, StatVfsMountFlags, fchmod, fchown, fstatvfs};
use sha2::{Digest, Sha256};

use talon_plugin_config::files::digest;
use talon_plugin_config::files::tree::{TreeEntry, TreeError, walk};
use talon_plugin_config::name::PluginName;
use talon_plugin_config::spec::MANIFEST_FILE;

use self::digest_cache::DigestCache;
use crate::rundir::{DirLock, InheritedEntries, LockError, impassable_ancestor, prepare_dir, remove_tree};
use crate::settings::SetupError;

const VIEWS_DIR: &str = "views";
const LOCK_FILE: &str = "lock";

/// Why a view cannot be made. The messages end with what to do next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum ViewError {
    /// The source cannot be used.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// The copy cannot be written.
    #[error("cannot copy the plugin into {}: {source}; check that there is room", path.display())]
    Copy {
        /// The copy's path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The plugin's uid cannot reach the copy.
    #[error("{}: {problem}, or choose another state.data_dir", path.display())]
    Unreachable {
        /// The directory in the way.
        path: PathBuf,
        /// Why, and what to do.
        problem: &'static str,
    },
    /// The copies are on a file system without execute permission.
    #[error("{} is mounted noexec, so no script can run from there: choose another state.data_dir", path.display())]
    NoExec {
        /// The directory of the copies.
        path: PathBuf,
    },
}

/// The source of a view.
pub(crate) enum ViewSource<'s> {
    /// A directory plugin.
    Directory(&'s Path),
    /// One script, open, and its file name.
    Script(&'s File, &'s OsStr),
}

/// All views of one supervisor.
#[derive(Debug)]
pub(crate) struct Views {
    path: PathBuf,
    dir: Arc<OwnedFd>,
    next: AtomicU64,
    /// The latest view of each plugin. Each has its own lock, so that a large copy does not block other
    /// plugins.
    latest: Mutex<HashMap<PluginName, Arc<ViewSlot>>>,
    /// Whether another supervisor has taken them over.
    released: Arc<AtomicBool>,
    /// Digests of programs that run in place.
    digest_cache: DigestCache,
    lock: DirLock,
}

/// The latest view of one plugin.
type ViewSlot = Mutex<Option<Arc<View>>>;

/// One view. Dropping the last reference removes it.
#[derive(Debug)]
pub(crate) struct View {
    path: PathBuf,
    digest: String,
    name: String,
    parent: Arc<OwnedFd>,
    /// Whether another supervisor has taken it over.
    released: Arc<AtomicBool>,
    script: Option<OsString>,
    gid: Option<u32>,
}

impl View {
    /// Its root.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The digest of its content: a directory, or one script.
    pub(crate) fn digest(&self) -> &str {
        &self.digest
    }

    /// Whether another process with this gid can run from it.
    pub(crate) fn is_usable_by(&self, gid: Option<u32>) -> bool {
        self.gid == gid && self.is_intact()
    }

    /// Whether the content is unchanged; plugins without their own uids could change it.
    fn is_intact(&self) -> bool {
        let now = match &self.script {
            None => digest::of_tree(&self.path, None).ok(),
            Some(name) => File::open(self.path.join(name)).ok().and_then(|file| digest::of_file(&file).ok()),
        };
        now.as_deref() == Some(&self.digest)
    }
}

impl Drop for View {
    fn drop(&mut self) {
        if self.released.load(Ordering::Acquire) {
            return;
        }
        if let Err(error) = remove_tree(self.parent.as_fd(), &self.name) {
            tracing::warn!(path = %self.path.display(), %error, "a plugin's copy cannot be removed");
        }
    }
}

impl Views {
    /// Prepares the directory for the views of the supervisor with this runtime directory, and removes views
    /// of supervisors that no longer run.
    #[cfg(test)]
    pub(crate) fn prepare(data_dir: &Path, runtime_dir: &Path) -> Result<Self, SetupError> {
        Self::take_over(data_dir, runtime_dir, InheritedEntries::default())
    }

    /// The same, but keeps the views that another supervisor left for takeover.
    pub(crate) fn take_over(
        data_dir: &Path,
        runtime_dir: &Path,
        left: InheritedEntries,
    ) -> Result<Self, SetupError> {
        // Whether plugins can reach this directory is checked for the first view: programs that run by
        // descriptor need none.
        let views = prepare_dir(&data_dir.join(VIEWS_DIR), "state.data_dir", false)?;
        let id = hex::encode(&Sha256::digest(runtime_dir.as_os_str().as_bytes())[..8]);
        clear_abandoned(&views, &id);
        let path = prepare_dir(&views.join(&id), "state.data_dir", false)?;
        let lock_file = path.join(LOCK_FILE);
        let lock = match left.lock {
            Some(lock) => DirLock::take_over(&lock_file, lock),
            None => DirLock::acquire(&lock_file),
        };
        let lock = lock.map_err(|error| match error {
            LockError::Held { holder } => {
                SetupError::AlreadyRunning { runtime_dir: runtime_dir.to_owned(), holder }
            }
            LockError::Io(source) => SetupError::Io { what: "lock", path: path.clone(), source },
        })?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let dir = rustix::fs::open(&path, flags, Mode::empty()).map_err(|e| SetupError::Io {
            what: "open",
            path: path.clone(),
            source: e.into(),
        })?;
        let last = left.names.iter().filter_map(|name| name.parse::<u64>().ok()).max().unwrap_or(0);
        let this = Self {
            path,
            dir: Arc::new(dir),
            next: AtomicU64::new(last.saturating_add(1)),
            latest: Mutex::default(),
            released: Arc::default(),
            digest_cache: DigestCache::default(),
            lock,
        };
        this.clear_except(&left.names);
        Ok(this)
    }

    /// The digest of a program that runs in place. Blocking.
    pub(crate) fn digest_of(&self, file: &File) -> io::Result<String> {
        self.digest_cache.digest(file)
    }

    /// Removes all views, also those in use. For start and shutdown.
    pub(crate) fn clear(&self) {
        self.clear_except(&BTreeSet::new());
    }

    fn clear_except(&self, kept: &BTreeSet<String>) {
        self.latest.lock().clear();
        let Ok(entries) = rustix::fs::Dir::read_from(&*self.dir) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name();
            if name.to_bytes().iter().all(u8::is_ascii_digit)
                && !name.to_str().is_ok_and(|name| kept.contains(name))
                && let Err(error) = remove_tree(self.dir.as_fd(), name)
            {
                tracing::warn!(name = %name.to_string_lossy(), %error, "a plugin's copy cannot be removed");
            }
        }
    }

    /// The view of a plugin's current source: the existing one if nothing changed, or a new copy. `gid` may
    /// read it. Blocking; reads the whole source.
    pub(crate) fn get_or_build(
        &self,
        plugin: &PluginName,
        source: ViewSource<'_>,
        gid: Option<u32>,
    ) -> Result<Arc<View>, ViewError> {
        let slot = {
            let mut latest = self.latest.lock();
            latest.entry(plugin.clone()).or_default().clone()
        };
        let mut slot = slot.lock();
        if let Some(view) = &*slot {
            let now = match &source {
                ViewSource::Directory(path) => digest::of_tree(path, Some(OsStr::new(MANIFEST_FILE)))?,
                ViewSource::Script(file, _) => digest::of_file(file)
                    .map_err(|source| ViewError::Copy { path: view.path.clone(), source })?,
            };
            if now == view.digest && view.is_usable_by(gid) {
                return Ok(view.clone());
            }
        }
        let view = Arc::new(self.build(source, gid)?);
        *slot = Some(view.clone());
        Ok(view)
    }

    fn build(&self, source: ViewSource<'_>, gid: Option<u32>) -> Result<View, ViewError> {
        let flags = fstatvfs(&*self.dir).map_err(|e| self.copy_error("", e))?.f_flag;
        if flags.contains(StatVfsMountFlags::NOEXEC) {
            return Err(ViewError::NoExec { path: self.path.clone() });
        }
        if gid.is_some()
            && let Some((path, problem)) = impassable_ancestor(&self.path)
        {
            return Err(ViewError::Unreachable { path, problem });
        }
        let name = self.next.fetch_add(1, Ordering::Relaxed).to_string();
        // From here on dropping the view removes an incomplete copy.
        let mut view = View {
            path: self.path.join(&name),
            digest: String::new(),
            name,
            parent: self.dir.clone(),
            released: self.released.clone(),
            script: None,
            gid,
        };
        let root = view.path.clone();
        std::fs::DirBuilder::new().mode(0o700).create(&root).map_err(|e| self.copy_error("", e))?;
        view.digest = match source {
            ViewSource::Script(file, name) => {
                view.script = Some(name.to_owned());
                copy_file(file, &root.join(name), true)
                    .map_err(|source| ViewError::Copy { path: root.join(name), source })?
            }
            ViewSource::Directory(from) => copy_tree(from, &root)?,
        };
        let fd = File::open(&root).map_err(|e| self.copy_error("", e))?;
        let mode = if let Some(gid) = gid {
            fchown(&fd, None, Some(Gid::from_raw(gid))).map_err(|e| self.copy_error("", e))?;
            0o750
        } else {
            0o500
        };
        fchmod(&fd, Mode::from_raw_mode(mode)).map_err(|e| self.copy_error("", e))?;
        Ok(view)
    }

    fn copy_error(&self, below: &str, source: impl Into<io::Error>) -> ViewError {
        ViewError::Copy { path: self.path.join(below), source: source.into() }
    }
}

/// Copies a directory plugin without its manifest, and returns the digest of the copy.
fn copy_tree(from: &Path, to: &Path) -> Result<String, ViewError> {
    let mut tree = digest::TreeDigest::new();
    let mut directories = Vec::new();
    let mut failed = None;
    walk(from, Some(OsStr::new(MANIFEST_FILE)), &mut |path, entry| {
        let target = to.join(path);
        let copied = match entry {
            TreeEntry::Dir => {
                tree.directory(path);
                directories.push(target.clone());
                std::fs::DirBuilder::new().mode(0o700).create(&target)
            }
            TreeEntry::File { file, executable } => {
                copy_file(file, &target, executable).map(|content| tree.file(path, executable, &content))
            }
            TreeEntry::Link { target: leads_to } => {
                tree.link(path, leads_to);
                symlink(leads_to, &target)
            }
        };
        copied.map_err(|source| {
            // The walk only supports errors of the source, so one of those stops it.
            failed = Some(ViewError::Copy { path: target, source });
            TreeError::TooLarge { path: from.to_owned() }
        })
    })
    .map_err(|error| failed.take().unwrap_or(ViewError::Tree(error)))?;
    // Innermost first, and only after copying: no file can be created in a read-only directory.
    for directory in directories.iter().rev() {
        std::fs::set_permissions(directory, std::fs::Permissions::from_mode(0o555))
            .map_err(|source| ViewError::Copy { path: directory.clone(), source })?;
    }
    Ok(tree.finish())
}

/// Copies one file and returns the digest of the written bytes.
fn copy_file(from: &File, to: &Path, executable: bool) -> io::Result<String> {
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(to)?;
    let digest = digest::copy(from, &mut file)?;
    file.set_permissions(std::fs::Permissions::from_mode(if executable { 0o555 } else { 0o444 }))?;
    Ok(digest)
}

/// Removes the views of supervisors that no longer run, whose lock is free.
fn clear_abandoned(views: &Path, own_id: &str) {
    let Ok(entries) = std::fs::read_dir(views) else { return };
    for entry in entries.flatten() {
        let Ok(name) = entry.file_name().into_string() else { continue };
        let ours = name.len() == own_id.len() && name.bytes().all(|b| b.is_ascii_hexdigit());
        let path = views.join(&name);
        if !ours || name == own_id || !path.symlink_metadata().is_ok_and(|m| m.is_dir()) {
            continue;
        }
        let Ok(_lock) = DirLock::acquire(&path.join(LOCK_FILE)) else { continue };
        let removed = File::open(views).and_then(|parent| remove_tree(parent.as_fd(), name.as_str()));
        if let Err(error) = removed {
            tracing::warn!(path = %path.display(), %error, "copies of an earlier supervisor cannot be removed");
        }
    }
}

#[cfg(test)]
mod tests;

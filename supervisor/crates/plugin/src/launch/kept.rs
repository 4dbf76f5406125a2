//! The last program with which a plugin became ready, kept in case the one on the disk does not become ready.
//!
//! After a failed replacement the old process keeps running, but its file is gone: the disk holds the program that
//! failed. If the old process then dies, it is restarted from what it ran before:
//!
//! ```text
//! native binary         from its descriptor, which stays valid when the file is renamed over or removed; it is
//!                       copied when needed, because a jail can show only what has a path
//! script, directory     from Talon's copy that it ran from
//! by its path alone     a system script, or a system program behind a bridge: cannot be kept
//! ```
//!
//! One program for each plugin: one or two descriptors and at most one copy, as long as the plugin is registered. Its
//! content is verified before a restart: a descriptor does not protect a file from being overwritten in place.

use std::fmt;
use std::fs::File;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use talon_jail::Identity;
use talon_sanitize::{Sanitized, inert};

use super::Shared;
use super::error::LaunchError;
use super::program::Prepared;
use crate::bridge::Bridge;
use crate::discover::compare;
use crate::logs::{Level, LogSink};
use crate::spec::{Dialect, PluginSpec};
use crate::view::{Source, Views, digest, program};

/// Stores the last program with which a plugin became ready, if any.
#[derive(Default)]
pub(crate) struct Kept(ArcSwapOption<LastGood>);

/// Which program to start.
#[derive(Clone, Copy)]
pub(crate) struct Choice<'a> {
    /// The last good program; a program that becomes ready is stored here.
    pub(crate) kept: &'a Kept,
    /// Why the program on the disk is not to be started; `None`: it is.
    pub(crate) failed: Option<&'a Sanitized>,
}

/// A program that became ready.
pub(super) struct LastGood {
    prepared: Prepared,
    /// The dialect with which it was started; the oldest protocol also if it was detected.
    dialect: Dialect,
}

/// Where the program of a start comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Took {
    /// The disk.
    Disk,
    /// The last good program.
    LastGood,
    /// The disk, because the last good program was not available.
    Instead(Lost),
}

/// Why the last good program cannot be started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lost {
    /// It was started by its path and could not be kept.
    ByPath,
    /// Its file has other content now.
    Overwritten,
    /// Its copy was changed, or the plugin's gid is different now.
    Copy,
    /// It could not be copied.
    NotCopied,
}

impl Lost {
    fn why(self) -> &'static str {
        match self {
            Self::ByPath => "it is the system's and was started by its path, so that it could not be kept",
            Self::Overwritten => {
                "its file was written over in place (a new one is to be put beside it and renamed)"
            }
            Self::Copy => "its copy in the data directory was changed",
            Self::NotCopied => "it cannot be copied into the data directory (the supervisor's log says why)",
        }
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.why())
    }
}

impl Kept {
    /// Drops the program. Its copy is removed when this returns, unless a process still runs from it.
    pub(crate) async fn forget(&self) {
        self.set(None).await;
    }

    async fn set(&self, last_good: Option<Arc<LastGood>>) {
        let before = self.0.swap(last_good);
        // Dropping the last reference to a copy removes its files.
        let _ = tokio::task::spawn_blocking(move || drop(before)).await;
    }
}

impl Choice<'_> {
    /// The last good program, if that is to be started instead of the one on the disk.
    pub(super) fn last_good(&self) -> Option<Arc<LastGood>> {
        self.failed.and_then(|_| self.kept.0.load_full())
    }

    /// Stores a program that became ready.
    pub(super) async fn came_up(&self, program: Option<LastGood>) {
        // A remote server has no program to store.
        if let Some(program) = program.filter(|program| !program.prepared.digest.is_empty()) {
            self.kept.set(Some(Arc::new(program))).await;
        }
    }

    /// Notes in the plugin's log which program was started, if it is not the usual one.
    pub(super) fn tell(&self, took: Took, instance: u32, logs: &LogSink) {
        let Some(failed) = self.failed else { return };
        let text = match took {
            Took::Disk => return,
            Took::LastGood => inert!(
                "started again from the program that was last ready; what lies on the disk failed: {}",
                failed
            ),
            Took::Instead(why) => inert!(
                "started from what lies on the disk; the program that was last ready could not be, because {}",
                Sanitized::from(why.why())
            ),
        };
        logs.note(instance, Level::Warn, text);
    }
}

impl LastGood {
    pub(super) fn new(prepared: Prepared, dialect: Dialect) -> Self {
        Self { prepared, dialect }
    }

    /// Whether it speaks the oldest protocol, and so runs behind the bridge.
    pub(super) fn is_framed(&self) -> bool {
        self.dialect == Dialect::OpenTalonV0
    }

    /// Prepares the same program for another start, if it is unchanged. Blocking: its content is read.
    fn again(&self, spec: &PluginSpec, views: &Views, gid: Option<u32>) -> Result<Prepared, Lost> {
        match (&self.prepared.view, &self.prepared.file) {
            (Some(view), _) if view.still_serves(gid) => Ok(self.prepared.clone()),
            (Some(_), _) => Err(Lost::Copy),
            // The descriptor, if any, is the bridge's.
            (None, _) if Bridge::of(self.dialect).is_some() => Err(Lost::ByPath),
            (None, None) => Err(Lost::ByPath),
            (None, Some(file)) => self.copied(file, spec, views, gid),
        }
    }

    /// Prepares a native program from a copy of its descriptor's content. The plugin sees it at its usual path.
    fn copied(
        &self,
        file: &File,
        spec: &PluginSpec,
        views: &Views,
        gid: Option<u32>,
    ) -> Result<Prepared, Lost> {
        let digest = &self.prepared.digest;
        let not_copied = |error: &dyn fmt::Display| {
            tracing::warn!(plugin = %spec.name, %error, "the program that was last ready cannot be copied");
            Lost::NotCopied
        };
        // Checked before the copy takes space.
        if digest::of_file(file).map_err(|error| not_copied(&error))? != *digest {
            return Err(Lost::Overwritten);
        }
        let name = spec.program.file_name().unwrap_or(spec.program.as_os_str());
        let view =
            views.of(&spec.name, Source::Script(file, name), gid).map_err(|error| not_copied(&error))?;
        if view.digest() != digest {
            return Err(Lost::Overwritten);
        }
        let copy = program::open_in_view(&view.path().join(name)).map_err(|error| not_copied(&error))?;
        Ok(Prepared { file: Some(Arc::new(copy.file)), view: Some(view), ..self.prepared.clone() })
    }
}

impl Took {
    /// Adds to an error that the last good program was tried, too.
    pub(super) fn told_with(self, error: LaunchError) -> LaunchError {
        match self {
            Self::Instead(why) => LaunchError::NotKept { why, error: Box::new(error) },
            Self::Disk | Self::LastGood => error,
        }
    }
}

impl Shared {
    /// The program for a start: the last good one if it is requested and available, otherwise the one on the
    /// disk. Blocking.
    pub(super) fn choose(
        &self,
        spec: &PluginSpec,
        last_good: Option<&LastGood>,
    ) -> (Took, Result<(Prepared, Option<Identity>), LaunchError>) {
        let Some(last_good) = last_good else { return (Took::Disk, self.check(spec)) };
        let identity = match self.identity(spec) {
            Ok(identity) => identity,
            Err(error) => return (Took::LastGood, Err(error)),
        };
        match last_good.again(spec, &self.views, identity.map(|identity| identity.gid)) {
            Ok(prepared) => {
                let right = compare(spec, spec.program.clone(), prepared.digest.clone());
                (Took::LastGood, right.map(|()| (prepared, identity)).map_err(LaunchError::from))
            }
            Err(lost) => match self.check(spec) {
                // The disk holds the same program, so the program was not the cause of the failure.
                Ok(found) if found.0.digest == last_good.prepared.digest => (Took::Disk, Ok(found)),
                checked => (Took::Instead(lost), checked),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::io::Write;

    use talon_jail::Program;

    use super::*;
    use crate::discover::SpecDefaults;
    use crate::name::PluginName;

    fn prepared(program: Program, file: Option<File>, digest: &str) -> Prepared {
        Prepared {
            program,
            file: file.map(Arc::new),
            script: None,
            argv0: OsString::new(),
            args: Vec::new(),
            cwd: None,
            digest: digest.to_owned(),
            view: None,
        }
    }

    fn place() -> (tempfile::TempDir, PluginSpec, Views) {
        let dir = tempfile::tempdir().unwrap();
        let views = Views::prepare(&dir.path().join("data"), std::path::Path::new("/run/one")).unwrap();
        (dir, SpecDefaults::default().spec(PluginName::new("x").unwrap(), "test", "/bin/x"), views)
    }

    #[test]
    fn what_is_started_by_its_path_cannot_be_kept() {
        let (_dir, spec, views) = place();
        let by_path = || prepared(Program::Path("/usr/bin/tool".into()), None, "digest");
        assert_eq!(
            LastGood::new(by_path(), Dialect::Auto).again(&spec, &views, None).err(),
            Some(Lost::ByPath)
        );
        let bridge = tempfile::tempfile().unwrap();
        let behind = prepared(Program::Descriptor, Some(bridge), "digest");
        assert_eq!(LastGood::new(behind, Dialect::Mcp).again(&spec, &views, None).err(), Some(Lost::ByPath));
    }

    #[test]
    fn what_is_kept_is_what_it_was() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"#!program").unwrap();
        let digest = digest::of_file(&file).unwrap();
        let same = file.try_clone().unwrap();
        let kept = LastGood::new(prepared(Program::Descriptor, Some(same), &digest), Dialect::Auto);
        let (_dir, spec, views) = place();
        let again = kept.again(&spec, &views, None).unwrap();
        assert_eq!(again.view.unwrap().digest(), digest);
        file.write_all(b", and more").unwrap();
        assert_eq!(kept.again(&spec, &views, None).err(), Some(Lost::Overwritten));
    }

    #[test]
    fn of_a_failure_it_is_told_what_else_was_tried() {
        let text = Took::Instead(Lost::Overwritten).told_with(LaunchError::NoUid).to_string();
        assert!(text.contains("written over in place") && text.ends_with("best-effort"), "{text}");
        assert!(Took::Instead(Lost::ByPath).told_with(LaunchError::NoUid).is_permanent());
    }
}

//! The program that a plugin came up with last, kept for when what lies on the disk does not come up.
//!
//! A replacement that failed leaves the process that runs, but not its file: on the disk lies the one that does not work. A
//! process that dies by itself then is started again from what it ran:
//!
//! ```text
//! native binary         its descriptor, by which a file that was renamed over or removed lives on; a copy is made of it when it is
//!                       needed, because a jail is shown only what has a path
//! script, directory     the copy of ours that it ran from
//! by its path alone     a script of the system's, or a program of the system's behind a bridge: cannot be kept
//! ```
//!
//! One program a plugin, which is one or two descriptors and at most one copy, as long as the plugin is registered. It is read
//! before it is started again: a descriptor does not keep a file from being written over in place.

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

/// What a plugin came up with last, if anything.
#[derive(Default)]
pub(crate) struct Kept(ArcSwapOption<LastGood>);

/// Which program a start takes.
#[derive(Clone, Copy)]
pub(crate) struct Choice<'a> {
    /// What came up last, and where the next one is kept that does.
    pub(crate) kept: &'a Kept,
    /// Why what lies on the disk is not to be started; `None`: it is.
    pub(crate) failed: Option<&'a Sanitized>,
}

/// A program that came up.
pub(super) struct LastGood {
    prepared: Prepared,
    /// As which it was started; of the oldest protocol also if that was found out.
    dialect: Dialect,
}

/// Where the program of a start is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Took {
    /// What lies on the disk.
    Disk,
    /// What came up last.
    LastGood,
    /// What lies on the disk, because what came up last could not be had.
    Instead(Lost),
}

/// Why what came up last cannot be started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lost {
    /// It cannot be kept.
    ByPath,
    /// It was kept, and is something else now.
    Overwritten,
    /// The same of our copy, or the plugin's gid is another one now.
    Copy,
    /// No copy could be made of it.
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
    /// Lets go of it. What is left of a copy is removed when this returns, unless somebody runs from it.
    pub(crate) async fn forget(&self) {
        self.set(None).await;
    }

    async fn set(&self, last_good: Option<Arc<LastGood>>) {
        let before = self.0.swap(last_good);
        // The last one on a copy removes its files.
        let _ = tokio::task::spawn_blocking(move || drop(before)).await;
    }
}

impl Choice<'_> {
    /// What is to be started, if that is not what lies on the disk.
    pub(super) fn last_good(&self) -> Option<Arc<LastGood>> {
        self.failed.and_then(|_| self.kept.0.load_full())
    }

    /// Keeps what came up.
    pub(super) async fn came_up(&self, program: Option<LastGood>) {
        // Of a server elsewhere there is nothing to keep.
        if let Some(program) = program.filter(|program| !program.prepared.digest.is_empty()) {
            self.kept.set(Some(Arc::new(program))).await;
        }
    }

    /// Says in the plugin's log from what it was started, if that is not as ever.
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

    /// The same once more, if it still is what it was. Blocking: it is read.
    fn again(&self, spec: &PluginSpec, views: &Views, gid: Option<u32>) -> Result<Prepared, Lost> {
        match (&self.prepared.view, &self.prepared.file) {
            (Some(view), _) if view.still_serves(gid) => Ok(self.prepared.clone()),
            (Some(_), _) => Err(Lost::Copy),
            // The descriptor is the bridge's, or there is none.
            (None, _) if Bridge::of(self.dialect).is_some() => Err(Lost::ByPath),
            (None, None) => Err(Lost::ByPath),
            (None, Some(file)) => self.copied(file, spec, views, gid),
        }
    }

    /// A native program from a copy of what its descriptor holds. It is shown to the plugin where it always was.
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
        // Before it takes room.
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
    /// Says with an error what else was tried.
    pub(super) fn told_with(self, error: LaunchError) -> LaunchError {
        match self {
            Self::Instead(why) => LaunchError::NotKept { why, error: Box::new(error) },
            Self::Disk | Self::LastGood => error,
        }
    }
}

impl Shared {
    /// What a start executes: what came up last, if that is to be and can be, or what lies on the disk. Blocking.
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
                // Something else than the program was the matter.
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

//! The last program with which a plugin became ready, kept in case the one on the disk is gone or does not
//! become ready.
//!
//! After a failed replacement the old process keeps running, but its file is gone: the disk holds the program
//! that failed. Or the file was deleted under a running plugin. If the process then dies, it is restarted
//! from what it ran before:
//!
//! ```text
//! native binary         from its descriptor, which stays valid when the file is renamed over or removed; it is
//!                       copied when needed, because a jail can show only what has a path
//! script, directory     from Talon's copy that it ran from
//! by its path alone     a system script, or a system program behind a bridge: cannot be kept
//! ```
//!
//! One program for each plugin: one or two descriptors and at most one copy, as long as the plugin is
//! registered. Its content is verified before a restart: a descriptor does not protect a file from being
//! overwritten in place.

use std::fmt;
use std::fs::File;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use talon_jail::Identity;
use talon_plugin_config::bridge::Bridge;
use talon_plugin_config::discover::check_digest;
use talon_plugin_config::files::{digest, program};
use talon_plugin_config::spec::{Dialect, PluginSpec};
use talon_sanitize::{Raw, Sanitized, sanitized};

use super::error::LaunchError;
use super::last_good_unavailable::LastGoodUnavailable;
use super::program::PreparedProgram;
use super::shared::Shared;
use crate::logs::{Level, LogSink};
use crate::view::{ViewSource, Views};

/// Stores the last program with which a plugin became ready, if any.
#[derive(Default)]
pub(crate) struct LastGoodCache {
    program: ArcSwapOption<LastGoodProgram>,
    /// For operators: the plugin runs from this program because the one on the disk is gone.
    gone_note: ArcSwapOption<Sanitized>,
}

/// Which program to start.
#[derive(Clone, Copy)]
pub(crate) struct ProgramChoice<'a> {
    /// The last good program; a program that becomes ready is stored here.
    pub(crate) cache: &'a LastGoodCache,
    /// Whether the program on the disk is started.
    pub(crate) disk: DiskChoice<'a>,
}

/// Whether the program on the disk is started.
#[derive(Debug, Clone, Copy)]
pub(crate) enum DiskChoice<'a> {
    /// It is, whatever it is: an operator asked for this start.
    Always,
    /// It is, unless it is gone: then the last good program is started.
    UnlessGone,
    /// It is not, for this reason: the last good program is started.
    Failed(&'a Sanitized),
}

/// A program that became ready.
pub(super) struct LastGoodProgram {
    prepared: PreparedProgram,
    /// The dialect with which it was started; the oldest protocol also if it was detected.
    dialect: Dialect,
}

/// Where the program of a start comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProgramSource {
    /// The disk.
    Disk,
    /// The last good program.
    LastGood,
    /// The disk, because the last good program was not available.
    DiskFallback(LastGoodUnavailable),
}

impl LastGoodCache {
    /// Drops the program. Its copy is removed when this returns, unless a process still runs from it.
    pub(crate) async fn forget(&self) {
        self.set(None).await;
    }

    /// For operators: why the plugin runs from this program, if the one on the disk is gone.
    pub(crate) fn gone_note(&self) -> Option<Sanitized> {
        self.gone_note.load().as_deref().cloned()
    }

    async fn set(&self, last_good: Option<Arc<LastGoodProgram>>) {
        let before = self.program.swap(last_good);
        // Dropping the last reference to a copy removes its files.
        let _ = tokio::task::spawn_blocking(move || drop(before)).await;
    }
}

impl ProgramChoice<'_> {
    /// The last good program, if that is to be started instead of the one on the disk. `is_gone` says whether
    /// there is none on the disk.
    pub(super) fn last_good(&self, is_gone: bool) -> Option<Arc<LastGoodProgram>> {
        match self.disk {
            DiskChoice::Always => None,
            DiskChoice::UnlessGone if !is_gone => None,
            DiskChoice::UnlessGone | DiskChoice::Failed(_) => self.cache.program.load_full(),
        }
    }

    /// Stores a program that became ready.
    pub(super) async fn remember(&self, program: Option<LastGoodProgram>) {
        // A remote server has no program to store.
        if let Some(program) = program.filter(|program| !program.prepared.digest.is_empty()) {
            self.cache.set(Some(Arc::new(program))).await;
        }
    }

    /// Notes for operators which program was started, if it is not the usual one: in the plugin's log, and
    /// with its status for as long as there is none on the disk.
    pub(super) fn note_source(
        &self,
        source: ProgramSource,
        spec: &PluginSpec,
        instance: u32,
        logs: &LogSink,
    ) {
        let mut gone = None;
        let text = match (source, self.disk) {
            (ProgramSource::Disk, _) => None,
            (ProgramSource::LastGood, DiskChoice::Failed(failed)) => Some(sanitized!(
                "started again from the program that was last ready; what lies on the disk failed: {}",
                failed
            )),
            (ProgramSource::LastGood, DiskChoice::UnlessGone | DiskChoice::Always) => {
                let text = sanitized!(
                    "started again from the program that was last ready, because {} is gone: put it back, then run `talon \
                     plugin reload {}`, or remove the plugin from the configuration",
                    Raw::of(spec.program.display()).line(),
                    spec.name
                );
                gone = Some(Arc::new(text.clone()));
                Some(text)
            }
            (ProgramSource::DiskFallback(why), _) => Some(sanitized!(
                "started from what lies on the disk; the program that was last ready could not be, because {}",
                Sanitized::from(why.reason())
            )),
        };
        self.cache.gone_note.store(gone);
        if let Some(text) = text {
            logs.note(instance, Level::Warn, text);
        }
    }
}

impl LastGoodProgram {
    pub(super) fn new(prepared: PreparedProgram, dialect: Dialect) -> Self {
        Self { prepared, dialect }
    }

    /// Whether it speaks the oldest protocol, and so runs behind the bridge.
    pub(super) fn is_framed(&self) -> bool {
        self.dialect == Dialect::OpenTalonV0
    }

    /// Prepares the same program for another start, if it is unchanged. Blocking: its content is read.
    fn reopen(
        &self,
        spec: &PluginSpec,
        views: &Views,
        gid: Option<u32>,
    ) -> Result<PreparedProgram, LastGoodUnavailable> {
        match (&self.prepared.view, &self.prepared.file) {
            (Some(view), _) if view.is_usable_by(gid) => Ok(self.prepared.clone()),
            (Some(_), _) => Err(LastGoodUnavailable::CopyChanged),
            // The descriptor, if any, is the bridge's.
            (None, _) if Bridge::for_dialect(self.dialect).or_else(|| Bridge::for_plugin(spec)).is_some() => {
                Err(LastGoodUnavailable::ByPath)
            }
            (None, None) => Err(LastGoodUnavailable::ByPath),
            (None, Some(file)) => self.copy_from_file(file, spec, views, gid),
        }
    }

    /// Prepares a native program from a copy of its descriptor's content. The plugin sees it at its usual
    /// path.
    fn copy_from_file(
        &self,
        file: &File,
        spec: &PluginSpec,
        views: &Views,
        gid: Option<u32>,
    ) -> Result<PreparedProgram, LastGoodUnavailable> {
        let digest = &self.prepared.digest;
        let not_copied = |error: &dyn fmt::Display| {
            tracing::warn!(plugin = %spec.name, %error, "the program that was last ready cannot be copied");
            LastGoodUnavailable::CopyFailed
        };
        // Checked before the copy takes space.
        if digest::of_file(file).map_err(|error| not_copied(&error))? != *digest {
            return Err(LastGoodUnavailable::Overwritten);
        }
        let name = spec.program.file_name().unwrap_or(spec.program.as_os_str());
        let view = views
            .get_or_build(&spec.name, ViewSource::Script(file, name), gid)
            .map_err(|error| not_copied(&error))?;
        if view.digest() != digest {
            return Err(LastGoodUnavailable::Overwritten);
        }
        let copy = program::open_in_view(&view.path().join(name)).map_err(|error| not_copied(&error))?;
        Ok(PreparedProgram { file: Some(Arc::new(copy.file)), view: Some(view), ..self.prepared.clone() })
    }
}

impl ProgramSource {
    /// Adds to an error that the last good program was tried, too.
    pub(super) fn explain(self, error: LaunchError) -> LaunchError {
        match self {
            Self::DiskFallback(why) => LaunchError::FallbackFailed { why, error: Box::new(error) },
            Self::Disk | Self::LastGood => error,
        }
    }
}

impl Shared {
    /// The program for a start: the last good one if it is requested and available, otherwise the one on the
    /// disk. Blocking.
    pub(super) fn choose_program(
        &self,
        spec: &PluginSpec,
        last_good: Option<&LastGoodProgram>,
    ) -> (ProgramSource, Result<(PreparedProgram, Option<Identity>), LaunchError>) {
        let Some(last_good) = last_good else { return (ProgramSource::Disk, self.prepare_program(spec)) };
        let identity = match self.identity(spec) {
            Ok(identity) => identity,
            Err(error) => return (ProgramSource::LastGood, Err(error)),
        };
        match last_good.reopen(spec, &self.views, identity.map(|identity| identity.gid)) {
            Ok(prepared) => {
                let right = check_digest(spec, spec.program.clone(), prepared.digest.clone());
                (ProgramSource::LastGood, right.map(|()| (prepared, identity)).map_err(LaunchError::from))
            }
            Err(lost) => match self.prepare_program(spec) {
                // The disk holds the same program, so the program was not the cause of the failure.
                Ok(found) if found.0.digest == last_good.prepared.digest => (ProgramSource::Disk, Ok(found)),
                checked => (ProgramSource::DiskFallback(lost), checked),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::io::Write;

    use talon_jail::Program;
    use talon_plugin_config::discover::SpecDefaults;
    use talon_plugin_config::name::PluginName;

    use super::*;

    fn prepared(program: Program, file: Option<File>, digest: &str) -> PreparedProgram {
        PreparedProgram {
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

    // Promises: UPGRADE-14
    #[test]
    fn what_is_started_by_its_path_cannot_be_kept() {
        let (_dir, spec, views) = place();
        let by_path = || prepared(Program::Path("/usr/bin/tool".into()), None, "digest");
        assert_eq!(
            LastGoodProgram::new(by_path(), Dialect::Auto).reopen(&spec, &views, None).err(),
            Some(LastGoodUnavailable::ByPath)
        );
        let bridge = tempfile::tempfile().unwrap();
        let behind = prepared(Program::Descriptor, Some(bridge), "digest");
        assert_eq!(
            LastGoodProgram::new(behind, Dialect::Mcp).reopen(&spec, &views, None).err(),
            Some(LastGoodUnavailable::ByPath)
        );
    }

    #[test]
    fn what_is_kept_is_what_it_was() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"#!program").unwrap();
        let digest = digest::of_file(&file).unwrap();
        let same = file.try_clone().unwrap();
        let kept = LastGoodProgram::new(prepared(Program::Descriptor, Some(same), &digest), Dialect::Auto);
        let (_dir, spec, views) = place();
        let again = kept.reopen(&spec, &views, None).unwrap();
        assert_eq!(again.view.unwrap().digest(), digest);
        file.write_all(b", and more").unwrap();
        assert_eq!(kept.reopen(&spec, &views, None).err(), Some(LastGoodUnavailable::Overwritten));
    }

    #[test]
    fn of_a_failure_it_is_told_what_else_was_tried() {
        let text = ProgramSource::DiskFallback(LastGoodUnavailable::Overwritten)
            .explain(LaunchError::NoUid)
            .to_string();
        assert!(text.contains("written over in place") && text.ends_with("best-effort"), "{text}");
        assert!(
            ProgramSource::DiskFallback(LastGoodUnavailable::ByPath)
                .explain(LaunchError::NoUid)
                .is_permanent()
        );
    }
}

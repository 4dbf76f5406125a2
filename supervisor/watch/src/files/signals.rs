//! What the kernel's events say, on their way from the thread that reads them: which directories to look at.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use notify::event::{AccessKind, AccessMode, CreateKind, EventKind, RemoveKind};

use crate::limits::DIRTY;

/// What was heard since it was last asked.
#[derive(Debug, Default)]
pub(crate) struct PendingEvents {
    pub(crate) directories: HashSet<PathBuf>,
    /// Events were lost, or there were more directories than are kept.
    pub(crate) everything: bool,
    /// The kernel takes no further watches.
    pub(crate) limit_reached: bool,
    /// Somebody has something else for who waits.
    pub(crate) woken: bool,
}

/// Between the reader of events, which never waits, and who looks at directories. A directory is in it once,
/// however much happens in it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Signals(Arc<(Mutex<PendingEvents>, Condvar)>);

impl Signals {
    /// Takes an event of the kernel.
    pub(crate) fn take(&self, event: notify::Result<notify::Event>) {
        let mut heard = self.lock();
        match event {
            Ok(event) if event.need_rescan() => heard.everything = true,
            Ok(event) if is_noise(event.kind) => return,
            Ok(event) => {
                for path in &event.paths {
                    // One that was removed and made again has to be looked at itself, since its watch is gone.
                    if is_directory(event.kind) {
                        heard.add(path);
                    }
                    heard.add(path.parent().unwrap_or(path));
                }
            }
            Err(error) if matches!(error.kind, notify::ErrorKind::MaxFilesWatch) => {
                heard.limit_reached = true
            }
            Err(_) => heard.everything = true,
        }
        self.0.1.notify_one();
    }

    /// Ends a wait.
    pub(crate) fn wake(&self) {
        self.lock().woken = true;
        self.0.1.notify_one();
    }

    /// Waits until something is heard, at most this long, and takes it.
    pub(crate) fn wait(&self, limit: Duration) -> PendingEvents {
        let heard = self.lock();
        let is_empty = |heard: &mut PendingEvents| {
            heard.directories.is_empty() && !heard.everything && !heard.limit_reached && !heard.woken
        };
        let waited = self.0.1.wait_timeout_while(heard, limit, is_empty);
        let (mut heard, _) = waited.unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *heard)
    }

    fn lock(&self) -> MutexGuard<'_, PendingEvents> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PendingEvents {
    fn add(&mut self, directory: &Path) {
        if self.directories.contains(directory) {
            return;
        }
        if self.directories.len() >= DIRTY {
            self.everything = true;
            return;
        }
        self.directories.insert(directory.to_owned());
    }
}

/// Whether a directory came or went.
fn is_directory(kind: EventKind) -> bool {
    matches!(kind, EventKind::Create(CreateKind::Folder) | EventKind::Remove(RemoveKind::Folder))
}

/// Opening and reading change nothing.
fn is_noise(kind: EventKind) -> bool {
    matches!(kind, EventKind::Access(access) if access != AccessKind::Close(AccessMode::Write))
}

#[cfg(test)]
mod tests {
    use notify::Event;
    use notify::event::Flag;

    use super::*;

    fn created(path: &str) -> notify::Result<Event> {
        Ok(Event::new(EventKind::Create(CreateKind::File)).add_path(path.into()))
    }

    // Promises: SHADOW-70
    #[test]
    fn a_lost_event_and_too_many_directories_are_a_look_at_everything() {
        let signals = Signals::default();
        (0..9).for_each(|_| signals.take(created("/w/a")));
        signals.take(Ok(
            Event::new(EventKind::Access(AccessKind::Open(AccessMode::Any))).add_path("/x/a".into())
        ));
        let heard = signals.wait(Duration::ZERO);
        assert_eq!(heard.directories, HashSet::from(["/w".into()]));
        assert!(!heard.everything);
        let gone = Event::new(EventKind::Remove(RemoveKind::Folder)).add_path("/w/a".into());
        signals.take(Ok(gone));
        assert_eq!(signals.wait(Duration::ZERO).directories, HashSet::from(["/w".into(), "/w/a".into()]));
        signals.take(Ok(Event::new(EventKind::Other).set_flag(Flag::Rescan)));
        assert!(signals.wait(Duration::ZERO).everything);
        (0..=DIRTY).for_each(|n| signals.take(created(&format!("/w/{n}/a"))));
        let heard = signals.wait(Duration::ZERO);
        assert!(heard.everything && heard.directories.len() == DIRTY);
        signals.take(Err(notify::Error::new(notify::ErrorKind::MaxFilesWatch)));
        assert!(signals.wait(Duration::ZERO).limit_reached);
        assert!(!signals.wait(Duration::ZERO).everything);
    }
}

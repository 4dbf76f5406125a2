//! One watch of the kernel for each directory, and what is said when it gives no more.

use std::path::Path;

use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};

use crate::notice::Notices;

/// Watches one directory; those below have watches of their own, so that ignored ones cost none. False once the
/// kernel takes no more.
pub(super) fn watch(watcher: &mut RecommendedWatcher, notices: &Notices, directory: &Path) -> bool {
    match watcher.watch(directory, RecursiveMode::NonRecursive) {
        Err(error) if matches!(error.kind, notify::ErrorKind::MaxFilesWatch) => {
            say_limit(notices);
            false
        }
        // Gone, or not readable: it is left as it is, and the next look tells.
        Ok(()) | Err(_) => true,
    }
}

/// Says once that the kernel takes no more.
pub(super) fn say_limit(notices: &Notices) {
    notices.limit(
        "inotify",
        "the kernel takes no further watches: directories without one are not followed; raise the limit with `sysctl \
         fs.inotify.max_user_watches=524288` and start the watcher again, or list fewer directories",
    );
}

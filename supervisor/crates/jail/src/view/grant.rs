//! Adds what an operator grants to a view.

use std::path::{Path, PathBuf};

use super::{Access, BindMount, View};

impl View {
    /// Shows a file or directory of the host at its own path; without it the jail is refused. The path must
    /// be absolute and free of `.` and `..`; [`View::check`] reports one that is not. An entry with
    /// sufficient access is not shown again.
    ///
    /// A path through a link of the view (`/bin/x`, where `/bin` leads to `/usr/bin`) is shown at the link's
    /// target. Reading and writing together is writing. Executing and writing together is never allowed, and
    /// is reported by [`View::check`]. The host path is resolved by [`View::resolve`].
    pub fn grant(&mut self, path: &Path, access: Access) {
        let at = self.resolve_links(path);
        if let Some(same) = self.shown.iter_mut().find(|shown| shown.at == at && shown.from == path) {
            same.needed = true;
            match (same.access, access) {
                (Access::Read, _) => same.access = access,
                (_, Access::Read) => {}
                (present, requested) if present == requested => {}
                _ => self.shown.push(BindMount { at, from: path.into(), access, needed: true }),
            }
            return;
        }
        let covered = self.entry_of(&at).is_some_and(|shown| {
            let enough = shown.access == access || (shown.access, access) == (Access::Execute, Access::Read);
            enough && shown.host_path(&at) == path
        });
        // A missing path is kept, so that the error names it.
        if !covered || std::fs::symlink_metadata(path).is_err() {
            self.may_hold_sockets |= access != Access::Write && path.is_dir();
            self.shown.push(BindMount { at, from: path.into(), access, needed: true });
        }
    }

    /// The path with every prefix replaced that is a link of the view.
    fn resolve_links(&self, path: &Path) -> PathBuf {
        let link = self.links.iter().find_map(|link| Some((link, path.strip_prefix(&link.at).ok()?)));
        let Some((link, rest)) = link else { return path.into() };
        let beside = link.at.parent().unwrap_or(&link.at);
        // Links of the view lead to shown entries, never through another link.
        let place = super::find::normalize(&beside.join(&link.to));
        if rest.as_os_str().is_empty() { place } else { place.join(rest) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::Symlink;

    fn shown(at: &str, access: Access) -> BindMount {
        BindMount { at: at.into(), from: at.into(), access, needed: false }
    }

    fn view() -> View {
        View {
            shown: vec![shown("/usr", Access::Execute)],
            links: vec![Symlink { at: "/bin".into(), to: "usr/bin".into() }],
            ..View::default()
        }
    }

    #[test]
    fn what_is_shown_already_is_not_shown_twice() {
        let mut view = view();
        view.grant(Path::new("/usr/bin/env"), Access::Read);
        view.grant(Path::new("/usr/bin/env"), Access::Execute);
        assert_eq!(view.shown.len(), 1);
        view.grant(Path::new("/usr/no/such"), Access::Read);
        assert!(view.shown.last().unwrap().needed);
        view.grant(Path::new("/usr/bin"), Access::Write);
        assert_eq!(view.shown.last().unwrap().access, Access::Write);
    }

    #[test]
    fn grants_of_one_path_add_up_but_never_to_write_and_execute() {
        let mut view = View::default();
        view.grant(Path::new("/opt"), Access::Read);
        view.grant(Path::new("/opt"), Access::Execute);
        view.grant(Path::new("/opt"), Access::Read);
        assert_eq!(view.shown, [BindMount { needed: true, ..shown("/opt", Access::Execute) }]);
        assert_eq!(view.check(), Ok(()));
        view.grant(Path::new("/opt"), Access::Write);
        assert!(view.check().unwrap_err().to_string().contains("/opt"));
    }

    #[test]
    fn a_directory_to_be_read_may_hold_sockets_and_nothing_else_is_said_to() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        std::fs::write(&file, "").unwrap();
        for (path, access, expected) in [
            (directory.path(), Access::Read, true),
            (directory.path(), Access::Execute, true),
            // Connecting is what writing is said to give.
            (directory.path(), Access::Write, false),
            (&file, Access::Read, false),
            // Shown to everybody already.
            (Path::new("/usr/bin"), Access::Read, false),
        ] {
            let mut view = view();
            view.grant(path, access);
            assert_eq!(view.may_hold_sockets, expected, "{} {access:?}", path.display());
        }
    }

    #[test]
    fn a_path_through_a_link_is_shown_where_that_leads() {
        let mut view = view();
        view.grant(Path::new("/bin/private-tool"), Access::Write);
        assert_eq!(view.shown[1].at, Path::new("/usr/bin/private-tool"));
        assert_eq!(view.shown[1].from, Path::new("/bin/private-tool"));
    }
}

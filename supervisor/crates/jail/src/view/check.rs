//! Checks what a view may contain.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path};

use super::error::ViewError;
use super::{PROBE_FILE, SHARED_MEMORY, TMP, View};

/// The most entries of each kind. Every host entry is a mount that the kernel makes and removes; a program
/// sees about 20 of the system. A view with more is refused; show a directory instead of its files.
const ENTRIES_MAX: usize = 256;

/// The most bytes in all generated files together. They are in kernel memory, and the largest one in use is a
/// hosts file of some lines.
const TEXT_MAX_BYTES: usize = 64 << 10;

/// The longest path: the kernel's own limit, without the terminating NUL.
const PATH_MAX_BYTES: usize = 4095;

/// Paths that are made anew for each program, where no host file can be shown.
const RESERVED: &[&str] = &["/proc", "/dev", PROBE_FILE];

/// Directories that all processes share for their sockets and scratch files; a program can connect to each
/// socket that it sees. They, and directories that contain them, are never shown as a whole.
const SHARED_BY_ALL: &[&str] = &["/run", "/var/run", "/tmp", "/var/tmp", "/dev", "/proc", "/sys"];

/// The kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EntryKind {
    Shown,
    Made,
    Link,
    Private,
    Program,
}

impl View {
    /// Returns what is wrong with the view, if anything is: a path that is not normalized, two entries that
    /// exclude each other, sizes that limit nothing, or too many entries.
    pub fn check(&self) -> Result<(), ViewError> {
        self.check_counts()?;
        self.check_private()?;
        let mut places = HashMap::from([(Path::new(TMP), EntryKind::Private)]);
        for (at, kind) in self.entries() {
            check_inside(at)?;
            if places.insert(at, kind).is_some() {
                return Err(ViewError::Duplicate(at.into()));
            }
        }
        for shown in &self.shown {
            check_host_path(&shown.from)?;
        }
        for link in &self.links {
            let length = link.to.as_os_str().len();
            if length == 0 || length > PATH_MAX_BYTES || has_nul(&link.to) {
                return Err(ViewError::DanglingLink(link.at.clone()));
            }
        }
        for (at, kind) in self.entries() {
            for above in at.ancestors().skip(1) {
                if let Some(over) = places.get(above) {
                    may_be_below(at, kind, above, *over)?;
                }
            }
        }
        Ok(())
    }

    fn entries(&self) -> impl Iterator<Item = (&Path, EntryKind)> {
        let shown = self.shown.iter().map(|shown| (shown.at.as_path(), EntryKind::Shown));
        let files = self.files.iter().map(|file| (file.at.as_path(), EntryKind::Made));
        let links = self.links.iter().map(|link| (link.at.as_path(), EntryKind::Link));
        let private = std::iter::once((self.private.at.as_path(), EntryKind::Private));
        let program = self.program_at.iter().map(|at| (at.as_path(), EntryKind::Program));
        shown.chain(files).chain(links).chain(private).chain(program)
    }

    fn check_counts(&self) -> Result<(), ViewError> {
        for (what, count) in [
            ("shown files", self.shown.len()),
            ("made files", self.files.len()),
            ("links", self.links.len()),
            ("private directories", self.private.dirs.len()),
        ] {
            if count > ENTRIES_MAX {
                return Err(ViewError::TooManyEntries { what, count, limit: ENTRIES_MAX });
            }
        }
        let bytes: usize = self.files.iter().map(|file| file.text.len()).sum();
        if bytes > TEXT_MAX_BYTES {
            return Err(ViewError::FilesTooLarge { bytes, limit: TEXT_MAX_BYTES });
        }
        Ok(())
    }

    fn check_private(&self) -> Result<(), ViewError> {
        let private = &self.private;
        // The kernel takes 0 for "without limit".
        if private.bytes == 0 || private.inodes == 0 {
            return Err(ViewError::NoRoom);
        }
        for (index, name) in private.dirs.iter().enumerate() {
            let plain = Path::new(name).components().eq([Component::Normal(name.as_ref())]);
            if !plain || name.contains('\0') || name.len() > 255 {
                return Err(ViewError::DirectoryName(name.clone()));
            }
            if name == SHARED_MEMORY || private.dirs[..index].contains(name) {
                return Err(ViewError::DuplicateDirectory { name: name.clone(), taken: SHARED_MEMORY });
            }
        }
        if !private.dirs.contains(&private.tmp) {
            return Err(ViewError::NoTmp { name: private.tmp.clone(), tmp: TMP });
        }
        Ok(())
    }
}

/// Checks a path inside the view.
fn check_inside(path: &Path) -> Result<(), ViewError> {
    check_absolute(path)?;
    match RESERVED.iter().find(|reserved| path.starts_with(reserved)) {
        Some(reserved) => Err(ViewError::Reserved { at: path.into(), reserved }),
        None => Ok(()),
    }
}

/// Checks whether a host path may be shown.
pub(super) fn check_host_path(path: &Path) -> Result<(), ViewError> {
    check_absolute(path)?;
    if let Some(shared) = SHARED_BY_ALL.iter().find(|shared| Path::new(shared).starts_with(path)) {
        return Err(ViewError::SharedByAll { from: path.into(), shared });
    }
    match RESERVED.iter().find(|reserved| path.starts_with(reserved)) {
        Some(reserved) => Err(ViewError::NeverShown { from: path.into(), reserved }),
        None => Ok(()),
    }
}

fn check_absolute(path: &Path) -> Result<(), ViewError> {
    let bytes = path.as_os_str().as_bytes();
    if bytes.len() > PATH_MAX_BYTES {
        return Err(ViewError::PathTooLong { bytes: bytes.len(), limit: PATH_MAX_BYTES });
    }
    let mut parts = bytes.split(|byte| *byte == b'/');
    // The text before the first "/" is empty, and between two is a name.
    let plain = bytes.len() > 1
        && parts.next() == Some(b"".as_slice())
        && parts.all(|part| !matches!(part, b"" | b"." | b".."));
    if plain && !has_nul(path) { Ok(()) } else { Err(ViewError::NotNormalized(path.into())) }
}

fn has_nul(path: &Path) -> bool {
    path.as_os_str().as_bytes().contains(&0)
}

/// Whether an entry can be made below another.
fn may_be_below(at: &Path, kind: EntryKind, above: &Path, over: EntryKind) -> Result<(), ViewError> {
    let why = match (over, kind) {
        (EntryKind::Shown | EntryKind::Private, EntryKind::Shown | EntryKind::Program) => return Ok(()),
        (EntryKind::Private, EntryKind::Private) if above == Path::new(TMP) => return Ok(()),
        (EntryKind::Shown, _) => "which is the host's: nothing can be made there",
        (EntryKind::Private, _) => "which is the program's own to write",
        (EntryKind::Made | EntryKind::Link | EntryKind::Program, _) => "which is no directory",
    };
    Err(ViewError::Nested { at: at.into(), above: above.into(), why })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::{Access, BindMount, GeneratedFile, Symlink};

    fn shown(at: &str) -> BindMount {
        BindMount { at: at.into(), from: at.into(), access: Access::Read, needed: true }
    }

    fn made(at: &str, bytes: usize) -> GeneratedFile {
        GeneratedFile { at: at.into(), text: "x".repeat(bytes) }
    }

    #[test]
    fn each_defect_is_named() {
        type Spoil = fn(&mut View);
        let cases: &[(&str, Spoil)] = &[
            ("absolute", |v| v.shown.push(shown("usr"))),
            ("absolute", |v| v.shown.push(shown("/"))),
            ("absolute", |v| v.shown.push(shown(""))),
            ("absolute", |v| v.shown.push(shown("/usr/../etc"))),
            ("absolute", |v| v.shown.push(shown("/usr/./lib"))),
            ("absolute", |v| v.shown.push(shown("/usr//lib"))),
            ("absolute", |v| v.shown.push(shown("/usr/"))),
            ("absolute", |v| v.shown.push(shown("/a\0b"))),
            ("absolute", |v| v.program_at = Some("program".into())),
            ("4095", |v| v.shown.push(shown(&"/x".repeat(4096)))),
            ("/proc", |v| v.shown.push(shown("/proc/1"))),
            ("/dev", |v| v.files.push(made("/dev/x", 0))),
            ("/dev", |v| v.shown.push(BindMount { from: "/dev/kvm".into(), ..shown("/x") })),
            ("needed below", |v| v.shown.push(shown("/run"))),
            ("needed below", |v| v.shown.push(shown("/var"))),
            ("needed below", |v| v.shown.push(shown("/sys"))),
            ("needed below", |v| v.shown.push(BindMount { from: "/tmp".into(), ..shown("/x") })),
            ("twice", |v| v.shown.push(shown("/tmp"))),
            ("twice", |v| v.files.push(made("/shown", 0))),
            ("twice", |v| v.program_at = Some("/run/plugin".into())),
            ("nothing can be made", |v| v.files.push(made("/shown/x", 0))),
            ("nothing can be made", |v| v.private.at = "/shown/x".into()),
            ("own to write", |v| v.files.push(made("/tmp/x", 0))),
            ("no directory", |v| v.shown.push(shown("/made/x"))),
            ("no directory", |v| v.shown.push(shown("/link/x/y"))),
            ("leads nowhere", |v| v.links[0].to = "".into()),
            ("257 shown", |v| v.shown.resize(257, shown("/x"))),
            ("65537 bytes", |v| v.files.push(made("/x", (64 << 10) + 1))),
            ("no room", |v| v.private.bytes = 0),
            ("no room", |v| v.private.inodes = 0),
            ("name", |v| v.private.dirs.push("a/b".into())),
            ("name", |v| v.private.dirs.push("..".into())),
            ("name", |v| v.private.dirs.push(String::new())),
            ("twice", |v| v.private.dirs.push("m".into())),
            ("twice", |v| v.private.dirs.push("t".into())),
            ("none of the private", |v| v.private.tmp = "x".into()),
        ];
        for (expected, spoil) in cases {
            let mut view = good();
            assert_eq!(view.check(), Ok(()));
            spoil(&mut view);
            let Err(error) = view.check() else { panic!("{expected}: {view:?}") };
            let refusal = error.to_string();
            assert!(refusal.contains(expected), "{expected}: {refusal}");
        }
    }

    fn good() -> View {
        View {
            shown: vec![shown("/shown"), shown("/shown/below"), shown("/tmp/app"), shown("/run/plugin/x")],
            files: vec![made("/made", 0)],
            links: vec![Symlink { at: "/link".into(), to: "shown".into() }],
            program_at: Some("/shown/program".into()),
            ..View::default()
        }
    }
}

//! The one directory that may be read, and how files below it are opened.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;
use serde::Deserialize;
use talon_sdk::{OrToolError, ToolError};

/// The longest path in a request, in bytes; Linux takes no longer one.
const MAX_PATH_BYTES: usize = 4096;
/// How often opening is retried when a concurrent rename below the root disturbed it.
const MAX_TRIES: u32 = 4;

/// The plugin's settings.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    /// The directory that may be read.
    pub(crate) root: PathBuf,
}

/// The opened root. The kernel keeps every lookup below it: a `..` or a symbolic link that leads outside
/// fails, even if it is swapped in concurrently.
#[derive(Debug)]
pub(crate) struct Workspace {
    root: PathBuf,
    dir: OwnedFd,
}

impl Workspace {
    pub(crate) fn open(root: &Path) -> Result<Self, ToolError> {
        let shown = root.display();
        let root = root.canonicalize().or_tool_error_with(|| format!("config: cannot open root {shown}"))?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = rustix::fs::open(&root, flags, Mode::empty())
            .or_tool_error_with(|| format!("config: root {shown} is no directory that can be opened"))?;
        let workspace = Self { root, dir };
        workspace.lookup(Path::new("."), OFlags::PATH).or_tool_error(
            "this machine cannot keep lookups below a directory: openat2 (Linux 5.6) is needed",
        )?;
        Ok(workspace)
    }

    /// The root's absolute path.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Opens a regular file below the root for reading.
    pub(crate) fn file(&self, relative: &Path) -> Result<File, ToolError> {
        // Without NONBLOCK, opening a named pipe would block the call until a writer appears.
        let fd = self
            .lookup(relative, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)
            .map_err(|errno| refusal(relative, errno))?;
        let file = File::from(fd);
        if file.metadata()?.is_file() {
            Ok(file)
        } else {
            Err(ToolError::new(format!(
                "`{}` is no regular file; list_files shows what is",
                relative.display()
            )))
        }
    }

    /// Resolves a path of a request below the root, following symbolic links.
    pub(crate) fn resolve(&self, path: &str) -> Result<PathBuf, ToolError> {
        let relative = self.relative(path)?;
        self.lookup(&relative, OFlags::PATH).map_err(|errno| refusal(&relative, errno))?;
        let resolved = self.root.join(&relative).canonicalize()?;
        match resolved.strip_prefix(&self.root) {
            Ok(below) => Ok(below.to_owned()),
            Err(_) => Err(outside(&relative)),
        }
    }

    /// A path of a request, made relative to the root. Absolute paths below the root are fine: models copy
    /// them.
    pub(crate) fn relative(&self, path: &str) -> Result<PathBuf, ToolError> {
        if path.len() > MAX_PATH_BYTES || path.contains('\0') {
            return Err(ToolError::new(format!(
                "a path has at most {MAX_PATH_BYTES} bytes and no zero byte"
            )));
        }
        let path = Path::new(path);
        let below =
            if path.is_absolute() { path.strip_prefix(&self.root).map_err(|_| outside(path))? } else { path };
        let mut relative: PathBuf = below.components().filter(|part| *part != Component::CurDir).collect();
        if relative.as_os_str().is_empty() {
            relative.push(".");
        }
        Ok(relative)
    }

    fn lookup(&self, relative: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let mut tries = 0;
        loop {
            tries += 1;
            match openat2(&self.dir, relative, flags | OFlags::CLOEXEC, Mode::empty(), resolve) {
                Err(Errno::AGAIN) if tries < MAX_TRIES => {}
                result => return result,
            }
        }
    }
}

fn refusal(relative: &Path, errno: Errno) -> ToolError {
    let shown = relative.display();
    match errno {
        Errno::NOENT | Errno::NOTDIR => ToolError::new(format!("`{shown}` does not exist")),
        Errno::XDEV | Errno::LOOP => outside(relative),
        Errno::ACCESS | Errno::PERM => ToolError::new(format!("`{shown}` may not be read")),
        _ => ToolError::new(format!("`{shown}` cannot be opened")).because(errno),
    }
}

fn outside(path: &Path) -> ToolError {
    ToolError::new(format!("`{}` leads outside the root; give a path below it", path.display()))
}

//! The one directory, and which paths a request may use.

use std::io;
use std::path::{Component, Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use serde::Deserialize;
use talon_sdk::{OrToolError, ToolError};

/// The longest path in a request, in bytes; Linux takes no longer one.
const MAX_PATH_BYTES: usize = 4096;

/// The plugin's settings.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    /// The directory below which everything happens.
    pub(crate) root: PathBuf,
}

/// The opened directory. A `..` or a symbolic link that leads outside fails, even if it is swapped in
/// concurrently.
#[derive(Debug)]
pub(crate) struct Root {
    path: PathBuf,
    pub(crate) dir: Dir,
}

impl Root {
    pub(crate) fn open(path: &Path) -> Result<Self, ToolError> {
        let shown = path.display();
        let path = path.canonicalize().or_tool_error_with(|| format!("config: cannot open root {shown}"))?;
        let dir = Dir::open_ambient_dir(&path, ambient_authority())
            .or_tool_error_with(|| format!("config: root {shown} is no directory that can be opened"))?;
        Ok(Self { path, dir })
    }

    /// A path of a request, relative to the root. Absolute paths below the root are fine: models copy them.
    pub(crate) fn relative(&self, path: &str) -> Result<PathBuf, ToolError> {
        if path.len() > MAX_PATH_BYTES || path.contains('\0') {
            let most = MAX_PATH_BYTES;
            return Err(ToolError::new(format!("a path has at most {most} bytes and no zero byte")));
        }
        let path = Path::new(path);
        let below =
            if path.is_absolute() { path.strip_prefix(&self.path).map_err(|_| outside(path))? } else { path };
        let relative: PathBuf = below.components().filter(|part| *part != Component::CurDir).collect();
        Ok(if relative.as_os_str().is_empty() { PathBuf::from(".") } else { relative })
    }
}

/// The error for the caller when a path could not be used.
pub(crate) fn refusal(path: &Path, error: io::Error) -> ToolError {
    let shown = path.display();
    match error.kind() {
        io::ErrorKind::NotFound => {
            ToolError::new(format!("`{shown}` does not exist; `list` shows what does"))
        }
        io::ErrorKind::NotADirectory => ToolError::new(format!("`{shown}`: a part of it is no directory")),
        io::ErrorKind::AlreadyExists => {
            ToolError::new(format!("`{shown}` exists already; say replace=true to replace it"))
        }
        io::ErrorKind::PermissionDenied if is_escape(&error) => outside(path),
        io::ErrorKind::PermissionDenied => {
            ToolError::new(format!("`{shown}` may not be used")).because(error)
        }
        io::ErrorKind::ReadOnlyFilesystem => ToolError::new(format!("`{shown}` may not be written")),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            ToolError::new(format!("there is no room for `{shown}`"))
        }
        _ => ToolError::new(format!("`{shown}` cannot be used")).because(error),
    }
}

/// cap-std's own errors have no errno of the kernel.
fn is_escape(error: &io::Error) -> bool {
    error.raw_os_error().is_none()
}

fn outside(path: &Path) -> ToolError {
    ToolError::new(format!("`{}` leads outside the root; give a path below it", path.display()))
}

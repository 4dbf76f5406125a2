//! Reads the file that `agent.confirm.pattern_file` names.

use std::path::Path;
use std::sync::LazyLock;

use talon_agent_settings::{ConfirmPatternFile, MAX_PATTERN_FILE_BYTES, NamedFile, read_file};
use talon_plugin_config::document;
use talon_plugin_config::document::shape::Shape;

static SHAPE: LazyLock<Shape> = LazyLock::new(Shape::of::<ConfirmPatternFile>);

/// Reads a file of patterns and checks its examples. Blocking.
///
/// # Errors
/// One line that says what is wrong.
pub(crate) fn read_confirm_patterns(path: &Path) -> Result<ConfirmPatternFile, String> {
    let NamedFile { bytes, .. } = read_file(path).map_err(|error| format!("cannot be read: {error}"))?;
    if bytes.len() > MAX_PATTERN_FILE_BYTES {
        return Err(format!("is larger than {MAX_PATTERN_FILE_BYTES} bytes"));
    }
    let text = str::from_utf8(&bytes).map_err(|error| format!("is no UTF-8: {error}"))?;
    let (file, _) = document::read::<ConfirmPatternFile>(text, &SHAPE, path)
        .map_err(|problems| problems.to_string().lines().collect::<Vec<_>>().join("; "))?;
    file.compile().map_err(|error| error.to_string())?;
    Ok(file)
}

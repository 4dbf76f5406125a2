//! The styles of a turn's lines.

use anstyle::{AnsiColor, Style};

pub(super) const CALL: Style = AnsiColor::Cyan.on_default();
pub(super) const GOOD: Style = AnsiColor::Green.on_default();
pub(super) const BAD: Style = AnsiColor::Red.on_default();
pub(super) const WARN: Style = AnsiColor::Yellow.on_default();
/// For secondary information.
pub(super) const DIM: Style = Style::new().dimmed();

//! Notices in a server's log that its code cannot be loaded.
//!
//! A server whose modules are missing, or of other versions, ends the same way at each start, so it is not started again
//! until somebody starts it. What its interpreter says is the only sign of that.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How the line begins by which an interpreter says so: Python's, and Node's.
const BEGINNINGS: [&str; 7] = [
    "ModuleNotFoundError: ",
    "ImportError: ",
    "SyntaxError: ",
    "Error: Cannot find module ",
    "Error [ERR_MODULE_NOT_FOUND]: ",
    "Error [ERR_REQUIRE_ESM]: ",
    "Error [ERR_PACKAGE_PATH_NOT_EXPORTED]: ",
];

/// Whether such a line was seen. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct ImportFailure(Arc<AtomicBool>);

impl ImportFailure {
    /// Whether it was.
    pub(crate) fn is_seen(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn see(&self, line: &[u8]) {
        if BEGINNINGS.iter().any(|beginning| line.starts_with(beginning.as_bytes())) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

/// Passes every line on, and looks at it. One write is one line.
pub(crate) struct ImportLog<W> {
    pub(crate) to: W,
    pub(crate) failure: ImportFailure,
}

impl<W: Write> Write for ImportLog<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.failure.see(line);
        self.to.write_all(line)?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_interpreters_say_is_seen_and_passed_on() {
        for (line, expected) in [
            ("ModuleNotFoundError: No module named 'mcp.server.fastmcp'\n", true),
            ("ImportError: cannot import name 'FastMCP'\n", true),
            ("Error: Cannot find module '/x/y.js'\n", true),
            ("a tool answers: ImportError: no\n", false),
            ("ConnectionError: no route\n", false),
        ] {
            let failure = ImportFailure::default();
            let mut log = ImportLog { to: Vec::new(), failure: failure.clone() };
            log.write_all(line.as_bytes()).unwrap();
            assert_eq!((failure.is_seen(), log.to), (expected, line.as_bytes().to_vec()));
        }
    }
}

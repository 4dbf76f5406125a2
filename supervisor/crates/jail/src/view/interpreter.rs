//! Checks whether a script's interpreter is in the view.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use super::View;

/// How much of a script's first line the kernel reads.
const LINE_MAX_BYTES: usize = 256;

/// The interpreter of a script's `#!` line, if the view lacks it: its target if it is a link, as that of a
/// Python venv is. `None` for a file that is not a script, and for a script whose interpreter can be executed
/// inside. The program that `/usr/bin/env` would look for is not checked.
pub fn missing_interpreter(file: &File, view: &View) -> Option<PathBuf> {
    let mut start = [0; LINE_MAX_BYTES];
    // An unreadable file cannot be executed as a script either, and that is reported elsewhere.
    let read = file.read_at(&mut start, 0).ok()?;
    let interpreter = shebang_path(&start[..read])?;
    match view.find(interpreter) {
        // A path that is not absolute would depend on where the program is started.
        _ if !interpreter.is_absolute() => Some(interpreter.into()),
        Ok(found) if found.is_executable() => None,
        Ok(_) => Some(interpreter.into()),
        Err(missing) => Some(missing),
    }
}

/// The text after `#!`, up to a space or the end of the line.
fn shebang_path(start: &[u8]) -> Option<&Path> {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let line = start.strip_prefix(b"#!")?;
    let line = line.split(|byte| matches!(byte, b'\n' | 0)).next()?;
    let begin = line.iter().position(|byte| !blank(byte))?;
    let name = line[begin..].split(blank).next()?;
    Some(Path::new(OsStr::from_bytes(name)))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::network::Network;
    use crate::view::Access;

    fn missing(text: &str, view: &View) -> Option<PathBuf> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        missing_interpreter(&file, view)
    }

    #[test]
    fn an_interpreter_is_named_when_it_cannot_be_executed_inside() {
        let view = View::system((70_001, 70_001), Path::new("/"), &Network::None);
        for fine in ["", "#", "\x7fELF", "#!\n", "#!/bin/sh\n", "#! /bin/sh -e\n", "#!/usr/bin/env python3"] {
            assert_eq!(missing(fine, &view), None, "{fine}");
        }
        for (text, name) in [
            ("#!/opt/none/bin/python3\nimport sys", "/opt/none/bin/python3"),
            ("#!\t/opt/none/x -u", "/opt/none/x"),
            ("#!bin/sh\n", "bin/sh"),
            ("#!/usr/lib\n", "/usr/lib"),
        ] {
            assert_eq!(missing(text, &view), Some(name.into()), "{text}");
        }
    }

    #[test]
    fn a_venv_needs_what_its_python_leads_to() {
        let venv = tempfile::tempdir().unwrap();
        let mut view = View::system((70_001, 70_001), Path::new("/"), &Network::None);
        view.grant(venv.path(), Access::Execute);
        let python = venv.path().join("python3");
        let script = format!("#!{}\n", python.display());
        symlink("/usr/bin/env", &python).unwrap();
        assert_eq!(missing(&script, &view), None);
        std::fs::remove_file(&python).unwrap();
        symlink("/root/none/bin/python3.11", &python).unwrap();
        assert_eq!(missing(&script, &view), Some("/root/none/bin/python3.11".into()));
    }
}

//! `talon jail run --learn`: writes a profile from the observed system calls.

use std::ffi::OsString;
use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;

use talon_jail::{ObservedCall, Profile};
use talon_sanitize::sanitized;

use crate::exit;
use crate::failure::Failure;
use crate::line::sanitized_line;
use crate::output::write_stderr;

/// The profile file and its header. The file is created at the start, so that an unwritable path fails before
/// the run; it is removed if no profile is written.
pub(super) struct ProfileRecorder {
    path: PathBuf,
    file: File,
    profile: Profile,
    command: String,
    written: bool,
}

impl ProfileRecorder {
    pub(super) fn create(path: PathBuf, profile: &Profile, command: &[OsString]) -> Result<Self, Failure> {
        let file = File::create_new(&path).map_err(|error| {
            let text =
                format!("--learn {}: {error}; name a new file in a directory of yours", path.display());
            Failure::usage(text)
        })?;
        let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
        Ok(Self { path, file, profile: profile.clone(), command: words.join(" "), written: false })
    }

    pub(super) fn finish(mut self, used: &[ObservedCall]) -> Result<(), Failure> {
        let name = self.profile.name();
        if used.is_empty() {
            let name = sanitized_line(name);
            write_stderr(sanitized!("talon: learned nothing: {} has every call that it made", name), false);
            return Ok(());
        }
        let text = self.profile.render_learned(used, &self.command);
        self.file.write_all(text.as_bytes()).map_err(|error| {
            Failure::new(exit::FAILED, format!("cannot write {}: {error}", self.path.display()))
        })?;
        self.written = true;
        let path = self.path.display();
        let said = sanitized_line(format_args!(
            "talon: {path} has what it used beyond {name}: read it, then try it with --profile {path}"
        ));
        write_stderr(said, false);
        Ok(())
    }
}

impl Drop for ProfileRecorder {
    fn drop(&mut self) {
        if !self.written {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

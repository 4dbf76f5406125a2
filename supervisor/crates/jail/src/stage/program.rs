//! The last step: executes the checked program.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

use nix::errno::Errno;
use nix::fcntl::AtFlags;
use nix::unistd::{Uid, execve, execveat};

use super::request::{Plan, c_string};
use super::step_error::StepError;
use crate::spec::Program;

/// Executes the program; returns only on an error.
pub(super) fn execute(plan: &Plan) -> StepError {
    let (errno, what) = match (&plan.spec.program, &plan.program) {
        (Program::Descriptor, Some(file)) => {
            if is_script(file) {
                return StepError::new(
                    "it is a script, and a script cannot be executed by descriptor, since its interpreter must \
                     open it by path (place it in a read-only view and execute it there)",
                );
            }
            let Err(errno) = execveat(file, c"", &plan.argv, &plan.env, AtFlags::AT_EMPTY_PATH);
            (errno, "cannot execute the program's descriptor".to_owned())
        }
        (Program::Descriptor, None) => return StepError::new("its descriptor was not handed over"),
        (Program::Path(path), _) => match c_string(path.as_os_str()) {
            Ok(c_path) => {
                let Err(errno) = execve(&c_path, &plan.argv, &plan.env);
                (errno, format!("cannot execute {}", path.display()))
            }
            Err(error) => return error,
        },
    };
    StepError::errno(&what, errno as i32, &advice(errno))
}

/// The kernel would make the interpreter open the script under a descriptor that is closed by then, and only
/// say "No such file".
fn is_script(file: &File) -> bool {
    let mut start = [0; 2];
    file.read_exact_at(&mut start, 0).is_ok() && start == *b"#!"
}

fn advice(errno: Errno) -> String {
    let uid = Uid::current();
    match errno {
        Errno::ENOENT => "the file, or the interpreter that it names, does not exist".into(),
        Errno::EACCES => format!(
            "uid {uid} must be allowed to execute it (chmod +x) and to enter each directory above it, its file \
             system must not be mounted noexec, and what it sees must include it and its interpreter to be \
             executed"
        ),
        Errno::ENOEXEC => {
            "it is neither a binary of this machine nor a script that begins with #! and an interpreter"
                .into()
        }
        Errno::E2BIG => "arguments and environment are too long; pass large input by file".into(),
        Errno::EAGAIN => {
            format!("uid {uid} has as many processes as it may (raise the plugin's process limit)")
        }
        Errno::ETXTBSY => "somebody has it open for writing; wait until it is written".into(),
        Errno::ENOMEM => "free some memory, or raise the plugin's memory limits".into(),
        _ => "check the plugin's file".into(),
    }
}

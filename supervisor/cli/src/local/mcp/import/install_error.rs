//! Why a package is not installed.

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

/// Why a package is not installed. The texts continue "SERVER …".
#[derive(Debug, thiserror::Error)]
pub(super) enum InstallError {
    #[error("needs {program}, which is not installed: install it, then import again")]
    NeedsProgram { program: &'static str },
    #[error(
        "needs {program}, which its launcher names and which is not installed: install it, then import again"
    )]
    NeedsPython { program: String },
    #[error("needs Python {wanted}, and is for none of {tried}: install that version, then import again")]
    OtherPython { wanted: String, tried: String },
    #[error("cannot be installed into {}: {error}", home.display())]
    Directory { home: PathBuf, error: io::Error },
    #[error(
        "cannot be installed into {}: there is something else; move it away, or name another directory",
        home.display()
    )]
    Occupied { home: PathBuf },
    #[error("cannot be installed: {shown} ended with {status}, and said why above")]
    Installer { shown: String, status: ExitStatus },
    #[error("cannot be installed: {shown}: {error}")]
    Start { shown: String, error: io::Error },
    #[error("has a program {name:?}, which is no name of one: name one of its package")]
    BadProgramName { name: String },
    #[error("has a program {} that leads out of the package: name another", program.display())]
    OutsidePackage { program: PathBuf },
    #[error("has no program {}: name it with --from", program.display())]
    NoProgram { program: PathBuf },
    #[error("{}: {problem}; install it by hand, and name its program", file.display())]
    Manifest { file: PathBuf, problem: ManifestProblem },
}

/// What is wrong with a `package.json`.
#[derive(Debug, thiserror::Error)]
pub(super) enum ManifestProblem {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error("is too large")]
    TooLarge,
    #[error("names no program that would run")]
    NoProgram,
    #[error("names a program outside of the package")]
    OutsidePackage,
}

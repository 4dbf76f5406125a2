//! Why a server did not become a plugin.

use super::download::DownloadError;
use super::install_error::InstallError;
use super::server::ServerError;
use super::values::ValueError;

/// Why a server is left out. The texts continue "SERVER …" and end with what to do.
#[derive(Debug, thiserror::Error)]
pub(super) enum ImportError {
    #[error("its name has no letter or digit that a plugin's name may have: give it another")]
    Name,
    #[error(transparent)]
    Server(#[from] ServerError),
    #[error(transparent)]
    Value(#[from] ValueError),
    #[error(transparent)]
    Download(#[from] DownloadError),
    #[error(transparent)]
    Install(#[from] InstallError),
    #[error("is Talon itself, and stays in the editor's list")]
    Talon,
    #[error(
        "runs a container through {launcher}, which a jail does not let it: run the program in it as a plugin, which has a \
         jail already"
    )]
    Container { launcher: String },
    #[error("its command holds a variable: write the whole path, then import it again")]
    VariableInCommand,
    #[error("its command {command} is a relative path: write the absolute path")]
    RelativeCommand { command: String },
}

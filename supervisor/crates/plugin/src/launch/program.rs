//! Prepares a program for execution: checked, hashed, and guaranteed to be the same bytes.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use talon_jail::{Identity, Program};
use talon_plugin_config::bridge::Bridge;
use talon_plugin_config::discover::{CheckError, check_digest, check_script_location};
use talon_plugin_config::files::program::{self, OpenProgram, ProgramKind};
use talon_plugin_config::files::{ProgramError, tree};
use talon_plugin_config::spec::PluginSpec;

use super::error::LaunchError;
use crate::view::{View, ViewError, ViewSource, Views};

/// A program, ready to be passed to the jail.
#[derive(Clone)]
pub(super) struct PreparedProgram {
    /// How it is executed.
    pub(super) program: Program,
    /// For execution by descriptor.
    pub(super) file: Option<Arc<File>>,
    /// The file that is executed by path, to find its interpreter.
    pub(super) script: Option<Arc<File>>,
    /// Its name in argv.
    pub(super) argv0: OsString,
    /// Its arguments.
    pub(super) args: Vec<OsString>,
    /// Its working directory, unless it is its private directory.
    pub(super) cwd: Option<PathBuf>,
    /// The digest of the program, or of its directory.
    pub(super) digest: String,
    /// The view it runs from; held as long as it runs.
    pub(super) view: Option<Arc<View>>,
}

/// How a program can be started.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ExecMethod {
    /// By the jail: by its path, or by a descriptor.
    Direct,
    /// By a bridge, inside the jail: only by its path.
    PathOnly,
}

/// Prepares the program that is on the disk now. Blocking.
pub(super) fn prepare(
    spec: &PluginSpec,
    views: &Views,
    identity: Option<Identity>,
) -> Result<PreparedProgram, LaunchError> {
    let gid = identity.map(|identity| identity.gid);
    let args = || spec.args.iter().map(Into::into).collect();
    let Some(bridge) = Bridge::for_plugin(spec) else {
        return Ok(PreparedProgram { args: args(), ..program(spec, views, gid, ExecMethod::Direct)? });
    };
    let missing = || CheckError::NoBridge { bridge: bridge.name() };
    let own = bridge.program(&spec.bridges).ok_or_else(missing)?;
    let (path, file) = program::open_own(own).map_err(CheckError::from)?;
    let behind = match spec.url {
        // A remote server has no program on this machine.
        Some(_) => None,
        None => Some(program(spec, views, gid, ExecMethod::PathOnly)?),
    };
    let argv0 = behind.as_ref().map(|behind| behind.argv0.clone()).unwrap_or_default();
    let (script, cwd, digest, view) = match behind {
        Some(PreparedProgram { script, cwd, digest, view, .. }) => (script, cwd, digest, view),
        None => (None, None, String::new(), None),
    };
    Ok(PreparedProgram {
        program: Program::Descriptor,
        file: Some(Arc::new(file)),
        script,
        argv0: path.into(),
        args: bridge.args(spec, argv0, view.as_deref().map(View::path)),
        cwd,
        digest,
        view,
    })
}

/// Prepares the plugin's own program.
fn program(
    spec: &PluginSpec,
    views: &Views,
    gid: Option<u32>,
    by: ExecMethod,
) -> Result<PreparedProgram, LaunchError> {
    match &spec.directory {
        Some(directory) => from_directory(spec, directory, views, gid, by),
        None => from_file(spec, views, gid, by),
    }
}

/// A program in a view of the plugin's directory, or a system program for the files there.
fn from_directory(
    spec: &PluginSpec,
    directory: &Path,
    views: &Views,
    gid: Option<u32>,
    by: ExecMethod,
) -> Result<PreparedProgram, LaunchError> {
    let view = view(spec, views, ViewSource::Directory(directory), gid)?;
    check_digest(spec, directory.to_owned(), view.digest().to_owned())?;
    let (path, OpenProgram { file, kind }) = match spec.program.strip_prefix(directory) {
        Ok(inside) => {
            let path = view.path().join(inside);
            let opened = program::open_in_view(&path).map_err(CheckError::from)?;
            (path, opened)
        }
        Err(_) => (spec.program.clone(), open_outside(spec, directory, by)?),
    };
    let (program, file, script) = match kind {
        ProgramKind::Native if by == ExecMethod::Direct => (Program::Descriptor, Some(Arc::new(file)), None),
        ProgramKind::Native => (Program::Path(path.clone()), None, None),
        ProgramKind::Script => (Program::Path(path.clone()), None, Some(Arc::new(file))),
    };
    Ok(PreparedProgram {
        program,
        file,
        script,
        argv0: path.into(),
        args: Vec::new(),
        cwd: Some(view.path().to_owned()),
        digest: view.digest().to_owned(),
        view: Some(view),
    })
}

/// Opens a system program, such as an interpreter, which is not part of the directory's digest.
fn open_outside(spec: &PluginSpec, directory: &Path, by: ExecMethod) -> Result<OpenProgram, LaunchError> {
    let (real, opened) = program::open(&spec.program).map_err(CheckError::from)?;
    check_script_location(&real, opened.kind, directory)?;
    if by == ExecMethod::PathOnly && !tree::is_system_file(&real) {
        return Err(CheckError::ProgramOutside(real).into());
    }
    Ok(opened)
}

/// A single file: where it is, if what was checked is what runs, and otherwise in a view.
fn from_file(
    spec: &PluginSpec,
    views: &Views,
    gid: Option<u32>,
    by: ExecMethod,
) -> Result<PreparedProgram, LaunchError> {
    let (real, opened) = program::open(&spec.program).map_err(CheckError::from)?;
    // A system script may need the files beside it, and is as safe as its interpreter.
    let by_path =
        (opened.kind == ProgramKind::Script || by == ExecMethod::PathOnly) && tree::is_system_file(&real);
    if by_path || (opened.kind == ProgramKind::Native && by == ExecMethod::Direct) {
        in_place(spec, views, real, opened, by_path)
    } else {
        in_view(spec, views, real, opened, gid)
    }
}

/// A file that is executed where it is: a system file by its path, any other by its descriptor.
fn in_place(
    spec: &PluginSpec,
    views: &Views,
    real: PathBuf,
    OpenProgram { file, kind }: OpenProgram,
    by_path: bool,
) -> Result<PreparedProgram, LaunchError> {
    let digest = views
        .digest_of(&file)
        .map_err(|source| CheckError::from(ProgramError::Io { path: real.clone(), source }))?;
    check_digest(spec, real.clone(), digest.clone())?;
    let (program, file, script) = match kind {
        _ if !by_path => (Program::Descriptor, Some(Arc::new(file)), None),
        ProgramKind::Script => (Program::Path(real), None, Some(Arc::new(file))),
        ProgramKind::Native => (Program::Path(real), None, None),
    };
    Ok(PreparedProgram {
        program,
        file,
        script,
        argv0: spec.program.clone().into(),
        args: Vec::new(),
        cwd: None,
        digest,
        view: None,
    })
}

/// A file that is executed from a view, which nothing can change after the check.
fn in_view(
    spec: &PluginSpec,
    views: &Views,
    real: PathBuf,
    OpenProgram { file, kind }: OpenProgram,
    gid: Option<u32>,
) -> Result<PreparedProgram, LaunchError> {
    let name = real.file_name().unwrap_or(real.as_os_str()).to_owned();
    let view = view(spec, views, ViewSource::Script(&file, &name), gid)?;
    check_digest(spec, real, view.digest().to_owned())?;
    let path = view.path().join(&name);
    Ok(PreparedProgram {
        program: Program::Path(path.clone()),
        file: None,
        script: (kind == ProgramKind::Script).then(|| Arc::new(file)),
        argv0: path.into(),
        args: Vec::new(),
        cwd: None,
        digest: view.digest().to_owned(),
        view: Some(view),
    })
}

fn view(
    spec: &PluginSpec,
    views: &Views,
    source: ViewSource<'_>,
    gid: Option<u32>,
) -> Result<Arc<View>, LaunchError> {
    views.get_or_build(&spec.name, source, gid).map_err(|error| match error {
        ViewError::Tree(error) => CheckError::from(error).into(),
        other => LaunchError::View(other),
    })
}

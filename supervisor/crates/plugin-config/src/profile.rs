//! A plugin's system call profile: found by name or path, and compiled for the plugin's network.

use std::io::Read;
use std::path::{Path, PathBuf};

use parking_lot::{Mutex, MutexGuard};
use rustix::fs::{FileType, Mode, OFlags, fstat};
use talon_jail::{CompiledProfile, Network, Profile, ProfileError};

use crate::files::trust;
use crate::spec::NetworkAccess;
use crate::spec::SandboxSettings;

/// The file extension of a profile.
const ENDING: &str = "toml";

/// The largest file that is read; the jail has a lower limit for profiles, whose error names the line.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The network for the jail. With the supervisor's proxy a plugin has its own loopback interface, on which the
/// proxy listens.
pub fn network(sandbox: &SandboxSettings) -> Network {
    match sandbox.network {
        NetworkAccess::None => Network::None,
        NetworkAccess::Loopback | NetworkAccess::Proxy => Network::Loopback,
        NetworkAccess::Full => {
            Network::Host { connect: sandbox.ports.connect.clone(), bind: sandbox.ports.bind.clone() }
        }
    }
}

/// Why a plugin's profile cannot be used. The messages end with what to do next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileSettingError {
    /// There is no built-in profile of this name, and no directory for others.
    #[error(
        "there is no built-in profile {name:?}: name one of {}, or set sandbox.profile_dir for those of your own",
        Profile::names().collect::<Vec<_>>().join(", ")
    )]
    Unknown {
        /// The configured name.
        name: String,
    },
    /// Its file cannot be read.
    #[error("cannot read the profile {}: {source}; correct its name", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is no regular file.
    #[error("the profile {} is no regular file: name a profile", .0.display())]
    NotRegular(PathBuf),
    /// Another user could have written it.
    #[error("the profile {} cannot be trusted: {problem}", path.display())]
    Untrusted {
        /// The file.
        path: PathBuf,
        /// Who may write it, and what to run.
        problem: String,
    },
    /// It is larger than 1 MiB.
    #[error("the profile {} is larger than {} KiB: make it smaller", .0.display(), MAX_FILE_BYTES >> 10)]
    TooLarge(PathBuf),
    /// Its text is wrong.
    #[error(transparent)]
    Profile(#[from] ProfileError),
}

/// The compiled profile of a plugin, as it is now. Blocking: it may read a file.
///
/// # Errors
/// [`ProfileSettingError`]
pub fn compile(sandbox: &SandboxSettings) -> Result<CompiledProfile, ProfileSettingError> {
    let network = network(sandbox);
    // Only built-in profiles are cached; they cannot be replaced.
    if let Some(known) =
        compiled_builtins().iter().find(|(name, of, _)| *name == sandbox.profile && *of == network)
    {
        return Ok(known.2.clone());
    }
    let compiled = find(sandbox)?.compile(&network)?;
    // Not with lists of ports: their number is unlimited.
    let lists_ports =
        matches!(&network, Network::Host { connect, bind } if connect.is_some() || bind.is_some());
    if Profile::builtin(&sandbox.profile).is_some() && !lists_ports {
        compiled_builtins().push((sandbox.profile.clone(), network, compiled.clone()));
    }
    Ok(compiled)
}

/// The compiled built-in profiles, for each network. About 15 KiB each.
fn compiled_builtins() -> MutexGuard<'static, Vec<(String, Network, CompiledProfile)>> {
    static KNOWN: Mutex<Vec<(String, Network, CompiledProfile)>> = Mutex::new(Vec::new());
    KNOWN.lock()
}

/// The current text of an operator's profile; `None` for a built-in one, and for one that cannot be read.
/// Blocking.
pub fn custom_text(sandbox: &SandboxSettings) -> Option<String> {
    if Profile::builtin(&sandbox.profile).is_some() {
        return None;
    }
    read(&path(sandbox).ok()?).ok()
}

fn find(sandbox: &SandboxSettings) -> Result<Profile, ProfileSettingError> {
    if let Some(profile) = Profile::builtin(&sandbox.profile) {
        return Ok(profile);
    }
    let path = path(sandbox)?;
    let text = read(&path)?;
    Ok(Profile::parse(&text, &path.display().to_string())?)
}

/// The path of a profile that is not built in.
fn path(sandbox: &SandboxSettings) -> Result<PathBuf, ProfileSettingError> {
    let name = &sandbox.profile;
    Ok(if Path::new(name).is_absolute() {
        PathBuf::from(name)
    } else {
        match &sandbox.profile_dir {
            Some(dir) => dir.join(format!("{name}.{ENDING}")),
            None => return Err(ProfileSettingError::Unknown { name: name.clone() }),
        }
    })
}

/// A profile's text, if no other user could have written it.
fn read(path: &Path) -> Result<String, ProfileSettingError> {
    let failed = |source: std::io::Error| ProfileSettingError::Unreadable { path: path.to_owned(), source };
    // A link is followed: both its target and the target's directory are checked.
    let real = path.canonicalize().map_err(failed)?;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open(&real, flags, Mode::empty()).map_err(|e| failed(e.into()))?;
    let stat = fstat(&file).map_err(|e| failed(e.into()))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(ProfileSettingError::NotRegular(path.to_owned()));
    }
    let dir = real.parent().unwrap_or(&real);
    let above = rustix::fs::stat(dir).map_err(|e| failed(e.into()))?;
    if let Some(problem) = trust::others_may_write(&stat).or_else(|| trust::others_may_write(&above)) {
        return Err(ProfileSettingError::Untrusted { path: path.to_owned(), problem });
    }
    let mut text = String::new();
    let read =
        std::fs::File::from(file).take(MAX_FILE_BYTES + 1).read_to_string(&mut text).map_err(failed)?;
    if read as u64 > MAX_FILE_BYTES {
        return Err(ProfileSettingError::TooLarge(path.to_owned()));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::spec::SandboxPorts;

    fn named(profile: &str, dir: Option<&Path>) -> SandboxSettings {
        SandboxSettings {
            profile: profile.to_owned(),
            profile_dir: dir.map(Path::to_owned),
            ..SandboxSettings::default()
        }
    }

    #[test]
    fn built_in_profiles_and_files_are_found() {
        assert_eq!(compile(&SandboxSettings::default()).unwrap().name, "strict");
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("indexer.toml");
        std::fs::write(&file, "description = \"ours\"\nextends = \"strict\"\n").unwrap();
        assert_eq!(compile(&named("indexer", Some(dir.path()))).unwrap().name, "indexer");
        assert_eq!(compile(&named(file.to_str().unwrap(), None)).unwrap().name, "indexer");
        // A file cannot replace a built-in profile.
        std::fs::write(dir.path().join("strict.toml"), "nonsense").unwrap();
        assert!(compile(&named("strict", Some(dir.path()))).is_ok());
    }

    #[test]
    fn what_was_compiled_before_is_the_same_again() {
        let with = |network| SandboxSettings { network, ..SandboxSettings::default() };
        let filters = |sandbox: &SandboxSettings| compile(sandbox).unwrap().filters;
        let none = filters(&with(NetworkAccess::None));
        assert_eq!(filters(&with(NetworkAccess::Proxy)), filters(&with(NetworkAccess::Loopback)));
        assert_ne!(filters(&with(NetworkAccess::Full)), none);
        assert_eq!(filters(&with(NetworkAccess::None)), none);
        let fresh = Profile::builtin("strict").unwrap().compile(&Network::None).unwrap();
        assert_eq!(fresh.filters, none);
    }

    #[test]
    fn a_profile_that_cannot_be_used_says_why() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str, mode: u32| {
            let path = dir.path().join(name);
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        write("broken.toml", "allow = 3\n", 0o644);
        write("loose.toml", "extends = \"strict\"\n", 0o666);
        std::fs::create_dir(dir.path().join("dir.toml")).unwrap();
        for (name, says) in [
            ("absent", "cannot read the profile"),
            ("broken", "broken.toml"),
            ("loose", "everybody may write"),
            ("dir", "no regular file"),
        ] {
            let error = compile(&named(name, Some(dir.path()))).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
        assert!(compile(&named("absent", None)).unwrap_err().to_string().contains("strict, "));
    }

    #[test]
    fn the_proxy_is_the_only_way_out_of_no_network() {
        let with = |network| SandboxSettings { network, ..SandboxSettings::default() };
        assert_eq!(network(&with(NetworkAccess::Proxy)), Network::Loopback);
        assert_eq!(network(&with(NetworkAccess::None)), Network::None);
        assert_eq!(network(&with(NetworkAccess::Loopback)), Network::Loopback);
        let ports = SandboxPorts { connect: Some(vec![443]), bind: None };
        let full = SandboxSettings { ports, ..with(NetworkAccess::Full) };
        assert_eq!(network(&full), Network::Host { connect: Some(vec![443]), bind: None });
    }
}

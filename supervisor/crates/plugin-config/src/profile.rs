//! A plugin's system call profile: found by name or path, and compiled for the plugin's network.

use parking_lot::{Mutex, MutexGuard};
use std::io::Read;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, fstat};
use talon_jail::{CompiledProfile, Network, Profile};

use crate::files::trust;
use crate::spec::NetworkAccess;
use crate::spec::SandboxSettings;

/// The file extension of a profile.
const ENDING: &str = "toml";

/// The largest file that is read; the jail has a lower limit for profiles, whose error names the line.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The network for the jail. With the supervisor's proxy a plugin has none: it reaches the proxy through a
/// socket file.
pub fn network(sandbox: &SandboxSettings) -> Network {
    match sandbox.network {
        NetworkAccess::None | NetworkAccess::Proxy => Network::None,
        NetworkAccess::Loopback => Network::Loopback,
        NetworkAccess::Full => {
            Network::Host { connect: sandbox.ports.connect.clone(), bind: sandbox.ports.bind.clone() }
        }
    }
}

/// The compiled profile of a plugin, as it is now. Blocking: it may read a file.
///
/// # Errors
/// A sentence that ends with what to do next.
pub fn compile(sandbox: &SandboxSettings) -> Result<CompiledProfile, String> {
    let network = network(sandbox);
    // Only built-in profiles are cached; they cannot be replaced.
    if let Some(known) =
        compiled_builtins().iter().find(|(name, of, _)| *name == sandbox.profile && *of == network)
    {
        return Ok(known.2.clone());
    }
    let compiled = find(sandbox)?.compile(&network).map_err(|error| error.to_string())?;
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

/// The current text of an operator's profile; `None` for a built-in one, and for one that cannot be read. Blocking.
pub fn custom_text(sandbox: &SandboxSettings) -> Option<String> {
    if Profile::builtin(&sandbox.profile).is_some() {
        return None;
    }
    read(&path(sandbox).ok()?).ok()
}

fn find(sandbox: &SandboxSettings) -> Result<Profile, String> {
    if let Some(profile) = Profile::builtin(&sandbox.profile) {
        return Ok(profile);
    }
    let path = path(sandbox)?;
    let text = read(&path)?;
    Profile::parse(&text, &path.display().to_string()).map_err(|error| error.to_string())
}

/// The path of a profile that is not built in.
fn path(sandbox: &SandboxSettings) -> Result<PathBuf, String> {
    let name = &sandbox.profile;
    Ok(if Path::new(name).is_absolute() {
        PathBuf::from(name)
    } else {
        match &sandbox.profile_dir {
            Some(dir) => dir.join(format!("{name}.{ENDING}")),
            None => {
                let built_in: Vec<_> = Profile::names().collect();
                return Err(format!(
                    "there is no built-in profile {name:?}: name one of {}, or set sandbox.profile_dir for those of your own",
                    built_in.join(", ")
                ));
            }
        }
    })
}

/// A profile's text, if no other user could have written it.
fn read(path: &Path) -> Result<String, String> {
    let shown = path.display();
    let failed =
        |error: std::io::Error| format!("cannot read the profile {shown}: {error}; correct its name");
    // A link is followed: both its target and the target's directory are checked.
    let real = path.canonicalize().map_err(failed)?;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open(&real, flags, Mode::empty()).map_err(|e| failed(e.into()))?;
    let stat = fstat(&file).map_err(|e| failed(e.into()))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(format!("the profile {shown} is no regular file: name a profile"));
    }
    let dir = real.parent().unwrap_or(&real);
    let above = rustix::fs::stat(dir).map_err(|e| failed(e.into()))?;
    if let Some(problem) = trust::others_may_write(&stat).or_else(|| trust::others_may_write(&above)) {
        return Err(format!("the profile {shown} cannot be trusted: {problem}"));
    }
    let mut text = String::new();
    let read =
        std::fs::File::from(file).take(MAX_FILE_BYTES + 1).read_to_string(&mut text).map_err(failed)?;
    if read as u64 > MAX_FILE_BYTES {
        return Err(format!(
            "the profile {shown} is larger than {} KiB: make it smaller",
            MAX_FILE_BYTES >> 10
        ));
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
        assert_eq!(filters(&with(NetworkAccess::Proxy)), none);
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
            let error = compile(&named(name, Some(dir.path()))).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
        assert!(compile(&named("absent", None)).unwrap_err().contains("strict, "));
    }

    #[test]
    fn the_proxy_is_the_only_way_out_of_no_network() {
        let with = |network| SandboxSettings { network, ..SandboxSettings::default() };
        assert_eq!(network(&with(NetworkAccess::Proxy)), Network::None);
        assert_eq!(network(&with(NetworkAccess::None)), Network::None);
        assert_eq!(network(&with(NetworkAccess::Loopback)), Network::Loopback);
        let ports = SandboxPorts { connect: Some(vec![443]), bind: None };
        let full = SandboxSettings { ports, ..with(NetworkAccess::Full) };
        assert_eq!(network(&full), Network::Host { connect: Some(vec![443]), bind: None });
    }
}

//! Checks a spec before anything is started.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use crate::network::{LISTENERS_MAX, Network};
use crate::spec::{Isolation, JailSpec, Program};
use crate::view::ViewError;

/// Why a spec contradicts itself.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    /// The program's descriptor is missing.
    #[error("the program goes by descriptor, but none was given")]
    NoDescriptor,
    /// There is a descriptor that nothing uses.
    #[error("the program goes by path, but a descriptor was given")]
    UnusedDescriptor,
    /// The program's path is not absolute.
    #[error("the program's path must be absolute, not {}", .0.display())]
    RelativeProgram(PathBuf),
    /// The working directory is not absolute.
    #[error("the working directory must be absolute, not {}", .0.display())]
    RelativeDirectory(PathBuf),
    /// There is no argument.
    #[error("the arguments are empty; the first is the program's own name")]
    NoArguments,
    /// The identity is root's.
    #[error("uid 0 and gid 0 are never given to a program")]
    RootIdentity,
    /// The identity is the supervisor's.
    #[error("uid {0} is the supervisor's own, which a program must not share")]
    OwnIdentity(u32),
    /// An argument has a NUL byte.
    #[error("an argument has a NUL byte in it: {0:?}")]
    NulInArgument(OsString),
    /// The name of a variable is empty, or has `=` or a NUL byte in it.
    #[error("{0:?} cannot be the name of an environment variable")]
    VariableName(OsString),
    /// The value of this variable has a NUL byte. The value is left out, since it may be a secret.
    #[error("the environment variable {0:?} has a NUL byte in its value")]
    NulInVariable(OsString),
    /// More listeners than the supervisor can be passed.
    #[error("it has {0} listeners on its loopback interface, and at most {LISTENERS_MAX} are made")]
    TooManyListeners(usize),
    /// Listeners without a private loopback interface.
    #[error("listeners on its loopback interface need the network `loopback`")]
    ListenersWithoutLoopback,
    /// The view is wrong.
    #[error("its view: {0}")]
    View(#[source] ViewError),
}

/// Returns what is wrong with a spec, if anything is.
pub(crate) fn spec(spec: &JailSpec, program_given: bool) -> Result<(), SpecError> {
    match (&spec.program, program_given) {
        (Program::Descriptor, false) => return Err(SpecError::NoDescriptor),
        (Program::Path(_), true) => return Err(SpecError::UnusedDescriptor),
        (Program::Path(path), false) if !path.is_absolute() => {
            return Err(SpecError::RelativeProgram(path.clone()));
        }
        _ => {}
    }
    if !spec.cwd.is_absolute() {
        return Err(SpecError::RelativeDirectory(spec.cwd.clone()));
    }
    if spec.argv.is_empty() {
        return Err(SpecError::NoArguments);
    }
    if let Some(identity) = spec.identity
        && (identity.uid == 0 || identity.gid == 0)
    {
        return Err(SpecError::RootIdentity);
    }
    if let Some(identity) = spec.identity
        && identity.uid == rustix::process::getuid().as_raw()
    {
        return Err(SpecError::OwnIdentity(identity.uid));
    }
    if let Some(argument) = spec.argv.iter().find(|argument| has_nul(argument)) {
        return Err(SpecError::NulInArgument(argument.clone()));
    }
    let added = spec.isolation.iter().flat_map(|isolation| &isolation.listeners.env);
    for (key, value) in spec.env.iter().chain(added) {
        if key.is_empty() || key.as_bytes().contains(&b'=') || has_nul(key) {
            return Err(SpecError::VariableName(key.clone()));
        }
        if has_nul(value) {
            return Err(SpecError::NulInVariable(key.clone()));
        }
    }
    match &spec.isolation {
        Some(isolation) => {
            check_listeners(isolation)?;
            isolation.view.check().map_err(SpecError::View)
        }
        None => Ok(()),
    }
}

fn check_listeners(isolation: &Isolation) -> Result<(), SpecError> {
    match isolation.listeners.addresses.len() {
        0 => Ok(()),
        _ if isolation.network != Network::Loopback => Err(SpecError::ListenersWithoutLoopback),
        count if count > LISTENERS_MAX => Err(SpecError::TooManyListeners(count)),
        _ => Ok(()),
    }
}

fn has_nul(text: &OsStr) -> bool {
    text.as_bytes().contains(&0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::Identity;
    use crate::network::LoopbackListeners;
    use crate::profile::CompiledProfile;
    use crate::spec::{Limits, Mode};
    use crate::view::View;

    fn good() -> JailSpec {
        JailSpec {
            name: "t".into(),
            program: Program::Path("/bin/true".into()),
            argv: vec!["true".into()],
            env: vec![("A".into(), "b".into())],
            cwd: "/".into(),
            identity: None,
            limits: Limits::default(),
            mode: Mode::Enforce,
            isolation: None,
        }
    }

    #[test]
    fn listeners_are_bounded_and_need_a_loopback_interface() {
        let listening = |count: usize, network: Network| {
            let addresses = vec!["127.0.0.1:3128".parse().unwrap(); count];
            let listeners = LoopbackListeners { addresses, env: Vec::new() };
            let isolation =
                Isolation { view: View::default(), network, listeners, profile: CompiledProfile::default() };
            spec(&JailSpec { isolation: Some(isolation), ..good() }, false)
        };
        assert_eq!(listening(LISTENERS_MAX, Network::Loopback), Ok(()));
        assert_eq!(listening(0, Network::None), Ok(()));
        assert_eq!(listening(1, Network::None), Err(SpecError::ListenersWithoutLoopback));
        let more = LISTENERS_MAX + 1;
        assert_eq!(listening(more, Network::Loopback), Err(SpecError::TooManyListeners(more)));
    }

    #[test]
    fn each_defect_is_named() {
        assert_eq!(spec(&good(), false), Ok(()));
        type Spoil = fn(&mut JailSpec);
        let cases: &[(&str, Spoil)] = &[
            ("path must be absolute", |s| s.program = Program::Path("bin/true".into())),
            ("by descriptor", |s| s.program = Program::Descriptor),
            ("working directory", |s| s.cwd = "tmp".into()),
            ("arguments are empty", |s| s.argv.clear()),
            ("uid 0", |s| s.identity = Some(Identity { uid: 0, gid: 70_000 })),
            ("gid 0", |s| s.identity = Some(Identity { uid: 70_000, gid: 0 })),
            ("NUL", |s| s.argv.push("a\0b".into())),
            ("environment variable", |s| s.env.push(("a=b".into(), "c".into()))),
            ("in its value", |s| s.env.push(("a".into(), "secret\0".into()))),
        ];
        for (expected, spoil) in cases {
            let mut bad = good();
            spoil(&mut bad);
            let refusal = spec(&bad, false).unwrap_err().to_string();
            assert!(refusal.contains(expected), "{refusal}");
            assert!(!refusal.contains("secret"));
        }
        let mut own = good();
        own.identity = Some(Identity { uid: rustix::process::getuid().as_raw().max(1), gid: 70_000 });
        assert!(
            rustix::process::getuid().is_root() || spec(&own, false).unwrap_err().to_string().contains("own")
        );
        assert!(spec(&good(), true).unwrap_err().to_string().contains("by path"));
    }
}

//! Checks a spec before anything is started.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use crate::spec::{JailSpec, Program};

/// Returns what is wrong with a spec, if anything is.
pub(crate) fn spec(spec: &JailSpec, program_given: bool) -> Result<(), String> {
    match (&spec.program, program_given) {
        (Program::Descriptor, false) => {
            return Err("the program goes by descriptor, but none was given".into());
        }
        (Program::Path(_), true) => return Err("the program goes by path, but a descriptor was given".into()),
        (Program::Path(path), false) if !path.is_absolute() => {
            return Err(format!("the program's path must be absolute, not {}", path.display()));
        }
        _ => {}
    }
    if !spec.cwd.is_absolute() {
        return Err(format!("the working directory must be absolute, not {}", spec.cwd.display()));
    }
    if spec.argv.is_empty() {
        return Err("the arguments are empty; the first is the program's own name".into());
    }
    if let Some(identity) = spec.identity
        && (identity.uid == 0 || identity.gid == 0)
    {
        return Err("uid 0 and gid 0 are never given to a program".into());
    }
    if let Some(identity) = spec.identity
        && identity.uid == rustix::process::getuid().as_raw()
    {
        return Err(format!("uid {} is the supervisor's own, which a program must not share", identity.uid));
    }
    if let Some(argument) = spec.argv.iter().find(|argument| has_nul(argument)) {
        return Err(format!("an argument has a NUL byte in it: {argument:?}"));
    }
    for (key, value) in &spec.env {
        if key.is_empty() || key.as_bytes().contains(&b'=') || has_nul(key) {
            return Err(format!("{key:?} cannot be the name of an environment variable"));
        }
        if has_nul(value) {
            // The value is left out, since it may be a secret.
            return Err(format!("the environment variable {key:?} has a NUL byte in its value"));
        }
    }
    match &spec.isolation {
        Some(isolation) => isolation.view.check().map_err(|problem| format!("its view: {problem}")),
        None => Ok(()),
    }
}

fn has_nul(text: &OsStr) -> bool {
    text.as_bytes().contains(&0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::Identity;
    use crate::spec::{Limits, Mode};

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
            let refusal = spec(&bad, false).unwrap_err();
            assert!(refusal.contains(expected), "{refusal}");
            assert!(!refusal.contains("secret"));
        }
        let mut own = good();
        own.identity = Some(Identity { uid: rustix::process::getuid().as_raw().max(1), gid: 70_000 });
        assert!(rustix::process::getuid().is_root() || spec(&own, false).unwrap_err().contains("own"));
        assert!(spec(&good(), true).unwrap_err().contains("by path"));
    }
}

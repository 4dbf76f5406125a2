//! Where keys come from: the environment or a file, never the configuration itself, which is shown and copied around.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Secret;

/// The longest key. 4 KiB: keys have some 50 to 200 bytes, tokens of a gateway up to 2,000.
const MAX_KEY_BYTES: usize = 4096;
/// The largest file with keys. 64 KiB: some hundred keys; more is another file, named by mistake.
const MAX_FILE_BYTES: u64 = 64 << 10;

/// Where keys come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum KeySource {
    /// An environment variable that holds one key.
    Env(String),
    /// A file with a key on each line, which others must not be able to read. Empty lines, and those that start with
    /// `#`, are passed over.
    #[schemars(extend("format" = "path"))]
    File(PathBuf),
}

/// Why a source has no key.
#[derive(Debug, thiserror::Error)]
pub enum BadKey {
    /// No such variable.
    #[error("the environment variable {0} is not set or empty: set it for the agent, or name another one")]
    NotSet(String),
    /// The file cannot be read.
    #[error("{path} cannot be read ({source}): the agent's own user has to be able to read it", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Anyone can read the file.
    #[error("{path} can be read by everybody on this machine (mode {mode:o}): run `chmod o= {path}`, and think of the key as known", path = .path.display())]
    Readable {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// It is a directory, a pipe or a device.
    #[error("{path} is no regular file", path = .0.display())]
    NoFile(PathBuf),
    /// The file is too large for one with keys.
    #[error("{path} is larger than {MAX_FILE_BYTES} bytes: is it the file with the keys?", path = .0.display())]
    TooLarge(PathBuf),
    /// The file holds none.
    #[error("{path} holds no key: write one on a line of its own", path = .0.display())]
    Empty(PathBuf),
    /// It cannot be a key.
    #[error(
        "what {0} holds is no key: it has spaces or other characters that none has, or more than {MAX_KEY_BYTES} bytes"
    )]
    Malformed(String),
}

/// A key, and how an operator finds it.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) key: Secret,
    /// Such as `OPENAI_API_KEY` or `/etc/talon/keys, line 2`.
    pub(crate) place: String,
}

/// All keys of a source.
pub(crate) fn find(source: &KeySource, env: &dyn Fn(&str) -> Option<String>) -> Result<Vec<Found>, BadKey> {
    match source {
        KeySource::Env(name) => {
            let text = env(name).unwrap_or_default();
            let text = text.trim();
            if text.is_empty() {
                return Err(BadKey::NotSet(name.clone()));
            }
            Ok(vec![checked(text, name.clone())?])
        }
        KeySource::File(path) => {
            let text = read(path)?;
            let lines = text.lines().map(str::trim).enumerate();
            let found = lines
                .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
                .map(|(index, line)| checked(line, format!("{}, line {}", path.display(), index + 1)))
                .collect::<Result<Vec<_>, _>>()?;
            if found.is_empty() { Err(BadKey::Empty(path.clone())) } else { Ok(found) }
        }
    }
}

fn checked(text: &str, place: String) -> Result<Found, BadKey> {
    if text.len() > MAX_KEY_BYTES || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(BadKey::Malformed(place));
    }
    Ok(Found { key: Secret::new(text), place })
}

fn read(path: &Path) -> Result<String, BadKey> {
    let failed = |source| BadKey::File { path: path.to_owned(), source };
    // A pipe would hang when it is opened.
    if !std::fs::metadata(path).map_err(failed)?.is_file() {
        return Err(BadKey::NoFile(path.to_owned()));
    }
    let file = File::open(path).map_err(failed)?;
    let mode = file.metadata().map_err(failed)?.permissions().mode() & 0o7777;
    // A group may read it: that is how a service manager's credentials look, and how a file of root's is shared.
    if mode & 0o007 != 0 {
        return Err(BadKey::Readable { path: path.to_owned(), mode });
    }
    let mut text = String::new();
    file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text).map_err(failed)?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(BadKey::TooLarge(path.to_owned()));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str, mode: u32) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("keys");
        std::fs::write(&path, text).expect("written");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("set");
        (dir, path)
    }

    fn none(_: &str) -> Option<String> {
        None
    }

    #[test]
    fn a_file_holds_a_key_on_each_line() {
        let (_dir, path) = file("# ours\nsk-one\n\n  sk-two\r\n", 0o640);
        let found = find(&KeySource::File(path.clone()), &none).expect("keys");
        let keys: Vec<_> = found.iter().map(|found| found.key.reveal()).collect();
        assert_eq!(keys, ["sk-one", "sk-two"]);
        assert_eq!(found[1].place, format!("{}, line 4", path.display()));
        assert!(!format!("{found:?}").contains("sk-"), "{found:?}");
    }

    #[test]
    fn a_file_that_others_can_read_is_refused() {
        for mode in [0o644, 0o604, 0o602, 0o601] {
            let (_dir, path) = file("sk-one", mode);
            let error = find(&KeySource::File(path), &none).expect_err("readable by others");
            assert!(matches!(error, BadKey::Readable { .. }), "{mode:o}: {error}");
            assert!(error.to_string().contains("chmod o="), "{error}");
        }
    }

    #[test]
    fn what_is_no_key_is_named_by_its_place_alone() {
        let (_dir, path) = file("sk one\n", 0o600);
        let error = find(&KeySource::File(path), &none).expect_err("a space").to_string();
        assert!(error.contains("line 1") && !error.contains("sk one"), "{error}");
        let error =
            find(&KeySource::Env("K".to_owned()), &|_| Some("schlüssel".to_owned())).expect_err("no ASCII");
        assert!(!error.to_string().contains("schl"), "{error}");
        assert!(matches!(find(&KeySource::Env("K".to_owned()), &none), Err(BadKey::NotSet(_))));
        let (_dir, path) = file("\n# none\n", 0o600);
        assert!(matches!(find(&KeySource::File(path), &none), Err(BadKey::Empty(_))));
        let (_dir, path) = file(&"x".repeat(70_000), 0o600);
        assert!(matches!(find(&KeySource::File(path), &none), Err(BadKey::TooLarge(_))));
        let dir = tempfile::tempdir().expect("a directory");
        assert!(matches!(find(&KeySource::File(dir.path().to_owned()), &none), Err(BadKey::NoFile(_))));
    }
}

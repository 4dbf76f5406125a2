//! Writes the files of a new plugin.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::language::Language;
use super::role::NewRole;
use super::sdk::Sdk;
use super::{files, setup};
use crate::failure::Failure;

/// Writes a plugin into an empty or missing directory; returns the relative paths of its files.
pub(super) fn write_plugin(
    language: Language,
    role: Option<NewRole>,
    name: &str,
    dir: &Path,
    sdk: Option<&Sdk>,
) -> Result<Vec<String>, Failure> {
    let shown = dir.display();
    let failed = |what: &Path, error: std::io::Error| {
        Failure::failed(format!("cannot write {}: {error}; choose another directory", what.display()))
    };
    match fs::read_dir(dir).map(|mut entries| entries.next().is_some()) {
        Ok(true) => {
            return Err(Failure::usage(format!(
                "{shown} is there already and not empty: choose another directory, as in talon new {} {name} DIR",
                language.name()
            )));
        }
        Ok(false) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {
            fs::create_dir_all(dir).map_err(|error| failed(dir, error))?;
        }
        Err(error) if error.kind() == ErrorKind::NotADirectory => {
            return Err(Failure::usage(format!(
                "{shown} is there already and no directory: choose another name"
            )));
        }
        Err(error) => return Err(failed(dir, error)),
    }
    let mut written = Vec::new();
    for file in files::of(language, role) {
        let relative = file.path.replace("{{name}}", name);
        let path = dir.join(&relative);
        let text = substituted(language, name, file.path, file.text, sdk);
        let text = with_role(role, file.path, text);
        create(&path, text.as_bytes()).map_err(|error| failed(&path, error))?;
        written.push(relative);
    }
    // The versions that the SDK was tested with, if it has a lock file.
    if let Some(lock) = sdk.and_then(|sdk| sdk.lock.as_deref()) {
        let path = dir.join("Cargo.lock");
        let text = fs::read(lock)
            .map_err(|error| Failure::failed(format!("cannot read {}: {error}", lock.display())))?;
        create(&path, &text).map_err(|error| failed(&path, error))?;
        written.push("Cargo.lock".to_owned());
    }
    Ok(written)
}

/// Creates a file; never replaces an existing one or follows a symbolic link.
fn create(path: &Path, text: &[u8]) -> std::io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let mode = if path.extension().is_some_and(|extension| extension == "sh") { 0o777 } else { 0o666 };
    OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?.write_all(text)
}

/// Replaces the example's name and paths by those of the new plugin.
fn substituted(language: Language, name: &str, path: &str, text: &str, sdk: Option<&Sdk>) -> String {
    if is_helper(path) {
        return text.to_owned();
    }
    let own = match language {
        // Nothing of it stands for the name but the placeholder.
        Language::Lua => return text.replace("{{name}}", name),
        Language::Rust => "\"hello\"",
        Language::Python => "\"hello-py\"",
        Language::Go => "\"hello-go\"",
        Language::Node if path.ends_with(".json") => "\"hello-node\"",
        Language::Node => "'hello-node'",
    };
    let quote = &own[..1];
    let mut text = text.replace(own, &format!("{quote}{name}{quote}")).replace("{{name}}", name);
    for head in [
        "The smallest plugin: one",
        "The smallest plugin in Python: one",
        "The smallest plugin in Go: one",
        "The smallest plugin in Node: one",
    ] {
        text = text.replace(head, "A tool plugin: one");
    }
    if language == Language::Node && path == "plugin.yaml" {
        text = text.replace("/usr/bin/node", &setup::node().display().to_string());
    }
    if let Some(sdk) = sdk {
        // Escape for TOML.
        let path = sdk.path.display().to_string().replace('\\', "\\\\").replace('"', "\\\"");
        text = text.replace("{{sdk}}", &path);
    }
    text
}

/// The time in samples, in milliseconds.
const SAMPLE_TIME: &str = "1780000000000";

/// Puts the role's names and texts where a template has room for them; without a role, those of the greeting.
fn with_role(role: Option<NewRole>, path: &str, text: String) -> String {
    if is_helper(path) {
        return text;
    }
    let Some(role) = role else {
        return text.replace("{{call}}", "greet name=Ada");
    };
    // In Rust a literal of that size says its type.
    let sample = match path.ends_with(".rs") {
        true => role.sample().replace(SAMPLE_TIME, &format!("{SAMPLE_TIME}_i64")),
        false => role.sample().to_owned(),
    };
    text.replace("request_hook", role.as_str())
        .replace("{{call}}", &role.call())
        .replace("{{action}}", role.action())
        .replace("{{sample}}", &sample)
        .replace("{{answer}}", role.answer())
}

/// Whether a file belongs to a helper, which is copied unchanged.
fn is_helper(path: &str) -> bool {
    path.contains("talon_plugin/") || path.contains("talonplugin/") || path.contains("talon-plugin/")
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;

    use super::*;

    const ALL: [Language; 4] = [Language::Rust, Language::Python, Language::Go, Language::Node];

    fn sdk() -> Sdk {
        Sdk { path: "/opt/a \"b\"/sdk".into(), lock: None }
    }

    #[test]
    fn nothing_of_an_example_is_left() {
        let roles = || std::iter::once(None).chain(NewRole::value_variants().iter().copied().map(Some));
        for (language, role) in ALL.into_iter().flat_map(|language| roles().map(move |role| (language, role)))
        {
            let dir = tempfile::tempdir().unwrap();
            let sdk = (language == Language::Rust).then(sdk);
            let written = write_plugin(language, role, "my-tool", dir.path(), sdk.as_ref()).unwrap();
            assert!(written.len() >= 5, "{written:?}");
            if let Some(role) = role {
                let main = written.iter().find(|path| path.contains("main.")).unwrap();
                let text = fs::read_to_string(dir.path().join(main)).unwrap();
                assert!(text.contains(role.as_str()), "{language:?} {role:?}: {text}");
            }
            let mut named = 0;
            for path in &written {
                let text = fs::read_to_string(dir.path().join(path)).unwrap();
                let helper = path.contains("talon_plugin")
                    || path.contains("talonplugin")
                    || path.contains("talon-plugin");
                // The helpers are copied as they are; a literal of Go has two braces.
                if !helper {
                    assert!(!text.contains("{{"), "{path}: {text}");
                    assert!(!text.contains("hello-") && !text.contains("smallest"), "{path}: {text}");
                    assert!(role.is_none() || !text.contains("greet "), "{path}: {text}");
                    named += usize::from(text.contains("my-tool"));
                }
            }
            assert!(named >= 2, "{language:?}: its name stands in its source and its README");
        }
    }

    #[test]
    fn a_script_has_its_name_and_its_tests() {
        let dir = tempfile::tempdir().unwrap();
        let written = write_plugin(Language::Lua, None, "urgent", dir.path(), None).unwrap();
        assert_eq!(written, ["urgent.lua", "urgent_test.lua", "talon.d.luau", ".luaurc"]);
        for path in written {
            let text = fs::read_to_string(dir.path().join(&path)).unwrap();
            assert!(!text.contains("{{"), "{path}: {text}");
        }
    }

    #[test]
    fn a_path_of_the_sdk_is_toml() {
        let dir = tempfile::tempdir().unwrap();
        write_plugin(Language::Rust, None, "my-tool", dir.path(), Some(&sdk())).unwrap();
        let text = fs::read_to_string(dir.path().join("Cargo.toml")).unwrap();
        assert!(text.contains(r#"path = "/opt/a \"b\"/sdk""#), "{text}");
    }

    #[test]
    fn what_is_there_stays() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("mine"), "").unwrap();
        let error = write_plugin(Language::Go, None, "my-tool", dir.path(), None).unwrap_err().to_string();
        assert!(error.contains("not empty"), "{error}");
        let error = write_plugin(Language::Go, None, "my-tool", &dir.path().join("mine"), None)
            .unwrap_err()
            .to_string();
        assert!(error.contains("no directory"), "{error}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}

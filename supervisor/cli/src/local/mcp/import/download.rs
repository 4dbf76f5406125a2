//! What launchers such as `npx` and `uvx` would download, by their command lines.

/// A package that a launcher would download and run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Download {
    pub(super) registry: PackageRegistry,
    /// The package in the registry's syntax, with a version if one was given.
    pub(super) package: String,
    /// The program in the package.
    pub(super) program: Option<String>,
    /// The version of Python that the launcher was given: `3.12`, `python3.12` or a path.
    pub(super) python: Option<String>,
    /// Further packages that its environment gets, in the same syntax.
    pub(super) with: Vec<String>,
    pub(super) args: Vec<String>,
}

/// The package registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PackageRegistry {
    Npm,
    PyPi,
}

/// Why it is not known what a launcher would download.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum DownloadError {
    #[error("has its launcher download more than one package: install them, and name the program")]
    SeveralPackages,
    #[error("has its launcher use {flag}: install its package, and name the program")]
    UnknownFlag { flag: String },
    #[error(
        "has its launcher fetch {package:?}, which is no package of a registry: install it, and name the program"
    )]
    NoPackage { package: String },
    #[error("has a launcher without a program to run: correct it")]
    NoProgram,
}

/// What a launcher's command line would download. `None`: it is not a launcher.
pub(super) fn download(command: &str, args: &[String]) -> Option<Result<Download, DownloadError>> {
    let command = command.strip_suffix(".cmd").or_else(|| command.strip_suffix(".exe")).unwrap_or(command);
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let (by, words): (PackageRegistry, &[&str]) = match (command, words.as_slice()) {
        ("npx" | "bunx" | "pnpx", rest) => (PackageRegistry::Npm, rest),
        ("npm" | "pnpm" | "yarn" | "bun", ["exec" | "dlx" | "x", rest @ ..]) => (PackageRegistry::Npm, rest),
        ("uvx", rest) | ("uv", ["tool", "run", rest @ ..]) | ("pipx", ["run", rest @ ..]) => {
            (PackageRegistry::PyPi, rest)
        }
        _ => return None,
    };
    Some(read(by, words))
}

fn read(by: PackageRegistry, words: &[&str]) -> Result<Download, DownloadError> {
    let (mut package, mut python, mut with) = (None, None, Vec::new());
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let (flag, value) = word.split_once('=').map_or((*word, None), |(flag, value)| (flag, Some(value)));
        match (by, flag) {
            (
                PackageRegistry::Npm,
                "-y" | "--yes" | "-q" | "--quiet" | "--prefer-online" | "--prefer-offline" | "--",
            ) => {}
            (
                PackageRegistry::PyPi,
                "-q" | "--quiet" | "--isolated" | "--no-cache" | "--refresh" | "--offline",
            ) => {}
            (PackageRegistry::Npm, "-p" | "--package") | (PackageRegistry::PyPi, "--from" | "--spec") => {
                let given = value.map(str::to_owned).or_else(|| words.next().map(|word| (*word).to_owned()));
                if package.is_some() {
                    return Err(DownloadError::SeveralPackages);
                }
                package = given;
            }
            (PackageRegistry::PyPi, "--python" | "-p") => {
                python = value.map(str::to_owned).or_else(|| words.next().map(|word| (*word).to_owned()));
            }
            (PackageRegistry::PyPi, "--with") => {
                let given = value.or_else(|| words.next().copied()).unwrap_or_default();
                with.extend(given.split(',').map(|package| package.trim().to_owned()));
            }
            (_, flag) if flag.starts_with('-') => {
                return Err(DownloadError::UnknownFlag { flag: flag.to_owned() });
            }
            (_, _) => {
                let program = (*word).to_owned();
                let args = words.map(|word| (*word).to_owned()).collect();
                let (package, program) = match package {
                    Some(package) => (package, Some(program)),
                    None => (program, None),
                };
                let odd = std::iter::once(&package).chain(&with).find(|package| !is_package(by, package));
                return match odd {
                    Some(odd) => Err(DownloadError::NoPackage { package: odd.clone() }),
                    None => Ok(Download { registry: by, package, program, python, with, args }),
                };
            }
        }
    }
    Err(DownloadError::NoProgram)
}

/// A package name with an optional version; rejects what a package manager would treat as an address or a
/// flag.
fn is_package(by: PackageRegistry, text: &str) -> bool {
    let word = |text: &str| {
        text.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric())
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
    };
    let version = |text: &str| {
        !text.is_empty()
            && text.bytes().all(|b| {
                b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'+' | b'^' | b'~' | b'*')
            })
    };
    match by {
        PackageRegistry::Npm => {
            let (scope, rest) = match text.strip_prefix('@').map(|rest| rest.split_once('/')) {
                Some(Some((scope, rest))) => (Some(scope), rest),
                Some(None) => return false,
                None => (None, text),
            };
            let (name, asked) =
                rest.split_once('@').map_or((rest, None), |(name, asked)| (name, Some(asked)));
            scope.is_none_or(word) && word(name) && asked.is_none_or(version)
        }
        PackageRegistry::PyPi => {
            let (name, asked) = split_pypi(text);
            let (name, extras) =
                name.split_once('[').map_or((name, None), |(name, extras)| (name, extras.strip_suffix(']')));
            word(name) && extras.is_none_or(|extras| extras.split(',').all(word)) && asked.is_none_or(version)
        }
    }
}

/// Splits name and version of `uvx name@1.2` and `name==1.2`.
pub(super) fn split_pypi(text: &str) -> (&str, Option<&str>) {
    match text.split_once("==").or_else(|| text.split_once('@')) {
        Some((name, version)) => (name, Some(version)),
        None => (text, None),
    }
}

impl Download {
    /// Its packages in pip's syntax, the server's first.
    pub(super) fn requirements(&self) -> impl Iterator<Item = String> {
        std::iter::once(&self.package).chain(&self.with).map(|package| requirement(package))
    }
}

/// A package in pip's syntax.
fn requirement(package: &str) -> String {
    match split_pypi(package) {
        (name, Some("latest")) | (name, None) => name.to_owned(),
        (name, Some(version)) => format!("{name}=={version}"),
    }
}

#[cfg(test)]
#[path = "download_tests.rs"]
mod tests;

//! Sets up a new plugin: virtual environment, packages, build.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use talon_sanitize::sanitized;

use super::language::Language;
use super::shell::quoted;
use crate::failure::Failure;
use crate::line::sanitized_line;
use crate::output::Output;
use crate::transient_bar::TransientBar;

/// How many of the last lines of a failed program are shown.
const MAX_LINES_SHOWN: usize = 12;
/// Where Debian installs Go libraries.
const GOCODE: &str = "/usr/share/gocode/src";
/// Libraries that a Go plugin is built from, and the packages that contain them.
const GO_LIBRARIES: [(&str, &str); 3] = [
    ("google.golang.org/grpc", "golang-google-grpc-dev"),
    ("google.golang.org/protobuf", "golang-github-golang-protobuf-1-5-dev"),
    ("github.com/hashicorp/go-plugin", "golang-github-hashicorp-go-plugin-dev"),
];

/// One command in the plugin's directory.
pub(super) struct Step {
    title: &'static str,
    program: PathBuf,
    args: Vec<String>,
    /// The packages that it needs.
    packages: &'static str,
}

/// Refresh interval of the elapsed time.
const TICK: Duration = Duration::from_millis(200);

/// The steps of a language, in order.
pub(super) fn steps(language: Language, name: &str) -> Vec<Step> {
    let step = |what, program: PathBuf, args: &[&str], packages| Step {
        title: what,
        program,
        args: args.iter().map(|&arg| arg.to_owned()).collect(),
        packages,
    };
    match language {
        Language::Rust => vec![step(
            "Building it (cargo, which gets what is missing from crates.io) …",
            "cargo".into(),
            &["build"],
            "Rust: https://rustup.rs",
        )],
        Language::Python => vec![
            step("Making a virtual environment …", python(), &["-m", "venv", "venv"], "Debian: python3-venv"),
            step(
                "Installing what requirements.txt names (PyPI: grpcio) …",
                "venv/bin/python".into(),
                &["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", "requirements.txt"],
                "Debian: python3-venv",
            ),
        ],
        Language::Go => {
            let output = format!("bin/{name}");
            let packages = "Debian: golang-go golang-google-grpc-dev golang-github-golang-protobuf-1-5-dev \
                            golang-github-hashicorp-go-plugin-dev";
            vec![step("Building it …", "./go.sh".into(), &["build", "-o", &output, "."], packages)]
        }
        Language::Node => vec![step(
            "Installing what package-lock.json names (npm: @grpc/grpc-js) …",
            "npm".into(),
            &["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"],
            "Debian: nodejs npm",
        )],
        // `talon-lua` is installed with this program.
        Language::Lua => Vec::new(),
    }
}

/// Prefers the system's interpreter: every uid can read it, and the plugin's virtual environment may link to
/// it.
fn python() -> PathBuf {
    system_or("python3")
}

/// The same for Node.
pub(super) fn node() -> PathBuf {
    system_or("node")
}

fn system_or(name: &str) -> PathBuf {
    let system = Path::new("/usr/bin").join(name);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut elsewhere = std::env::split_paths(&path).map(|dir| dir.join(name)).filter(|path| path.is_file());
    if system.is_file() { system } else { elsewhere.next().unwrap_or(system) }
}

impl Step {
    /// Runs the command. Its output is shown only if it fails. Ctrl-C interrupts it.
    pub(super) fn run(&self, dir: &Path, out: &mut Output) -> Result<(), Failure> {
        out.err_line(sanitized!("{}", self.title));
        if self.program == Path::new("./go.sh") {
            self.check_go(dir)?;
        }
        // A bare name is looked up in PATH; other paths are absolute or relative to the plugin.
        let program = match self.program.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => absolute(&dir.join(&self.program)),
            _ => self.program.clone(),
        };
        // Shown only on a terminal: some steps take minutes.
        let clock = TransientBar::new(None, "{spinner} {elapsed}");
        clock.enable_steady_tick(TICK);
        let output = Command::new(program).args(&self.args).current_dir(dir).stdin(Stdio::null()).output();
        drop(clock);
        let output = output.map_err(|error| {
            self.failed(dir, &format!("{} cannot be started: {error}", self.program.display()))
        })?;
        if output.status.success() {
            return Ok(());
        }
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
        for line in &lines[lines.len().saturating_sub(MAX_LINES_SHOWN)..] {
            out.err_line(sanitized!("  {}", sanitized_line(line)));
        }
        Err(self.failed(dir, &format!("{} ended with {}", self.program.display(), output.status)))
    }

    /// go's own message for a missing library does not say which package to install.
    fn check_go(&self, dir: &Path) -> Result<(), Failure> {
        let missing: Vec<&str> = GO_LIBRARIES
            .iter()
            .filter(|(library, _)| !Path::new(GOCODE).join(library).is_dir())
            .map(|(_, package)| *package)
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        Err(self.failed(dir, &format!("Debian's libraries are not installed: {}", missing.join(" "))))
    }

    fn failed(&self, dir: &Path, why: &str) -> Failure {
        Failure::failed(format!(
            "the plugin is written, but not set up: {why}.\nIt needs {}. Then say:  {}",
            self.packages,
            self.by_hand(dir)
        ))
    }

    /// The same command for a shell.
    pub(super) fn by_hand(&self, dir: &Path) -> String {
        // The arguments are constants that need no quoting.
        format!("cd {} && {} {}", quoted(dir), quoted(&self.program), self.args.join(" "))
    }
}

/// Makes a path in the plugin absolute without resolving symbolic links: an interpreter finds its environment
/// by the name of the link.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

//! The tutorials in `docs/tutorials` are run as they are printed, by a shell, with real programs.
//!
//! A page's blocks are its program. In a block of the language `console` a line that begins with `$ ` is a
//! command, and the lines below it are its output: none means that the output is not compared, `...` alone
//! stands for any lines, and `...` in a line for any text. Every command must succeed. A block whose info
//! string has `file=PATH` is written to that path below the home directory. After a command that ends with
//! `&` the shell waits until a supervisor answers, as a reader would.
//!
//! Only what a test must not do is replaced by a program of the same name, earlier in `PATH`: downloads and
//! builds are taken from what `make test` has installed and built.
//!
//! `docs/README.md` is the index of the pages; a test compares it with the directory.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use talon_tests::{Builder, Machine, Scratch, is_root, package, program, repository, skip, target};

/// Stands for any text in a line of expected output, and alone for any lines.
const ANYTHING: &str = "...";

enum Step {
    Run { line: usize, command: String, expected: Vec<String> },
    Write { path: String, text: String },
}

/// The steps of a tutorial, in its order.
fn steps(tutorial: &str) -> Vec<Step> {
    let path = repository().join("docs/tutorials").join(tutorial);
    let page = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut steps = Vec::new();
    let mut lines = page.lines().enumerate();
    while let Some((_, line)) = lines.next() {
        let Some(info) = line.strip_prefix("```") else { continue };
        let body: Vec<(usize, &str)> = lines.by_ref().take_while(|(_, line)| *line != "```").collect();
        if let Some(path) = info.split_whitespace().find_map(|word| word.strip_prefix("file=")) {
            let text = body.iter().map(|(_, line)| format!("{line}\n")).collect();
            steps.push(Step::Write { path: path.to_owned(), text });
        } else if info == "console" {
            console(tutorial, &body, &mut steps);
        }
    }
    steps
}

fn console(tutorial: &str, body: &[(usize, &str)], steps: &mut Vec<Step>) {
    let first = steps.len();
    for (index, text) in body {
        if let Some(command) = text.strip_prefix("$ ") {
            steps.push(Step::Run { line: index + 1, command: command.to_owned(), expected: Vec::new() });
        } else if let Some(Step::Run { expected, .. }) = steps[first..].last_mut() {
            expected.push((*text).to_owned());
        } else {
            panic!("{tutorial}:{}: a console block begins with a command", index + 1);
        }
    }
}

/// Whether a line is as the page shows it.
fn line_fits(pattern: &str, line: &str) -> bool {
    let Some((start, rest)) = pattern.split_once(ANYTHING) else { return pattern == line };
    let Some(line) = line.strip_prefix(start) else { return false };
    line.char_indices().map(|(at, _)| at).chain([line.len()]).any(|at| line_fits(rest, &line[at..]))
}

/// Whether the lines are as the page shows them.
fn fits(patterns: &[String], lines: &[&str]) -> bool {
    let Some((pattern, patterns)) = patterns.split_first() else { return lines.is_empty() };
    if pattern == ANYTHING {
        return (0..=lines.len()).any(|skipped| fits(patterns, &lines[skipped..]));
    }
    lines.split_first().is_some_and(|(line, lines)| line_fits(pattern, line) && fits(patterns, lines))
}

/// A page that is run: a directory, below which are the home directory, the programs that replace others, and
/// the output.
struct Session {
    steps: Vec<Step>,
    tutorial: &'static str,
    /// The directory as this process sees it.
    directory: PathBuf,
}

impl Session {
    /// Writes the shell script and what it needs. `seen_as` is the directory's path for the shell.
    fn new(tutorial: &'static str, scratch: &Scratch, seen_as: &Path) -> Self {
        let steps = steps(tutorial);
        assert!(steps.len() > 4, "{tutorial}: a tutorial has steps, and this reader found {}", steps.len());
        let session = Self { steps, tutorial, directory: scratch.path().to_owned() };
        for directory in ["home", "out", "bin"] {
            std::fs::create_dir_all(scratch.join(directory))
                .expect("the scratch directory takes directories");
        }
        scratch.write("session.sh", &session.script(scratch, &seen_as.display().to_string()));
        session
    }

    fn script(&self, scratch: &Scratch, at: &str) -> String {
        let mut script = format!(
            "export HOME={at}/home PATH={at}/bin:$PATH\n\
             cd \"$HOME\" || exit 1\n\
             exec </dev/null\n\
             trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT\n"
        );
        for (number, step) in self.steps.iter().enumerate() {
            match step {
                Step::Write { path, text } => {
                    scratch.write(&format!("out/{number}.file"), text);
                    let _ = writeln!(
                        script,
                        "mkdir -p \"$HOME/$(dirname {path})\" && cp {at}/out/{number}.file \"$HOME/{path}\" || exit 1"
                    );
                }
                Step::Run { command, .. } => {
                    // In this shell and not in one below it, so that `cd` and `export` last.
                    let _ = writeln!(
                        script,
                        "{{ {command}\n}} >{at}/out/{number}.out 2>&1 || exit 1\n: >{at}/out/{number}.done"
                    );
                    if command.ends_with('&') {
                        script.push_str(
                            "for attempt in $(seq 600); do talon status >/dev/null 2>&1 && break; sleep 0.1; done\n",
                        );
                    }
                }
            }
        }
        script
    }

    /// Compares what the commands printed with the page.
    fn check(&self, shell: &Output) {
        let mut wrong = String::new();
        for (number, step) in self.steps.iter().enumerate() {
            let Step::Run { line, command, expected } = step else { continue };
            let place = format!("docs/tutorials/{}:{line}: $ {command}", self.tutorial);
            let output = self.directory.join(format!("out/{number}.out"));
            let printed = std::fs::read(output).unwrap_or_default();
            let printed = String::from_utf8_lossy(&printed).into_owned();
            if !self.directory.join(format!("out/{number}.done")).exists() {
                // Nothing after it ran.
                let _ = writeln!(wrong, "{place}\nfailed:\n{printed}");
                break;
            }
            let lines: Vec<&str> = printed.trim_end().lines().collect();
            let end = expected.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
            if end > 0 && !fits(&expected[..end], &lines) {
                let _ = writeln!(
                    wrong,
                    "{place}\nprinted:\n{printed}\nand the page has:\n{}\n",
                    expected.join("\n")
                );
            }
        }
        assert!(
            wrong.is_empty() && shell.status.success(),
            "{wrong}\n{}: {}{}{}",
            shell.status,
            String::from_utf8_lossy(&shell.stdout),
            String::from_utf8_lossy(&shell.stderr),
            self.logs(),
        );
    }

    /// The logs of supervisors that the page started.
    fn logs(&self) -> String {
        let mut logs = String::new();
        for entry in std::fs::read_dir(self.directory.join("home")).into_iter().flatten().flatten() {
            if let Ok(log) = std::fs::read_to_string(entry.path().join("talon.log")) {
                let _ = write!(logs, "\n{}/talon.log:\n{log}", entry.path().display());
            }
        }
        logs
    }
}

/// Runs a tutorial on this machine, as the user of the tests.
fn run_here(tutorial: &'static str, scratch: &Scratch) {
    let session = Session::new(tutorial, scratch, scratch.path());
    let talon = program("talon");
    let beside = talon.parent().expect("a program lies in a directory");
    let path = std::env::var("PATH").expect("there is a PATH");
    let mut command = Command::new("timeout");
    command
        .args(["300", "bash"])
        .arg(scratch.join("session.sh"))
        .env("PATH", format!("{}:{path}", beside.display()))
        .env_remove("XDG_RUNTIME_DIR")
        .env_remove("TALON_CONFIG")
        .env_remove("CARGO_TARGET_DIR");
    // The builder reserves uids for this test; the page's configuration gets them by the environment.
    let builder = Builder::new();
    if is_root() {
        let (config, _) = builder.write_config();
        let text = std::fs::read_to_string(config).expect("it was just written");
        let range = text.lines().find_map(|line| line.trim().strip_prefix("uid_range: "));
        command.env("TALON_SANDBOX__UID_RANGE", range.expect("root's supervisors have a range of uids"));
    }
    let output = command.output().expect("timeout starts");
    drop(builder);
    session.check(&output);
}

#[test]
fn an_mcp_server_in_a_jail() {
    let test = "an_mcp_server_in_a_jail";
    let Ok(installed) = target().join("mcp/node").canonicalize() else {
        return skip(test, "there is no target/mcp/node, which `tests/scripts/deps.sh test` installs");
    };
    if !Path::new("/usr/bin/node").exists() {
        return skip(test, "there is no /usr/bin/node, which `tests/scripts/deps.sh test` installs");
    }
    let scratch = Scratch::new();
    // `npm install PACKAGE@VERSION`: the package as it was installed for the tests, if it is that version.
    scratch.script(
        "bin/npm",
        &format!(
            "#!/bin/sh\n\
             set -eu\n\
             [ \"$1\" = install ]\n\
             for word; do\n\
             case $word in\n\
             @*@*) grep -Fq \"\\\"version\\\": \\\"${{word##*@}}\\\"\" {installed}/node_modules/\"${{word%@*}}\"/package.json ;;\n\
             esac\n\
             done\n\
             cp -R {installed}/node_modules .\n",
            installed = installed.display(),
        ),
    );
    run_here("mcp-server.md", &scratch);
}

#[test]
fn a_plugin_in_python() {
    if !target().join("plugins/hello-py/.stamp").exists() {
        return skip(
            "a_plugin_in_python",
            "hello-py is not staged, so Python's tools may be missing: tests/scripts/deps.sh test",
        );
    }
    run_here("python-plugin.md", &Scratch::new());
}

#[test]
fn a_service_under_systemd() {
    let test = "a_service_under_systemd";
    if let Some(reason) = Machine::missing_requirement() {
        return skip(test, &reason);
    }
    let package = match package("0.1.0-1") {
        Ok(package) => package,
        Err(reason) => return skip(test, &reason),
    };
    let machine = match Machine::boot() {
        Ok(machine) => machine,
        Err(reason) => return skip(test, &reason),
    };
    let shared = &machine.shared;
    let session = Session::new("systemd.md", shared, Path::new("/in"));
    // What `make package plugins` builds.
    shared.script("bin/make", "#!/bin/sh\n[ \"$*\" = 'package plugins' ]\n");
    shared.install(&package, "home/talon/target/package/talon_0.1.0_amd64.deb");
    shared.install(&program("hello"), "home/talon/target/plugins/hello");
    // The commands run as root, and the machine has no network.
    shared.script("bin/sudo", "#!/bin/sh\nexec \"$@\"\n");
    shared.script(
        "bin/apt",
        "#!/bin/sh\n\
         case \"$1 $2\" in\n\
         'install -y') exec dpkg -i \"$3\" ;;\n\
         'purge -y') exec dpkg --purge \"$3\" ;;\n\
         esac\n\
         exit 1\n",
    );
    machine.sh("useradd reader");
    let output = machine.run(&["env", "USER=reader", "bash", "/in/session.sh"]);
    session.check(&output);
}

#[test]
fn the_reader_compares_lines() {
    let patterns = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let lines = ["PLUGIN  STATE", "files   ready  1/1", "", "done"];
    assert!(fits(&patterns("PLUGIN...\nfiles   ready...\n...\ndone"), &lines));
    assert!(fits(&patterns("...\ndone"), &lines) && fits(&patterns("..."), &[]));
    assert!(!fits(&patterns("PLUGIN...\n...\nready"), &lines) && !fits(&patterns("PLUGIN  STATE"), &lines));
    assert!(line_fits("a...b...c", "a-b-b-c") && line_fits("...", "") && !line_fits("a...b", "ab-"));
}

/// The pages below a directory of `docs/`, as the index names them.
fn pages(below: &str) -> impl Iterator<Item = String> {
    let directory = repository().join("docs").join(below);
    let entries =
        std::fs::read_dir(&directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    entries
        .map(|entry| entry.expect("it can be listed").file_name().to_string_lossy().into_owned())
        .filter(|name| name.ends_with(".md"))
        .map(move |name| format!("{below}{name}"))
}

/// The targets of a page's links, without anchors.
fn links(page: &str) -> Vec<&str> {
    let targets = page.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets.map(|target| target.split('#').next().unwrap_or_default()).collect()
}

#[test]
fn every_page_stands_in_the_index_once() {
    let index = std::fs::read_to_string(repository().join("docs/README.md")).expect("there is an index");
    let headings: Vec<&str> = index.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    assert_eq!(headings, ["Tutorials", "How-to guides", "Reference", "Explanation"]);
    let links = links(&index);
    let mut wrong = Vec::new();
    let existing: BTreeSet<String> =
        pages("").chain(pages("tutorials/")).chain(["decisions/README.md".to_owned()]).collect();
    for page in existing.iter().filter(|page| page.as_str() != "README.md") {
        let times = links.iter().filter(|link| *link == page).count();
        if times != 1 {
            wrong.push(format!("docs/{page} is linked {times} times"));
        }
    }
    for link in links {
        if !repository().join("docs").join(link).exists() {
            wrong.push(format!("docs/{link} does not exist"));
        }
    }
    assert!(wrong.is_empty(), "docs/README.md lists every page once:\n{}", wrong.join("\n"));
}

#[test]
fn every_decision_stands_in_its_index_once() {
    let index =
        std::fs::read_to_string(repository().join("docs/decisions/README.md")).expect("there is an index");
    // Below the list a table links to some of them again.
    let links = links(index.split("\n## ").next().unwrap_or_default());
    for page in pages("decisions/").filter(|page| page != "decisions/README.md") {
        let name = page.trim_start_matches("decisions/");
        let times = links.iter().filter(|link| **link == name).count();
        assert_eq!(times, 1, "docs/decisions/README.md lists every decision once: {name}");
        let text =
            std::fs::read_to_string(repository().join("docs").join(&page)).expect("it was just listed");
        for heading in ["## Context", "## Decision", "## Consequence"] {
            assert!(text.contains(heading), "{page} has no {heading:?}");
        }
    }
}

/// The layers of the guard stack in the code, the outermost first, by their labels.
fn layers() -> Vec<String> {
    let path = repository().join("supervisor/crates/guard/src/layer_timings.rs");
    let source = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let list = source.split_once("pub const ALL").expect("it has the list").1;
    let list = list.split_once("];").expect("the list ends").0;
    let kinds = list.lines().filter_map(|line| line.trim().strip_prefix("Self::"));
    kinds.map(|kind| kind.trim_end_matches(',').to_lowercase()).collect()
}

#[test]
fn the_pages_list_the_layers_in_their_order() {
    let layers = layers();
    assert!(layers.len() > 10, "{layers:?}");
    // Rows of a table, and lines of a drawing.
    for (page, start) in [("docs/guard.md", "| "), ("ARCHITECTURE.md", "  ")] {
        let text = std::fs::read_to_string(repository().join(page)).expect("the page is there");
        let words = text.lines().filter_map(|line| line.strip_prefix(start)?.split_whitespace().next());
        let listed: Vec<&str> = words.filter(|word| layers.iter().any(|layer| layer == word)).collect();
        // The service at the bottom is no layer, and need not be listed.
        let expected: Vec<&str> =
            layers.iter().map(String::as_str).filter(|layer| *layer != "instance").collect();
        let listed: Vec<&str> = listed.into_iter().filter(|layer| *layer != "instance").collect();
        assert_eq!(listed, expected, "{page}");
    }
}

//! The MCP project's own conformance suite, and the tables of `docs/mcp.md` that say what it finds.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::{Output, Stdio};

use talon_harness::{repository, target};
use tokio::process::Command;

/// What a table says of a scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// For each revision `passes`, `passes in part`, `does not apply`, or nothing where the revision does not have it.
    pub said: Vec<String>,
    /// The reason, with the checks that fail in backquotes.
    pub why: String,
}

/// The suite, as `tests/scripts/deps.sh test` installs it.
#[derive(Debug, Clone)]
pub struct ConformanceSuite {
    node: PathBuf,
    script: PathBuf,
}

impl ConformanceSuite {
    /// The suite below the target directory.
    #[must_use]
    pub fn installed() -> Self {
        let installed = target().join("mcp");
        let script = "conformance/node_modules/@modelcontextprotocol/conformance/dist/index.js";
        Self { node: installed.join("node22/bin/node"), script: installed.join(script) }
    }

    /// What is not there, of what it needs.
    #[must_use]
    pub fn missing(&self) -> Option<PathBuf> {
        [self.node.clone(), self.script.clone(), "/usr/bin/python3".into()]
            .into_iter()
            .find(|it| !it.exists())
    }

    /// Its own list of scenarios for `server` or `client`: each with the revisions that have it.
    ///
    /// # Panics
    /// When it does not start.
    pub async fn scenarios(&self, side: &str) -> BTreeMap<String, Vec<String>> {
        let output = self.run(&["list", &format!("--{side}")]).await;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        // It lists both sides, with either word.
        let (servers, clients) = text.split_once("Client scenarios").unwrap_or((&text, ""));
        let listed = if side == "client" { clients } else { servers };
        let rows = listed.lines().filter_map(|line| line.trim().strip_prefix("- ")?.split_once(" ["));
        rows.map(|(name, revisions)| {
            let revisions = revisions.trim_end_matches(']').split(',').map(str::to_owned).collect();
            (name.to_owned(), revisions)
        })
        .collect()
    }

    /// Runs it.
    ///
    /// # Panics
    /// When it does not start.
    pub async fn run(&self, args: &[&str]) -> Output {
        Command::new(&self.node)
            .arg(&self.script)
            .args(args)
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output()
            .await
            .expect("node starts")
    }

    /// Holds one scenario at one revision against its row, and says what differs. `run` is its run there.
    pub async fn differs(
        &self,
        name: &str,
        revision: &str,
        (said, why): (&str, &str),
        known: &[String],
        run: &[&str],
    ) -> Option<String> {
        let has_it = known.iter().any(|known| known == revision);
        match said {
            "passes" | "passes in part" if has_it => {
                let output =
                    self.run(&[run, &["--scenario", name, "--spec-version", revision]].concat()).await;
                // Of servers it reports on standard output, and of clients on standard error.
                let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
                // Checks that fail are named where it says why. A revision that does not have one skips it.
                let ran =
                    |check: &str| text.lines().any(|line| line.contains(check) && !line.contains("SKIPPED"));
                let expected: BTreeSet<&str> = why
                    .split('`')
                    .skip(1)
                    .step_by(2)
                    .filter(|check| said == "passes in part" && ran(check))
                    .collect();
                let fits = failed(&text) == expected
                    && output.status.success() == expected.is_empty()
                    && expected.is_empty() == (said == "passes");
                (!fits).then(|| format!("{name} at {revision}:\n{text}"))
            }
            "does not apply" if why.len() > 20 => None,
            "does not apply" => Some(format!("{name} does not say why it does not apply")),
            "" if !has_it => None,
            "" => Some(format!("{name} is also in {revision}")),
            other => Some(format!("{name} at {revision}: {other:?} is nothing that can be said of it")),
        }
    }
}

/// The checks of a run that failed, by their ids.
fn failed(text: &str) -> BTreeSet<&str> {
    let lines = text.lines().filter(|line| line.contains("FAILURE"));
    lines.filter_map(|line| Some(line.split_once(" [")?.1.split_once(']')?.0.trim())).collect()
}

/// The table of `docs/mcp.md` below this head, by scenario.
///
/// # Panics
/// When it is not there.
#[must_use]
pub fn table(head: &str) -> BTreeMap<String, Row> {
    let page = std::fs::read_to_string(repository().join("docs/mcp.md")).expect("docs/mcp.md is there");
    let rows = page.split(head).nth(1).expect("it has the table").lines().skip(2);
    rows.take_while(|line| line.starts_with('|'))
        .map(|line| {
            let cells: Vec<String> =
                line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
            let [name, said @ .., why] = cells.as_slice() else { panic!("{line}") };
            (name.trim_matches('`').to_owned(), Row { said: said.to_vec(), why: why.clone() })
        })
        .collect()
}

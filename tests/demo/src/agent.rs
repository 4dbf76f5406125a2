//! The second part: a model answers a question with two of the tools, through the same dispatcher as every
//! client.

use anyhow::{Context, Result};
use serde_json::Value;
use talon_harness::{Builder, Supervisor};

use crate::command::{cli, text};
use crate::show::Show;

/// The prepared answers of the model.
const SCRIPT: &str = include_str!("script.yaml");
const QUESTION: &str = "Where does become_stage_if_asked stand, and which planet has the most moons?";

/// The agent's sections of the configuration.
pub(crate) fn with_agent(builder: Builder) -> Builder {
    let script = builder.scratch().write("script.yaml", SCRIPT);
    builder.config(&format!(
        "agent:\n  enabled: true\nmodels:\n  providers:\n    scripted: {{ kind: scripted, file: {} }}\n  catalog:\n    \
         scripted/demo: {{ tier: mid, context_window: 128000, tools: true, free: true }}\n",
        script.display()
    ))
}

pub(crate) async fn question(show: &mut Show, supervisor: &Supervisor) -> Result<()> {
    show.heading("A model uses two of these tools");
    show.say("No model is asked here: the answers are prepared, and named `scripted`. Everything else is as with any other.");
    let output = cli(supervisor, &["ask", QUESTION]).await?;
    show.command(&format!("ask {QUESTION:?}"), &text(&output));
    show.check(
        "the question is answered",
        output.status.success() && text(&output).contains("Saturn has the most moons"),
    );
    let listed = cli(supervisor, &["session", "list", "--output", "json"]).await?;
    let listed: Value = serde_json::from_slice(&listed.stdout).context("sessions as JSON")?;
    let first = listed.pointer("/sessions/0/id").or_else(|| listed.pointer("/0/id"));
    let session = first.and_then(Value::as_str).context("a session")?;
    let shown = cli(supervisor, &["session", "show", session]).await?;
    show.say("The transcript, as it was kept:");
    show.command(&format!("session show {session}"), &text(&shown));
    let transcript = text(&shown);
    show.check(
        "it holds the question and both calls",
        [QUESTION, "code-search", "csv-query"].iter().all(|part| transcript.contains(part)),
    );
    let as_json = cli(supervisor, &["session", "show", session, "--output", "json"]).await?;
    show.check(
        "what the tools answered reached the model as two marked blocks of data",
        // Markers are neutralized in output for people as well.
        text(&as_json).matches("plugin_output]").count() >= 4,
    );
    Ok(())
}

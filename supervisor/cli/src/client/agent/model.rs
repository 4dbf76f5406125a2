//! `talon model`: the models that the agent can use.

use anstyle::{AnsiColor, Style};
use clap::{Args, Subcommand};
use serde_json::json;
use talon_proto::agent::{ListModelsRequest, ListModelsResponse, Model, ModelChain};

use super::connection::AgentConnection;
use super::formatting::count;
use super::session_overrides::sampling_text;
use crate::exit;
use crate::failure::Failure;
use crate::host_socket::HostSocket;
use crate::output::Output;
use crate::table::{Cell, Column, Table};
use crate::wrap::wrapped_on;

/// Look at the models that the agent can use.
#[derive(Debug, Subcommand)]
pub(crate) enum ModelVerb {
    List(ListArgs),
}

/// List the models with their tiers, prices and states, and the providers that have them.
///
/// Prices are in US dollars per million tokens. The estimate is the cost of a typical turn.
#[derive(Debug, Args)]
#[command(
    visible_alias = "ls",
    after_help = "Examples:
  talon model list
  talon model list --output json | jq -r '.models[] | select(.state != \"ready\") | .id + \": \" + .why'"
)]
pub(crate) struct ListArgs {}

impl ModelVerb {
    pub(crate) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        let Self::List(ListArgs {}) = self;
        let reach = AgentConnection::connect(socket).await?;
        let answer =
            reach.query(|mut agent| async move { agent.list_models(ListModelsRequest {}).await }).await?;
        if out.is_json() {
            out.json(&json!({
                "models": answer.models,
                "providers": answer.providers,
                "chains": answer.chains,
                "embeddings": answer.embeddings,
            }));
        } else {
            print(&answer, out);
        }
        Ok(exit::OK)
    }
}

/// Prints all tables; chats use this, too.
pub(super) fn print(answer: &ListModelsResponse, out: &mut Output) {
    if answer.models.is_empty() {
        out.line("no models: name some under models.catalog; see docs/models.md");
    } else {
        models(&answer.models, out);
        chains(&answer.chains, out);
    }
    if !answer.embeddings.is_empty() {
        out.line("");
        let mut table = Table::new(&["FOR", "ASKED"]);
        table.row(vec!["searches for tools by meaning".into(), answer.embeddings.as_str().into()]);
        out.table(&table);
    }
    if answer.providers.is_empty() {
        return;
    }
    out.line("");
    let mut table = Table::new(&["PROVIDER", "KIND", "STATE", "WHY"]);
    for provider in &answer.providers {
        let kind = if provider.scripted { "scripted: no model answers" } else { provider.kind.as_str() };
        table.row(vec![
            provider.name.as_str().into(),
            kind.into(),
            state(&provider.state),
            provider.why.as_str().into(),
        ]);
    }
    out.table(&table);
}

/// Whom each kind of request asks. Kinds that ask the same share a row.
fn chains(chains: &[ModelChain], out: &mut Output) {
    if chains.is_empty() {
        return;
    }
    out.line("");
    let mut table = Table::new(&["FOR", "ASKED ONE AFTER THE OTHER"]);
    for (kinds, models) in grouped(chains) {
        let models = if models.is_empty() { "none can be asked".to_owned() } else { models.join(" → ") };
        let mut models = Some(models);
        // The models have the other half of the page.
        for kinds in wrapped_on(out.columns(), &kinds.join(", "), out.columns() / 2) {
            table.row(vec![kinds.into(), models.take().unwrap_or_default().into()]);
        }
    }
    out.table(&table);
}

fn grouped(chains: &[ModelChain]) -> Vec<(Vec<String>, &[String])> {
    let mut grouped: Vec<(Vec<String>, &[String])> = Vec::new();
    for chain in chains {
        let kind = match chain.task.as_str() {
            "chat" => format!("{} chat", chain.complexity),
            task => task.to_owned(),
        };
        match grouped.iter_mut().find(|(_, models)| *models == chain.models) {
            Some((kinds, _)) => kinds.push(kind),
            None => grouped.push((vec![kind], &chain.models)),
        }
    }
    grouped
}

fn models(models: &[Model], out: &mut Output) {
    // Shown only where the catalog says something of it.
    let answers: Vec<String> = models.iter().map(answers).collect();
    let says = answers.iter().any(|answers| !answers.is_empty());
    let mut columns = vec![
        Column::text("MODEL", 0),
        Column::text("ALIAS", 6),
        Column::text("TIER", 0),
        Column::text("STATE", 0),
        Column::number("WINDOW", 4),
        Column::text("CAN", 5),
        Column::number("INPUT", 2),
        Column::number("CACHED", 8),
        Column::number("OUTPUT", 3),
        Column::number("PRIORITY", 6),
        Column::number("WEIGHT", 9),
        Column::number("A TURN", 1),
        Column::text("WHY", 7),
    ];
    if says {
        columns.push(Column::text("ANSWERS", 10));
    }
    let mut table = Table::of(&columns);
    for (model, answers) in models.iter().zip(answers) {
        let can = [("tools", model.tools), ("vision", model.vision)];
        let can: Vec<&str> = can.into_iter().filter_map(|(what, can)| can.then_some(what)).collect();
        let price = |price: &str| match (model.free, price) {
            (true, _) => "free".to_owned(),
            (false, "") => String::new(),
            (false, price) => format!("${}", price.trim_start_matches('$')),
        };
        let mut row = vec![
            model.id.as_str().into(),
            model.alias.as_str().into(),
            model.tier.as_str().into(),
            state(&model.state),
            count(model.context_window).into(),
            can.join(", ").into(),
            price(&model.input_price).into(),
            price(&model.cached_input_price).into(),
            price(&model.output_price).into(),
            model.priority.into(),
            model.weight.into(),
            price(&model.estimate).into(),
            model.why.as_str().into(),
        ];
        if says {
            row.push(answers.into());
        }
        table.row(row);
    }
    table.fit(out.columns());
    out.table(&table);
}

/// What the catalog says of a model's answers: "temperature 0.2, thinking high".
fn answers(model: &Model) -> String {
    let thinking = Some(model.thinking.as_str()).filter(|level| !level.is_empty());
    let said = sampling_text(model.sampling.as_ref());
    said.into_iter().chain(thinking.map(|level| format!("thinking {level}"))).collect::<Vec<_>>().join(", ")
}

fn state(state: &str) -> Cell {
    let style: Option<Style> = match state {
        "ready" => Some(AnsiColor::Green.on_default()),
        "resting" => Some(AnsiColor::Yellow.on_default()),
        "out" | "not_set_up" => Some(AnsiColor::Red.on_default()),
        _ => None,
    };
    let text = state.replace('_', " ");
    match style {
        Some(style) => Cell::styled(text, style),
        None => text.into(),
    }
}

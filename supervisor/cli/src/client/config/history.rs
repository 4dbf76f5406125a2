//! `talon config history`.

use clap::Args;
use serde_json::{Value, json};
use talon_proto::host::{ConfigChange, ConfigKeyChange, ConfigValue, ListConfigChangesRequest};

use super::key;
use crate::client::connection::Client;
use crate::exit;
use crate::failure::Failure;
use crate::host_socket::HostSocket;
use crate::output::Output;
use crate::show::timestamp;
use crate::table::{Column, Table};

/// What the table shows where the overlay had no value, and the configuration file decided.
const NO_VALUE: &str = "-";

/// Show what was changed while Talon ran, newest first.
///
/// Every change has a row for each of its keys, with the value in the overlay before and after it. The latest hundred changes are kept.
/// It needs the role admin.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon config history
  talon config history --limit 5
  talon config history --output json | jq '.[0].changes'")]
pub(crate) struct HistoryArgs {
    /// How many changes at most; all that are kept unless given.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    limit: Option<u32>,
}

impl HistoryArgs {
    pub(crate) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        let mut client = Client::connect(socket).await?;
        let request = ListConfigChangesRequest { limit: self.limit.unwrap_or_default() };
        let answered = client.host.list_config_changes(request).await;
        let changes = answered.map_err(|status| client.failure(&status))?.into_inner().changes;
        if out.is_json() {
            out.json(&changes.iter().map(as_json).collect::<Value>());
            return Ok(exit::OK);
        }
        if changes.is_empty() {
            out.line("nothing was changed while Talon ran: `talon config patch --help` says how");
            return Ok(exit::OK);
        }
        out.table(&table(&changes));
        Ok(exit::OK)
    }
}

fn as_json(change: &ConfigChange) -> Value {
    let changed = |change: &ConfigKeyChange| {
        json!({
            "key": key::text(&change.key),
            "before": change.before.as_ref().map(talon_config_json::json),
            "after": change.after.as_ref().map(talon_config_json::json),
        })
    };
    json!({
        "number": change.number,
        "unix_ms": change.unix_ms,
        "by": change.by,
        "changes": change.keys.iter().map(changed).collect::<Value>(),
    })
}

fn table(changes: &[ConfigChange]) -> Table {
    let mut table = Table::of(&[
        Column::number("NUMBER", 0),
        Column::text("TIME", 2),
        Column::text("BY", 1),
        Column::text("KEY", 0),
        Column::prose("BEFORE", 0),
        Column::prose("AFTER", 0),
    ]);
    let text = |value: &Option<ConfigValue>| {
        value.as_ref().map_or_else(|| NO_VALUE.to_owned(), |value| talon_config_json::json(value).to_string())
    };
    for change in changes {
        for changed in &change.keys {
            table.row(vec![
                change.number.into(),
                timestamp(change.unix_ms).to_string().into(),
                change.by.as_str().into(),
                key::text(&changed.key).into(),
                text(&changed.before).into(),
                text(&changed.after).into(),
            ]);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_a_dot_is_quoted() {
        let key = ["models", "gpt-4.1"].map(str::to_owned).to_vec();
        let changed = ConfigKeyChange { key, before: None, after: None };
        let change = ConfigChange { keys: vec![changed], ..ConfigChange::default() };
        assert_eq!(as_json(&change)["changes"][0]["key"], "models.\"gpt-4.1\"");
    }
}

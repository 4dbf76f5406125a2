//! `--once`: the contents of the screen as text or JSON, for pipes and scripts.

use std::time::Duration;

use serde_json::{Value, json};
use talon_proto::host::GetStatusRequest;
use talon_sanitize::{Raw, Sanitized};
use tonic::Status;

use crate::host::{Host, with_timeout};
use crate::model::{Model, Update};
use crate::rates::Rates;
use crate::reading::{Plugin, Reading, Usage};
use crate::view;

/// The page width: all columns fit, since there is no terminal to limit it.
const COLUMNS: u16 = 160;

/// Reads twice, one interval apart, so that rates can be computed.
pub(crate) async fn read(host: &Host, model: &mut Model) -> Result<(), Status> {
    for wait in [Duration::ZERO, model.interval] {
        tokio::time::sleep(wait).await;
        let status = with_timeout(host.client().get_status(GetStatusRequest {})).await?;
        model.apply(Update::Reading(Box::new(Reading::now(status.get_ref()))));
    }
    Ok(())
}

/// The table, one line per row; each line is sanitized again, because cells can form control syntax together.
pub(crate) fn text(model: &Model) -> Vec<Sanitized> {
    view::as_text(model, COLUMNS).into_iter().map(|line| Raw::from(line).text()).collect()
}

pub(crate) fn json(model: &Model) -> Value {
    let Some(reading) = &model.reading else { return Value::Null };
    let supervisor = &reading.supervisor;
    json!({
        "unix_ms": reading.unix_ms,
        "interval_ms": u64::try_from(model.interval.as_millis()).unwrap_or(u64::MAX),
        "supervisor": {
            "version": supervisor.version.as_str(),
            "pid": supervisor.pid,
            "started_unix_ms": supervisor.started_unix_ms,
            "state": supervisor.state.as_str(),
            "cpu_percent": model.rates.supervisor_cpu,
            "usage": supervisor.usage.map(usage),
        },
        "total": rates(&model.rates.total),
        "plugins": model.shown().iter().map(|one| plugin(one, model)).collect::<Value>(),
    })
}

fn plugin(plugin: &Plugin, model: &Model) -> Value {
    json!({
        "name": plugin.name.as_str(),
        "state": plugin.state.as_str(),
        "desired": plugin.desired.as_str(),
        "reason": plugin.reason.as_str(),
        "instances": plugin.instances.len(),
        "ready": plugin.ready(),
        "rates": rates(&model.rates.of(&plugin.name)),
        "calls": plugin.counters.calls,
        "errors": plugin.counters.errors,
        "p50_us": plugin.counters.p50_us,
        "p99_us": plugin.counters.p99_us,
        "calls_in_flight": plugin.in_flight,
        "calls_waiting": plugin.waiting,
        "breaker": plugin.breaker.as_str(),
        "quarantined": plugin.quarantined,
        "deaths": plugin.deaths(),
        "usage": plugin.usage().map(usage),
        "log_lines": plugin.counters.log_lines,
        "log_lines_dropped": plugin.counters.log_lines_dropped,
    })
}

fn rates(rates: &Rates) -> Value {
    json!({
        "calls_per_second": rates.calls,
        "errors_per_second": rates.errors,
        "log_lines_per_second": rates.log_lines,
        "cpu_percent": rates.cpu,
    })
}

fn usage(usage: Usage) -> Value {
    json!({ "cpu_us": usage.cpu_us, "memory_bytes": usage.memory_bytes, "processes": usage.processes })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tests::looking;

    #[test]
    fn programs_get_numbers_and_null_where_there_is_none() {
        let value = json(&looking());
        assert_eq!(value["plugins"].as_array().map(Vec::len), Some(6));
        let jira = &value["plugins"][0];
        assert_eq!((jira["name"].as_str(), &jira["usage"]), (Some("jira"), &Value::Null));
        assert_eq!(value["total"]["errors_per_second"], json!(1.0));
    }

    #[test]
    fn the_table_has_every_plugin() {
        let lines = text(&looking());
        assert_eq!(lines.len(), 7);
        assert!(lines[0].starts_with("PLUGIN") && lines[1].starts_with("jira"), "{lines:?}");
    }
}

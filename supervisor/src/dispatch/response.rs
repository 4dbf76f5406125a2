//! A guarded answer as a message of the host API.

use std::time::Duration;

use talon_guard::{Guarded, Outcome, Parts, Report};
use talon_proto::host::{self, ExecuteResponse, GuardReport, MarkedSpan};

use crate::to_wire::count;

/// The response for a guarded answer; `talon exec` prints the same.
#[must_use]
pub fn response(call_id: String, guarded: Guarded, took: Duration) -> ExecuteResponse {
    let Parts {
        block,
        outcome,
        content,
        error,
        structured_content,
        media,
        input_request,
        report,
        originals,
        ..
    } = guarded.into_parts();
    let neutralized_left_out = count(originals.left_out());
    let kind = match outcome {
        Outcome::Ok => host::Outcome::Ok,
        Outcome::ToolError => host::Outcome::ToolError,
        Outcome::Refused { .. } => host::Outcome::Refused,
        Outcome::HostFault { .. } => host::Outcome::HostFault,
    };
    ExecuteResponse {
        call_id,
        outcome: kind.into(),
        block: block.into_string(),
        content: content.into_string(),
        error: error.into_string(),
        structured_content: structured_content.into_string(),
        reason: outcome.reason().to_owned(),
        retryable: outcome.is_retryable(),
        media,
        report: Some(report_on_wire(report)),
        duration_us: u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
        neutralized: originals
            .into_iter()
            .map(|span| MarkedSpan { marked: span.marked, original: span.original })
            .collect(),
        neutralized_left_out,
        receipt: None,
        input_request: input_request.map(|request| *request),
        layers: Vec::new(),
    }
}

/// The guard's report as a protocol message.
#[must_use]
pub fn report_on_wire(report: Report) -> GuardReport {
    let kinds = report.kinds.iter().map(|((family, kind), count)| (format!("{family}/{kind}"), *count));
    GuardReport {
        bytes_in: report.bytes_in as u64,
        bytes_out: report.bytes_out as u64,
        bytes_left_out: report.bytes_left_out as u64,
        kinds: kinds.collect(),
        flags: report.flags.iter().map(|flag| (*flag).to_owned()).collect(),
        truncated: report.truncated(),
        structured_as_text: report.structured_as_text,
        digest: report.digest.map(|digest| digest.to_string()).unwrap_or_default(),
        handle: report.page.unwrap_or_default(),
        tainted_by: report.tainted_by,
        neutralised: report
            .neutralised
            .into_iter()
            .map(|(family, count)| (family.to_owned(), count))
            .collect(),
    }
}

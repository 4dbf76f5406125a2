//! `talon session verify`: whether the supervisor made the calls that a session's record has.

use std::collections::BTreeMap;

use anstyle::{AnsiColor, Style};
use clap::Args;
use serde_json::{Value, json};
use talon_proto::host::{Receipt, ReceiptVerdict, VerifyReceiptsRequest};
use talon_sanitize::{Sanitized, sanitized};

use self::entry::{Entry, Status, entries};
use super::show::read;
use crate::client::agent::connection::AgentConnection;
use crate::client::agent::formatting::{count_of, single_line, tool_name};
use crate::client::connection::Client;
use crate::exit;
use crate::failure::Failure;
use crate::host_socket::HostSocket;
use crate::output::Output;
use crate::show::timestamp;
use crate::table::{Cell, Table};

mod entry;

/// Receipts in one request; the supervisor takes no more.
const BATCH: usize = 1_000;

/// Check that the supervisor made the calls in a session's record, with these arguments and answers.
///
/// The agent keeps the record, and has no privileges. With each answer the supervisor gives it a receipt that
/// only the supervisor can make; this has all of them checked. What the record leaves out is not found here:
/// the audit log has every call (`talon audit show`).
#[derive(Debug, Args)]
#[command(after_help = "Each call is one of:
  proven       the supervisor made it, with these arguments and this answer
  partial      the same, but the record has not all of the arguments or of the answer
  own          a tool of the agent itself, which calls no plugin
  no answer    the record claims no plugin's answer: not made, denied, or interrupted
  unverified   it has no receipt
  unknown key  its receipt is of another supervisor, or of keys that are gone
  altered      its receipt is the supervisor's, and for something else than the record says
  forged       its receipt is not the supervisor's

Exit codes: 0 all are proven, partial, own or without an answer; 1 one is altered or forged; 3 none is, and one is unverified or
has an unknown key.

Examples:
  talon session verify 01K0
  talon session verify 01K0 --output json | jq '.calls[] | select(.status != \"proven\")'")]
pub(crate) struct VerifyArgs {
    /// The session's id.
    #[arg(value_name = "ID")]
    id: String,
}

impl VerifyArgs {
    pub(super) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        let reach = AgentConnection::connect(socket).await?;
        let (session, messages, _) = read(&reach, &self.id, true, usize::MAX).await?;
        let mut entries = entries(&messages);
        verify(&mut entries, &session.id, socket).await?;
        let code = exit_code(&entries);
        if out.is_json() {
            let calls = entries.iter().map(to_json).collect::<Value>();
            let counts: BTreeMap<_, _> =
                counts(&entries).into_iter().map(|(status, n)| (status.word(), n)).collect();
            out.exact_json(&json!({ "session_id": session.id, "ok": code == exit::OK, "calls": calls, "counts": counts }));
        } else {
            print(&entries, out);
        }
        Ok(code)
    }
}

/// Has the receipts checked, and compares what they say with the record.
async fn verify(entries: &mut [Entry], session: &str, socket: &HostSocket<'_>) -> Result<(), Failure> {
    let places: Vec<usize> = (0..entries.len()).filter(|place| entries[*place].receipt.is_some()).collect();
    if places.is_empty() {
        return Ok(());
    }
    let mut client = Client::connect(socket).await?;
    let mut seen = BTreeMap::new();
    for batch in places.chunks(BATCH) {
        let receipts: Vec<Receipt> =
            batch.iter().filter_map(|place| entries[*place].receipt.clone()).collect();
        let answer = client.host.verify_receipts(VerifyReceiptsRequest { receipts }).await;
        let answer = answer.map_err(|status| client.failure(&status))?.into_inner();
        let verdicts = answer.verdicts().chain(std::iter::repeat(ReceiptVerdict::Unspecified));
        for (place, verdict) in batch.iter().zip(verdicts) {
            entries[*place].judge(session, verdict);
            let call_id = entries[*place].receipt.as_ref().map(|receipt| receipt.call_id.clone());
            if let Some(first) = seen.insert(call_id.unwrap_or_default(), *place) {
                let why = format!("its receipt is that of call {}", first + 1);
                entries[*place].set(Status::Altered, why);
            }
        }
    }
    Ok(())
}

fn counts(entries: &[Entry]) -> BTreeMap<Status, u64> {
    let mut counts = BTreeMap::new();
    for entry in entries {
        *counts.entry(entry.status).or_default() += 1;
    }
    counts
}

fn exit_code(entries: &[Entry]) -> u8 {
    let worst = entries.iter().map(|entry| entry.status.severity()).max().unwrap_or_default();
    [exit::OK, exit::REFUSED, exit::TOOL_ERROR][worst]
}

fn to_json(entry: &Entry) -> Value {
    let receipt = entry.receipt.as_ref();
    json!({
        "tool": entry.tool,
        "unix_ms": entry.unix_ms,
        "status": entry.status.word(),
        "why": entry.why,
        "call_id": receipt.map(|receipt| receipt.call_id.as_str()),
        "key_id": receipt.map(|receipt| receipt.key_id.as_str()),
    })
}

fn print(entries: &[Entry], out: &mut Output) {
    let mut table = Table::new(&["", "TIME", "TOOL", "CALL", "STATUS", ""]);
    for (place, entry) in entries.iter().enumerate() {
        let style = match entry.status.severity() {
            0 => Style::new(),
            1 => AnsiColor::Yellow.on_default(),
            _ => AnsiColor::Red.on_default(),
        };
        let call_id = entry.receipt.as_ref().map_or("", |receipt| receipt.call_id.as_str());
        table.row(vec![
            (place + 1).to_string().into(),
            timestamp(entry.unix_ms).into(),
            tool_name(&entry.tool).into(),
            call_id.into(),
            Cell::styled(entry.status.shown(), style),
            entry.why.as_str().into(),
        ]);
    }
    if !table.is_empty() {
        out.table(&table);
    }
    let each =
        counts(entries).into_iter().map(|(status, n)| sanitized!("{} {}", n, single_line(status.shown())));
    let all = count_of(entries.len() as u64, "call");
    match entries.is_empty() {
        true => out.line("no calls"),
        false => out.line(sanitized!("{}: {}", all, Sanitized::join(each, ", "))),
    }
    if entries.iter().any(|entry| entry.status == Status::UnknownKey) {
        out.err_line(
            "the keys are in receipts/ of the data directory of the supervisor that made the calls; they are in no backup: \
             copy them there, and restart this one",
        );
    }
    if exit_code(entries) != exit::OK {
        out.err_line("compare with what the supervisor recorded: `talon audit show`, and `talon audit verify` for that log itself");
    }
}

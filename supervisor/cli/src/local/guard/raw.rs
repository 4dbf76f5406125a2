//! `talon guard raw`.

use clap::Args;
use prost::Message as _;
use serde_json::{Value, json};
use talon_proto::host::{GetRawAnswerRequest, GetRawAnswerResponse, ListRawAnswersRequest, RawAnswer};
use talon_proto::plugin::ToolResultResponse;
use talon_sanitize::{Raw, sanitized};

use crate::client::connection::Client;
use crate::exit;
use crate::failure::Failure;
use crate::global::Global;
use crate::host_socket::HostSocket;
use crate::line::sanitized_line;
use crate::output::Output;
use crate::show;
use crate::table::Table;

/// Show an answer as the plugin sent it, before the guard; without an id, list the stored answers.
///
/// guard.keep_raw_bytes limits how many are stored, and only administrators can read them. Control and
/// invisible characters are made visible and control syntax is marked; --message writes the unchanged bytes.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon guard raw
  talon guard raw 01KB3Q6T9VXJ6A8W5ZC2M4N7PR
  talon guard raw 01KB3Q6T9VXJ6A8W5ZC2M4N7PR --message > answer.bin && sha256sum answer.bin")]
pub(crate) struct RawArgs {
    /// The call's id, as in its answer, in events and in the log.
    #[arg(value_name = "CALL_ID")]
    call_id: Option<String>,
    /// Write the message itself to stdout, byte by byte: an opentalon.plugin.v1.ToolResultResponse.
    #[arg(long, requires = "call_id")]
    message: bool,
}

impl RawArgs {
    pub(super) async fn run(self, global: &Global, out: &mut Output) -> Result<u8, Failure> {
        let mut client = Client::connect(&HostSocket::new(global)).await?;
        let Some(call_id) = self.call_id else {
            let response = client.host.list_raw_answers(ListRawAnswersRequest {}).await;
            let response = response.map_err(|status| client.failure(&status))?.into_inner();
            list(&response.answers, response.kept_bytes, out);
            return Ok(exit::OK);
        };
        let response = client.host.get_raw_answer(GetRawAnswerRequest { call_id }).await;
        let response = response.map_err(|status| client.failure(&status))?.into_inner();
        if self.message {
            out.raw_bytes(&response.message)?;
        } else {
            print(&response, out);
        }
        Ok(exit::OK)
    }
}

fn list(answers: &[RawAnswer], kept_bytes: u64, out: &mut Output) {
    if out.is_json() {
        out.json(
            &json!({ "answers": answers.iter().map(metadata).collect::<Value>(), "kept_bytes": kept_bytes }),
        );
        return;
    }
    if kept_bytes == 0 {
        out.line("answers are not kept as they come: set guard.keep_raw_bytes to keep some");
        return;
    }
    if answers.is_empty() {
        out.line("no answer came yet");
        return;
    }
    let mut table = Table::new(&["CALL", "PLUGIN", "ACTION", "CAME", "BYTES", "SHA256"]);
    for answer in answers {
        table.row(vec![
            answer.call_id.as_str().into(),
            answer.plugin.as_str().into(),
            answer.action.as_str().into(),
            show::timestamp(answer.unix_ms).into(),
            answer.bytes.into(),
            answer.digest.as_str().into(),
        ]);
    }
    out.table(&table);
}

fn metadata(answer: &RawAnswer) -> Value {
    json!({
        "call_id": answer.call_id,
        "plugin": answer.plugin,
        "action": answer.action,
        "unix_ms": answer.unix_ms,
        "digest": answer.digest,
        "bytes": answer.bytes,
    })
}

fn print(response: &GetRawAnswerResponse, out: &mut Output) {
    let decoded = ToolResultResponse::decode(response.message.as_slice());
    let about = response.about.as_ref().map(metadata).unwrap_or_default();
    if out.is_json() {
        let fields = decoded.ok().map(|answer| {
            json!({
                "call_id": answer.call_id,
                "content": answer.content,
                "error": answer.error,
                "structured_content": answer.structured_content,
            })
        });
        out.json(&json!({ "about": about, "answer": fields }));
        return;
    }
    match decoded {
        Err(error) => {
            let count = response.message.len();
            out.line(sanitized!(
                "{} bytes that are no answer ({}); --message writes them",
                count,
                sanitized_line(error)
            ));
        }
        Ok(answer) => {
            let fields = [
                ("call_id", &answer.call_id),
                ("content", &answer.content),
                ("error", &answer.error),
                ("structured_content", &answer.structured_content),
            ];
            for (name, text) in fields.into_iter().filter(|(_, text)| !text.is_empty()) {
                out.line(sanitized!("{}:", name));
                for line in text.lines() {
                    out.line(sanitized!("  {}", Raw::from(line).line()));
                }
            }
        }
    }
}

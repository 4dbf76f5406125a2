//! Faults in every call. The conformance kit is tested with them: one for each check that no other fault
//! triggers.

use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use prost::Message;
use talon_proto::notices::notice::Kind;
use talon_proto::notices::{CallOutput, Notice};
use talon_proto::plugin::{Action, Parameter, PluginCapabilities, ToolCallRequest, ToolResultResponse};

use crate::capabilities::role_parameter;
use crate::events::framed;
use crate::fault_kinds::Fault;
use crate::reply::Reply;
use crate::shared::Shared;
use crate::storage;

/// Longer than any description may be.
const LONG_DESCRIPTION_BYTES: usize = 20 << 10;
/// More than the smallest limit that can be announced.
const LARGE_ANSWER_BYTES: usize = 100 << 10;
/// Shorter than any deadline except those that are meant to pass.
const SHORT: Duration = Duration::from_secs(1);
/// How long a call takes, so that others run concurrently.
const WORK: Duration = Duration::from_millis(100);

/// The id of the latest call.
static LAST_ID: Mutex<String> = Mutex::new(String::new());

/// Misbehaves in Init with these settings, if that is the fault.
pub(crate) fn init(wrong: Option<Fault>, config_json: &str) {
    let dies = match wrong {
        Some(Fault::EmptyConfigDies) => config_json == "{}",
        Some(Fault::UnknownKeyDies) => config_json.contains("unknown"),
        _ => false,
    };
    if dies {
        eprintln!("misbehave: I die of these settings");
        std::process::exit(6);
    }
}

/// Corrupts the declared capabilities.
pub(crate) fn declare(shared: &Shared, declared: &mut PluginCapabilities) {
    let parameter = |schema: &str, kind: &str| Parameter {
        name: "odd".to_owned(),
        r#type: kind.to_owned(),
        schema: schema.to_owned(),
        ..Parameter::default()
    };
    if shared.options.wrong == Some(Fault::RoleAnswer) {
        for echo in declared.actions.iter_mut().filter(|action| action.name == "echo") {
            echo.roles = vec!["tool".to_owned(), "request_hook".to_owned()];
            echo.takes_further_arguments = true;
        }
    }
    if storage::is_backend(shared.options.wrong) {
        declared.actions.push(storage::action());
    }
    let Some(last) = declared.actions.last_mut() else { return };
    match shared.options.wrong {
        Some(Fault::BrokenSchema) => last.parameters.push(parameter("{\"type\": ", "string")),
        Some(Fault::OddType) => last.parameters.push(parameter("", "colour")),
        Some(Fault::RoleMismatch) => last.roles = vec!["tool".to_owned(), "request_hook".to_owned()],
        Some(Fault::RoleFlips) => declared.actions.push(judge(&["request_hook"])),
        Some(Fault::LongDescription) => last.description = "long ".repeat(LONG_DESCRIPTION_BYTES / 5),
        Some(Fault::Fickle) => {
            let count = shared.declared.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            declared.description = format!("asked {count} times so far");
        }
        _ => {}
    }
}

/// Declares the capabilities anew.
pub(crate) fn refresh(shared: &Shared, declared: &mut PluginCapabilities) {
    if matches!(shared.options.wrong, Some(Fault::RoleFlips)) {
        declared.actions.push(judge(&[]));
    }
}

/// A hook that lets every message pass.
fn judge(roles: &[&str]) -> Action {
    Action {
        name: "judge".to_owned(),
        description: "Lets every message pass".to_owned(),
        parameters: [("message", "string"), ("session", "object"), ("metadata", "object")]
            .map(|(name, kind)| role_parameter(name, kind, name == "message"))
            .into(),
        roles: roles.iter().map(|role| (*role).to_owned()).collect(),
        ..Action::default()
    }
}

/// The wrong answer to a call, if the fault affects it.
pub(crate) async fn execute(
    shared: &Shared,
    call: &ToolCallRequest,
    time: Option<Duration>,
) -> Option<Reply> {
    let known = matches!(call.action.as_str(), "echo" | "need" | "take_file");
    let good = call.action == "echo" || (known && call.args.contains_key("text"));
    let answer = |id: &str, content: String| {
        let answer = ToolResultResponse { call_id: id.to_owned(), content, ..Default::default() };
        Some(Reply::Message(answer.encode_to_vec().into()))
    };
    let fault = |message: &str| Some(Reply::Status { code: 13, message: message.to_owned() });
    let is_short = time.is_some_and(|time| time < SHORT);
    if storage::is_backend(shared.options.wrong) && call.action == storage::ACTION {
        return Some(storage::execute(shared.options.wrong, call));
    }
    match shared.options.wrong? {
        Fault::AnotherId if good => answer("another-call", "stolen".to_owned()),
        Fault::Garbage if good => Some(Reply::Message(Bytes::from_static(b"\xff\xff\xff\xff"))),
        Fault::BrokenStructure if good => {
            let broken = ToolResultResponse {
                call_id: call.id.clone(),
                structured_content: "{\"a\":".to_owned(),
                ..Default::default()
            };
            Some(Reply::Message(broken.encode_to_vec().into()))
        }
        Fault::RoleFlips if call.action == "judge" => {
            let passes = ToolResultResponse {
                call_id: call.id.clone(),
                structured_content: r#"{"verdict": "pass"}"#.to_owned(),
                ..Default::default()
            };
            Some(Reply::Message(passes.encode_to_vec().into()))
        }
        Fault::UnknownActionWorks if !known => answer(&call.id, "done".to_owned()),
        Fault::UnknownActionFaults if !known => fault("no such action"),
        Fault::MissingArgumentDies if call.action == "need" && !call.args.contains_key("text") => {
            std::process::exit(7)
        }
        Fault::UnknownArgumentFaults if known && call.args.keys().any(|key| key.contains("no_such")) => {
            fault("no such argument")
        }
        Fault::HostileArgumentDies if call.args.values().any(|value| value.contains('\0')) => {
            std::process::exit(8)
        }
        Fault::MixedIds if good => {
            last_id().clone_from(&call.id);
            tokio::time::sleep(WORK).await;
            let id = last_id().clone();
            answer(&id, "whose is it?".to_owned())
        }
        Fault::CancelledDies if good => {
            let dies = ExitOnDrop;
            tokio::time::sleep(WORK).await;
            std::mem::forget(dies);
            None
        }
        Fault::DeadlineBlocks if is_short => {
            tokio::time::sleep(time.unwrap_or_default()).await;
            loop {
                std::thread::park();
            }
        }
        Fault::DeadlineIgnored if is_short => Some(Reply::Never),
        Fault::OutputLines if good => {
            let output =
                CallOutput { call_id: call.id.clone(), lines: vec!["one\ntwo".into()], left_out_lines: 0 };
            // Nobody may listen.
            let _ = shared.notices.send(framed(Notice { kind: Some(Kind::Output(output)) }));
            None
        }
        Fault::LargeAnswers if good => answer(&call.id, "x".repeat(LARGE_ANSWER_BYTES)),
        _ => None,
    }
}

fn last_id() -> parking_lot::MutexGuard<'static, String> {
    LAST_ID.lock()
}

struct ExitOnDrop;

impl Drop for ExitOnDrop {
    fn drop(&mut self) {
        std::process::exit(9);
    }
}

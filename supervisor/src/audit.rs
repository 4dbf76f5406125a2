//! Records calls and operations: the supervisor's side of `talon-audit`.
//!
//! A call is recorded where its caller is known, in `host/`, and not in the dispatcher: `talon exec` calls
//! without a client, and has no audit log.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use talon_agent_settings::{SENDER_KEY, SUBAGENT_KEY};
use talon_audit::record::{
    Arguments, Body, Call as CallRecord, Caller, Operation as OperationRecord, Verdicts,
};
use talon_audit::{AuditLog, Concurrency, LogEvent, Settings};
use talon_extensions::Role;
use talon_guard::{Call, Guarded, Report};
use talon_plugin::{EventKind, Events, NewEvent};
use talon_proto::host::AuditStatus;
use talon_sanitize::Raw;
use tokio::time::Instant;
use tonic::{Code, Status};

use crate::config::{Audit as AuditConfig, AuditArguments, Config, Environment};
use crate::peer::Peer;

mod agent_operation;

pub(crate) use agent_operation::AgentProcess;

/// The directory's name, below the directory for logs or the one for state.
const DIRECTORY: &str = "audit";

/// The directory of the audit log.
#[must_use]
pub fn directory(config: &Config, surroundings: &Environment) -> PathBuf {
    let AuditConfig { dir, .. } = &config.audit;
    dir.clone().unwrap_or_else(|| {
        let logs = surroundings.logs_dir();
        logs.unwrap_or_else(|| config.state.data_dir.clone()).join(DIRECTORY)
    })
}

/// The audit log, or nothing if it is off. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Audit(Option<Arc<Recorder>>);

#[derive(Debug)]
struct Recorder {
    log: AuditLog,
    arguments: AuditArguments,
    /// The number of calls in flight.
    calls: AtomicUsize,
}

impl Audit {
    /// Starts as configured. If the directory cannot be written to, that is reported, but does not stop the
    /// supervisor.
    ///
    /// # Errors
    /// The error of starting a thread.
    pub fn start(config: &Config, events: &Events) -> std::io::Result<Self> {
        let AuditConfig { enabled, arguments, file_bytes, files, wait, .. } = config.audit.clone();
        if !enabled {
            return Ok(Self::default());
        }
        let settings = Settings {
            dir: directory(config, &Environment::of_process()),
            file_bytes: file_bytes.get(),
            files,
            wait: wait.get(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let events = events.clone();
        let log = AuditLog::start(settings, Box::new(move |told| publish(&events, &told)))?;
        Ok(Self(Some(Arc::new(Recorder { log, arguments, calls: AtomicUsize::new(0) }))))
    }

    /// Starts the recording of a call. The record is written when the call has ended, also if the caller goes
    /// away.
    pub(crate) fn call(
        &self,
        peer: &Peer,
        session: &str,
        call: &Call,
        plugin_sha256: String,
    ) -> CallRecording {
        let record = self.0.as_ref().map(|on| {
            on.calls.fetch_add(1, Ordering::Relaxed);
            let arguments = match on.arguments {
                // They are somebody's credential, and a password is found by its digest.
                _ if call.role == Some(Role::AuthProvider.as_str()) => Arguments::default(),
                AuditArguments::None => Arguments::default(),
                AuditArguments::Digest => Arguments::digest(&arguments_json(call)),
                AuditArguments::Text => Arguments::text(&arguments_json(call)),
            };
            Box::new(CallRecord {
                who: Caller { origin: call.origin.as_str(), ..principal(peer) },
                session: session.to_owned(),
                sender: trusted_context(peer, call, SENDER_KEY),
                subagent: trusted_context(peer, call, SUBAGENT_KEY),
                role: call.role.unwrap_or_default(),
                call_id: call.id.to_string(),
                plugin: call.plugin.to_string(),
                action: call.action.clone(),
                arguments,
                outcome: "cancelled",
                reason: "the caller went away",
                guard: Verdicts::default(),
                answer_sha256: String::new(),
                plugin_sha256,
                duration_us: 0,
            })
        });
        CallRecording { audit: self.clone(), record, accepted: call.accepted }
    }

    /// Whether anything is recorded.
    pub(crate) fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Starts the recording of an operation: the verb and its subject.
    pub(crate) fn operation(&self, peer: Option<&Peer>, verb: &str, subject: &str) -> OperationRecording {
        let record = self.0.as_ref().map(|_| OperationRecord {
            who: peer.map(principal),
            verb: verb.to_owned(),
            subject: subject.to_owned(),
            outcome: "unknown",
            reason: "the client went away; it may have been carried out".to_owned(),
            duration_us: 0,
        });
        OperationRecording { audit: self.clone(), record, began: Instant::now() }
    }

    /// Records an operation of the supervisor itself, such as a reload after a signal.
    pub fn supervisor_operation(&self, verb: &str, subject: &str, result: Result<(), &str>) {
        let mut recording = self.operation(None, verb, subject);
        if let Some(record) = &mut recording.record {
            (record.outcome, record.reason) = match result {
                Ok(()) => ("done", String::new()),
                Err(why) => ("failed", why.to_owned()),
            };
        }
    }

    /// Writes pending records, and releases the directory for another supervisor. A later record acquires it
    /// again.
    pub async fn close(&self) {
        if let Some(on) = &self.0 {
            on.log.close().await;
        }
    }

    /// Whether a file was removed or shortened since the start.
    pub(crate) fn is_damaged(&self) -> bool {
        self.0.as_ref().is_some_and(|on| on.log.status().damage.is_some())
    }

    /// The status, for `GetStatus`.
    #[must_use]
    pub fn status(&self) -> AuditStatus {
        let Some(on) = &self.0 else {
            return AuditStatus { state: "off".to_owned(), ..AuditStatus::default() };
        };
        let status = on.log.status();
        AuditStatus {
            state: match (&status.problem, &status.damage) {
                (Some(_), _) => "failing",
                (None, Some(_)) => "damaged",
                (None, None) => "on",
            }
            .to_owned(),
            file: Raw::of(status.file.display()).line().into_string(),
            problem: status
                .problem
                .or(status.damage)
                .map(|problem| Raw::from(problem).line().into_string())
                .unwrap_or_default(),
            records: status.records,
            lost: status.lost,
        }
    }
}

/// The arguments as one JSON object: as the caller sent them, so that 7 and "7" are not the same, or else as
/// strings.
pub(crate) fn arguments_json(call: &Call) -> String {
    match &call.json {
        Some(json) => json.to_json(),
        // A map with string keys always serializes.
        None => serde_json::to_string(&call.args).unwrap_or_default(),
    }
}

fn principal(peer: &Peer) -> Caller {
    Caller {
        uid: peer.uid,
        gid: peer.gid,
        pid: peer.pid,
        role: peer.role_name(),
        origin: peer.origin_name(),
        subject: peer.delegation.as_ref().map(|delegation| delegation.subject.to_string()),
    }
}

/// For whom a call is: the gateway's subject, the agent's sender, or else the user of this machine.
pub(crate) fn subject(peer: &Peer, call: &Call) -> String {
    match trusted_context(peer, call, SENDER_KEY) {
        sender if sender.is_empty() => format!("uid:{}", peer.uid),
        sender => sender,
    }
}

/// A value of the call's context, if it comes from the agent, or was set for the gateway. Other clients could claim anything.
fn trusted_context(peer: &Peer, call: &Call, key: &str) -> String {
    call.context.get(key).filter(|_| peer.is_agent() || peer.is_gateway()).cloned().unwrap_or_default()
}

/// The recording of one call in flight.
pub(crate) struct CallRecording {
    audit: Audit,
    record: Option<Box<CallRecord>>,
    accepted: Instant,
}

impl CallRecording {
    /// Records the outcome, and waits for the write as long as the configuration allows.
    pub(crate) async fn finish(mut self, answer: &Guarded) {
        let Some(mut record) = self.record.take() else { return };
        let (outcome, reason) = (answer.outcome().as_str(), answer.outcome().reason());
        record.outcome = outcome;
        record.reason = if reason == outcome { "" } else { reason };
        record.guard = verdicts(answer.report());
        record.answer_sha256 =
            answer.report().digest.as_ref().map(|digest| digest.to_string()).unwrap_or_default();
        if let Some(on) = &self.audit.0 {
            let alone = on.calls.load(Ordering::Relaxed) == 1;
            let company = if alone { Concurrency::Single } else { Concurrency::Concurrent };
            on.log.record(self.body_of(record), company).await;
        }
    }

    /// Discards the recording of a call that was not started.
    pub(crate) fn discard(mut self) {
        self.record = None;
    }

    fn body_of(&self, mut record: Box<CallRecord>) -> Body {
        record.duration_us = micros(self.accepted);
        Body::call(record)
    }
}

impl Drop for CallRecording {
    fn drop(&mut self) {
        let Some(on) = &self.audit.0 else { return };
        on.calls.fetch_sub(1, Ordering::Relaxed);
        if let Some(record) = self.record.take() {
            on.log.record_now(self.body_of(record));
        }
    }
}

fn verdicts(report: &Report) -> Verdicts {
    let family = |(family, count): (&&'static str, &u32)| ((*family).to_owned(), u64::from(*count));
    Verdicts {
        neutralised: report.neutralised.iter().map(family).collect(),
        truncated: report.truncated(),
        flags: report.flags.iter().map(|flag| (*flag).to_owned()).collect(),
        tainted_by: report.tainted_by.clone(),
    }
}

/// The recording of one operation in flight; written on drop at the latest.
pub(crate) struct OperationRecording {
    audit: Audit,
    record: Option<OperationRecord>,
    began: Instant,
}

impl OperationRecording {
    /// Records the result.
    pub(crate) fn finish<T>(mut self, result: &Result<T, Status>) {
        let Some(record) = &mut self.record else { return };
        (record.outcome, record.reason) = match result {
            Ok(_) => ("done", String::new()),
            Err(status) if status.code() == Code::PermissionDenied => ("denied", status.message().to_owned()),
            Err(status) => ("failed", status.message().to_owned()),
        };
    }

    /// Records that the operation was forwarded, so that its result is unknown here.
    pub(crate) fn forwarded(mut self) {
        if let Some(record) = &mut self.record {
            (record.outcome, record.reason) = ("passed_on", String::new());
        }
    }
}

impl Drop for OperationRecording {
    fn drop(&mut self) {
        if let (Some(on), Some(mut record)) = (self.audit.0.clone(), self.record.take()) {
            record.duration_us = micros(self.began);
            on.log.record_now(Body::operation(record));
        }
    }
}

fn micros(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX)
}

/// Reports a problem of the audit log to the operator, in the supervisor's log and as an event.
fn publish(events: &Events, told: &LogEvent) {
    let text = match told {
        LogEvent::Finding(what) => format!("audit log: {what}"),
        LogEvent::Failing(why) => format!("the audit log fails, and calls continue without it: {why}"),
        LogEvent::Dropping => "the audit log loses records: the disk does not keep up, or is full".to_owned(),
        LogEvent::Recovered { lost } => {
            format!("the audit log works again; {lost} records are missing, and it says where")
        }
        LogEvent::Damaged(what) => format!("audit log: {what}"),
        LogEvent::Abandoned { records } => format!(
            "the audit log was closed without the last {records} records, which are lost: see whether its disk has room, and `talon audit verify`"
        ),
        _ => return,
    };
    match told {
        LogEvent::Finding(_) | LogEvent::Recovered { .. } => tracing::warn!("{text}"),
        _ => tracing::error!("{text}"),
    }
    events.emit(NewEvent::new(EventKind::Supervisor, text));
}

#[cfg(test)]
mod tests {
    use talon_guard::Origin;

    use super::*;

    #[test]
    fn only_the_agent_is_believed_for_whom_it_calls() {
        let mut call = Call::new("1", "files", "read", Origin::Model);
        call.context.insert(SENDER_KEY.to_owned(), "ada".to_owned());
        for (agent, sender) in [(true, "ada"), (false, "")] {
            let peer = Peer {
                uid: 1,
                gid: 1,
                pid: 1,
                rights: None,
                allowed: None,
                service: agent.then_some(crate::peer::OwnService::Agent),
                delegation: None,
            };
            assert_eq!(trusted_context(&peer, &call, SENDER_KEY), sender);
            assert_eq!(trusted_context(&peer, &call, SUBAGENT_KEY), "");
        }
    }
}

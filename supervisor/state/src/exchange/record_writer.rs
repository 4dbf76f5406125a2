//! Writes records into the store and never changes existing ones: a second import, or an import into a store
//! that has changed since, loses nothing.

use std::collections::HashSet;

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesOrdered;
use talon_store::{
    APPROVAL_RULE_PREFIX, APPROVALS_NAMESPACE, Error, ExportedSession, JobProposal, Key, Message, Namespace,
    Notification, Occurrence, ProposalState, Quota, Resource, SessionId, Store, StoredMemory, SwapResult,
    Usage,
};

use super::limits::IN_FLIGHT;
use super::node::Mark;
use super::{approval_rules, notifications, occurrences};

/// The result for a record.
#[derive(Debug)]
pub(super) enum Outcome {
    /// It was added.
    Imported,
    /// It was there already, with the same content.
    Unchanged,
    /// It cannot be imported.
    Refused(String),
}

type Write = BoxFuture<'static, (String, Mark, Result<Outcome, Error>)>;

/// The running writes, in the order of their records.
#[derive(Default)]
pub(super) struct PendingWrites(FuturesOrdered<Write>);

impl PendingWrites {
    /// The oldest, if the limit of running writes is reached.
    pub(super) async fn next_if_full(&mut self) -> Result<Option<(String, Mark, Outcome)>, Error> {
        if self.0.len() < IN_FLIGHT { Ok(None) } else { self.next().await }
    }

    /// The oldest, `None` when all are done.
    pub(super) async fn next(&mut self) -> Result<Option<(String, Mark, Outcome)>, Error> {
        let Some((record, at, result)) = self.0.next().await else { return Ok(None) };
        Ok(Some((record, at, refuse_record_errors(result)?)))
    }
}

/// An error of a record becomes a refusal; an error of the store ends the import.
fn refuse_record_errors(result: Result<Outcome, Error>) -> Result<Outcome, Error> {
    match result {
        Err(error @ (Error::Invalid { .. } | Error::Quota { .. } | Error::SessionExists(_))) => {
            Ok(Outcome::Refused(error.to_string()))
        }
        result => result,
    }
}

/// Writes records into a store, or predicts the result in a dry run.
#[derive(Debug)]
pub(super) struct RecordWriter {
    store: Store,
    /// What a dry run would have written so far.
    dry_run: Option<DryRun>,
    namespace: Option<Namespace>,
}

#[derive(Debug, Default)]
struct DryRun {
    sessions: HashSet<SessionId>,
    memories: HashSet<String>,
    usage: Usage,
}

impl RecordWriter {
    pub(super) fn new(store: Store, dry_run: bool) -> Self {
        Self { store, dry_run: dry_run.then(DryRun::default), namespace: None }
    }

    /// Sets the plugin for the entries that follow.
    pub(super) async fn begin_namespace(&mut self, namespace: Namespace) -> Result<(), Error> {
        if let Some(planned) = &mut self.dry_run {
            planned.usage = self.store.key_values().usage(&namespace.plugin).await?;
        }
        self.namespace = Some(namespace);
        Ok(())
    }

    pub(super) async fn entry(
        &mut self,
        writes: &mut PendingWrites,
        record: String,
        at: Mark,
        key: Key,
        value: Vec<u8>,
    ) -> Result<(), Error> {
        let Some(namespace) = self.namespace.clone() else { return Err(Error::Closed) };
        let store = self.store.key_values();
        if let Some(planned) = &mut self.dry_run {
            // One at a time: it only reads, and the plan depends on the entries before.
            let outcome = match store.get(&namespace.plugin, &key).await? {
                Some(there) => compare_entry(&key, &namespace, &there, &value),
                None => planned.entry(&namespace, &key, &value),
            };
            writes.0.push_back(Box::pin(std::future::ready((record, at, Ok(outcome)))));
            return Ok(());
        }
        writes.0.push_back(Box::pin(async move {
            let swapped = store.compare_and_set(&namespace, &key, None, Some(value.clone())).await;
            let outcome = swapped.map(|swap| match swap {
                SwapResult::Conflict(Some(there)) => compare_entry(&key, &namespace, &there, &value),
                SwapResult::Swapped | SwapResult::Conflict(None) => Outcome::Imported,
            });
            (record, at, outcome)
        }));
        Ok(())
    }

    pub(super) async fn memory(
        &mut self,
        writes: &mut PendingWrites,
        record: String,
        at: Mark,
        memory: StoredMemory,
    ) -> Result<(), Error> {
        let store = self.store.memory();
        if let Some(planned) = &mut self.dry_run {
            let known = match store.get(memory.id).await? {
                Some(there) => Some(compare_memory(&there, &memory)),
                None => same_workflow(&*store, &memory).await?.then_some(Outcome::Unchanged),
            };
            let outcome = known.unwrap_or_else(|| planned.memory(&memory));
            writes.0.push_back(Box::pin(std::future::ready((record, at, Ok(outcome)))));
            return Ok(());
        }
        writes.0.push_back(Box::pin(async move {
            let outcome = async {
                if store.import(memory.clone()).await? {
                    return Ok(Outcome::Imported);
                }
                // If not found by its id, it is a workflow that is stored under another id.
                Ok(store
                    .get(memory.id)
                    .await?
                    .map_or(Outcome::Unchanged, |there| compare_memory(&there, &memory)))
            };
            (record, at, outcome.await)
        }));
        Ok(())
    }

    pub(super) async fn occurrence(&mut self, occurrence: Occurrence) -> Result<Outcome, Error> {
        let store = self.store.schedule();
        if let Some(there) = store.get(&occurrence.job, occurrence.planned_at).await? {
            return Ok(if occurrences::are_same(&there, &occurrence) {
                Outcome::Unchanged
            } else {
                Outcome::Refused(
                    "the job has another run of this planned time already, which stays".to_owned(),
                )
            });
        }
        if self.dry_run.is_some() {
            return Ok(Outcome::Imported);
        }
        let imported = store.import(occurrence).await;
        refuse_record_errors(imported.map(|new| if new { Outcome::Imported } else { Outcome::Unchanged }))
    }

    pub(super) async fn proposal(&mut self, proposal: JobProposal) -> Result<Outcome, Error> {
        let store = self.store.job_proposals();
        let known = store.list().await?;
        let of_job = || known.iter().filter(|known| known.job == proposal.job);
        if let Some(there) = of_job().find(|known| known.digest == proposal.digest) {
            return Ok(if there.state == proposal.state {
                Outcome::Unchanged
            } else {
                Outcome::Refused("there is another decision about this text already, which stays".to_owned())
            });
        }
        let accepted = ProposalState::Accepted;
        if proposal.state == accepted && of_job().any(|known| known.state == accepted) {
            return Ok(Outcome::Refused(
                "another text of this job is accepted already, and stays so".to_owned(),
            ));
        }
        if self.dry_run.is_some() {
            return Ok(Outcome::Imported);
        }
        let imported = store.import(proposal).await;
        refuse_record_errors(imported.map(|new| if new { Outcome::Imported } else { Outcome::Unchanged }))
    }

    pub(super) async fn notification(&mut self, notification: Notification) -> Result<Outcome, Error> {
        let store = self.store.outbox();
        if let Some(there) = store.get(&notification.id).await? {
            return Ok(if notifications::are_same(&there, &notification) {
                Outcome::Unchanged
            } else {
                Outcome::Refused("there is another notification of this id already, which stays".to_owned())
            });
        }
        if self.dry_run.is_some() {
            return Ok(Outcome::Imported);
        }
        let imported = store.import(notification).await;
        refuse_record_errors(imported.map(|new| if new { Outcome::Imported } else { Outcome::Unchanged }))
    }

    pub(super) async fn session(&mut self, session: ExportedSession) -> Result<Outcome, Error> {
        let store = self.store.sessions();
        if let Some(outcome) = compare_session(&*store, &session).await? {
            return Ok(outcome);
        }
        if let Some(planned) = &mut self.dry_run {
            let new = planned.sessions.insert(session.session.id);
            return Ok(if new { Outcome::Imported } else { Outcome::Unchanged });
        }
        let imported = store.import(session).await;
        refuse_record_errors(imported.map(|new| if new { Outcome::Imported } else { Outcome::Unchanged }))
    }
}

impl DryRun {
    /// Checks the quota, with the store's own rule.
    fn entry(&mut self, namespace: &Namespace, key: &Key, value: &[u8]) -> Outcome {
        let Quota { bytes, keys } = namespace.quota;
        let then = Usage {
            bytes: self.usage.bytes + (key.as_bytes().len() + value.len()) as u64,
            keys: self.usage.keys + 1,
        };
        let over = [
            (Resource::Bytes, self.usage.bytes, bytes, then.bytes),
            (Resource::Keys, self.usage.keys, keys, then.keys),
        ];
        let plugin = namespace.plugin.clone();
        match over.into_iter().find(|(_, _, limit, wanted)| wanted > limit) {
            Some((resource, used, limit, wanted)) => {
                Outcome::Refused(Error::Quota { plugin, resource, used, limit, wanted }.to_string())
            }
            None => {
                self.usage = then;
                Outcome::Imported
            }
        }
    }

    fn memory(&mut self, memory: &StoredMemory) -> Outcome {
        let name = memory.workflow.as_ref().map_or_else(
            || memory.id.to_string(),
            |workflow| {
                let steps = workflow.steps.iter().map(|step| format!("\n{} {}", step.plugin, step.action));
                let owners = memory.owners().map(|owner| format!("\n\n{owner}"));
                std::iter::once(normalize_trigger(&workflow.trigger)).chain(steps).chain(owners).collect()
            },
        );
        let new = self.memories.insert(name)
            && (memory.workflow.is_none() || self.memories.insert(memory.id.to_string()));
        if new { Outcome::Imported } else { Outcome::Unchanged }
    }
}

/// Of an approval rule, how often it was used may differ.
fn compare_entry(key: &Key, namespace: &Namespace, there: &[u8], value: &[u8]) -> Outcome {
    let is_rule =
        namespace.plugin.as_str() == APPROVALS_NAMESPACE && key.as_str().starts_with(APPROVAL_RULE_PREFIX);
    if is_rule && approval_rules::are_same(there, value) {
        return Outcome::Unchanged;
    }
    compare_value(there, value)
}

fn compare_value(there: &[u8], value: &[u8]) -> Outcome {
    if there == value {
        return Outcome::Unchanged;
    }
    Outcome::Refused(
        "the key is there already with another value, which stays; delete it to take this one".into(),
    )
}

/// The use count and time of a memory may differ: they change when it is used.
fn compare_memory(there: &StoredMemory, memory: &StoredMemory) -> Outcome {
    if there.content == memory.content && there.workflow == memory.workflow {
        return Outcome::Unchanged;
    }
    Outcome::Refused(
        "there is another memory of this id already, which stays; forget it to take this one".into(),
    )
}

fn normalize_trigger(trigger: &str) -> String {
    trigger.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether the workflow is stored under another id.
async fn same_workflow(store: &dyn talon_store::Memory, memory: &StoredMemory) -> Result<bool, Error> {
    let Some(workflow) = &memory.workflow else { return Ok(false) };
    let steps = |steps: &[talon_store::Step]| -> Vec<(String, String)> {
        steps.iter().map(|step| (step.plugin.clone(), step.action.clone())).collect()
    };
    let known = store.recall(&workflow.trigger, None, talon_store::limits::MAX_RECALLED).await?;
    let of_same_owners = known.iter().filter(|recalled| recalled.memory.owners().eq(memory.owners()));
    Ok(of_same_owners.filter_map(|recalled| recalled.memory.workflow.as_ref()).any(|known| {
        normalize_trigger(&known.trigger) == normalize_trigger(&workflow.trigger)
            && steps(&known.steps) == steps(&workflow.steps)
    }))
}

/// Compares a session with the stored one of the same id. A session that has grown since the export already
/// has everything that is to be imported. It is compared message by message, a page at a time; its other
/// fields may have changed.
async fn compare_session(
    store: &dyn talon_store::Sessions,
    session: &ExportedSession,
) -> Result<Option<Outcome>, Error> {
    let id = session.session.id;
    if store.get(id).await?.is_none() {
        return Ok(None);
    }
    let mut wanted = session.messages.iter();
    let mut after = None;
    loop {
        let page = super::source::messages(store, id, after).await?;
        for there in &page.items {
            match wanted.next() {
                None => return Ok(Some(Outcome::Unchanged)),
                Some(message) if same_message(there, message) => {}
                Some(_) => return Ok(Some(refuse_other_session())),
            }
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    Ok(Some(if wanted.next().is_none() { Outcome::Unchanged } else { refuse_other_session() }))
}

/// A compaction may have replaced the stored message since.
fn same_message(there: &Message, message: &Message) -> bool {
    let Message { sequence, role, content, tool_calls, tool_results, at, summarizes, replaced_by, key } =
        message;
    there.sequence == *sequence
        && there.role == *role
        && there.content == *content
        && there.tool_calls == *tool_calls
        && there.tool_results == *tool_results
        && there.at == *at
        && there.summarizes == *summarizes
        && there.key == *key
        && (replaced_by.is_none() || there.replaced_by == *replaced_by)
}

fn refuse_other_session() -> Outcome {
    Outcome::Refused(
        "there is a session of this id already with other messages, which stays; delete it to take this one"
            .into(),
    )
}

//! Recalls what matches a request, and learns from a turn's end.

use std::sync::Arc;

use async_trait::async_trait;
use talon_agent_settings::MemoryKeys;
use talon_client::tool::tool_name;
use talon_guard::Raw;
use talon_llm::route::router::Pins;
use talon_store::limits::MAX_RECALLED;
use talon_store::{Memory, MemoryId, NewMemory, Step, StoredMemory, Workflow};

use super::memory_index::{LOCAL_TAG, MemoryIndex};
use super::trigger::trigger;
use super::workflow::{FAILURE, SUCCESS, followed_workflow, steps, steps_of};
use super::{hybrid, keywords, owner};
use crate::driver::{Caller, CompletedTurn, Recall, Recollection, ShownWorkflow, SimilarityError};
use crate::tokens::{Estimate, TokenCounter as _, cut};

/// A memory that would be truncated below this is left out: the beginning of a sentence helps no model.
const MIN_TOKENS: usize = 24;
/// The longest source that a store accepts; session ids are far shorter.
const MAX_SOURCE_BYTES: usize = talon_store::limits::MAX_NAME_BYTES;

/// Memory in a store.
pub struct StoreRecall {
    memory: Arc<dyn Memory>,
    keys: MemoryKeys,
    index: Option<Arc<MemoryIndex>>,
}

impl StoreRecall {
    /// Creates it with the configured limits.
    #[must_use]
    pub fn new(memory: Arc<dyn Memory>, keys: MemoryKeys) -> Self {
        Self { memory, keys, index: None }
    }

    /// Recalls by meaning, too.
    #[must_use]
    pub(crate) fn with_index(self, index: Option<Arc<MemoryIndex>>) -> Self {
        Self { index, ..self }
    }

    /// Similar workflows; those that failed the last time come last.
    async fn workflows(
        &self,
        caller: &Caller,
        request: &str,
    ) -> Result<Vec<StoredMemory>, talon_store::Error> {
        let most = self.keys.workflows_recalled as usize;
        if !self.keys.workflows || most == 0 {
            return Ok(Vec::new());
        }
        let start = &request[..request.floor_char_boundary(talon_store::limits::MAX_QUERY_BYTES)];
        let owner = owner::tag(&caller.sender);
        let recalled = self.memory.recall(start, Some(&owner), MAX_RECALLED).await?;
        let mut workflows: Vec<StoredMemory> = recalled.into_iter().map(|recalled| recalled.memory).collect();
        // A stable sort: within both groups the most similar stays first.
        workflows.sort_by_key(|memory| memory.workflow.as_ref().is_some_and(has_failed));
        workflows.truncate(most);
        Ok(workflows)
    }

    /// Facts that share words with a request or are near to it, and why if they were found by words alone.
    async fn facts(
        &self,
        caller: &Caller,
        request: &str,
        pins: &Pins,
    ) -> Result<(Vec<StoredMemory>, Option<SimilarityError>), talon_store::Error> {
        let (most, words) = (self.keys.recalled as usize, keywords::extract(request));
        if !self.keys.enabled || most == 0 || words.is_empty() {
            return Ok((Vec::new(), None));
        }
        let owner = owner::tag(&caller.sender);
        let by_words = self.memory.related(&words, Some(&owner), MAX_RECALLED);
        let by_meaning = async {
            match &self.index {
                Some(index) => index.near(pins, request, &owner, false, MAX_RECALLED).await,
                None => Ok(Vec::new()),
            }
        };
        let (by_words, by_meaning) = tokio::join!(by_words, by_meaning);
        let (by_meaning, why) = match by_meaning {
            Ok(near) => (near, None),
            Err(why) => (Vec::new(), Some(why)),
        };
        let mut facts = hybrid::fuse(by_words?, by_meaning);
        facts.truncate(most);
        Ok((facts, why))
    }

    async fn remember(&self, learned: &CompletedTurn) -> Result<(), talon_store::Error> {
        let (steps, outcome, known) = if learned.success {
            let Some(steps) = steps(&learned.calls) else { return Ok(()) };
            let known = learned.followed.iter().find(|one| one.steps == steps);
            (steps, SUCCESS, known)
        } else {
            let Some(known) = followed_workflow(&learned.calls, &learned.followed) else { return Ok(()) };
            (known.steps.clone(), FAILURE, Some(known))
        };
        // A followed workflow is counted under its own name, since the request was worded differently.
        let before = match known {
            Some(known) => self.memory.get(MemoryId::new(&known.id)?).await?,
            None => None,
        };
        let trigger = match before.and_then(|before| before.workflow) {
            Some(workflow) => workflow.trigger,
            // It was deleted during the turn, and a failure is no reason to create it again.
            None if !learned.success => return Ok(()),
            None => trigger(&learned.request, steps.iter().map(|(plugin, _)| plugin.as_str())),
        };
        if trigger.is_empty() {
            return Ok(());
        }
        let steps = steps.iter().zip(1..).map(|((plugin, action), order)| Step::new(plugin, action, order));
        let workflow = Workflow { trigger, steps: steps.collect(), outcome: outcome.to_owned() };
        let mut memory = NewMemory::workflow(workflow, source(&learned.caller));
        memory.tags.insert(owner::tag(&learned.caller.sender));
        memory.tags.extend(learned.confined.then(|| LOCAL_TAG.to_owned()));
        let stored = self.memory.remember(memory).await?.memory;
        if let Some(index) = &self.index {
            index.notify();
        }
        tracing::debug!(target: "agent", workflow = %stored.id, count = stored.count, outcome, "a workflow was recorded");
        Ok(())
    }
}

#[async_trait]
impl Recall for StoreRecall {
    async fn recall(&self, caller: &Caller, request: &str, pins: &Pins) -> Recollection {
        // A sub-agent has only its task.
        if !self.keys.enabled || !caller.subagent.is_empty() || !self.memory.may_have_any() {
            return Recollection::default();
        }
        let (workflows, facts) =
            tokio::join!(self.workflows(caller, request), self.facts(caller, request, pins));
        let unreadable = |error: &talon_store::Error| tracing::warn!(target: "agent", %error, "nothing is remembered for this turn: the store cannot be read");
        let workflows = workflows.inspect_err(unreadable).unwrap_or_default();
        let (facts, by_words) = facts.inspect_err(unreadable).unwrap_or_default();
        let saw = self.index.as_ref().filter(|_| by_words.is_none());
        let mut recollection = Recollection {
            model: saw.map(|index| index.model()),
            by_words: by_words.map(|why| why.0),
            ..Recollection::default()
        };
        let mut left = self.keys.tokens as usize;
        // Hints first, up to half of the room: three of them say more than three facts.
        let mut of_hints = if facts.is_empty() { left } else { left / 2 };
        for memory in workflows {
            let Some(workflow) = &memory.workflow else { continue };
            let hint = hint(&memory, workflow);
            let tokens = Estimate.count(&hint);
            if tokens > of_hints {
                continue;
            }
            (of_hints, left) = (of_hints - tokens, left - tokens);
            if !has_failed(workflow) {
                recollection
                    .tools
                    .extend(steps_of(workflow).iter().map(|(plugin, action)| tool_name(plugin, action)));
            }
            recollection
                .followed
                .push(ShownWorkflow { id: memory.id.to_string(), steps: steps_of(workflow) });
            recollection.hints.push(hint);
        }
        for memory in facts {
            let line = Raw::from(memory.content.as_str()).line().into_string();
            let tokens = Estimate.count(&line);
            if tokens > left && left < MIN_TOKENS {
                break;
            }
            let line = cut::plain(&line, left, &Estimate);
            left = left.saturating_sub(Estimate.count(&line));
            recollection.memories.push(line);
        }
        recollection.tools.sort_unstable();
        recollection.tools.dedup();
        recollection
    }

    async fn learn(&self, learned: CompletedTurn) {
        if !self.keys.enabled || !self.keys.workflows || !learned.caller.subagent.is_empty() {
            return;
        }
        if let Err(error) = self.remember(&learned).await {
            tracing::warn!(target: "agent", %error, "what was learned from a turn could not be kept");
        }
    }
}

/// The session in which something was learned.
pub(super) fn source(caller: &Caller) -> String {
    let id: String = caller.session.chars().filter(|c| !c.is_control()).collect();
    let end = id.floor_char_boundary(MAX_SOURCE_BYTES);
    if end == 0 { "agent".to_owned() } else { id[..end].to_owned() }
}

fn has_failed(workflow: &Workflow) -> bool {
    workflow.outcome != SUCCESS
}

/// One line: `analyze code, create issue: gitlab__analyze_code, then jira__create_issue (worked, 3 times)`.
fn hint(memory: &StoredMemory, workflow: &Workflow) -> String {
    let steps: Vec<String> =
        steps_of(workflow).iter().map(|(plugin, action)| tool_name(plugin, action)).collect();
    let how = match (has_failed(workflow), memory.count) {
        (true, _) => "failed the last time".to_owned(),
        (false, 0 | 1) => "worked".to_owned(),
        (false, times) => format!("worked, done {times} times"),
    };
    let line = format!("{}: {} ({how})", workflow.trigger, steps.join(", then "));
    Raw::from(line).line().into_string()
}

/// No memory, for turns that must not use any.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoRecall;

#[async_trait]
impl Recall for NoRecall {
    async fn recall(&self, _: &Caller, _: &str, _: &Pins) -> Recollection {
        Recollection::default()
    }

    async fn learn(&self, _: CompletedTurn) {}
}

//! The hooks of a stage, in order.

use std::collections::BTreeMap;
use std::sync::Arc;

use talon_agent_settings::milliseconds;
use talon_extensions::contract::{HookRequest, HookSession, VerdictOutcome};
use talon_extensions::{EntryKey, Extensions, FailurePolicy, HookEntry, Role};
use tokio::time::Instant;

use super::hook::ask;
use super::record::{HookRecord, RecordedVerdict, StageEnd};
use super::role_host::{NoRoleHost, RoleHost};
use super::turn_host::TurnRoleHost;
use crate::plugin_calls::{PluginCalls, TurnModelUse};

/// The most bytes of metadata of one turn, keys and values. 32 KiB: it is stored beside the message. A verdict that would pass
/// it counts as the hook's failure. Not configurable.
const MAX_METADATA_BYTES: usize = 32 << 10;

/// When hooks run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Before a message becomes a turn: filters, then request hooks.
    Request,
    /// Before a person gets an answer: response hooks.
    Response,
}

impl Stage {
    const fn roles(self) -> &'static [Role] {
        match self {
            Self::Request => &[Role::Filter, Role::RequestHook],
            Self::Response => &[Role::ResponseHook],
        }
    }
}

/// The configured hooks, and how they are called.
#[derive(Clone)]
pub struct Hooks {
    extensions: Arc<Extensions>,
    host: Arc<dyn RoleHost>,
}

/// What a stage came to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StageOutcome {
    /// The message that took the place of the one that was given; `None` if that goes on byte for byte.
    pub replaced: Option<String>,
    /// All that is noted of the turn.
    pub metadata: BTreeMap<String, String>,
    /// One record for each hook that was asked.
    pub records: Vec<HookRecord>,
    /// Why nothing goes on.
    pub end: Option<StageEnd>,
}

impl Hooks {
    /// The hooks of a configuration.
    #[must_use]
    pub fn new(extensions: Arc<Extensions>, host: Arc<dyn RoleHost>) -> Self {
        Self { extensions, host }
    }

    /// The same hooks for one turn: what their plugins ask of models is charged to it.
    #[must_use]
    pub fn for_turn(&self, calls: Arc<PluginCalls>, turn: Arc<TurnModelUse>) -> Self {
        let host = TurnRoleHost { inner: Arc::clone(&self.host), calls, turn };
        Self { extensions: Arc::clone(&self.extensions), host: Arc::new(host) }
    }

    /// No hooks.
    #[must_use]
    pub fn none() -> Self {
        Self::new(Arc::default(), Arc::new(NoRoleHost))
    }

    /// The configuration.
    #[must_use]
    pub fn extensions(&self) -> &Extensions {
        &self.extensions
    }

    /// How they are called.
    #[must_use]
    pub fn host(&self) -> &dyn RoleHost {
        &*self.host
    }

    /// Whether a stage has any hook for the turns of a sub-agent; of the agent itself, if the name is empty.
    #[must_use]
    pub fn has(&self, stage: Stage, subagent: &str) -> bool {
        self.of(stage, subagent).next().is_some()
    }

    /// Whether people see the text of an answer only after its response hooks did.
    #[must_use]
    pub fn hold_text(&self, subagent: &str) -> bool {
        self.of(Stage::Response, subagent).any(|(_, hook)| hook.holds_text())
    }

    fn of(&self, stage: Stage, subagent: &str) -> impl Iterator<Item = (Role, &HookEntry)> {
        let hooks = stage
            .roles()
            .iter()
            .flat_map(|role| self.extensions.hooks(*role).iter().map(move |hook| (*role, hook)));
        hooks.filter(move |(_, hook)| hook.sees(subagent))
    }

    /// Runs a stage on a message. `metadata` is what was noted before.
    pub async fn run(
        &self,
        stage: Stage,
        message: &str,
        session: &HookSession,
        metadata: BTreeMap<String, String>,
    ) -> StageOutcome {
        let mut outcome = StageOutcome { metadata, ..StageOutcome::default() };
        for (role, hook) in self.of(stage, &session.subagent) {
            let asked = HookRequest {
                message: outcome.replaced.as_deref().unwrap_or(message).to_owned(),
                session: session.clone(),
                metadata: visible(hook, &outcome.metadata),
            };
            let began = Instant::now();
            let verdict = ask(&*self.host, role, hook, &asked).await.verdict;
            let verdict = verdict.map_err(|error| error.to_string());
            let noted = verdict.as_ref().map(noted).unwrap_or_default();
            let verdict = verdict.and_then(|verdict| outcome.note(&noted, verdict));
            outcome.records.push(HookRecord {
                role,
                name: hook.name().to_owned(),
                verdict: recorded(&verdict),
                noted: verdict.iter().flat_map(|_| noted.keys().cloned()).collect(),
                duration_ms: milliseconds(began.elapsed()),
            });
            let by = EntryKey { role, name: hook.name().to_owned() }.to_string();
            outcome.end = match verdict {
                Ok(VerdictOutcome::Pass | VerdictOutcome::Annotate { .. }) => None,
                Ok(VerdictOutcome::Replace { message, .. }) => {
                    outcome.replaced = Some(message);
                    None
                }
                Ok(VerdictOutcome::Drop { reason }) => Some(StageEnd::Dropped { by, reason }),
                Err(error) if hook.policy(role) == FailurePolicy::Closed => {
                    Some(StageEnd::Failed { by, error })
                }
                Err(_) => None,
            };
            if outcome.end.is_some() {
                break;
            }
        }
        outcome
    }
}

impl StageOutcome {
    /// Notes metadata, if there is room for it.
    fn note(
        &mut self,
        noted: &BTreeMap<String, String>,
        verdict: VerdictOutcome,
    ) -> Result<VerdictOutcome, String> {
        if noted.is_empty() {
            return Ok(verdict);
        }
        let mut all = self.metadata.clone();
        all.extend(noted.clone());
        let bytes: usize = all.iter().map(|(key, value)| key.len() + value.len()).sum();
        if bytes > MAX_METADATA_BYTES {
            return Err(format!(
                "with its metadata the turn has {bytes} bytes of it, and {MAX_METADATA_BYTES} are the most"
            ));
        }
        self.metadata = all;
        Ok(verdict)
    }
}

/// The metadata that a hook gets: what its entry lists.
fn visible(hook: &HookEntry, metadata: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let listed = |key: &String| hook.metadata.contains(key);
    metadata.iter().filter(|(key, _)| listed(key)).map(|(key, value)| (key.clone(), value.clone())).collect()
}

fn noted(verdict: &VerdictOutcome) -> BTreeMap<String, String> {
    match verdict {
        VerdictOutcome::Annotate { metadata } | VerdictOutcome::Replace { metadata, .. } => metadata.clone(),
        VerdictOutcome::Pass | VerdictOutcome::Drop { .. } => BTreeMap::new(),
    }
}

fn recorded(verdict: &Result<VerdictOutcome, String>) -> RecordedVerdict {
    match verdict {
        Ok(VerdictOutcome::Pass) => RecordedVerdict::Pass,
        Ok(VerdictOutcome::Annotate { .. }) => RecordedVerdict::Annotate,
        Ok(VerdictOutcome::Replace { .. }) => RecordedVerdict::Replace,
        Ok(VerdictOutcome::Drop { .. }) => RecordedVerdict::Drop,
        Err(error) => RecordedVerdict::Failed(error.clone()),
    }
}

//! Which declarations of a plugin's actions were approved, and what differs from them now.
//!
//! The first declaration of a plugin is approved as a whole. Later declarations are compared with it. An
//! action that is new or changed is reported once for each change. With `changed_tools: block` it is also
//! refused until an operator approves it. Otherwise a plugin could show a harmless description for review and
//! then change it to influence a model.
//!
//! Approvals are stored in `<data_dir>/approved/<plugin>.json` and survive a restart of the supervisor. If
//! that file cannot be read or written, nothing counts as approved.

mod digest;
mod error;
mod notice;
mod record;
mod state;
mod status;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use talon_sanitize::{Raw, sanitized};

use self::digest::{action_digests, texts_digest};
pub(crate) use self::error::ApproveError;
pub(crate) use self::notice::ChangeNotice;
use self::record::Record;
pub(crate) use self::record::prepare;
use self::state::{ApprovedActions, State};
use self::status::ApprovalStatus;
use talon_plugin_client::Capability;
use talon_plugin_config::name::{PLUGIN_TEXTS, PluginName};

/// How many changes of one declaration are reported one by one; the rest is only counted. 16 is what a person
/// reads at once. A plugin that declares a thousand new actions must not fill the log.
const MAX_REPORTED_CHANGES: usize = 16;
/// The most actions that are remembered. Approved actions stay remembered after the plugin stops declaring
/// them, so that actions which come and go need no new approval. Beyond this limit they are forgotten and
/// count as new again.
const MAX_REMEMBERED: usize = 4096;
/// The longest error text of a record, in bytes.
const MAX_PROBLEM_BYTES: usize = 400;

/// The approvals of one plugin.
#[derive(Debug)]
pub(crate) struct Approvals {
    plugin: PluginName,
    block_changes: AtomicBool,
    /// Where approvals are stored; `None` if they are kept in memory only.
    dir: Option<PathBuf>,
    state: Mutex<State>,
    status: ArcSwap<ApprovalStatus>,
}

/// The result of a declaration.
#[derive(Debug, Default)]
pub(crate) struct DeclareOutcome {
    pub(crate) notices: Vec<ChangeNotice>,
    /// Whether there is something to save: call [`Approvals::save`] where blocking is allowed.
    pub(crate) needs_save: bool,
}

impl Approvals {
    pub(crate) fn new(plugin: &PluginName, blocks: bool, dir: Option<PathBuf>) -> Self {
        let (state, status) = (Mutex::default(), ArcSwap::default());
        Self { plugin: plugin.clone(), block_changes: AtomicBool::new(blocks), dir, state, status }
    }

    /// Sets whether changed actions are refused from now on.
    pub(crate) fn set_block_changes(&self, blocks: bool) {
        let state = self.state.lock();
        self.block_changes.store(blocks, Ordering::Release);
        self.update_status(&state);
    }

    fn blocks_changes(&self) -> bool {
        self.block_changes.load(Ordering::Acquire)
    }

    /// The current status.
    pub(crate) fn status(&self) -> Arc<ApprovalStatus> {
        self.status.load_full()
    }

    /// Records what the plugin declares. Must run before calls use the declaration, so that nothing
    /// unapproved gets through. Reads the record, a small file, at the first declaration.
    pub(crate) fn declare(&self, capability: &Arc<Capability>) -> DeclareOutcome {
        let mut state = self.state.lock();
        let first = state.declared.is_empty() && state.approved.is_none();
        let declared: BTreeMap<_, _> =
            capability.actions.iter().map(|(name, action)| (name.clone(), action_digests(action))).collect();
        state.declared = match &state.approved {
            Some(ApprovedActions::Known(approved_actions)) if **approved_actions == declared => {
                approved_actions.clone()
            }
            _ => Arc::new(declared),
        };
        state.texts = texts_digest(&capability.raw);
        state.capability = Some(capability.clone());
        let mut outcome = DeclareOutcome::default();
        if first {
            state.approved = match self.dir.as_deref().map(|dir| Record::read(dir, &self.plugin)) {
                None | Some(Ok(None)) => None,
                Some(Ok(Some(record))) => {
                    state.approved_texts = record.texts;
                    let same = record.actions == *state.declared;
                    let actions = if same { state.declared.clone() } else { Arc::new(record.actions) };
                    Some(ApprovedActions::Known(actions))
                }
                Some(Err(error)) => {
                    let problem = Raw::of(error).line_within(MAX_PROBLEM_BYTES);
                    outcome.notices.push(ChangeNotice::unusable_record(
                        &self.plugin,
                        self.blocks_changes(),
                        &problem,
                    ));
                    Some(ApprovedActions::Unusable(problem))
                }
            };
        }
        if state.approved.is_none() {
            state.approved = Some(ApprovedActions::Known(state.declared.clone()));
            outcome.needs_save = self.dir.is_some();
        }
        if state.approved_texts.is_none() && matches!(state.approved, Some(ApprovedActions::Known(_))) {
            state.approved_texts = Some(state.texts.clone().unwrap_or_default());
            outcome.needs_save = self.dir.is_some();
        }
        self.update_status(&state);
        outcome.notices.extend(self.unreported_changes(&mut state));
        outcome
    }

    /// Saves what was approved without asking. Blocking. A failure is returned as a notice. If changes are
    /// refused, nothing counts as approved after a failure, because the next supervisor could not recognise a
    /// change.
    pub(crate) fn save(&self) -> Option<ChangeNotice> {
        let dir = self.dir.as_deref()?;
        // The lock is held while writing: of two concurrent writes the older one could win.
        let mut state = self.state.lock();
        let Some(ApprovedActions::Known(actions)) = &state.approved else { return None };
        let cause = Record { actions: (**actions).clone(), texts: state.approved_texts.clone() }
            .write(dir, &self.plugin)
            .err()?;
        let cause = Raw::of(cause).line_within(MAX_PROBLEM_BYTES);
        let notice = ChangeNotice::unusable_record(&self.plugin, self.blocks_changes(), &cause);
        if self.blocks_changes() {
            state.approved = Some(ApprovedActions::Unusable(cause));
            self.update_status(&state);
        }
        Some(notice)
    }

    /// Approves what these actions declare now, or what all of them declare if the list is empty. Returns
    /// those that were not approved before. If `seen` holds digests, approves only these exact declarations,
    /// and nothing if one differs. Blocking.
    pub(crate) fn approve(
        &self,
        actions: &[String],
        seen: &BTreeMap<String, String>,
    ) -> Result<Vec<String>, ApproveError> {
        let mut state = self.state.lock();
        if state.approved.is_none() {
            return Err(ApproveError::NotDeclared(self.plugin.clone()));
        }
        if let Some(unknown) =
            actions.iter().find(|action| !state.declared.contains_key(*action) && *action != PLUGIN_TEXTS)
        {
            let action = Raw::from(unknown).line_within(MAX_PROBLEM_BYTES);
            return Err(ApproveError::UnknownAction { plugin: self.plugin.clone(), action });
        }
        let wanted = |action: &String| actions.is_empty() || actions.contains(action);
        let mut approved: Vec<String> =
            state.changed_actions().into_keys().filter(|action| wanted(action)).cloned().collect();
        let own = PLUGIN_TEXTS.to_owned();
        if state.has_changed_texts() && wanted(&own) {
            approved.push(own);
        }
        let is_seen = |action: &&String| {
            seen.get(*action).is_some_and(|seen| state.digest(action).as_ref() == Some(seen))
        };
        if !seen.is_empty()
            && let Some(other) = approved.iter().find(|action| !is_seen(action))
        {
            let action = Raw::from(other).line_within(MAX_PROBLEM_BYTES);
            return Err(ApproveError::ChangedAgain { plugin: self.plugin.clone(), action });
        }
        let mut approved_actions = match &state.approved {
            Some(ApprovedActions::Known(approved_actions)) => (**approved_actions).clone(),
            _ => BTreeMap::new(),
        };
        approved_actions.extend(
            approved.iter().filter_map(|name| Some((name.clone(), state.declared.get(name)?.clone()))),
        );
        if approved_actions.len() > MAX_REMEMBERED {
            approved_actions.retain(|name, _| state.declared.contains_key(name));
        }
        let mut approved_texts = state.approved_texts.clone().unwrap_or_default();
        if approved.iter().any(|name| name == PLUGIN_TEXTS) {
            approved_texts = state.texts.clone().unwrap_or_default();
        }
        if let Some(dir) = &self.dir {
            let record = Record { actions: approved_actions, texts: Some(approved_texts.clone()) };
            record.write(dir, &self.plugin).map_err(|cause| ApproveError::NotSaved {
                plugin: self.plugin.clone(),
                cause: Raw::of(cause).line_within(MAX_PROBLEM_BYTES),
            })?;
            approved_actions = record.actions;
        }
        let approved_actions = if approved_actions == *state.declared {
            state.declared.clone()
        } else {
            Arc::new(approved_actions)
        };
        state.approved = Some(ApprovedActions::Known(approved_actions));
        state.approved_texts = Some(approved_texts);
        state.reported_texts = None;
        for action in &approved {
            state.reported.remove(action);
        }
        self.update_status(&state);
        Ok(approved)
    }

    fn update_status(&self, state: &State) {
        let changed: BTreeSet<String> = state.changed_actions().into_keys().cloned().collect();
        let withheld = if self.blocks_changes() { Arc::new(changed.clone()) } else { Arc::default() };
        let problem = match &state.approved {
            Some(ApprovedActions::Unusable(problem)) => {
                Some(ChangeNotice::unusable_record(&self.plugin, self.blocks_changes(), problem).text)
            }
            _ => None,
        };
        let mut digests: BTreeMap<String, String> =
            changed.iter().filter_map(|name| Some((name.clone(), state.digest(name)?))).collect();
        let changed_texts = state.has_changed_texts();
        if changed_texts {
            digests.extend(state.digest(PLUGIN_TEXTS).map(|digest| (PLUGIN_TEXTS.to_owned(), digest)));
        }
        let withheld_texts = changed_texts && self.blocks_changes();
        let capability = state.capability.clone();
        let status =
            ApprovalStatus { changed, withheld, changed_texts, withheld_texts, problem, capability, digests };
        self.status.store(Arc::new(status));
    }

    /// The changes that were not reported yet.
    fn unreported_changes(&self, state: &mut State) -> Vec<ChangeNotice> {
        let declared = &state.declared;
        let mut reported = std::mem::take(&mut state.reported);
        reported.retain(|name, _| declared.contains_key(name));
        let mut notices = Vec::new();
        let mut more = 0_usize;
        if let Some(ApprovedActions::Known(_)) = &state.approved {
            if state.has_changed_texts() && state.reported_texts != state.texts {
                state.reported_texts.clone_from(&state.texts);
                notices.push(ChangeNotice::changed_texts(&self.plugin, self.blocks_changes()));
            }
            for (name, what) in state.changed_actions() {
                let Some(now) = declared.get(name).filter(|now| reported.get(name) != Some(*now)) else {
                    continue;
                };
                reported.insert(name.clone(), now.clone());
                if notices.len() < MAX_REPORTED_CHANGES {
                    notices.push(ChangeNotice::changed_action(
                        &self.plugin,
                        self.blocks_changes(),
                        name,
                        &what.join(", "),
                    ));
                } else {
                    more += 1;
                }
            }
        }
        if more > 0 {
            let text = sanitized!(
                "{} more actions changed; see `talon plugin show {}`",
                more,
                Raw::of(&self.plugin).line()
            );
            notices.push(ChangeNotice { action: None, change: "more".to_owned(), text });
        }
        state.reported = reported;
        notices
    }
}

#[cfg(test)]
mod tests;

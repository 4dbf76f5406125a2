//! Which declarations of a plugin's actions were approved, and what differs from them now.
//!
//! The first declaration of a plugin is approved as a whole. Later declarations are compared with it. An action that is
//! new or changed is reported once for each change. With `changed_tools: block` it is also refused until an operator
//! approves it. Otherwise a plugin could show a harmless description for review and then change it to influence a
//! model.
//!
//! Approvals are stored in `<data_dir>/approved/<plugin>.json` and survive a restart of the supervisor. If that file
//! cannot be read or written, nothing counts as approved.

mod digest;
mod record;

use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;
use talon_sanitize::{Raw, Sanitized, inert};

use self::digest::{Digests, action_digests, texts_digest};
use self::record::Record;
pub(crate) use self::record::prepare;
use talon_plugin_client::Capability;
use talon_plugin_config::name::PluginName;

/// How many changes of one declaration are reported one by one; the rest is only counted. 16 is what a person reads at
/// once. A plugin that declares a thousand new actions must not fill the log.
const MAX_REPORTED_CHANGES: usize = 16;
/// The most actions that are remembered. Approved actions stay remembered after the plugin stops declaring them, so
/// that actions which come and go need no new approval. Beyond this limit they are forgotten and count as new again.
const MAX_REMEMBERED: usize = 4096;
/// The name under which the plugin's own texts appear among its actions: in notices, approvals and digests. No action
/// can have this name.
pub const PLUGIN_TEXTS: &str = "(plugin)";
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

/// How the current declaration compares with the approved one. Replaced as a whole.
#[derive(Debug, Default)]
pub(crate) struct ApprovalStatus {
    /// Actions whose declaration differs from the approved one.
    pub(crate) changed: BTreeSet<String>,
    /// Actions that are refused because of that.
    pub(crate) withheld: Arc<BTreeSet<String>>,
    /// Whether the plugin's own texts differ from the approved ones.
    pub(crate) changed_texts: bool,
    /// Whether they are left out because of that.
    pub(crate) withheld_texts: bool,
    /// Why nothing counts as approved.
    pub(crate) problem: Option<Sanitized>,
    /// The declaration that these fields describe; `None` before the first one. It is stored here so that a reader
    /// never combines it with the status of another declaration.
    pub(crate) capability: Option<Arc<Capability>>,
    /// A digest of each changed action's declaration. A caller passes it back to approve exactly what was shown.
    pub(crate) digests: BTreeMap<String, String>,
}

#[derive(Debug, Default)]
struct State {
    /// What was approved; `None` before the first approval.
    approved: Option<ApprovedActions>,
    /// Shares its map with `approved` while both are equal. That is nearly always, for each of many plugins.
    declared: Arc<BTreeMap<String, Digests>>,
    capability: Option<Arc<Capability>>,
    /// The digest of the plugin's own texts, if it has any.
    texts: Option<String>,
    /// The digest of the approved texts; empty if none were approved, `None` if they were never checked.
    approved_texts: Option<String>,
    /// The digest of the texts that were last reported as changed.
    reported_texts: Option<String>,
    /// Changes that were reported, by action.
    reported: BTreeMap<String, Digests>,
}

#[derive(Debug)]
enum ApprovedActions {
    Known(Arc<BTreeMap<String, Digests>>),
    /// The record cannot be used.
    Unusable(Sanitized),
}

/// A change that operators should know about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChangeNotice {
    /// The action, if the notice is about one.
    pub(crate) action: Option<String>,
    /// What changed, in a form for programs.
    pub(crate) change: String,
    /// A message for people. It ends with what to do next.
    pub(crate) text: Sanitized,
}

/// The result of a declaration.
#[derive(Debug, Default)]
pub(crate) struct DeclareOutcome {
    pub(crate) notices: Vec<ChangeNotice>,
    /// Whether there is something to save: call [`Approvals::keep`] where blocking is allowed.
    pub(crate) needs_save: bool,
}

/// Why nothing was approved. The messages end with what to do next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ApproveError {
    /// The plugin has not declared anything yet.
    #[error("{0} has not declared yet what it offers; `talon plugin start {0}` starts it")]
    NotDeclared(PluginName),
    /// The plugin declares no such action.
    #[error("{plugin} declares no action {action:?}; `talon plugin show {plugin}` lists those it does")]
    UnknownAction {
        /// The plugin.
        plugin: PluginName,
        /// The name, bounded.
        action: Sanitized,
    },
    /// The declaration changed after it was shown to the person who approves it.
    #[error(
        "{action:?} of {plugin} changed again since it was shown, and nothing was approved; look once more with `talon plugin \
         show {plugin}`, then approve again"
    )]
    ChangedAgain {
        /// The plugin.
        plugin: PluginName,
        /// The name, bounded.
        action: Sanitized,
    },
    /// The approval cannot be saved, so nothing is approved.
    #[error("what is approved of {plugin} cannot be kept: {cause}; mend that and approve again")]
    NotSaved {
        /// The plugin.
        plugin: PluginName,
        /// The cause.
        cause: Sanitized,
    },
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

    /// Records what the plugin declares. Must run before calls use the declaration, so that nothing unapproved gets
    /// through. Reads the record, a small file, at the first declaration.
    pub(crate) fn declare(&self, capability: &Arc<Capability>) -> DeclareOutcome {
        let mut state = self.state.lock();
        let first = state.declared.is_empty() && state.approved.is_none();
        let declared: BTreeMap<_, _> =
            capability.actions.iter().map(|(name, action)| (name.clone(), action_digests(action))).collect();
        state.declared = match &state.approved {
            Some(ApprovedActions::Known(these)) if **these == declared => these.clone(),
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
                    outcome.notices.push(self.unusable_record_notice(&problem));
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

    /// Saves what was approved without asking. Blocking. A failure is returned as a notice. If changes are refused,
    /// nothing counts as approved after a failure, because the next supervisor could not recognise a change.
    pub(crate) fn save(&self) -> Option<ChangeNotice> {
        let dir = self.dir.as_deref()?;
        // The lock is held while writing: of two concurrent writes the older one could win.
        let mut state = self.state.lock();
        let Some(ApprovedActions::Known(actions)) = &state.approved else { return None };
        let cause = Record { actions: (**actions).clone(), texts: state.approved_texts.clone() }
            .write(dir, &self.plugin)
            .err()?;
        let cause = Raw::of(cause).line_within(MAX_PROBLEM_BYTES);
        let news = self.unusable_record_notice(&cause);
        if self.blocks_changes() {
            state.approved = Some(ApprovedActions::Unusable(cause));
            self.update_status(&state);
        }
        Some(news)
    }

    /// Approves what these actions declare now, or what all of them declare if the list is empty. Returns those that
    /// were not approved before. If `seen` holds digests, approves only these exact declarations, and nothing if one
    /// differs. Blocking.
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
        let mut these = match &state.approved {
            Some(ApprovedActions::Known(these)) => (**these).clone(),
            _ => BTreeMap::new(),
        };
        these.extend(
            approved.iter().filter_map(|name| Some((name.clone(), state.declared.get(name)?.clone()))),
        );
        if these.len() > MAX_REMEMBERED {
            these.retain(|name, _| state.declared.contains_key(name));
        }
        let mut approved_texts = state.approved_texts.clone().unwrap_or_default();
        if approved.iter().any(|name| name == PLUGIN_TEXTS) {
            approved_texts = state.texts.clone().unwrap_or_default();
        }
        if let Some(dir) = &self.dir {
            let record = Record { actions: these, texts: Some(approved_texts.clone()) };
            record.write(dir, &self.plugin).map_err(|cause| ApproveError::NotSaved {
                plugin: self.plugin.clone(),
                cause: Raw::of(cause).line_within(MAX_PROBLEM_BYTES),
            })?;
            these = record.actions;
        }
        let these = if these == *state.declared { state.declared.clone() } else { Arc::new(these) };
        state.approved = Some(ApprovedActions::Known(these));
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
            Some(ApprovedActions::Unusable(problem)) => Some(self.unusable_record_notice(problem).text),
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
        let standing =
            ApprovalStatus { changed, withheld, changed_texts, withheld_texts, problem, capability, digests };
        self.status.store(Arc::new(standing));
    }

    /// The changes that were not reported yet.
    fn unreported_changes(&self, state: &mut State) -> Vec<ChangeNotice> {
        let declared = &state.declared;
        let mut told = std::mem::take(&mut state.reported);
        told.retain(|name, _| declared.contains_key(name));
        let mut news = Vec::new();
        let mut more = 0_usize;
        if let Some(ApprovedActions::Known(_)) = &state.approved {
            if state.has_changed_texts() && state.reported_texts != state.texts {
                state.reported_texts.clone_from(&state.texts);
                news.push(self.changed_texts_notice());
            }
            for (name, what) in state.changed_actions() {
                let Some(now) = declared.get(name).filter(|now| told.get(name) != Some(*now)) else {
                    continue;
                };
                told.insert(name.clone(), now.clone());
                if news.len() < MAX_REPORTED_CHANGES {
                    news.push(self.changed_action_notice(name, &what.join(", ")));
                } else {
                    more += 1;
                }
            }
        }
        if more > 0 {
            let text = inert!(
                "{} more actions changed; see `talon plugin show {}`",
                more,
                Raw::of(&self.plugin).line()
            );
            news.push(ChangeNotice { action: None, change: "more".to_owned(), text });
        }
        state.reported = told;
        news
    }

    fn changed_texts_notice(&self) -> ChangeNotice {
        let plugin = Raw::of(&self.plugin).line();
        let then = if self.blocks_changes() { "; callers are not shown it until then" } else { "" };
        let text = inert!(
            "what it says about itself (description, prompt, glossary, articles) is not what was approved: look at it with `talon \
             plugin show {}`, approve it with `talon plugin approve {}`{}",
            plugin,
            plugin,
            then
        );
        ChangeNotice { action: None, change: PLUGIN_TEXTS.to_owned(), text }
    }

    fn changed_action_notice(&self, action: &str, what: &str) -> ChangeNotice {
        let plugin = Raw::of(&self.plugin).line();
        let action_shown = Raw::from(action).line();
        let shown = Raw::from(what).line();
        let then = if self.blocks_changes() { "; calls of it are refused until then" } else { "" };
        let text = inert!(
            "action {} is not what was approved ({}): look at it with `talon plugin show {}`, approve it with `talon plugin \
             approve {}`{}",
            action_shown,
            shown,
            plugin,
            plugin,
            then
        );
        ChangeNotice { action: Some(action.to_owned()), change: what.to_owned(), text }
    }

    fn unusable_record_notice(&self, problem: &Sanitized) -> ChangeNotice {
        let then = if self.blocks_changes() {
            "calls are refused until then"
        } else {
            "changes cannot be detected until then"
        };
        let plugin = Raw::of(&self.plugin).line();
        let text = inert!(
            "what was approved of its actions is not known: {}; look at them with `talon plugin show {}` and approve them anew \
             with `talon plugin approve {}`; {}",
            problem,
            plugin,
            plugin,
            then
        );
        ChangeNotice { action: None, change: "record".to_owned(), text }
    }
}

impl State {
    /// One digest over all that an action declares, or of the plugin's own texts.
    fn digest(&self, action: &str) -> Option<String> {
        if action == PLUGIN_TEXTS {
            return self.texts.clone();
        }
        self.declared.get(action).map(Digests::combined)
    }

    /// Whether the plugin's own texts differ from the approved ones. Removing all texts is not a change, as removing an
    /// action is none.
    fn has_changed_texts(&self) -> bool {
        self.approved.is_some() && self.texts.is_some() && self.texts != self.approved_texts
    }

    /// The actions that differ from the approved ones, with the parts that differ.
    fn changed_actions(&self) -> BTreeMap<&String, Vec<&'static str>> {
        let in_what = |name: &String, now: &Digests| match &self.approved {
            Some(ApprovedActions::Known(these)) => match these.get(name) {
                Some(before) => now.differing_parts(before),
                None => vec!["new"],
            },
            Some(ApprovedActions::Unusable(_)) => vec!["record"],
            None => Vec::new(),
        };
        self.declared
            .iter()
            .map(|(name, now)| (name, in_what(name, now)))
            .filter(|(_, what)| !what.is_empty())
            .collect()
    }
}

#[cfg(test)]
mod tests;

//! What was approved of a plugin's actions, and what it declares otherwise now.
//!
//! The first declaration that is seen of a plugin is approved as a whole. Everything later is held against that: an action
//! that is new, or that says something else than it did, is told once for each change, and refused where the operator wants
//! that (`changed_tools: block`), until somebody approves it. A tool that changes its description after it was looked at is
//! how a plugin would talk to a model behind people's backs.
//!
//! It outlives the supervisor in `<data_dir>/approved/<plugin>.json`. Where that cannot be read or written nothing is taken
//! for approved.

mod digest;
mod record;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use talon_sanitize::{Raw, Sanitized, inert};

use self::digest::{Digests, digests, texts};
use self::record::Record;
pub(crate) use self::record::prepare;
use crate::capability::Capability;
use crate::name::PluginName;

/// How many changes of one declaration are told one by one; the rest is counted. As many as a person reads at once; a plugin
/// that declares a thousand new actions must not fill the log with them.
const MAX_TOLD: usize = 16;
/// Approved actions that a plugin does not declare any more are remembered up to this many in all, so that tools which come and
/// go need no new approval each time. Beyond it they are forgotten, and new again when they come back.
const MAX_REMEMBERED: usize = 4096;
/// What stands for a plugin's own texts where actions are named: in news, in approvals and their digests. No action is called
/// so.
pub const PLUGIN_TEXTS: &str = "(plugin)";
/// How much is kept of the words in which a record is said to be unusable.
const MAX_PROBLEM_BYTES: usize = 400;

/// The approvals of one plugin.
#[derive(Debug)]
pub(crate) struct Approvals {
    plugin: PluginName,
    blocks: AtomicBool,
    /// Where they are kept; `None` if they go with the registry.
    dir: Option<PathBuf>,
    state: Mutex<State>,
    standing: ArcSwap<Standing>,
}

/// How the plugin's declaration stands to what was approved. Replaced as a whole.
#[derive(Debug, Default)]
pub(crate) struct Standing {
    /// Declared otherwise than approved.
    pub(crate) changed: BTreeSet<String>,
    /// Those that are refused for it.
    pub(crate) withheld: Arc<BTreeSet<String>>,
    /// What the plugin says of itself is not what was approved.
    pub(crate) changed_texts: bool,
    /// And is left out for it.
    pub(crate) withheld_texts: bool,
    /// Why nothing is taken for approved.
    pub(crate) problem: Option<Sanitized>,
    /// The declaration that all this is about; `None` before the first. It stands here so that nobody reads it together with
    /// what is withheld of another one.
    pub(crate) capability: Option<Arc<Capability>>,
    /// A digest of what each changed action declares, for people who approve no more than they saw.
    pub(crate) digests: BTreeMap<String, String>,
}

#[derive(Debug, Default)]
struct State {
    /// What was approved; `None` as long as nothing was.
    approved: Option<Approved>,
    /// The same map as what was approved, as long as they do not differ: nearly always, in each of many plugins.
    declared: Arc<BTreeMap<String, Digests>>,
    capability: Option<Arc<Capability>>,
    /// The digest of the plugin's own texts, if it has some.
    texts: Option<String>,
    /// That of those that were approved; empty if none were, `None` if nobody looked at them yet.
    approved_texts: Option<String>,
    /// That of those that were told as changed.
    told_texts: Option<String>,
    /// Changes that were told, by action.
    told: BTreeMap<String, Digests>,
}

#[derive(Debug)]
enum Approved {
    These(Arc<BTreeMap<String, Digests>>),
    /// The record cannot be used.
    Unknown(Sanitized),
}

/// Something that operators should hear of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct News {
    /// Which action, if it is about one.
    pub(crate) action: Option<String>,
    /// In words for programs.
    pub(crate) what: String,
    /// A sentence that ends with what to do next.
    pub(crate) text: Sanitized,
}

/// What comes of a declaration.
#[derive(Debug, Default)]
pub(crate) struct Declared {
    pub(crate) news: Vec<News>,
    /// Whether there is something new to be kept: call [`Approvals::keep`] where that may block.
    pub(crate) keep: bool,
}

/// Why nothing was approved. The texts end with what to do next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ApproveError {
    /// It has never told what it offers.
    #[error("{0} has not told yet what it offers; `talon plugin start {0}` starts it")]
    Nothing(PluginName),
    /// An action that it does not declare.
    #[error("{plugin} declares no action {action:?}; `talon plugin show {plugin}` lists those it does")]
    Unknown {
        /// Which plugin.
        plugin: PluginName,
        /// The name, bounded.
        action: Sanitized,
    },
    /// What it declares is not what somebody saw who approves it.
    #[error(
        "{action:?} of {plugin} changed again since it was shown, and nothing was approved; look once more with `talon plugin \
         show {plugin}`, then approve again"
    )]
    ChangedAgain {
        /// Which plugin.
        plugin: PluginName,
        /// The name, bounded.
        action: Sanitized,
    },
    /// It cannot be kept, and so nothing is approved.
    #[error("what is approved of {plugin} cannot be kept: {cause}; mend that and approve again")]
    NotKept {
        /// Which plugin.
        plugin: PluginName,
        /// Why.
        cause: Sanitized,
    },
}

impl Approvals {
    pub(crate) fn new(plugin: &PluginName, blocks: bool, dir: Option<PathBuf>) -> Self {
        let (state, standing) = (Mutex::default(), ArcSwap::default());
        Self { plugin: plugin.clone(), blocks: AtomicBool::new(blocks), dir, state, standing }
    }

    /// Whether what changed is refused from now on.
    pub(crate) fn set_blocks(&self, blocks: bool) {
        let state = self.state();
        self.blocks.store(blocks, Ordering::Release);
        self.stand(&state);
    }

    fn blocks(&self) -> bool {
        self.blocks.load(Ordering::Acquire)
    }

    /// How things stand now.
    pub(crate) fn standing(&self) -> Arc<Standing> {
        self.standing.load_full()
    }

    /// Takes what the plugin declares. Before calls are held against it, so that nothing unapproved slips through. Reads the
    /// record at the first declaration, which is a small file.
    pub(crate) fn declare(&self, capability: &Arc<Capability>) -> Declared {
        let mut state = self.state();
        let first = state.declared.is_empty() && state.approved.is_none();
        let declared: BTreeMap<_, _> =
            capability.actions.iter().map(|(name, action)| (name.clone(), digests(action))).collect();
        state.declared = match &state.approved {
            Some(Approved::These(these)) if **these == declared => these.clone(),
            _ => Arc::new(declared),
        };
        state.texts = texts(&capability.raw);
        state.capability = Some(capability.clone());
        let mut outcome = Declared::default();
        if first {
            state.approved = match self.dir.as_deref().map(|dir| Record::read(dir, &self.plugin)) {
                None | Some(Ok(None)) => None,
                Some(Ok(Some(record))) => {
                    state.approved_texts = record.texts;
                    let same = record.actions == *state.declared;
                    let actions = if same { state.declared.clone() } else { Arc::new(record.actions) };
                    Some(Approved::These(actions))
                }
                Some(Err(error)) => {
                    let problem = Raw::of(error).line_within(MAX_PROBLEM_BYTES);
                    outcome.news.push(self.unusable(&problem));
                    Some(Approved::Unknown(problem))
                }
            };
        }
        if state.approved.is_none() {
            state.approved = Some(Approved::These(state.declared.clone()));
            outcome.keep = self.dir.is_some();
        }
        if state.approved_texts.is_none() && matches!(state.approved, Some(Approved::These(_))) {
            state.approved_texts = Some(state.texts.clone().unwrap_or_default());
            outcome.keep = self.dir.is_some();
        }
        self.stand(&state);
        outcome.news.extend(self.changes(&mut state));
        outcome
    }

    /// Keeps what was approved without asking, which blocks. What cannot be kept is told; where changes are refused it is
    /// then taken for not approved, because the next supervisor could not tell a change from it.
    pub(crate) fn keep(&self) -> Option<News> {
        let dir = self.dir.as_deref()?;
        // Held while it is written: two that write at once could end with the older.
        let mut state = self.state();
        let Some(Approved::These(actions)) = &state.approved else { return None };
        let cause = Record { actions: (**actions).clone(), texts: state.approved_texts.clone() }
            .write(dir, &self.plugin)
            .err()?;
        let cause = Raw::of(cause).line_within(MAX_PROBLEM_BYTES);
        let news = self.unusable(&cause);
        if self.blocks() {
            state.approved = Some(Approved::Unknown(cause));
            self.stand(&state);
        }
        Some(news)
    }

    /// Approves what these actions declare now, or what all of them do; gives those that were not approved before. Where it is
    /// said what was seen of them (`digests`), only that: nothing else, and nothing if one of them is something else. Blocks.
    pub(crate) fn approve(
        &self,
        actions: &[String],
        seen: &BTreeMap<String, String>,
    ) -> Result<Vec<String>, ApproveError> {
        let mut state = self.state();
        if state.approved.is_none() {
            return Err(ApproveError::Nothing(self.plugin.clone()));
        }
        if let Some(unknown) =
            actions.iter().find(|action| !state.declared.contains_key(*action) && *action != PLUGIN_TEXTS)
        {
            let action = Raw::from(unknown).line_within(MAX_PROBLEM_BYTES);
            return Err(ApproveError::Unknown { plugin: self.plugin.clone(), action });
        }
        let wanted = |action: &String| actions.is_empty() || actions.contains(action);
        let mut approved: Vec<String> =
            state.changed().into_keys().filter(|action| wanted(action)).cloned().collect();
        let own = PLUGIN_TEXTS.to_owned();
        if state.changed_texts() && wanted(&own) {
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
            Some(Approved::These(these)) => (**these).clone(),
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
            record.write(dir, &self.plugin).map_err(|cause| ApproveError::NotKept {
                plugin: self.plugin.clone(),
                cause: Raw::of(cause).line_within(MAX_PROBLEM_BYTES),
            })?;
            these = record.actions;
        }
        let these = if these == *state.declared { state.declared.clone() } else { Arc::new(these) };
        state.approved = Some(Approved::These(these));
        state.approved_texts = Some(approved_texts);
        state.told_texts = None;
        for action in &approved {
            state.told.remove(action);
        }
        self.stand(&state);
        Ok(approved)
    }

    fn stand(&self, state: &State) {
        let changed: BTreeSet<String> = state.changed().into_keys().cloned().collect();
        let withheld = if self.blocks() { Arc::new(changed.clone()) } else { Arc::default() };
        let problem = match &state.approved {
            Some(Approved::Unknown(problem)) => Some(self.unusable(problem).text),
            _ => None,
        };
        let mut digests: BTreeMap<String, String> =
            changed.iter().filter_map(|name| Some((name.clone(), state.digest(name)?))).collect();
        let changed_texts = state.changed_texts();
        if changed_texts {
            digests.extend(state.digest(PLUGIN_TEXTS).map(|digest| (PLUGIN_TEXTS.to_owned(), digest)));
        }
        let withheld_texts = changed_texts && self.blocks();
        let capability = state.capability.clone();
        let standing =
            Standing { changed, withheld, changed_texts, withheld_texts, problem, capability, digests };
        self.standing.store(Arc::new(standing));
    }

    /// What changed and was not told yet.
    fn changes(&self, state: &mut State) -> Vec<News> {
        let declared = &state.declared;
        let mut told = std::mem::take(&mut state.told);
        told.retain(|name, _| declared.contains_key(name));
        let mut news = Vec::new();
        let mut more = 0_usize;
        if let Some(Approved::These(_)) = &state.approved {
            if state.changed_texts() && state.told_texts != state.texts {
                state.told_texts.clone_from(&state.texts);
                news.push(self.changed_texts());
            }
            for (name, what) in state.changed() {
                let Some(now) = declared.get(name).filter(|now| told.get(name) != Some(*now)) else {
                    continue;
                };
                told.insert(name.clone(), now.clone());
                if news.len() < MAX_TOLD {
                    news.push(self.change(name, &what.join(", ")));
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
            news.push(News { action: None, what: "more".to_owned(), text });
        }
        state.told = told;
        news
    }

    fn changed_texts(&self) -> News {
        let plugin = Raw::of(&self.plugin).line();
        let then = if self.blocks() { "; callers are not shown it until then" } else { "" };
        let text = inert!(
            "what it says of itself (description, prompt, glossary, articles) is not what was approved: look at it with `talon \
             plugin show {}`, approve it with `talon plugin approve {}`{}",
            plugin,
            plugin,
            then
        );
        News { action: None, what: PLUGIN_TEXTS.to_owned(), text }
    }

    fn change(&self, action: &str, what: &str) -> News {
        let plugin = Raw::of(&self.plugin).line();
        let action_shown = Raw::from(action).line();
        let shown = Raw::from(what).line();
        let then = if self.blocks() { "; calls of it are refused until then" } else { "" };
        let text = inert!(
            "action {} is not what was approved ({}): look at it with `talon plugin show {}`, approve it with `talon plugin \
             approve {}`{}",
            action_shown,
            shown,
            plugin,
            plugin,
            then
        );
        News { action: Some(action.to_owned()), what: what.to_owned(), text }
    }

    fn unusable(&self, problem: &Sanitized) -> News {
        let then =
            if self.blocks() { "calls are refused until then" } else { "changes cannot be told until then" };
        let plugin = Raw::of(&self.plugin).line();
        let text = inert!(
            "what was approved of its actions is not known: {}; look at them with `talon plugin show {}` and approve them anew \
             with `talon plugin approve {}`; {}",
            problem,
            plugin,
            plugin,
            then
        );
        News { action: None, what: "record".to_owned(), text }
    }

    /// Nothing can panic while it is held but what is a defect of ours, after which it is as good.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// One digest of all that an action declares, or of the plugin's own texts.
    fn digest(&self, action: &str) -> Option<String> {
        if action == PLUGIN_TEXTS {
            return self.texts.clone();
        }
        self.declared.get(action).map(Digests::whole)
    }

    /// Whether the plugin says something else of itself than what was approved. To say nothing any more is no change, as it is
    /// none if an action is gone.
    fn changed_texts(&self) -> bool {
        self.approved.is_some() && self.texts.is_some() && self.texts != self.approved_texts
    }

    /// The actions that are not what was approved, and in what.
    fn changed(&self) -> BTreeMap<&String, Vec<&'static str>> {
        let in_what = |name: &String, now: &Digests| match &self.approved {
            Some(Approved::These(these)) => match these.get(name) {
                Some(before) => now.differs_in(before),
                None => vec!["new"],
            },
            Some(Approved::Unknown(_)) => vec!["record"],
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

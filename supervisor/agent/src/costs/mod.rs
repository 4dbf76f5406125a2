//! Durable costs by session and by day, each by model.
//!
//! The chain reports each charge between two steps of a request, so the report does not write: charges are
//! collected, and a task adds them to the store. It is the only writer, so that it needs no lock to read, add
//! and write. A killed process loses the charges since the last write.

mod record;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use talon_llm::route::catalog::ModelRef;
use talon_llm::route::cost::{Day, Ledgers};
use talon_llm::route::fallback::{Event, EventObserver};
use talon_store::{Error, InvalidError, Key, KeyValues, Namespace, PageRequest, PluginId, Quota, Timestamp};
use tokio::sync::Notify;

pub use record::CostTotals;

/// The key-value namespace, in the agent's own database.
const NAMESPACE: &str = "agent-costs";
/// The most sessions and days that are stored. A million: more sessions than a database has. Beyond that
/// nothing more is stored, and the log says so.
const MAX_RECORDS: u64 = 1_000_000;
/// How many days are stored: more than a year, so that the same day of the last year can be compared.
const KEPT_DAYS: u64 = 400;
/// The most sums waiting to be written. Each is a session that was charged since the last write, which takes
/// milliseconds.
const MAX_WAITING: usize = 4096;
/// The least time between two writes. 50 ms: a charge after a quiet moment is written at once, and a thousand charges a second cost 20
/// writes, each with an fsync. A killed process loses that much more at the most. Not configurable.
const BETWEEN_WRITES: Duration = Duration::from_millis(50);
/// The most plugins that are listed: more than a machine runs.
const MAX_PLUGINS: usize = 1024;

/// Stores costs.
pub struct Costs {
    key_values: Arc<dyn KeyValues>,
    namespace: Namespace,
    waiting: Mutex<PendingCharges>,
    charged: Notify,
    /// Sessions of which nothing is stored, while their turns run.
    passing: Mutex<BTreeSet<String>>,
    /// Locked while sums are written.
    writing: tokio::sync::Mutex<()>,
}

/// What the session of a plugin's own completions begins with; no session is called so.
const OWN_SESSION: &str = "plugin:";

/// The session of what a plugin asks of models on its own account on a day.
#[must_use]
pub fn own_session(plugin: &str, day: Day) -> String {
    format!("{OWN_SESSION}{plugin}/{}", day.0)
}

/// Whether a session is that of a plugin's own completions, of the shadow loop, or of vectors: no conversation.
#[must_use]
pub fn is_own_session(session: &str) -> bool {
    [OWN_SESSION, SHADOW_SESSION, EMBEDDINGS_SESSION].iter().any(|begins| session.starts_with(begins))
}

/// What the session of a person's shadow loop begins with; no session is called so.
const SHADOW_SESSION: &str = "shadow:";

/// The session of what the shadow loop asks of models about a person's observations.
#[must_use]
pub fn shadow_session(sender: &str) -> String {
    format!("{SHADOW_SESSION}{sender}")
}

/// What the session of a sender's vectors begins with; no session is called so.
const EMBEDDINGS_SESSION: &str = "embeddings:";

/// The session of the vectors that a sender asks for on a day.
#[must_use]
pub fn embeddings_session(sender: &str, day: Day) -> String {
    format!("{EMBEDDINGS_SESSION}{:08}/{sender}", day.0)
}

/// Charges since the last write.
#[derive(Default)]
struct PendingCharges {
    sessions: BTreeMap<String, CostTotals>,
    days: BTreeMap<Day, CostTotals>,
    plugins: BTreeMap<(Day, String), CostTotals>,
    /// What plugins asked on their own account.
    own: BTreeMap<(Day, String), CostTotals>,
    /// Of the vectors of a sender and a day, by their session.
    embeddings: BTreeMap<String, CostTotals>,
}

/// Today, in UTC.
#[must_use]
pub fn today() -> Day {
    Day(Timestamp::now().as_millis().unsigned_abs() / (24 * 60 * 60 * 1000))
}

impl Costs {
    /// Opens the costs in a store.
    ///
    /// # Errors
    /// Never, since the namespace is valid; the type is that of the caller's other errors.
    pub fn new(key_values: Arc<dyn KeyValues>) -> Result<Self, Error> {
        let quota = Quota { bytes: u64::MAX, keys: MAX_RECORDS };
        Ok(Self {
            key_values,
            namespace: Namespace { plugin: PluginId::new(NAMESPACE)?, quota },
            waiting: Mutex::default(),
            charged: Notify::new(),
            passing: Mutex::default(),
            writing: tokio::sync::Mutex::default(),
        })
    }

    /// The costs of a session, including those not written yet.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn session_totals(&self, session: &str) -> Result<CostTotals, Error> {
        // During a write, a sum is in neither place.
        let _settled = self.writing.lock().await;
        let mut spent = self.load(&session_key(session)?).await?;
        if let Some(more) = self.waiting.lock().sessions.get(session) {
            spent.merge(more);
        }
        Ok(spent)
    }

    /// The costs of a day, including those not written yet.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn day_totals(&self, day: Day) -> Result<CostTotals, Error> {
        let _settled = self.writing.lock().await;
        let mut spent = self.load(&day_key(day)?).await?;
        if let Some(more) = self.waiting.lock().days.get(&day) {
            spent.merge(more);
        }
        Ok(spent)
    }

    /// What a plugin asked of models on a day: in the calls of turns, and on its own account.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn plugin_totals(&self, plugin: &str, day: Day) -> Result<CostTotals, Error> {
        let _settled = self.writing.lock().await;
        let mut spent = self.load(&plugin_key(PLUGIN, plugin, day)?).await?;
        if let Some(more) = self.waiting.lock().plugins.get(&(day, plugin.to_owned())) {
            spent.merge(more);
        }
        Ok(spent)
    }

    /// The part of it that was on its own account.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn own_totals(&self, plugin: &str, day: Day) -> Result<CostTotals, Error> {
        let _settled = self.writing.lock().await;
        let mut spent = self.load(&plugin_key(OWN, plugin, day)?).await?;
        if let Some(more) = self.waiting.lock().own.get(&(day, plugin.to_owned())) {
            spent.merge(more);
        }
        Ok(spent)
    }

    /// The plugins that asked models on a day, each with its totals.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn plugins_of(&self, day: Day) -> Result<BTreeMap<String, CostTotals>, Error> {
        let prefix = format!("{PLUGIN}{:08}/", day.0);
        let mut names: BTreeSet<String> = self
            .waiting
            .lock()
            .plugins
            .keys()
            .filter(|(of, _)| *of == day)
            .map(|(_, plugin)| plugin.clone())
            .collect();
        let mut page = PageRequest::first(0);
        loop {
            let found = self.key_values.keys(&self.namespace.plugin, &prefix, &page).await?;
            names.extend(
                found.items.iter().filter_map(|key| key.as_str().strip_prefix(&prefix)).map(str::to_owned),
            );
            match found.next {
                Some(next) if names.len() < MAX_PLUGINS => page = PageRequest::after(next, 0),
                _ => break,
            }
        }
        let mut plugins = BTreeMap::new();
        for name in names {
            let totals = self.plugin_totals(&name, day).await?;
            plugins.insert(name, totals);
        }
        Ok(plugins)
    }

    /// Loads into a ledger what was spent today before this process started.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn open_day(&self, ledgers: &Ledgers) -> Result<(), Error> {
        let day = today();
        let spent = self.day_totals(day).await?;
        ledgers.lock().open_day(day, spent.total().cost);
        Ok(())
    }

    /// Loads into a ledger what a session has spent, unless the ledger has it.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn open_session(&self, ledgers: &Ledgers, session: &str) -> Result<(), Error> {
        let spent = self.session_totals(session).await?;
        ledgers.lock().open_session(session, spent.total());
        Ok(())
    }

    /// Loads into a ledger what a sender has spent on vectors today, unless the ledger has it. Returns the session that is charged.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn open_embeddings(&self, ledgers: &Ledgers, sender: &str) -> Result<String, Error> {
        let session = embeddings_session(sender, today());
        let _settled = self.writing.lock().await;
        let mut spent = self.load(&embeddings_key(&session)?).await?;
        if let Some(more) = self.waiting.lock().embeddings.get(&session) {
            spent.merge(more);
        }
        ledgers.lock().open_session(&session, spent.total());
        Ok(session)
    }

    /// Deletes what a sender has spent on vectors, of all days.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn forget_embeddings(&self, sender: &str) -> Result<(), Error> {
        let _writing = self.writing.lock().await;
        let ends = format!("/{sender}");
        self.waiting.lock().embeddings.retain(|session, _| !is_embeddings_of(session, &ends));
        let mut page = PageRequest::first(0);
        loop {
            let found = self.key_values.keys(&self.namespace.plugin, EMBEDDINGS, &page).await?;
            for key in found.items.into_iter().filter(|key| is_embeddings_of(key.as_str(), &ends)) {
                self.key_values.delete(&self.namespace.plugin, &key).await?;
            }
            match found.next {
                Some(next) => page = PageRequest::after(next, 0),
                None => return Ok(()),
            }
        }
    }

    /// Notes that nothing of a session is stored; its costs count to those of its day alone.
    pub fn begin_passing(&self, session: &str) {
        self.passing.lock().insert(session.to_owned());
    }

    /// Such a session is over.
    pub fn end_passing(&self, session: &str) {
        self.passing.lock().remove(session);
    }

    /// Deletes a session's costs.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn forget(&self, session: &str) -> Result<(), Error> {
        let _writing = self.writing.lock().await;
        self.waiting.lock().sessions.remove(session);
        self.key_values.delete(&self.namespace.plugin, &session_key(session)?).await.map(drop)
    }

    /// Writes charges as they arrive, for as long as it is polled.
    pub async fn flush_loop(self: Arc<Self>) {
        if let Err(error) = self.forget_old_days().await {
            tracing::warn!(
                error = talon_error_chain::error_chain(&error),
                "the costs of days long ago are not forgotten"
            );
        }
        loop {
            self.charged.notified().await;
            self.flush().await;
            // Charges that come meanwhile are written together.
            tokio::time::sleep(BETWEEN_WRITES).await;
        }
    }

    /// Writes the charges so far, to the end even if the caller is dropped.
    pub async fn flush(self: &Arc<Self>) {
        let costs = Arc::clone(self);
        // It fails only if the runtime ends, or with a panic, which is in the log.
        let _written = tokio::spawn(async move { costs.flush_pending().await }).await;
    }

    async fn flush_pending(&self) {
        let _writing = self.writing.lock().await;
        let PendingCharges { sessions, days, plugins, own, embeddings } =
            std::mem::take(&mut *self.waiting.lock());
        for (session, spent) in sessions {
            if let Err(error) = self.add(session_key(&session).map_err(Into::into), &spent).await {
                tracing::error!(
                    session,
                    error = talon_error_chain::error_chain(&error),
                    "what a session has cost is not kept"
                );
                self.requeue(|waiting| waiting.sessions.entry(session).or_default().merge(&spent));
            }
        }
        for (session, spent) in embeddings {
            if let Err(error) = self.add(embeddings_key(&session).map_err(Into::into), &spent).await {
                let error = talon_error_chain::error_chain(&error);
                tracing::error!(session, error, "what vectors have cost is not kept");
                self.requeue(|waiting| waiting.embeddings.entry(session).or_default().merge(&spent));
            }
        }
        for (day, spent) in days {
            if let Err(error) = self.add(day_key(day).map_err(Into::into), &spent).await {
                tracing::error!(
                    day = day.0,
                    error = talon_error_chain::error_chain(&error),
                    "what a day has cost is not kept"
                );
                self.requeue(|waiting| waiting.days.entry(day).or_default().merge(&spent));
            }
        }
        for ((day, plugin), spent) in plugins {
            if !self.add_plugin(PLUGIN, &plugin, day, &spent).await {
                self.requeue(|waiting| waiting.plugins.entry((day, plugin)).or_default().merge(&spent));
            }
        }
        for ((day, plugin), spent) in own {
            if !self.add_plugin(OWN, &plugin, day, &spent).await {
                self.requeue(|waiting| waiting.own.entry((day, plugin)).or_default().merge(&spent));
            }
        }
    }

    /// Returns whether it is stored.
    async fn add_plugin(&self, kind: &str, plugin: &str, day: Day, spent: &CostTotals) -> bool {
        let added = self.add(plugin_key(kind, plugin, day).map_err(Into::into), spent).await;
        if let Err(error) = &added {
            let error = talon_error_chain::error_chain(error);
            tracing::error!(plugin, day = day.0, error, "what a plugin has cost is not kept");
        }
        added.is_ok()
    }

    /// Retries what could not be written with the next charge.
    fn requeue(&self, keep: impl FnOnce(&mut PendingCharges)) {
        keep(&mut self.waiting.lock());
    }

    async fn add(&self, key: Result<Key, Error>, more: &CostTotals) -> Result<(), Error> {
        let key = key?;
        let mut spent = self.load(&key).await?;
        spent.merge(more);
        self.key_values.set(&self.namespace, &key, spent.to_bytes()).await
    }

    async fn load(&self, key: &Key) -> Result<CostTotals, Error> {
        let value = self.key_values.get(&self.namespace.plugin, key).await?;
        Ok(value.map_or_else(CostTotals::default, |value| CostTotals::from_bytes(&value)))
    }

    async fn forget_old_days(&self) -> Result<(), Error> {
        for kind in [DAY, PLUGIN, OWN, EMBEDDINGS] {
            self.forget_old(kind).await?;
        }
        Ok(())
    }

    async fn forget_old(&self, kind: &str) -> Result<(), Error> {
        let oldest = Key::new(dated(kind, Day(today().0.saturating_sub(KEPT_DAYS))))?;
        let mut page = PageRequest::first(0);
        loop {
            let found = self.key_values.keys(&self.namespace.plugin, kind, &page).await?;
            for key in found.items.into_iter().filter(|key| *key < oldest) {
                self.key_values.delete(&self.namespace.plugin, &key).await?;
            }
            match found.next {
                Some(next) => page = PageRequest::after(next, 0),
                None => return Ok(()),
            }
        }
    }

    fn charge(
        &self,
        session: &str,
        plugin: Option<&str>,
        model: &ModelRef,
        charge: &talon_llm::route::cost::Charge,
        answered: bool,
    ) {
        let day = today();
        let mut waiting = self.waiting.lock();
        let own = is_own_session(session);
        let is_passing = self.passing.lock().contains(session);
        if let Some(plugin) = plugin {
            let key = (day, plugin.to_owned());
            if own {
                waiting.own.entry(key.clone()).or_default().add(model, charge, answered);
            }
            waiting.plugins.entry(key).or_default().add(model, charge, answered);
        }
        if session.starts_with(EMBEDDINGS_SESSION) {
            if waiting.embeddings.len() < MAX_WAITING || waiting.embeddings.contains_key(session) {
                waiting.embeddings.entry(session.to_owned()).or_default().add(model, charge, answered);
            }
        } else if own || is_passing {
            // It is no session of a person's.
        } else if waiting.sessions.len() < MAX_WAITING || waiting.sessions.contains_key(session) {
            waiting.sessions.entry(session.to_owned()).or_default().add(model, charge, answered);
        }
        waiting.days.entry(day).or_default().add(model, charge, answered);
        drop(waiting);
        self.charged.notify_one();
    }
}

impl EventObserver for Costs {
    fn on_event(&self, event: &Event<'_>) {
        if let Event::Charged { session, plugin, model, charge, answered } = event {
            self.charge(session, *plugin, model, charge, *answered);
        }
    }
}

const DAY: &str = "day/";
/// Before the day and the name of a plugin.
const PLUGIN: &str = "plugin/";
const OWN: &str = "own/";
/// Before the day and a sender.
const EMBEDDINGS: &str = "embeddings/";

fn session_key(session: &str) -> Result<Key, InvalidError> {
    Key::new(format!("session/{session}"))
}

/// With leading zeros, so that keys sort by day.
fn day_key(day: Day) -> Result<Key, InvalidError> {
    Key::new(dated(DAY, day))
}

fn dated(kind: &str, day: Day) -> String {
    format!("{kind}{:08}", day.0)
}

/// The key of the vectors of a sender and a day, by their session.
fn embeddings_key(session: &str) -> Result<Key, InvalidError> {
    Key::new(format!("{EMBEDDINGS}{}", session.strip_prefix(EMBEDDINGS_SESSION).unwrap_or(session)))
}

/// Whether a session or a key is of the sender with whom this ends. A day has eight digits, and a sender may have slashes.
fn is_embeddings_of(text: &str, ends: &str) -> bool {
    /// Both beginnings are of the same length.
    const DAY_BEGINS: usize = EMBEDDINGS.len();
    text.get(DAY_BEGINS + 8..).is_some_and(|sender| sender == ends)
}

fn plugin_key(kind: &str, plugin: &str, day: Day) -> Result<Key, InvalidError> {
    Key::new(format!("{}/{plugin}", dated(kind, day)))
}

#[cfg(test)]
mod tests;

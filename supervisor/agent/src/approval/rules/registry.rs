//! All rules, in memory and on disk.

use std::collections::BTreeMap;

use talon_proto::agent;
use talon_store::{Error, InvalidError, Timestamp};
use tokio::sync::Mutex;

use super::error::RuleError;
use super::limits::{MAX_RULES, MAX_RULES_PER_SENDER};
use super::rule::{ApprovalRule, CompiledRule, RuleScope};
use crate::approval::policy::ConfirmReason;
use crate::approval::record::ApprovalRecord;
use crate::approval::store::ApprovalStore;
use crate::driver::CallToConfirm;

/// All rules. A rule is on disk before it covers a call, and is off the disk before it counts as revoked.
pub(in crate::approval) struct RuleRegistry {
    store: ApprovalStore,
    /// By id, which sorts by age. Locked during a write.
    rules: Mutex<BTreeMap<String, CompiledRule>>,
}

impl RuleRegistry {
    /// Loads the stored rules.
    pub(in crate::approval) async fn open(store: ApprovalStore) -> Result<Self, Error> {
        let stored: Vec<ApprovalRule> = store.load().await?;
        let compiled = stored.into_iter().filter_map(|rule| {
            let id = rule.id.clone();
            let compiled = CompiledRule::new(rule);
            if compiled.is_none() {
                tracing::warn!(target: "agent", rule = id, "a rule has a pattern that cannot be used, and covers nothing");
            }
            Some((id, compiled?))
        });
        Ok(Self { rules: Mutex::new(compiled.collect()), store })
    }

    /// Makes a rule of an approved call, and returns its id.
    pub(in crate::approval) async fn add(
        &self,
        approved: &ApprovalRecord,
        scope: RuleScope,
        patterns: &BTreeMap<String, String>,
        by: &str,
    ) -> Result<String, RuleError> {
        let rule = ApprovalRule::new(approved, scope, patterns, by)?;
        let mut rules = self.rules.lock().await;
        let of_sender = rules.values().filter(|one| one.rule.sender == rule.sender).count();
        if rules.len() >= MAX_RULES || of_sender >= MAX_RULES_PER_SENDER {
            return Err(RuleError::TooMany);
        }
        let id = rule.id.clone();
        self.put(&rule).await?;
        tracing::info!(target: "agent", rule = id, plugin = rule.plugin, action = rule.action, by, ?scope, "a rule lets calls through");
        let compiled = CompiledRule::new(rule).expect("its patterns were compiled when it was made");
        rules.insert(id.clone(), compiled);
        Ok(id)
    }

    /// The id of the rule that lets a call through, which counts as used.
    pub(in crate::approval) async fn use_covering(
        &self,
        call: &CallToConfirm<'_>,
        why: &ConfirmReason,
    ) -> Option<String> {
        let mut rules = self.rules.lock().await;
        let used = rules.values_mut().find(|one| one.covers(call, why))?;
        used.rule.uses = used.rule.uses.saturating_add(1);
        used.rule.used_at = Some(Timestamp::now());
        let rule = used.rule.clone();
        if let Err(error) = self.put(&rule).await {
            tracing::warn!(target: "agent", rule = rule.id, %error, "the use of a rule cannot be stored");
        }
        Some(rule.id)
    }

    /// The rules of a sender, or all, oldest first.
    pub(in crate::approval) async fn list(&self, sender: Option<&str>) -> Vec<agent::ApprovalRule> {
        let rules = self.rules.lock().await;
        let wanted = rules.values().filter(|one| sender.is_none_or(|sender| one.rule.sender == sender));
        wanted.map(|one| one.rule.to_wire()).collect()
    }

    /// Removes a rule, of this sender if one is given.
    pub(in crate::approval) async fn revoke(
        &self,
        id: &str,
        sender: Option<&str>,
    ) -> Result<agent::ApprovalRule, RuleError> {
        let mut rules = self.rules.lock().await;
        let theirs = |one: &&CompiledRule| sender.is_none_or(|sender| one.rule.sender == sender);
        let Some(rule) = rules.get(id).filter(theirs).map(|one| one.rule.to_wire()) else {
            return Err(RuleError::Unknown { id: id.chars().take(40).collect() });
        };
        self.store.remove(id).await?;
        rules.remove(id);
        tracing::info!(target: "agent", rule = id, "a rule was revoked");
        Ok(rule)
    }

    /// Removes the rules of a session that is deleted.
    pub(in crate::approval) async fn forget_session(&self, session: &str) -> Result<u64, Error> {
        self.forget(|rule| rule.session.as_deref() == Some(session)).await
    }

    /// Removes the rules of a sender.
    pub(in crate::approval) async fn forget_sender(&self, sender: &str) -> Result<u64, Error> {
        self.forget(|rule| rule.sender == sender).await
    }

    async fn forget(&self, which: impl Fn(&ApprovalRule) -> bool + Send) -> Result<u64, Error> {
        let mut rules = self.rules.lock().await;
        let ids: Vec<String> =
            rules.values().filter(|one| which(&one.rule)).map(|one| one.rule.id.clone()).collect();
        for id in &ids {
            self.store.remove(id).await?;
            rules.remove(id);
        }
        Ok(u64::try_from(ids.len()).unwrap_or(u64::MAX))
    }

    async fn put(&self, rule: &ApprovalRule) -> Result<(), Error> {
        let value = ApprovalStore::encode(rule).ok_or_else(|| InvalidError {
            what: "the rule",
            why: "is larger than the store takes".to_owned(),
        })?;
        self.store.put(&rule.id, value).await
    }
}

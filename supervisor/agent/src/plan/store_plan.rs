//! The plan in the metadata of its session: so it is read with the session, moved with it and deleted with it.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use talon_store::limits::MAX_METADATA_VALUE_BYTES;
use talon_store::{Session, SessionChange, SessionId, Sessions};
use tokio::sync::Mutex;

use super::change::{Plan, PlanChange, PlanError};

/// The metadata key.
pub const METADATA_KEY: &str = "plan";

/// The plan of one session, as a turn sees it.
#[async_trait]
pub trait SessionPlan: Send + Sync {
    /// Reads it.
    ///
    /// # Errors
    /// [`PlanError::Store`]
    async fn read(&self) -> Result<Plan, PlanError>;

    /// Changes it, and returns it as it is then.
    ///
    /// # Errors
    /// [`PlanError`]; nothing was changed.
    async fn change(&self, change: PlanChange) -> Result<Plan, PlanError>;
}

/// The plan of a session; one that cannot be read counts as none.
#[must_use]
pub fn plan_of(session: &Session) -> Plan {
    session.metadata.get(METADATA_KEY).and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default()
}

/// The plans of all sessions.
pub struct PlanRegistry {
    sessions: Arc<dyn Sessions>,
    /// One change at once: it reads what it writes.
    changes: Mutex<()>,
}

impl PlanRegistry {
    /// The plans of these sessions.
    #[must_use]
    pub fn new(sessions: Arc<dyn Sessions>) -> Arc<Self> {
        Arc::new(Self { sessions, changes: Mutex::default() })
    }

    /// The plan of one session.
    #[must_use]
    pub fn of(self: &Arc<Self>, session: SessionId) -> StorePlan {
        StorePlan { plans: Arc::clone(self), session }
    }
}

impl std::fmt::Debug for PlanRegistry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PlanRegistry").finish_non_exhaustive()
    }
}

/// The plan of one session in the store.
#[derive(Debug, Clone)]
pub struct StorePlan {
    plans: Arc<PlanRegistry>,
    session: SessionId,
}

#[async_trait]
impl SessionPlan for StorePlan {
    async fn read(&self) -> Result<Plan, PlanError> {
        let session = self.plans.sessions.get(self.session).await.map_err(store_error)?;
        Ok(session.as_ref().map(plan_of).unwrap_or_default())
    }

    async fn change(&self, change: PlanChange) -> Result<Plan, PlanError> {
        let _one = self.plans.changes.lock().await;
        let before = self.read().await?;
        let plan = before.with(change)?;
        if plan == before {
            return Ok(plan);
        }
        // The plan has only string keys, so serializing it cannot fail.
        let json = serde_json::to_string(&plan).unwrap_or_default();
        if json.len() > MAX_METADATA_VALUE_BYTES {
            return Err(PlanError::TooLarge { bytes: json.len(), most: MAX_METADATA_VALUE_BYTES });
        }
        let metadata = BTreeMap::from([(METADATA_KEY.to_owned(), Some(json))]);
        let change = SessionChange { metadata, ..SessionChange::default() };
        self.plans.sessions.update(self.session, change).await.map_err(store_error)?;
        Ok(plan)
    }
}

fn store_error(error: talon_store::Error) -> PlanError {
    PlanError::Store { why: error.to_string() }
}

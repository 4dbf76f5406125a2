//! What the overlay may hold unless the operator says otherwise.

/// What `gateway.config_keys` has unless set: how the agent behaves, what models may cost, and what is logged.
pub(crate) const DEFAULT_KEYS: [&str; 7] =
    ["agent", "orchestrator", "shadow", "log.level", "models.default", "models.fallback", "models.budget"];

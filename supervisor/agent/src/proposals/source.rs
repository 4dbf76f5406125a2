//! Where declarations come from.

use async_trait::async_trait;
use talon_proto::plugin::Action;

use crate::hooks::RoleCallError;

/// What one plugin declares now.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Declaration {
    /// Its configured name.
    pub(crate) plugin: String,
    /// Its actions; `None` while it has not declared anything yet.
    pub(crate) actions: Option<Vec<Action>>,
}

/// The declarations of all plugins.
#[async_trait]
pub(crate) trait Declarations: Send + Sync {
    /// What every configured plugin declares now.
    ///
    /// # Errors
    /// [`RoleCallError`] if the supervisor cannot be asked.
    async fn declarations(&self) -> Result<Vec<Declaration>, RoleCallError>;
}

//! Lists, page by page.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Which page is wanted.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(crate) struct PageQuery {
    /// How many at most; up to 200. Without it, 50.
    #[serde(default)]
    pub limit: Option<u32>,
    /// `nextCursor` of the page before; without it, the first page.
    #[serde(default)]
    pub cursor: Option<String>,
}

impl PageQuery {
    /// As host and agent take it: 0 is their default.
    pub(crate) fn size(&self) -> u32 {
        self.limit.unwrap_or_default()
    }

    pub(crate) fn token(&self) -> String {
        self.cursor.clone().unwrap_or_default()
    }
}

/// A page of a list.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Page<T> {
    pub items: Vec<T>,
    /// With which the next page is asked for; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

impl<T> Page<T> {
    /// A page; `next` is empty on the last one.
    pub(crate) fn new(items: impl IntoIterator<Item = T>, next: String) -> Self {
        let next_cursor = Some(next).filter(|next| !next.is_empty());
        Self { items: items.into_iter().collect(), next_cursor }
    }
}

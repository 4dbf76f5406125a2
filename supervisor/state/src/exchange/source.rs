//! The queries of an export, page by page. The only place that lists the store's records.

use talon_store::{
    APPROVAL_RULE_PREFIX, APPROVALS_NAMESPACE, Entry, Error, KeySize, KeyValues, MEDIA_NAMESPACE, Memory,
    MemoryQuery, Message, Notification, NotificationFilter, Occurrence, Outbox, Page, PageRequest, PageToken,
    PluginId, SHADOW_NAMESPACE, Schedule, Session, SessionFilter, SessionId, Sessions, StoredMemory, Usage,
    View,
};

use super::limits::PAGE;

fn page(after: Option<PageToken>) -> PageRequest {
    after.map_or(PageRequest::first(PAGE), |token| PageRequest::after(token, PAGE))
}

pub(super) async fn plugins(
    store: &dyn KeyValues,
    after: Option<PageToken>,
) -> Result<Page<(PluginId, Usage)>, Error> {
    store.plugins(&page(after)).await
}

/// Keys with their values. A page ends early when it grows too large.
pub(super) async fn entries(
    store: &dyn KeyValues,
    plugin: &PluginId,
    after: Option<PageToken>,
) -> Result<Page<Entry>, Error> {
    store.entries(plugin, "", &page(after)).await
}

/// Approval rules.
pub(super) async fn approval_rules(
    store: &dyn KeyValues,
    after: Option<PageToken>,
) -> Result<Page<Entry>, Error> {
    let plugin = PluginId::new(APPROVALS_NAMESPACE)?;
    store.entries(&plugin, APPROVAL_RULE_PREFIX, &page(after)).await
}

/// What the shadow loop keeps.
pub(super) async fn shadow(store: &dyn KeyValues, after: Option<PageToken>) -> Result<Page<Entry>, Error> {
    store.entries(&PluginId::new(SHADOW_NAMESPACE)?, "", &page(after)).await
}

/// Images and files of sessions, in pieces; those of one session stand together.
pub(super) async fn media(store: &dyn KeyValues, after: Option<PageToken>) -> Result<Page<Entry>, Error> {
    store.entries(&PluginId::new(MEDIA_NAMESPACE)?, "", &page(after)).await
}

/// The sizes of the same.
pub(super) async fn media_sizes(
    store: &dyn KeyValues,
    after: Option<PageToken>,
) -> Result<Page<KeySize>, Error> {
    store.sizes(&PluginId::new(MEDIA_NAMESPACE)?, "", &page(after)).await
}

/// Occurrences of jobs, the latest first.
pub(super) async fn occurrences(
    store: &dyn Schedule,
    after: Option<PageToken>,
) -> Result<Page<Occurrence>, Error> {
    store.history(None, &page(after)).await
}

/// Notifications, the latest first.
pub(super) async fn notifications(
    store: &dyn Outbox,
    after: Option<PageToken>,
) -> Result<Page<Notification>, Error> {
    store.list(&NotificationFilter::default(), &page(after)).await
}

pub(super) async fn sessions(store: &dyn Sessions, after: Option<PageToken>) -> Result<Page<Session>, Error> {
    store.list(&SessionFilter::default(), &page(after)).await
}

pub(super) async fn messages(
    store: &dyn Sessions,
    session: SessionId,
    after: Option<PageToken>,
) -> Result<Page<Message>, Error> {
    store.messages(session, View::All, &page(after)).await
}

pub(super) async fn memories(
    store: &dyn Memory,
    after: Option<PageToken>,
) -> Result<Page<StoredMemory>, Error> {
    store.search(&MemoryQuery::default(), &page(after)).await
}

//! Following resources of a plugin.

use std::time::Duration;

use rmcp::ErrorData;
use rmcp::model::ErrorCode;
use serde_json::{Value, json};
use talon_proto::mcp_actions::RESOURCES_SUBSCRIBE;

use super::address::shown;
use super::provider::Providers;
use super::request::Requester;
use super::resource::resource_place;
use crate::answer_meta::meta;

/// A resource that a client wants to follow.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ResourcePlace {
    pub(crate) plugin: String,
    /// As the plugin names it.
    pub(crate) uri: String,
}

impl ResourcePlace {
    /// The resource at a client's address.
    ///
    /// # Errors
    /// There is no such plugin, or it does not say when resources change.
    pub(crate) fn of_client(providers: &Providers, uri: &str) -> Result<Self, ErrorData> {
        let (provider, plugin, theirs) = resource_place(providers, uri)?;
        if !provider.has(RESOURCES_SUBSCRIBE) {
            let text = format!(
                "The plugin {plugin} does not say when {} changes: its server takes no subscriptions, or --allow and --deny \
                 leave them out. Read it again when you need it.",
                shown(uri)
            );
            return Err(ErrorData::invalid_params(text, None));
        }
        Ok(Self { plugin: plugin.to_owned(), uri: theirs.to_owned() })
    }

    /// Its address for a client.
    pub(crate) fn to_client(&self) -> String {
        super::address::to_client(&self.plugin, &self.uri)
    }
}

/// What a plugin says to a subscription.
#[derive(Debug)]
pub(crate) struct SubscribeAnswer {
    /// The positions of resources that are not followed.
    pub(crate) refused: Vec<usize>,
    /// Why, for the client.
    pub(crate) error: ErrorData,
}

/// Has `subscriber` follow exactly these resources of a plugin, for `lease`.
///
/// # Errors
/// The plugin does not take it, or is not there.
pub(crate) async fn subscribe(
    requester: &Requester,
    plugin: &str,
    subscriber: &str,
    uris: &[String],
    lease: Duration,
    timeout: Duration,
) -> Result<SubscribeAnswer, ErrorData> {
    let arguments = json!({ "subscriber": subscriber, "uris": uris, "lease_seconds": lease.as_secs() });
    let answer = requester.call(plugin, RESOURCES_SUBSCRIBE, &arguments, Some(timeout)).await?;
    let said: Value = serde_json::from_str(&answer.structured_content).unwrap_or_default();
    let refused: Option<Vec<usize>> = serde_json::from_value(said["refused"].clone()).ok();
    let Some(refused) = refused else {
        let text = format!("The plugin {plugin} does not say which resources it follows.");
        return Err(ErrorData::internal_error(text, None));
    };
    let about = Value::Object(meta(&answer).0.into_iter().collect());
    let error = ErrorData::new(ErrorCode::RESOURCE_NOT_FOUND, answer.block, Some(about));
    Ok(SubscribeAnswer { refused, error })
}

//! Lists of all plugins together, page by page.

use std::time::Duration;

use rmcp::ErrorData;
use rmcp::model::{
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, MetaObject, Prompt, Resource,
    ResourceTemplate,
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use talon_proto::mcp_actions::{PROMPTS_LIST, RESOURCES_LIST, RESOURCES_TEMPLATES};
use tokio::time::Instant;

use super::address;
use super::provider::Providers;
use super::request::Requester;

/// The most items on a page: as many as tools. Many clients read one page alone.
const MAX_ITEMS: usize = 1000;
/// The most pages of plugins that one page is made of. With some 32 KiB for each it has 4 MiB at most.
const MAX_CALLS: usize = 128;
/// How long one plugin may take for a page, and after how long the page ends with what it has. Half of what the official
/// clients give a request (60 s).
const CALL_TIMEOUT: Duration = Duration::from_secs(10);
const PAGE_TIME: Duration = Duration::from_secs(20);
/// Where the result says which plugins' items are missing, and why.
const LEFT_OUT: &str = "talon/left_out";

/// One page: items, the next cursor, and what is missing.
struct Page<T> {
    items: Vec<T>,
    next: Option<String>,
    meta: Option<MetaObject>,
}

/// What is listed: by which action, under which field, and the field that tells whose an item is.
struct List {
    action: &'static str,
    field: &'static str,
    key: &'static str,
    to_client: fn(&str, &str) -> String,
}

const RESOURCES: List =
    List { action: RESOURCES_LIST, field: "resources", key: "uri", to_client: address::to_client };
const TEMPLATES: List = List {
    action: RESOURCES_TEMPLATES,
    field: "resourceTemplates",
    key: "uriTemplate",
    to_client: address::to_client,
};
const PROMPTS: List =
    List { action: PROMPTS_LIST, field: "prompts", key: "name", to_client: address::prompt_name };

pub(crate) async fn list_resources(
    requester: &Requester,
    providers: &Providers,
    cursor: Option<String>,
) -> Result<ListResourcesResult, ErrorData> {
    let page = RESOURCES.page::<Resource>(requester, providers, cursor).await?;
    let mut result = ListResourcesResult::with_all_items(page.items);
    (result.next_cursor, result.meta) = (page.next, page.meta);
    Ok(result)
}

pub(crate) async fn list_templates(
    requester: &Requester,
    providers: &Providers,
    cursor: Option<String>,
) -> Result<ListResourceTemplatesResult, ErrorData> {
    let page = TEMPLATES.page::<ResourceTemplate>(requester, providers, cursor).await?;
    let mut result = ListResourceTemplatesResult::with_all_items(page.items);
    (result.next_cursor, result.meta) = (page.next, page.meta);
    Ok(result)
}

pub(crate) async fn list_prompts(
    requester: &Requester,
    providers: &Providers,
    cursor: Option<String>,
) -> Result<ListPromptsResult, ErrorData> {
    let page = PROMPTS.page::<Prompt>(requester, providers, cursor).await?;
    let mut result = ListPromptsResult::with_all_items(page.items);
    (result.next_cursor, result.meta) = (page.next, page.meta);
    Ok(result)
}

impl List {
    /// The page at a cursor: a plugin's name, `/`, and that plugin's own cursor.
    async fn page<T: DeserializeOwned>(
        &self,
        requester: &Requester,
        providers: &Providers,
        cursor: Option<String>,
    ) -> Result<Page<T>, ErrorData> {
        let (first, mut theirs) = match cursor.as_deref() {
            None => (String::new(), String::new()),
            Some(cursor) => match cursor.split_once('/') {
                Some((plugin, theirs)) => (plugin.to_owned(), theirs.to_owned()),
                None => {
                    let text = "this cursor is none of this server: list from the beginning";
                    return Err(ErrorData::invalid_params(text, None));
                }
            },
        };
        let until = Instant::now() + PAGE_TIME;
        let (mut items, mut left_out, mut calls, mut next) = (Vec::new(), Map::new(), 0, None);
        let asked = providers.range(first.clone()..).filter(|(_, provider)| provider.has(self.action));
        'plugins: for (plugin, _) in asked {
            if *plugin != first {
                theirs.clear();
            }
            loop {
                if items.len() >= MAX_ITEMS || calls == MAX_CALLS || Instant::now() >= until {
                    next = Some(format!("{plugin}/{theirs}"));
                    break 'plugins;
                }
                calls += 1;
                match self.of_plugin(requester, plugin, &theirs).await {
                    Ok(listed) => {
                        if let Some(missing) = listed.missing {
                            left_out.insert(plugin.clone(), missing.into());
                        }
                        items.extend(listed.items);
                        match listed.next {
                            Some(next) if next != theirs => theirs = next,
                            _ => break,
                        }
                    }
                    Err(error) => {
                        tracing::warn!(plugin, "its {} are not listed: {}", self.field, error.message);
                        left_out.insert(plugin.clone(), error.message.into());
                        break;
                    }
                }
            }
        }
        let meta = (!left_out.is_empty()).then(|| {
            let mut meta = MetaObject::new();
            meta.insert(LEFT_OUT.to_owned(), left_out.into());
            meta
        });
        Ok(Page { items, next, meta })
    }

    /// One page of one plugin.
    async fn of_plugin<T: DeserializeOwned>(
        &self,
        requester: &Requester,
        plugin: &str,
        cursor: &str,
    ) -> Result<PluginPage<T>, ErrorData> {
        let arguments = if cursor.is_empty() { json!({}) } else { json!({ "cursor": cursor }) };
        let answer = requester.call(plugin, self.action, &arguments, Some(CALL_TIMEOUT)).await?;
        let mut listed: Value = serde_json::from_str(&answer.structured_content).unwrap_or_default();
        let Some(found) = listed.get_mut(self.field).and_then(Value::as_array_mut) else {
            return Err(ErrorData::internal_error("its answer holds no list", None));
        };
        let declared = found.len();
        let items: Vec<T> =
            std::mem::take(found).into_iter().filter_map(|item| self.item(plugin, item)).collect();
        let left_out = listed.get("leftOut").and_then(Value::as_u64).unwrap_or(0);
        let left_out = left_out + u64::try_from(declared - items.len()).unwrap_or(0);
        let cut = answer.report.as_ref().is_some_and(|report| report.truncated);
        let missing = match (left_out, cut) {
            (0, false) => None,
            (_, true) => Some("more than guard.max_structured_bytes: its list is cut".to_owned()),
            (count, false) => Some(format!("{count} without a name that can be asked for")),
        };
        let next = listed.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
        Ok(PluginPage { items, next, missing })
    }

    fn item<T: DeserializeOwned>(&self, plugin: &str, mut item: Value) -> Option<T> {
        let theirs = item.get(self.key)?.as_str()?.to_owned();
        let fields = item.as_object_mut()?;
        // A resource without a name has its address for one.
        fields.entry("name").or_insert_with(|| theirs.clone().into());
        fields.insert(self.key.to_owned(), (self.to_client)(plugin, &theirs).into());
        serde_json::from_value(item).ok()
    }
}

struct PluginPage<T> {
    items: Vec<T>,
    next: Option<String>,
    missing: Option<String>,
}

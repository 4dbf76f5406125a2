//! The size of the plugins' state, as `talon-state` reports it through its operator API. Answers are cached
//! for some seconds, and a scrape waits only briefly for a new one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use talon_proto::state::operator_client::OperatorClient;
use talon_proto::state::{ListPluginsRequest, PluginUsage};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};
use tonic::transport::Channel;

use crate::state::StateSupervisor;

/// The shortest time between two requests: the sizes change slowly, and an answer takes a pass over the
/// database.
const MIN_INTERVAL: Duration = Duration::from_secs(10);
/// How long a scrape waits for an answer.
const WAIT: Duration = Duration::from_secs(2);
/// Plugins on one page of the answer, and the number of pages: enough for the maximum number of plugins, and
/// for removed ones that left state.
const PAGE_SIZE: u32 = 500;
const MAX_PAGES: usize = 8;

/// Bytes and keys by plugin.
pub(super) type UsageByPlugin = BTreeMap<String, (u64, u64)>;

/// Requests the sizes.
pub(super) struct StateUsage {
    keeper: Option<(StateSupervisor, OperatorClient<Channel>)>,
    latest: Mutex<Option<(Instant, Option<Arc<UsageByPlugin>>)>>,
}

impl StateUsage {
    /// Uses this supervisor's service. Must be called within a tokio runtime.
    pub(super) fn new(keeper: Option<StateSupervisor>) -> Self {
        let keeper = keeper.map(|keeper| {
            let operator = OperatorClient::new(keeper.channel());
            (keeper, operator)
        });
        Self { keeper, latest: Mutex::default() }
    }

    /// The sizes; `None` if state is off, or the service does not answer.
    pub(super) async fn read(&self) -> Option<Arc<UsageByPlugin>> {
        let (keeper, operator) = self.keeper.as_ref()?;
        let mut latest = self.latest.lock().await;
        if let Some((at, kept)) = latest.as_ref()
            && at.elapsed() < MIN_INTERVAL
        {
            return kept.clone();
        }
        let answers = keeper.status().state.answers();
        let kept = if answers { timeout(WAIT, query(operator.clone())).await.ok().flatten() } else { None };
        let kept = kept.map(Arc::new);
        *latest = Some((Instant::now(), kept.clone()));
        kept
    }
}

async fn query(mut operator: OperatorClient<Channel>) -> Option<UsageByPlugin> {
    let mut kept = UsageByPlugin::new();
    let mut page_token = String::new();
    for _ in 0..MAX_PAGES {
        let request = ListPluginsRequest { page_token, page_size: PAGE_SIZE };
        let page = operator.list_plugins(request).await.ok()?.into_inner();
        kept.extend(
            page.plugins.into_iter().map(|PluginUsage { plugin, bytes, keys }| (plugin, (bytes, keys))),
        );
        page_token = page.next_page_token;
        if page_token.is_empty() {
            break;
        }
    }
    Some(kept)
}

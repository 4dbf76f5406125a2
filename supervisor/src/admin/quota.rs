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

use crate::service::KeeperState;
use crate::state::Keeper;

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
pub(super) type Kept = BTreeMap<String, (u64, u64)>;

/// Requests the sizes.
pub(super) struct Quotas {
    keeper: Option<(Keeper, OperatorClient<Channel>)>,
    latest: Mutex<Option<(Instant, Option<Arc<Kept>>)>>,
}

impl Quotas {
    /// Uses this supervisor's service. Must be called within a tokio runtime.
    pub(super) fn new(keeper: Option<Keeper>) -> Self {
        let keeper = keeper.map(|keeper| {
            let operator = OperatorClient::new(keeper.channel());
            (keeper, operator)
        });
        Self { keeper, latest: Mutex::default() }
    }

    /// The sizes; `None` if state is off, or the service does not answer.
    pub(super) async fn read(&self) -> Option<Arc<Kept>> {
        let (keeper, operator) = self.keeper.as_ref()?;
        let mut latest = self.latest.lock().await;
        if let Some((at, kept)) = latest.as_ref()
            && at.elapsed() < MIN_INTERVAL
        {
            return kept.clone();
        }
        let serves = keeper.status().state == KeeperState::Serving;
        let kept = if serves { timeout(WAIT, ask(operator.clone())).await.ok().flatten() } else { None };
        let kept = kept.map(Arc::new);
        *latest = Some((Instant::now(), kept.clone()));
        kept
    }
}

async fn ask(mut operator: OperatorClient<Channel>) -> Option<Kept> {
    let mut kept = Kept::new();
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

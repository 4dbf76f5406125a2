//! What plugins keep, as `talon-state` says. It is asked like an operator asks, for some seconds' use, and not waited for
//! longer than a scrape can bear.

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

/// The shortest time between two questions: what is kept changes slowly, and the answer takes a pass over the database.
const MIN_INTERVAL: Duration = Duration::from_secs(10);
/// How long an answer may take before the scrape goes on without.
const WAIT: Duration = Duration::from_secs(2);
/// Plugins on one page of the answer, and how many pages are asked for: as many as may be registered, and those that are gone
/// and left something.
const PAGE_SIZE: u32 = 500;
const MAX_PAGES: usize = 8;

/// By plugin: bytes and keys.
pub(super) type Kept = BTreeMap<String, (u64, u64)>;

/// Asks for what is kept.
pub(super) struct Quotas {
    keeper: Option<(Keeper, OperatorClient<Channel>)>,
    latest: Mutex<Option<(Instant, Option<Arc<Kept>>)>>,
}

impl Quotas {
    /// Asks the service of this keeper. Must be called within a tokio runtime.
    pub(super) fn new(keeper: Option<Keeper>) -> Self {
        let keeper = keeper.map(|keeper| {
            let operator = OperatorClient::new(keeper.channel());
            (keeper, operator)
        });
        Self { keeper, latest: Mutex::default() }
    }

    /// What is kept; `None` if nothing is, or the service does not say.
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

//! Sessions in which something happened while nobody told it.

use talon_proto::agent::ListSessionsRequest;
use tonic::Status;

use crate::app::App;
use crate::identity::Caller;

/// The largest page of the agent.
const PAGE: u32 = 200;
/// The most sessions that are looked at, the newest. 2,000: ten questions to the agent.
const MAX_PAGES: usize = 10;

/// The caller's sessions that changed since then, in milliseconds since 1970.
pub(super) async fn changed_since(app: &App, caller: &Caller, unix_ms: u64) -> Result<Vec<String>, Status> {
    let mut agent = app.backends.agent(caller);
    let mut changed = Vec::new();
    let mut request = ListSessionsRequest { page_size: PAGE, ..ListSessionsRequest::default() };
    for _ in 0..MAX_PAGES {
        let page = agent.list_sessions(request.clone()).await?.into_inner();
        let of_page = page.sessions.into_iter().filter(|session| session.updated_unix_ms >= unix_ms);
        changed.extend(of_page.map(|session| session.id));
        if page.next_page_token.is_empty() {
            break;
        }
        request.page_token = page.next_page_token;
    }
    Ok(changed)
}

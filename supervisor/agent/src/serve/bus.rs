//! `WatchBus`: what the event bus carries.

use futures_util::StreamExt as _;
use futures_util::stream::try_unfold;
use talon_event_bus::{Delivery, KindSet};
use talon_proto::agent::watch_bus_response::Item;
use talon_proto::agent::{WatchBusRequest, WatchBusResponse};
use tonic::Status;

use super::client::Client;
use super::service::{BusItems, Service};

/// The most words of one request that select kinds; the protocol documents it, too. There are fewer kinds.
const MAX_KINDS: usize = 64;

impl Service {
    pub(super) async fn watch_bus(
        &self,
        client: &Client,
        request: WatchBusRequest,
    ) -> Result<BusItems, Status> {
        let WatchBusRequest { kinds, everybody } = request;
        if kinds.len() > MAX_KINDS {
            return Err(Status::invalid_argument(format!(
                "{} kinds are more than {MAX_KINDS}: name families, such as tool.*, or none for all",
                kinds.len()
            )));
        }
        let kinds = KindSet::selected(kinds.iter().map(String::as_str))
            .map_err(|error| Status::invalid_argument(error.to_string()))?;
        if everybody {
            client.require_operator("to watch everybody's events")?;
        }
        let bus = &self.agent.bus;
        let limits = self.agent.setup().settings.agent.limits;
        let place = self.bus_follows.enter(&client.sender, &limits)?;
        let subscription = match everybody {
            true => bus.subscribe(kinds),
            false => bus.subscribe_for(kinds, client.sender.clone()),
        };
        let subscription = subscription.map_err(|error| Status::resource_exhausted(error.to_string()))?;
        let agent = self.agent.clone();
        let items = try_unfold((subscription, place), move |(mut subscription, place)| {
            let agent = agent.clone();
            async move {
                tokio::select! {
                    biased;
                    () = agent.turns.ending() => Err(Status::unavailable(
                        "the agent is ending: watch again; events in between are missing",
                    )),
                    next = subscription.next() => Ok(next.map(|next| (item(next), (subscription, place)))),
                }
            }
        });
        Ok(items.boxed())
    }
}

fn item(delivery: Delivery) -> WatchBusResponse {
    let item = match delivery {
        Delivery::Event(event) => Item::Event((*event).clone()),
        Delivery::Missed(missed) => Item::Missed(missed),
    };
    WatchBusResponse { item: Some(item) }
}

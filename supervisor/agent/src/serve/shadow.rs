//! The shadow loop: observations, ghosts, and what people decide about them.

use futures_util::stream::BoxStream;
use talon_proto::agent::{
    DecideGhostRequest, FollowGhostsRequest, GetGhostRequest, GetGhostResponse, GetShadowStatsRequest,
    GetShadowStatsResponse, Ghost, GhostEvent, ListGhostsRequest, ListGhostsResponse, ListShadowLogRequest,
    ListShadowLogResponse, ObserveRequest, ObserveResponse, PauseShadowRequest, ShadowState,
};
use tonic::Status;

use super::client::Client;
use super::service::Service;

/// The events of one follower.
pub(super) type GhostEvents = BoxStream<'static, Result<GhostEvent, Status>>;

fn off() -> Status {
    Status::failed_precondition("the shadow loop is off")
}

macro_rules! off {
    ($($method:ident, $request:ty, $response:ty;)+) => {
        impl Service {
            $(pub(super) async fn $method(&self, _: &Client, _: $request) -> Result<$response, Status> {
                Err(off())
            })+
        }
    };
}

off! {
    observe, ObserveRequest, ObserveResponse;
    list_ghosts, ListGhostsRequest, ListGhostsResponse;
    get_ghost, GetGhostRequest, GetGhostResponse;
    decide_ghost, DecideGhostRequest, Ghost;
    pause_shadow, PauseShadowRequest, ShadowState;
    get_shadow_stats, GetShadowStatsRequest, GetShadowStatsResponse;
    list_shadow_log, ListShadowLogRequest, ListShadowLogResponse;
    follow_ghosts, FollowGhostsRequest, GhostEvents;
}

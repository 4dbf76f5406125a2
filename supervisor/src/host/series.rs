//! `GetSeries`: numbers over time, for plots.

use talon_proto::host::{GetSeriesRequest, GetSeriesResponse};
use tonic::{Request, Response, Status};

use super::context::HostContext;
use crate::config::Role;
use crate::peer::require;
use crate::series::STEP;

pub(super) fn get(
    context: &HostContext,
    request: &Request<GetSeriesRequest>,
) -> Result<Response<GetSeriesResponse>, Status> {
    require(request, Role::Operate)?;
    let Some(series) = &context.info.series else {
        return Err(Status::failed_precondition(
            "numbers over time are kept for the gateway: set gateway.enabled",
        ));
    };
    let step_ms = u32::try_from(STEP.as_millis()).unwrap_or(u32::MAX);
    let samples = series.after(request.get_ref().after_unix_ms);
    Ok(Response::new(GetSeriesResponse { step_ms, samples }))
}

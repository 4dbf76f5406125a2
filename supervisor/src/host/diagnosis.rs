//! `Diagnose`: what `talon doctor` finds.

use talon_proto::host::{DiagnoseRequest, DiagnoseResponse};
use tonic::{Request, Response, Status};

use super::context::HostContext;
use crate::config::Role;
use crate::peer::require;
use crate::socket::HOST_SOCKET_NAME;
use crate::to_wire::status_text;

pub(super) async fn diagnose(
    context: &HostContext,
    request: Request<DiagnoseRequest>,
) -> Result<Response<DiagnoseResponse>, Status> {
    require(&request, Role::Operate)?;
    let socket = context.info.runtime_dir.join(HOST_SOCKET_NAME);
    let report = context.diagnoses.report(&socket, context.info.config_file.as_deref()).await;
    report.map(Response::new).map_err(|error| Status::unavailable(status_text(error.to_string())))
}

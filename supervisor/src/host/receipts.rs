//! Verifies receipts: anybody who may call may ask, since a verdict reveals nothing that is not in the receipt.

use talon_proto::host::{VerifyReceiptsRequest, VerifyReceiptsResponse};
use tonic::{Request, Response, Status};

use super::context::HostContext;
use crate::config::Role;
use crate::peer::require;

/// The most receipts of one request: a microsecond each. A longer list is sent in several.
const MAX_RECEIPTS: usize = 1_000;

pub(super) fn verify(
    context: &HostContext,
    request: Request<VerifyReceiptsRequest>,
) -> Result<Response<VerifyReceiptsResponse>, Status> {
    require(&request, Role::Call)?;
    let VerifyReceiptsRequest { receipts } = request.into_inner();
    if receipts.len() > MAX_RECEIPTS {
        return Err(Status::invalid_argument(format!(
            "{} receipts are too many for one request: send at most {MAX_RECEIPTS}, several times",
            receipts.len()
        )));
    }
    let verdict = |receipt| context.info.receipts.verify(receipt).into();
    Ok(Response::new(VerifyReceiptsResponse { verdicts: receipts.iter().map(verdict).collect() }))
}

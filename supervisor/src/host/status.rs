//! `GetStatus`: the supervisor's own state.

use talon_plugin::discover::Refused;
use talon_proto::host::{GetStatusRequest, GetStatusResponse, RefusedPlugin};
use talon_sanitize::Tally;
use tonic::{Request, Response, Status};

use super::peer::require;
use super::plugins::unix_ms;
use super::service::HostService;
use crate::config::Role;

pub(super) fn status(
    service: &HostService,
    request: &Request<GetStatusRequest>,
) -> Result<Response<GetStatusResponse>, Status> {
    let permitted = require(request, Role::Call)?;
    let about = &service.about;
    // Names of files are what whoever put them there made them.
    let line = |text: &str| service.sanitizer().line(text, &mut Tally::default()).into_owned();
    let refused = |refused: &Refused| RefusedPlugin {
        name: line(&refused.name),
        path: line(&refused.path.to_string_lossy()),
        reason: line(&refused.reason),
    };
    Ok(Response::new(GetStatusResponse {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        started_unix_ms: unix_ms(about.started),
        runtime_dir: about.runtime_dir.display().to_string(),
        data_dir: about.data_dir.display().to_string(),
        config_file: about.config_file.as_ref().map(|file| file.display().to_string()).unwrap_or_default(),
        state: if service.door.is_draining() { "draining" } else { "serving" }.to_owned(),
        plugins: service.plugins(),
        not_enforced: about.not_enforced.clone(),
        refused: about.refused.iter().map(refused).collect(),
        you: Some((&permitted.peer).into()),
    }))
}

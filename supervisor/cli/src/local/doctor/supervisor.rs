//! Checks of the running supervisor, based on its status.

use talon_proto::host::{GetStatusRequest, GetStatusResponse};

use super::check::{Check, CheckBuilder, Section};
use super::{agent, shadow};
use crate::client::connection::Client;
use crate::global::Global;
use crate::host_socket::HostSocket;

const CHECK: CheckBuilder = CheckBuilder(Section::Supervisor, "supervisor");

/// The checks, and the supervisor's status if it runs.
pub(super) async fn checks(global: &Global) -> (Vec<Check>, Option<GetStatusResponse>) {
    let none = |says: String| (vec![CHECK.warn(says)], None);
    let Ok(path) = HostSocket::new(global).path() else {
        return none("not looked for: the configuration does not say where".into());
    };
    let mut client = match Client::connect_to(path.clone()).await {
        Ok(client) => client,
        Err(failure) => return none(failure.to_string()),
    };
    let status = match client.host.get_status(GetStatusRequest {}).await {
        Ok(status) => status.into_inner(),
        Err(status) => return none(client.failure(&status).to_string()),
    };
    let role = status.you.as_ref().map_or("", |you| you.role.as_str());
    let says = format!(
        "talon {} (pid {}) is {} on {}; your role there is {role}",
        status.version,
        status.pid,
        status.state,
        path.display()
    );
    let mut checks = vec![CHECK.ok(says)];
    checks.extend(version(&status));
    checks.extend(config(&status));
    checks.extend(refused(&status));
    checks.push(plugins(&status));
    checks.extend(agent::running(&status));
    checks.extend(agent::memory_vectors(&status));
    checks.extend(shadow::checks(&status));
    (checks, Some(status))
}

fn version(status: &GetStatusResponse) -> Option<Check> {
    const OWN: &str = env!("CARGO_PKG_VERSION");
    (status.version != OWN).then(|| {
        CheckBuilder(Section::Supervisor, "version")
            .warn(format!("it is talon {}, and this is talon {OWN}", status.version))
            .with_reason("what was installed does not run yet")
            .with_fix("restart it: `systemctl restart talon`, or `talon serve --takeover` without systemd; plugins go on")
    })
}

fn config(status: &GetStatusResponse) -> Option<Check> {
    (!status.config_problem.is_empty()).then(|| {
        CheckBuilder(Section::Supervisor, "last config")
            .fail(format!("refused: {}", status.config_problem))
            .with_reason("the one before it holds, and the next start would fail")
            .with_fix("mend it, look with `talon config check`, then `talon reload`")
    })
}

fn refused(status: &GetStatusResponse) -> impl Iterator<Item = Check> {
    let of = CheckBuilder(Section::Supervisor, "refused");
    status
        .refused
        .iter()
        .map(move |refused| of.warn(format!("{}: {} ({})", refused.name, refused.reason, refused.path)))
}

/// Only counts them: `talon status` lists each.
fn plugins(status: &GetStatusResponse) -> Check {
    let of = CheckBuilder(Section::Supervisor, "plugins");
    let wrong = |state: &str| matches!(state, "failed" | "refused" | "unhealthy" | "backoff" | "quarantined");
    let names: Vec<&str> = status
        .plugins
        .iter()
        .filter(|plugin| wrong(&plugin.state))
        .map(|plugin| plugin.name.as_str())
        .collect();
    if names.is_empty() {
        return of.ok(format!("{}, none of them failed", status.plugins.len()));
    }
    of.warn(format!("{} of {} are not well: {}", names.len(), status.plugins.len(), names.join(", ")))
        .with_fix("`talon status` says why, and what to do for each")
}

//! How a service is run: what the supervisor's own services have in common.

use std::path::PathBuf;
use std::time::Duration;

use talon_plugin::service::{Home, ServiceSpec};
use talon_plugin_config::PluginName;
use talon_plugin_config::spec::SandboxSettings;

/// The longest wait before a restart. More attempts do not help if its database or program is broken, but an
/// operator who has repaired it should not wait longer.
const BACKOFF_MAX: Duration = Duration::from_secs(10);
/// How long a service may take to stop: it allows itself 5 s for that. A running turn of the agent does not
/// finish within such a time; it is in the journal, and continues at the next start.
const GRACE: Duration = Duration::from_secs(8);

/// The spec of a service under `name`, with this `home`. `backoff_initial` is the first wait before a
/// restart; it doubles with each early exit.
pub(crate) fn service_spec(
    name: PluginName,
    program: PathBuf,
    home: Home,
    sandbox: SandboxSettings,
    readable_paths: Vec<PathBuf>,
    backoff_initial: Duration,
) -> ServiceSpec {
    ServiceSpec {
        name,
        program,
        args: Vec::new(),
        home,
        sandbox,
        readable_paths,
        grace_period: GRACE,
        backoff_initial,
        backoff_max: BACKOFF_MAX,
    }
}

//! The implementations of the checks, one file per group.

mod capabilities;
mod execute;
mod handshake;
mod health;
mod init;
mod start;
mod stop;

use talon_plugin::probe::Stage;
use talon_plugin_config::spec::Dialect;

use crate::check::{Applicability, Check, Test};
use crate::harness::{Finding, Harness};

/// Performs one check. `jail.strict` is performed by the runner, because it repeats the others.
pub(crate) async fn perform(check: &Check, bench: &mut Harness<'_>) -> Finding {
    if let Some(finding) = not_applicable(check.about, bench) {
        return finding;
    }
    let found = match check.test {
        Test::StartHandshake => Ok(start::handshake(bench)),
        Test::StartStrayOutput => Ok(start::stray_output(bench)),
        Test::StartSingleLine => start::single_line(bench).await,
        Test::StartCookie => Ok(start::cookie(bench).await),
        Test::HandshakeLine => Ok(handshake::stage_finding(bench, Stage::HandshakeLine)),
        Test::HandshakeVersion => Ok(handshake::stage_finding(bench, Stage::Version)),
        Test::HandshakeUnofferedVersion => Ok(handshake::unoffered_version(bench).await),
        Test::HandshakeAddress => Ok(handshake::stage_finding(bench, Stage::Address)),
        Test::HandshakeSocketMode => Ok(handshake::socket_mode(bench)),
        Test::HandshakeServes => Ok(handshake::serves(bench)),
        Test::InitSettings => Ok(init::settings(bench)),
        Test::InitEmptyConfig => Ok(init::empty_config(bench).await),
        Test::InitUnknownKeys => Ok(init::unknown_keys(bench).await),
        Test::CapabilitiesAnswered => Ok(capabilities::answered(bench)),
        Test::CapabilitiesNames => capabilities::names(bench),
        Test::CapabilitiesDuplicates => capabilities::duplicates(bench),
        Test::CapabilitiesSchemas => capabilities::schemas(bench),
        Test::CapabilitiesSizes => capabilities::sizes(bench),
        Test::CapabilitiesStable => capabilities::stable(bench).await,
        Test::HealthServing => health::serving(bench).await,
        Test::HealthUnknownService => health::unknown_service(bench).await,
        Test::ExecuteEchoId => execute::answers::echo_id(bench).await,
        Test::ExecuteDecodes => execute::answers::decodes(bench).await,
        Test::ExecuteUnknownAction => execute::arguments::unknown_action(bench).await,
        Test::ExecuteMissingArguments => execute::arguments::missing_arguments(bench).await,
        Test::ExecuteUnknownArgument => execute::arguments::unknown_argument(bench).await,
        Test::ExecuteHostileArguments => execute::arguments::hostile_arguments(bench).await,
        Test::ExecuteConcurrent => execute::concurrency::concurrent(bench).await,
        Test::ExecuteCancelled => execute::concurrency::cancelled(bench).await,
        Test::ExecuteDeadline => execute::concurrency::deadline(bench).await,
        Test::ExecuteLargeAnswer => execute::answers::large_answer(bench).await,
        Test::HealthAfterCalls => health::after_calls(bench).await,
        Test::OutputFlood => start::flood(bench),
        Test::StopShutdown => stop::shutdown(bench).await,
        Test::StopSigterm => stop::sigterm(bench).await,
        Test::StopNothingLeft => stop::nothing_left(bench).await,
        Test::JailStrict => Ok(Finding::pass()),
    };
    found.unwrap_or_else(|early| early)
}

/// Why a check does not apply to this plugin.
fn not_applicable(about: Applicability, bench: &Harness<'_>) -> Option<Finding> {
    if about != Applicability::All && bench.is_bridged() {
        return Some(Finding::Skip("a bridge shakes hands for this plugin".into()));
    }
    let other = match (about, bench.dialect()) {
        (Applicability::GoPlugin, Some(dialect)) => dialect == Dialect::OpenTalon,
        (Applicability::GoPlugin, None) => bench.spec.dialect == Dialect::OpenTalon,
        _ => false,
    };
    other.then(|| Finding::Skip("plugins of OpenTalon's dialect have none of this".into()))
}

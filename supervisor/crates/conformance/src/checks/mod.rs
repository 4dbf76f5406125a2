//! The implementations of the checks, one file per group.

mod capabilities;
mod events;
mod execute;
mod handshake;
mod health;
mod init;
mod output;
mod start;
mod stop;

use talon_plugin::probe::Stage;
use talon_plugin_config::spec::Dialect;

use crate::check::{Applicability, Check, Test};
use crate::harness::{Finding, Harness};

/// Performs one check. `jail.strict` is performed by the runner, because it repeats the others.
pub(crate) async fn perform(check: &Check, harness: &mut Harness<'_>) -> Finding {
    if let Some(finding) = not_applicable(check.about, harness) {
        return finding;
    }
    let found = match check.test {
        Test::StartHandshake => Ok(start::handshake(harness)),
        Test::StartStrayOutput => Ok(start::stray_output(harness)),
        Test::StartSingleLine => start::single_line(harness).await,
        Test::StartCookie => Ok(start::cookie(harness).await),
        Test::HandshakeLine => Ok(handshake::stage_finding(harness, Stage::HandshakeLine)),
        Test::HandshakeVersion => Ok(handshake::stage_finding(harness, Stage::Version)),
        Test::HandshakeUnofferedVersion => Ok(handshake::unoffered_version(harness).await),
        Test::HandshakeAddress => Ok(handshake::stage_finding(harness, Stage::Address)),
        Test::HandshakeSocketMode => Ok(handshake::socket_mode(harness)),
        Test::HandshakeServes => Ok(handshake::serves(harness)),
        Test::InitSettings => Ok(init::settings(harness)),
        Test::InitEmptyConfig => Ok(init::empty_config(harness).await),
        Test::InitUnknownKeys => Ok(init::unknown_keys(harness).await),
        Test::CapabilitiesAnswered => Ok(capabilities::answered(harness)),
        Test::CapabilitiesNames => capabilities::names(harness),
        Test::CapabilitiesDuplicates => capabilities::duplicates(harness),
        Test::CapabilitiesSchemas => capabilities::schemas(harness),
        Test::CapabilitiesSizes => capabilities::sizes(harness),
        Test::CapabilitiesStable => capabilities::stable(harness).await,
        Test::CapabilitiesRoles => capabilities::roles(harness),
        Test::HealthServing => health::serving(harness).await,
        Test::HealthUnknownService => health::unknown_service(harness).await,
        Test::ExecuteEchoId => execute::answers::echo_id(harness).await,
        Test::ExecuteDecodes => execute::answers::decodes(harness).await,
        Test::ExecuteRoles => execute::roles::roles(harness).await,
        Test::ExecuteStorageRevisions => Box::pin(execute::storage::revisions(harness)).await,
        Test::ExecuteStorageScans => Box::pin(execute::storage::scans(harness)).await,
        Test::ExecuteStorageBytes => Box::pin(execute::storage::bytes(harness)).await,
        Test::ExecuteStorageRefusals => Box::pin(execute::storage::refusals(harness)).await,
        Test::ExecuteStorageDurable => Box::pin(execute::storage::durable(harness)).await,
        Test::ExecuteUnknownAction => execute::arguments::unknown_action(harness).await,
        Test::ExecuteMissingArguments => execute::arguments::missing_arguments(harness).await,
        Test::ExecuteUnknownArgument => execute::arguments::unknown_argument(harness).await,
        Test::ExecuteHostileArguments => Box::pin(execute::arguments::hostile_arguments(harness)).await,
        Test::ExecuteConcurrent => execute::concurrency::concurrent(harness).await,
        Test::ExecuteCancelled => execute::concurrency::cancelled(harness).await,
        Test::ExecuteDeadline => execute::concurrency::deadline(harness).await,
        Test::ExecuteLargeAnswer => execute::answers::large_answer(harness).await,
        Test::HealthAfterCalls => health::after_calls(harness).await,
        Test::EventsResent => Box::pin(events::resent(harness)).await,
        Test::OutputCalls => output::calls(harness).await,
        Test::OutputFlood => start::flood(harness),
        Test::StopShutdown => stop::shutdown(harness).await,
        Test::StopSigterm => stop::sigterm(harness).await,
        Test::StopNothingLeft => stop::nothing_left(harness).await,
        Test::JailStrict => Ok(Finding::pass()),
    };
    found.unwrap_or_else(|early| early)
}

/// Why a check does not apply to this plugin.
fn not_applicable(about: Applicability, harness: &Harness<'_>) -> Option<Finding> {
    if about != Applicability::All && harness.is_bridged() {
        return Some(Finding::Skip("a bridge shakes hands for this plugin".into()));
    }
    let other = match (about, harness.dialect()) {
        (Applicability::GoPlugin, Some(dialect)) => dialect == Dialect::OpenTalon,
        (Applicability::GoPlugin, None) => harness.spec.dialect == Dialect::OpenTalon,
        _ => false,
    };
    other.then(|| Finding::Skip("plugins of OpenTalon's dialect have none of this".into()))
}

//! What runs scripts: the directory, the workers, and the loop that looks for changes.

use std::sync::{Arc, Weak};
use std::time::Duration;

use talon_lua_engine::{CallError, Context, Outcome, Point};
use talon_sdk::model::Model;
use talon_sdk::{Notifier, State, ToolError, tracing};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::counters::{Counters, Counts};
use crate::host_requests::{HostRequests, Models};
use crate::pool::{KILL_GRACE, Pool};
use crate::reporter::Reporter;
use crate::scripts::{Loaded, Scripts};
use crate::settings::Settings;

/// How often the directory is looked at. 200 milliseconds: a saved file is live before its author has changed the window. Looking is
/// a listing, and one question for each file.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);

/// What runs scripts.
pub(crate) struct Service {
    scripts: Scripts,
    counters: Arc<Counters>,
    settings: Arc<Settings>,
    /// `None` on a host that serves none.
    state: Option<State>,
}

impl Service {
    /// Loads all scripts, and goes on looking for changes if the settings say so, and for loads to try again.
    pub(crate) async fn start(settings: Settings, notifier: Notifier) -> Result<Arc<Self>, ToolError> {
        settings.check().map_err(ToolError::new)?;
        let program = std::env::current_exe()
            .map_err(|error| ToolError::new(format!("the path of this program is not known: {error}")))?;
        let (settings, counters) = (Arc::new(settings), Arc::new(Counters::default()));
        let pool = Pool::new(program, settings.workers, KILL_GRACE, Arc::clone(&counters));
        let scripts = Scripts::new(Arc::clone(&settings), pool, Arc::clone(&counters));
        let service = Arc::new(Self {
            scripts,
            counters,
            settings: Arc::clone(&settings),
            state: State::from_env().ok(),
        });
        let _ = service.scripts.look().await;
        let reporter = Reporter::new(notifier.clone());
        reporter.report(&service.scripts);
        let _watching = tokio::spawn(watch(Arc::downgrade(&service), notifier, reporter));
        Ok(service)
    }

    pub(crate) fn scripts(&self) -> &Scripts {
        &self.scripts
    }

    pub(crate) fn counts(&self) -> Counts {
        self.counters.counts()
    }

    /// Calls a script. Who drops the future ends the call.
    pub(crate) async fn call(
        &self,
        name: &str,
        loaded: Arc<Loaded>,
        point: Point,
        context: Context,
        model: Option<Model>,
    ) -> Result<Outcome, CallError> {
        let models = Models {
            model,
            default: self.settings.default_model.clone(),
            timeout: self.settings.llm_timeout_of(name),
        };
        let requests = HostRequests::new(name, self.state.clone(), models);
        let (done, answer) = oneshot::channel();
        let cancelled = CancellationToken::new();
        let guard = cancelled.clone().drop_guard();
        // The exchange with the worker is followed to its end, whoever waits for it.
        let _following = tokio::spawn(async move {
            let outcome = loaded.machine.call(point, &context, &requests, &cancelled).await;
            // Nobody may wait any more.
            let _ = done.send(outcome);
        });
        let outcome = answer.await;
        let _ended = guard.disarm();
        outcome.unwrap_or_else(|_| {
            let text = "the call was lost: this is a defect of talon-lua";
            Err(CallError::new(talon_lua_engine::FailureKind::Worker, text))
        })
    }
}

/// Looks at the directory again and again if the settings say so, loads again what is due, and tells the host what changed, as long
/// as the service is there.
async fn watch(service: Weak<Service>, notifier: Notifier, reporter: Reporter) {
    loop {
        tokio::time::sleep(LOOK_INTERVAL).await;
        let Some(service) = service.upgrade() else { return };
        let changed = service.settings.watch && service.scripts.look().await;
        if service.scripts.retry().await || changed {
            tracing::debug!("what the scripts offer has changed");
            notifier.capabilities_changed();
        }
        reporter.report(&service.scripts);
    }
}

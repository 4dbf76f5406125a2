//! `talon exec`: one call to one plugin file, without a daemon.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use serde_json::{Map, Value};
use talon_guard::{Call, Origin};
use talon_plugin::{Events, Plugin, Registry, State};
use talon_plugin_config::spec::PluginSpec;
use talon_sanitize::{Sanitizer, Settings};
use talon_supervisor::config::Config;
use talon_supervisor::dispatch::{Dispatcher, capabilities};
use talon_supervisor::host;
use talon_supervisor::serve::state_service;
use talon_supervisor::state;

use crate::arguments::{Arguments, CollectedArguments, key_value, timeout};
use crate::client::plugin::show::actions;
use crate::exit;
use crate::failure::Failure;
use crate::global::Global;
use crate::local::echo::Echo;
use crate::local::scratch_environment::{self, EntryKey, ScratchEnvironment};
use crate::local::state::scratch;
use crate::output::Output;
use crate::runtime::{not_started, run};
use crate::signals::termination_signal;
use crate::{answer, json};

/// Of Talon's own log, only show why the guard rejected an answer. The answer itself does not say so, because
/// its reader may be a model. `TALON_LOG` overrides this.
const LOG_LEVEL: &str = "off,talon_guard::rescue=warn";
/// How long the plugin may take to exit after the call. Its author waits for it.
const STOP_GRACE: Duration = Duration::from_secs(2);

/// Run one action of one plugin file under a private supervisor, then exit.
///
/// The plugin runs in the same jail and behind the same guard stack as under `talon serve`, so that an author
/// needs no daemon. It is started once and never restarted; its log goes to stderr. Its state is discarded
/// afterwards.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon exec ./target/debug/hello greet name=World
  talon exec ./my-plugin --list
  talon exec ./vendor-plugin --cookie VENDOR_PLUGIN=7f3a --service vendor.v1.Tools --list
  talon exec ./mcp-server --entry dialect=mcp --entry 'args=[\"--stdio\"]' --list
  talon exec ./plugins/csv-query query sql='select 1' --config-json '{\"root\": \"/srv/data\"}'")]
pub(crate) struct ExecArgs {
    /// An executable file, or a directory with a plugin.yaml.
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// The action to run.
    #[arg(value_name = "ACTION", required_unless_present = "list")]
    action: Option<String>,
    #[command(flatten)]
    arguments: Arguments,
    /// List the plugin's actions instead of running one.
    #[arg(long, conflicts_with_all = ["action", "raw", "timeout"])]
    list: bool,
    /// The object that the plugin gets at initialisation; overrides its plugin.yaml.
    #[arg(long, value_name = "JSON", value_parser = scratch_environment::object)]
    config_json: Option<Map<String, Value>>,
    /// The magic cookie of a go-plugin program that insists on one of its own.
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    cookie: Option<(String, String)>,
    /// The full name of its gRPC service, if it serves PluginService's methods under a name of its own.
    #[arg(long, value_name = "NAME")]
    service: Option<String>,
    /// A key of what its entry in a configuration would say, such as dialect=mcp or sandbox.network=full; the value in
    /// YAML. May be repeated.
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    entry: Vec<(String, String)>,
    /// Print only the guarded content, without the envelope; an error goes to stderr.
    #[arg(long)]
    raw: bool,
    /// Wait at most this long, such as 500ms or 2m.
    #[arg(long, value_name = "DURATION", value_parser = timeout)]
    timeout: Option<Duration>,
}

impl ExecArgs {
    pub(crate) fn run(mut self, global: &Global, out: &mut Output) -> Result<u8, Failure> {
        // Before anything is started: a mistake fails early, and reading stdin can be interrupted.
        let args = std::mem::take(&mut self.arguments).collect()?;
        let tried = ScratchEnvironment::with_entry("talon exec", global, &self.path, &self.entry_keys())?;
        let _flush = talon_telemetry::init(&global.telemetry(LOG_LEVEL))
            .map_err(|error| Failure::usage(error.to_string()))?;
        let spec = scratch_environment::single_run(tried.plugin(&self.path)?, self.config_json.as_ref());
        // The plugin's process is supervised on other threads than the one that waits for the answer.
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .map_err(not_started)?;
        run(runtime, Box::pin(self.supervise(tried.config.clone(), spec, args, out)))
    }

    /// The keys of the plugin's entry that flags set, each with its flag and its value in YAML.
    fn entry_keys(&self) -> Vec<EntryKey> {
        let key =
            |flag, key: &str, value: &str| EntryKey { flag, key: key.to_owned(), value: value.to_owned() };
        let cookie = self.cookie.iter().flat_map(|(name, value)| {
            [key("--cookie", "cookie.key", name), key("--cookie", "cookie.value", value)]
        });
        let service = self.service.iter().map(|name| key("--service", "service", name));
        let entry = self.entry.iter().map(|(name, value)| key("--entry", name, value));
        cookie.chain(service).chain(entry).collect()
    }

    async fn supervise(
        self,
        config: Arc<Config>,
        spec: PluginSpec,
        args: CollectedArguments,
        out: &mut Output,
    ) -> Result<u8, Failure> {
        let failed = |error: &dyn std::fmt::Display| Failure::failed(error.to_string());
        let terminated = termination_signal().map_err(|error| failed(&error))?;
        let stage = Arc::new(talon_jail::Stage::from_current_exe().map_err(|error| failed(&error))?);
        let events = Events::new();
        // Without the state service's program the plugin gets "no state", which it has to handle anyway.
        let keeper = state::find_program(config.state.program.as_deref())
            .ok()
            .and_then(|_| state_service::supervisor(&config, &events));
        let mut settings = state_service::settings(&config, keeper.as_ref(), None);
        settings.uid_range = settings.uid_range.map(|range| scratch::uids(&range, std::process::id()));
        let uids = settings.uid_range.clone();
        let registry = Registry::new(settings, stage, events.clone()).map_err(|error| failed(&error))?;
        if let Some(keeper) = &keeper {
            state_service::run(&config, uids, &registry, keeper, config.sandbox.mode.into())
                .map_err(|error| failed(&error))?;
        }
        let patterns = Settings { forbidden_patterns: config.guard.forbidden_patterns.clone() };
        let sanitizer =
            Sanitizer::new(&patterns).map_err(|error| Failure::new(exit::CONFIG, error.to_string()))?;
        let dispatcher = Dispatcher::new(registry.clone(), config, sanitizer, events);
        let plugin = registry.register(spec).map_err(|error| failed(&error))?;
        let mut echo = Echo::start(&plugin);
        let result = tokio::select! {
            result = self.ask(&plugin, &dispatcher, args, out) => result,
            () = terminated => Err(Failure::new(exit::HOST_FAULT, "interrupted")),
        };
        registry.shutdown(STOP_GRACE).await;
        echo.finish().await;
        result
    }

    async fn ask(
        self,
        plugin: &Plugin,
        dispatcher: &Dispatcher,
        args: CollectedArguments,
        out: &mut Output,
    ) -> Result<u8, Failure> {
        plugin.settled().await;
        let snapshot = plugin.snapshot();
        let (State::Ready, Some(capability)) = (snapshot.state, plugin.capability()) else {
            let reason = snapshot.reason.unwrap_or_else(|| "no reason was given".into());
            // The rest of the reason is advice for plugins under a long-running supervisor.
            let reason = reason.split(", and restart_on_failure is off").next().unwrap_or_default();
            return Err(Failure::new(
                exit::HOST_FAULT,
                format!("{} did not start: {reason}", self.path.display()),
            ));
        };
        for text in &snapshot.not_enforced {
            tracing::info!("not enforced: {text}");
        }
        let Some(action) = self.action else {
            let known = capabilities::sanitize(&capability.raw, &dispatcher.sanitizer());
            if out.is_json() {
                out.json(&json::fields(&known));
            } else {
                actions(&known, &[], out);
            }
            return Ok(exit::OK);
        };
        let id = ulid::Ulid::generate().to_string();
        let mut call = Call::new(id.clone(), plugin.name().as_str(), action, Origin::Person);
        call.set_arguments(args.texts, &args.json);
        call.timeout = self.timeout;
        let accepted = call.accepted;
        let guarded = dispatcher.call(call).await.map_err(|error| Failure::failed(error.to_string()))?;
        Ok(answer::print(&host::response(id, guarded, accepted.elapsed()), self.raw, out))
    }
}

//! The supervisor of a soak and its plugins: a healthy one with two processes, one that is replaced again and
//! again, one that stores state, and one that is killed.

use talon_tests::{Builder, Supervisor, program};

use super::totals::SoakTotals;

pub(super) const SAYS: &str = "says";
pub(super) const REPLACED: &str = "replaced";
pub(super) const KEEPS: &str = "keeps";
pub(super) const KILLED: &str = "killed";

/// All plugins.
const PLUGINS: [&str; 4] = [SAYS, REPLACED, KEEPS, KILLED];

/// For the plugin that is killed every few seconds: the deaths fall out of the restart window, so that it is
/// never given up and the backoff never grows.
const RESTART_POLICY: &str = "max_restarts: 4096\nrestart_window: 1s\nbackoff_initial: 50ms";

/// A supervisor, and its current configuration.
pub(super) struct Fixture {
    pub(super) supervisor: Supervisor,
    text: String,
    turn: u32,
}

pub(super) async fn start() -> Fixture {
    let plugin = program("talon-bench-plugin");
    let builder = Builder::new()
        .plugin(SAYS, &plugin, &[], "instances: 2\nconnections: 2")
        .plugin(REPLACED, &plugin, &[], &plugin_settings(0))
        .plugin(KEEPS, &plugin, &[], "")
        .plugin(KILLED, &plugin, &[], RESTART_POLICY);
    // The supervisor stores the plugins' log lines; in its own log they would fill our memory.
    let supervisor = builder.env("TALON_LOG", "info,plugin=warn").start().await;
    let text = std::fs::read_to_string(supervisor.config()).expect("it was just written");
    Fixture { supervisor, text, turn: 0 }
}

/// The settings that change: alternately one that a running process can apply, and one that needs a new
/// process.
fn plugin_settings(turn: u32) -> String {
    format!("timeout: {}s\nenv: {{ TURN: \"{}\" }}", 30 + turn % 2, turn / 2)
}

impl Fixture {
    /// Changes the configuration and reloads it.
    pub(super) async fn reload(&mut self, tally: &SoakTotals) {
        let indented = |turn| plugin_settings(turn).replace('\n', "\n        ");
        self.turn += 1;
        let text = self.text.replace(&indented(self.turn - 1), &indented(self.turn));
        if text == self.text {
            tally.problem("the configuration does not change".to_owned());
        }
        self.text = text;
        if let Err(error) = std::fs::write(self.supervisor.config(), &self.text) {
            tally.problem(format!("the configuration was not written: {error}"));
        }
        let answer = self.supervisor.client.reload(false).await;
        if !answer.accepted {
            tally.problem(format!("a configuration was refused: {:?}", answer.problems));
        }
        for change in
            answer.plugins.iter().filter(|change| matches!(change.what.as_str(), "kept" | "refused"))
        {
            tally.problem(format!("{} was {}: {}", change.plugin, change.what, change.reason));
        }
    }

    /// Checks that every plugin serves at the end.
    pub(super) async fn all_ready(&self, tally: &SoakTotals) {
        for plugin in PLUGINS {
            let found = self.supervisor.client.wait_state(plugin, "ready").await;
            if found.calls_in_flight + found.calls_waiting > 0 {
                tally.problem(format!("{plugin} has calls without callers: {found:?}"));
            }
        }
    }

    /// Checks that nothing is left behind.
    pub(super) async fn stop_cleanly(self, tally: &SoakTotals) {
        let stopped = self.supervisor.stop().await;
        if !stopped.status.success() || !stopped.processes.is_empty() || !stopped.sockets.is_empty() {
            let (processes, sockets) = (&stopped.processes, &stopped.sockets);
            tally.problem(format!("its end: {}, left behind: {processes:?} {sockets:?}", stopped.status));
        }
    }
}

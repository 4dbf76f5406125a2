//! The state behind the screen. Pure: commands and updates go in, and the view reads it.

use std::time::Duration;

use talon_sanitize::Sanitized;

use crate::order::{self, SortKey};
use crate::rates::AllRates;
use crate::reading::{Plugin, Reading};
use crate::timeline::{MAX_EVENTS, MAX_LINES, Timeline, TimelineEntry};

/// Polling intervals to choose from with + and −.
pub(crate) const INTERVALS_MS: [u64; 7] = [250, 500, 1000, 2000, 5000, 10_000, 60_000];
/// The longest filter: the maximum length of a plugin's name.
const MAX_FILTER_CHARS: usize = 64;
/// Lines per page up or page down.
const PAGE: usize = 10;

/// An update from the supervisor.
#[derive(Debug)]
pub(crate) enum Update {
    /// The supervisor answered.
    Reading(Box<Reading>),
    /// The supervisor does not answer, for this reason.
    Gone(Sanitized),
    Event(TimelineEntry),
    /// A log line of a plugin.
    Line(TimelineEntry),
    /// The actions of a plugin; its log lines follow.
    PluginDetails(Sanitized, Vec<Sanitized>),
    /// Why the supervisor refuses events and log lines.
    Withheld(Sanitized),
}

/// A command from the keyboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Command {
    Quit,
    /// This many lines down, or up if negative.
    Move(isize),
    First,
    Last,
    Open,
    /// Closes what was opened last.
    Close,
    Help,
    Pause,
    Sort(SortKey),
    NextSort,
    Reverse,
    Filter,
    Type(char),
    Erase,
    Accept,
    Faster,
    Slower,
    PageUp,
    PageDown,
}

/// Whether the supervisor answers.
#[derive(Debug, Clone)]
pub(crate) enum ConnectionState {
    Waiting,
    Live,
    Gone(Sanitized),
}

/// Everything that the screen shows.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) connection: ConnectionState,
    pub(crate) reading: Option<Reading>,
    pub(crate) rates: AllRates,
    pub(crate) paused: bool,
    pub(crate) sort_key: SortKey,
    pub(crate) reversed: bool,
    pub(crate) filter: String,
    /// Whether keys edit the filter.
    pub(crate) typing: bool,
    /// The selected plugin, by name, so that the cursor stays on it while rows move.
    pub(crate) selected: Option<Sanitized>,
    /// Whether its details are open.
    pub(crate) open: bool,
    pub(crate) help: bool,
    /// How many lines the timeline is scrolled back.
    pub(crate) back: usize,
    pub(crate) events: Timeline,
    /// The plugin that the lines and actions below belong to.
    pub(crate) about: Sanitized,
    pub(crate) actions: Vec<Sanitized>,
    pub(crate) lines: Timeline,
    pub(crate) withheld: Option<Sanitized>,
    pub(crate) interval: Duration,
    /// When a restart of the supervisor was noticed, in milliseconds since 1970.
    pub(crate) restarted_unix_ms: Option<u64>,
    /// Whether to exit.
    pub(crate) over: bool,
}

impl Model {
    pub(crate) fn new(interval: Duration) -> Self {
        Self {
            connection: ConnectionState::Waiting,
            reading: None,
            rates: AllRates::default(),
            paused: false,
            sort_key: SortKey::default(),
            reversed: false,
            filter: String::new(),
            typing: false,
            selected: None,
            open: false,
            help: false,
            back: 0,
            events: Timeline::new(MAX_EVENTS),
            about: Sanitized::default(),
            actions: Vec::new(),
            lines: Timeline::new(MAX_LINES),
            withheld: None,
            interval,
            restarted_unix_ms: None,
            over: false,
        }
    }

    /// The visible plugins.
    pub(crate) fn shown(&self) -> Vec<&Plugin> {
        let Some(reading) = &self.reading else { return Vec::new() };
        order::shown(reading, &self.rates, &self.filter, self.sort_key, self.reversed)
    }

    /// The selected plugin and its index among the visible ones.
    pub(crate) fn current(&self) -> Option<(usize, &Plugin)> {
        let name = self.selected.as_ref()?;
        self.shown().into_iter().enumerate().find(|(_, plugin)| plugin.name == name.as_str())
    }

    /// The plugin whose log lines and actions to follow.
    pub(crate) fn watched_plugin(&self) -> Option<String> {
        let (_, plugin) = self.current().filter(|_| self.open)?;
        Some(plugin.name.as_str().to_owned())
    }

    pub(crate) fn apply(&mut self, told: Update) {
        match told {
            Update::Reading(reading) => {
                self.connection = ConnectionState::Live;
                let started =
                    |reading: &Reading| (reading.supervisor.pid, reading.supervisor.started_unix_ms);
                if self.reading.as_ref().is_some_and(|before| started(before) != started(&reading)) {
                    self.restarted_unix_ms = Some(reading.unix_ms);
                    // While paused the screen would keep showing outdated data.
                    self.paused = false;
                }
                if !self.paused {
                    self.apply_reading(*reading);
                }
            }
            Update::Gone(why) => self.connection = ConnectionState::Gone(why),
            Update::Event(happened) => self.events.push(happened),
            Update::Line(happened) => {
                // A queued line may belong to the plugin that was selected before.
                if happened.plugin == self.about.as_str() {
                    self.lines.push(happened);
                }
            }
            Update::PluginDetails(plugin, actions) => {
                self.lines.clear();
                self.withheld = None;
                (self.about, self.actions) = (plugin, actions);
            }
            Update::Withheld(why) => self.withheld = Some(why),
        }
    }

    fn apply_reading(&mut self, reading: Reading) {
        self.rates =
            self.reading.as_ref().map(|before| AllRates::between(before, &reading)).unwrap_or_default();
        self.reading = Some(reading);
        self.keep_selected();
    }

    /// Keeps the cursor on a visible plugin, if there is one.
    fn keep_selected(&mut self) {
        if self.current().is_none() {
            self.selected = self.shown().first().map(|plugin| plugin.name.clone());
        }
    }

    pub(crate) fn execute(&mut self, command: Command) {
        match command {
            Command::Quit => self.over = true,
            Command::Move(by) => self.step(by),
            Command::First => self.step(isize::MIN),
            Command::Last => self.step(isize::MAX),
            Command::Open => self.open = self.selected.is_some(),
            Command::Close => self.close(),
            Command::Help => self.help = !self.help,
            Command::Pause => self.paused = !self.paused,
            Command::Sort(by) => (self.sort_key, self.reversed) = (by, by == self.sort_key && !self.reversed),
            Command::NextSort => (self.sort_key, self.reversed) = (self.sort_key.next(), false),
            Command::Reverse => self.reversed = !self.reversed,
            Command::Filter => self.typing = true,
            Command::Type(typed) => {
                if self.filter.chars().count() < MAX_FILTER_CHARS && !typed.is_control() {
                    self.filter.push(typed);
                }
                self.keep_selected();
            }
            Command::Erase => {
                self.filter.pop();
                self.keep_selected();
            }
            Command::Accept => self.typing = false,
            Command::Faster => self.change_interval(|now, other| other < now, true),
            Command::Slower => self.change_interval(|now, other| other > now, false),
            Command::PageUp => self.back = self.back.saturating_add(PAGE).min(MAX_EVENTS + MAX_LINES),
            Command::PageDown => self.back = self.back.saturating_sub(PAGE),
        }
    }

    fn close(&mut self) {
        if self.help {
            self.help = false;
        } else if self.typing || !self.filter.is_empty() {
            self.typing = false;
            self.filter.clear();
        } else {
            self.open = false;
        }
        self.keep_selected();
    }

    fn step(&mut self, by: isize) {
        let at = self.current().map_or(0, |(at, _)| at);
        let shown = self.shown();
        let to = at.saturating_add_signed(by).min(shown.len().saturating_sub(1));
        let name = shown.get(to).map(|plugin| plugin.name.clone());
        if name.as_deref() != self.selected.as_deref() {
            self.back = 0;
        }
        self.selected = name;
    }

    fn change_interval(&mut self, fits: impl Fn(u64, u64) -> bool, largest: bool) {
        let now = u64::try_from(self.interval.as_millis()).unwrap_or(u64::MAX);
        let mut others = INTERVALS_MS.into_iter().filter(|other| fits(now, *other));
        let next = if largest { others.next_back() } else { others.next() };
        if let Some(next) = next {
            self.interval = Duration::from_millis(next);
        }
    }
}

#[cfg(test)]
#[path = "model_tests.rs"]
pub(crate) mod tests;

//! The terminal: switched to raw mode while the screen is shown, and restored however this program ends.
//!
//! It is restored when [`Screen`] is dropped, and by a panic hook (set by ratatui, so that the panic message
//! stays readable). The signals that end a program are handled here. After SIGKILL only `reset` helps.

use std::io;
use std::time::Duration;

use crossterm::event::{Event, EventStream, KeyCode, KeyModifiers};
use ratatui::DefaultTerminal;
use rustix::process::{Signal, kill_current_process_group};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;
use tokio_stream::StreamExt as _;

use crate::feed::Feed;
use crate::keys;
use crate::model::Model;
use crate::view::draw;
use crate::view::theme::Theme;

/// The shortest time between two frames. Twenty per second look smooth, and bound the cost of a flood of
/// events.
const FRAME: Duration = Duration::from_millis(50);

/// The terminal in raw mode.
pub(crate) struct Screen(DefaultTerminal);

impl Screen {
    pub(crate) fn enter() -> io::Result<Self> {
        Ok(Self(ratatui::try_init()?))
    }

    fn draw(&mut self, model: &Model, theme: Theme) -> io::Result<()> {
        self.0.draw(|frame| draw(frame, model, theme)).map(|_| ())
    }

    /// Suspends on Ctrl-Z: restores the terminal for the shell until this process is in the foreground again.
    fn suspend(&mut self) -> io::Result<()> {
        ratatui::try_restore()?;
        self.0.show_cursor()?;
        kill_current_process_group(Signal::TSTP)?;
        // Initialise anew, so that everything is redrawn. Clearing the screen instead would query the
        // cursor position, and fail if the terminal does not answer.
        self.0 = ratatui::try_init()?;
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
        // If the terminal is gone, this fails, which does not matter.
        let _ = self.0.show_cursor();
    }
}

/// Shows the model until the user quits.
///
/// # Errors
/// When the terminal cannot be used, or went away.
pub(crate) async fn run(mut model: Model, mut feed: Feed, theme: Theme) -> io::Result<()> {
    let mut ends = TerminationSignals::watch()?;
    let mut screen = Screen::enter()?;
    let mut input = EventStream::new();
    let mut next_frame = Instant::now();
    let mut stale = true;
    while !model.over {
        tokio::select! {
            event = input.next() => match event {
                Some(Ok(event)) => {
                    if is_suspend(&event) {
                        // The thread that reads keys must not consume the shell's input.
                        drop(input);
                        screen.suspend()?;
                        input = EventStream::new();
                    }
                    handle_event(&mut model, &event);
                    stale = true;
                }
                Some(Err(error)) => return Err(error),
                None => return Err(io::ErrorKind::UnexpectedEof.into()),
            },
            told = feed.next() => {
                match told {
                    Ok(told) => model.apply(told),
                    Err(ended) => match ended.try_into_panic() {
                        Ok(panic) => std::panic::resume_unwind(panic),
                        Err(ended) => return Err(io::Error::other(ended)),
                    },
                }
                while let Some(told) = feed.try_next() {
                    model.apply(told);
                }
                stale = true;
            }
            () = tokio::time::sleep_until(next_frame), if stale => {
                screen.draw(&model, theme)?;
                stale = false;
                next_frame = Instant::now() + FRAME;
            }
            () = ends.wait() => break,
        }
        feed.set_targets(model.interval, model.watched_plugin());
    }
    Ok(())
}

fn handle_event(model: &mut Model, event: &Event) {
    if let Event::Key(key) = event
        && let Some(command) = keys::command(model, key)
    {
        model.execute(command);
    }
}

fn is_suspend(event: &Event) -> bool {
    matches!(event, Event::Key(key)
        if key.code == KeyCode::Char('z') && key.modifiers.contains(KeyModifiers::CONTROL))
}

/// Signals that end the program.
struct TerminationSignals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
    hangup: tokio::signal::unix::Signal,
}

impl TerminationSignals {
    fn watch() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    async fn wait(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
            _ = self.hangup.recv() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;
    use crate::host::Host;

    /// Run by the test below in a terminal: panics while the screen is active.
    #[tokio::test]
    #[ignore = "it panics, in a terminal that the test below makes"]
    async fn panicking_child() {
        let host = Host::new("/nonexistent/host.sock".into());
        let mut feed = Feed::start(&host, FRAME);
        feed.spawn(async { panic!("on purpose") });
        let _ = run(Model::new(FRAME), feed, Theme { color: true }).await;
    }

    // Promises: CLI-31
    #[test]
    fn a_panic_gives_the_terminal_back_before_it_is_told() {
        let own = std::env::current_exe().unwrap();
        let child = format!("{} --exact screen::tests::panicking_child --ignored --nocapture", own.display());
        let output = Command::new("script")
            .args(["--quiet", "--command", &format!("{child}; stty -a"), "/dev/null"])
            .env("TERM", "xterm")
            .stdin(Stdio::null())
            .output()
            .expect("script is installed");
        let text = String::from_utf8_lossy(&output.stdout);
        let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what:?} is missing: {text:?}"));
        let (entered, left) = (at("\u{1b}[?1049h"), at("\u{1b}[?1049l"));
        assert!(entered < left && left < at("on purpose"), "{text:?}");
        assert!(text.contains("\u{1b}[?25h"), "the cursor is seen again: {text:?}");
        assert!(text.contains(" icanon") && text.contains(" echo ") && !text.contains("-icanon"), "{text:?}");
    }
}

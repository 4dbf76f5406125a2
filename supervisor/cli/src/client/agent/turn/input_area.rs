//! The last row of the terminal, where a person types while a turn runs.
//!
//! The terminal neither edits nor echoes meanwhile; keys are read by a thread that a closed pipe stops, as in
//! `line_input`. Ctrl-C stays a signal.

use std::io::{self, Write as _, stdin};
use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use tokio::sync::mpsc;

use super::typed_line::{TypedAhead, TypedLine};
use crate::bottom_row::BottomRow;

/// Bytes of one read: a large paste comes in several.
const READ_BYTES: usize = 4096;
/// Reads that may wait: the thread stops reading then, and the terminal keeps the rest.
const MAX_PENDING: usize = 16;
const BRACKETED_PASTE: [&str; 2] = ["\u{1b}[?2004l", "\u{1b}[?2004h"];

/// The area. Dropping it restores the terminal.
pub(super) struct InputArea {
    line: TypedLine,
    row: BottomRow,
    keys: mpsc::Receiver<Vec<u8>>,
    before: Termios,
    /// Closing it stops the thread.
    _stop: OwnedFd,
}

impl InputArea {
    /// Begins with what was typed before; `None` where the terminal has no room for it, or cannot do it.
    pub(super) fn start(typed: &TypedAhead) -> Option<Self> {
        let before = tcgetattr(stdin()).ok()?;
        let (stopped, stop) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).ok()?;
        let row = BottomRow::reserve()?;
        let mut raw = before.clone();
        raw.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        tcsetattr(stdin(), OptionalActions::Now, &raw).ok()?;
        bracketed_paste(true);
        let (sender, keys) = mpsc::channel(MAX_PENDING);
        let thread = std::thread::Builder::new().name("keys".to_owned());
        let mut area = Self { line: TypedLine::new(typed.clone()), row, keys, before, _stop: stop };
        // Without its thread the area is dropped, which restores the terminal.
        thread.spawn(move || read(&stopped, &sender)).ok()?;
        area.draw();
        Some(area)
    }

    /// The next keys; pends for ever once the terminal is gone. Cancel safe.
    pub(super) async fn keys(&mut self) -> Vec<u8> {
        match self.keys.recv().await {
            Some(keys) => keys,
            None => std::future::pending().await,
        }
    }

    pub(super) fn push(&mut self, keys: &[u8]) {
        self.line.push(keys);
        self.draw();
    }

    pub(super) fn draw(&mut self) {
        let shown = self.line.shown(BottomRow::columns());
        self.row.draw(&shown);
    }

    /// Ends it; returns what was typed.
    pub(super) fn finish(mut self) -> TypedAhead {
        while let Ok(keys) = self.keys.try_recv() {
            self.line.push(&keys);
        }
        std::mem::take(&mut self.line).into_typed()
    }
}

impl Drop for InputArea {
    fn drop(&mut self) {
        bracketed_paste(false);
        // The terminal may be gone.
        let _ = tcsetattr(stdin(), OptionalActions::Now, &self.before);
    }
}

/// Marks pastes, so that their line breaks do not end a message.
fn bracketed_paste(on: bool) {
    let _ = io::stderr().lock().write_all(BRACKETED_PASTE[usize::from(on)].as_bytes());
}

fn read(stopped: &OwnedFd, keys: &mpsc::Sender<Vec<u8>>) {
    let stdin = stdin();
    loop {
        let mut waits = [PollFd::new(&stdin, PollFlags::IN), PollFd::new(stopped, PollFlags::IN)];
        if retry_on_intr(|| poll(&mut waits, None)).is_err() || !waits[1].revents().is_empty() {
            return;
        }
        if waits[0].revents().is_empty() {
            continue;
        }
        let mut bytes = [0; READ_BYTES];
        match rustix::io::read(&stdin, &mut bytes) {
            Ok(read @ 1..) if keys.blocking_send(bytes[..read].to_vec()).is_ok() => {}
            Err(Errno::INTR | Errno::AGAIN) => {}
            Ok(_) | Err(_) => return,
        }
    }
}

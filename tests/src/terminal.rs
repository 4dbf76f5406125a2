//! A pty, and what a terminal on it would show.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::num::NonZeroU16;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};

/// Only a limit for hangs, not an expectation of speed.
const WAIT_TIMEOUT: Duration = Duration::from_secs(60);

/// A program in a new terminal. Dropping it kills the program.
pub struct Terminal {
    ours: OwnedFd,
    /// Kept open, so that the terminal's settings can be read after the program's end.
    theirs: OwnedFd,
    child: Child,
    seen: Arc<Mutex<ScreenState>>,
    before: Termios,
}

struct ScreenState {
    screen: vt100::Parser,
    /// All output, for what a screen does not show.
    bytes: Vec<u8>,
}

impl Terminal {
    /// Starts a program as the leader of a new session in a terminal of that size.
    ///
    /// # Panics
    /// When there are no terminals, or no `setsid`.
    #[must_use]
    pub fn start(command: &mut Command, columns: u16, rows: u16) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let ours = openpt(flags).expect("there are terminals");
        grantpt(&ours).and_then(|()| unlockpt(&ours)).expect("it is our own");
        let theirs = ioctl_tiocgptpeer(&ours, flags).expect("it has another end");
        tcsetwinsize(&ours, size(columns, rows)).expect("a terminal has a size");
        let before = tcgetattr(&theirs).expect("a terminal has settings");
        let end = || Stdio::from(theirs.try_clone().expect("a descriptor can be copied"));
        // Giving a process a controlling terminal takes a fork; setsid does it, and execs the program.
        let mut all = Command::new("setsid");
        all.arg("--ctty").arg(command.get_program()).args(command.get_args());
        for (key, value) in command.get_envs() {
            match value {
                Some(value) => all.env(key, value),
                None => all.env_remove(key),
            };
        }
        all.env("TERM", "xterm-256color").env_remove("COLUMNS").env_remove("LINES");
        let child = all.stdin(end()).stdout(end()).stderr(end()).spawn().expect("setsid is installed");
        let seen = Arc::new(Mutex::new(ScreenState {
            screen: vt100::Parser::new(at_least_one(rows), at_least_one(columns), 0),
            bytes: Vec::new(),
        }));
        let mut from = File::from(ours.try_clone().expect("a descriptor can be copied"));
        let to = seen.clone();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(read @ 1..) = from.read(&mut buffer) {
                let mut seen = to.lock();
                seen.screen.process(&buffer[..read]);
                seen.bytes.extend_from_slice(&buffer[..read]);
            }
        });
        Self { ours, theirs, child, seen, before }
    }

    /// Presses keys, as the bytes that a terminal sends for them.
    ///
    /// # Panics
    /// When the terminal is gone.
    pub fn press(&self, keys: &str) {
        let mut ours = File::from(self.ours.try_clone().expect("a descriptor can be copied"));
        ours.write_all(keys.as_bytes()).expect("it is open");
    }

    /// Makes the window another size, as a user does with the mouse.
    ///
    /// # Panics
    /// When the terminal is gone.
    pub fn resize(&self, columns: u16, rows: u16) {
        self.seen.lock().screen.screen_mut().set_size(at_least_one(rows), at_least_one(columns));
        tcsetwinsize(&self.ours, size(columns, rows)).expect("it is open");
    }

    /// Sends the program a signal.
    ///
    /// # Panics
    /// When it is gone.
    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id().cast_signed()).expect("a pid is no zero");
        kill_process(pid, signal).expect("it runs");
    }

    /// What is on the screen, a line a row.
    ///
    /// # Panics
    /// Never: the reader does not panic.
    #[must_use]
    pub fn contents(&self) -> String {
        self.seen.lock().screen.screen().contents()
    }

    /// Inspects the screen with its colours.
    ///
    /// # Panics
    /// Never: the reader does not panic.
    pub fn look<T>(&self, at: impl FnOnce(&vt100::Screen) -> T) -> T {
        at(self.seen.lock().screen.screen())
    }

    /// All that the program ever wrote.
    ///
    /// # Panics
    /// Never: the reader does not panic.
    #[must_use]
    pub fn written(&self) -> Vec<u8> {
        self.seen.lock().bytes.clone()
    }

    /// Waits until the screen satisfies the predicate, and returns its text.
    ///
    /// # Panics
    /// With the screen, when that does not come.
    pub async fn wait_for(&self, what: &str, wanted: impl Fn(&str) -> bool) -> String {
        let mut pause = tokio::time::interval(Duration::from_millis(10));
        let waited = tokio::time::timeout(WAIT_TIMEOUT, async {
            loop {
                let contents = self.contents();
                if wanted(&contents) {
                    return contents;
                }
                pause.tick().await;
            }
        });
        waited.await.unwrap_or_else(|_| panic!("never seen: {what}\n{}", self.contents()))
    }

    /// Waits until the screen holds a text.
    pub async fn wait_text(&self, text: &str) -> String {
        self.wait_for(text, |contents| contents.contains(text)).await
    }

    /// Waits for the program's end.
    ///
    /// # Panics
    /// With the screen, when it does not end.
    pub async fn ended(&mut self) -> ExitStatus {
        let mut pause = tokio::time::interval(Duration::from_millis(10));
        let child = &mut self.child;
        let waited = tokio::time::timeout(WAIT_TIMEOUT, async {
            loop {
                if let Some(status) = child.try_wait().expect("it is our child") {
                    return status;
                }
                pause.tick().await;
            }
        });
        let Ok(status) = waited.await else { panic!("it does not end:\n{}", self.contents()) };
        status
    }

    /// Waits until the terminal is as it was before the program: the program's last output may still be in
    /// flight.
    ///
    /// # Panics
    /// With what is not restored.
    pub async fn wait_restored(&self) {
        let mut pause = tokio::time::interval(Duration::from_millis(10));
        let waited = tokio::time::timeout(WAIT_TIMEOUT, async {
            while !self.not_restored().is_empty() {
                pause.tick().await;
            }
        });
        waited.await.unwrap_or_else(|_| panic!("not restored: {:?}", self.not_restored()));
    }

    /// Which settings of the terminal differ from those before the program: empty when it was restored.
    ///
    /// # Panics
    /// When the terminal is gone.
    #[must_use]
    pub fn not_restored(&self) -> Vec<&'static str> {
        let now = tcgetattr(&self.theirs).expect("it is open");
        let mut wrong = Vec::new();
        if now.local_modes != self.before.local_modes
            || now.input_modes != self.before.input_modes
            || now.output_modes != self.before.output_modes
        {
            wrong.push("its modes");
        }
        self.look(|screen| {
            if screen.alternate_screen() {
                wrong.push("the alternate screen");
            }
            if screen.hide_cursor() {
                wrong.push("the cursor");
            }
            if screen.mouse_protocol_mode() != vt100::MouseProtocolMode::None {
                wrong.push("the mouse");
            }
        });
        wrong
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended already; only we wait for it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn at_least_one(size: u16) -> NonZeroU16 {
    NonZeroU16::new(size).expect("a terminal has a size")
}

fn size(columns: u16, rows: u16) -> Winsize {
    Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}

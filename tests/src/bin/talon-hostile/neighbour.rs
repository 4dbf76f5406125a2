//! Another plugin, which must keep serving during an attack: a separate thread calls it all the time.

use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::listeners::echo;

/// How long an answer may take. Not a matter of speed: an answer takes well below a millisecond, and a few on
/// two cores with four spinning programs; a neighbour that an attack blocks does not answer at all.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// The interval between two calls.
const QUESTION_INTERVAL: Duration = Duration::from_millis(4);

/// How a neighbour answered during an attack.
#[derive(Debug, Default, Clone)]
pub(crate) struct Served {
    pub(crate) answers: u32,
    pub(crate) slowest: Duration,
    pub(crate) failures: Vec<String>,
}

/// Calls a neighbour until it is dropped.
pub(crate) struct Questions {
    served: Arc<(Mutex<Served>, Condvar)>,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Questions {
    pub(crate) fn start(socket: PathBuf) -> Self {
        let served = Arc::new((Mutex::new(Served::default()), Condvar::new()));
        let (stop, stopped) = channel();
        let shared = Arc::clone(&served);
        let thread = std::thread::spawn(move || {
            loop {
                let begun = Instant::now();
                let asked = ask(&socket);
                let (served, changed) = &*shared;
                let mut served = served.lock();
                match asked {
                    Ok(()) => served.answers += 1,
                    Err(error) => served.failures.push(error.to_string()),
                }
                served.slowest = served.slowest.max(begun.elapsed());
                drop(served);
                changed.notify_all();
                if stopped.recv_timeout(QUESTION_INTERVAL) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        });
        Self { served, stop: Some(stop), thread: Some(thread) }
    }

    /// Resets the results.
    pub(crate) fn begin(&self) {
        *self.served.0.lock() = Served::default();
    }

    /// The results since the reset; waits for the end of a call that began after it.
    pub(crate) fn served(&self) -> Served {
        let (served, changed) = &*self.served;
        let mut served = served.lock();
        // Two answers: the first call may have begun before the reset.
        let waits = |served: &mut Served| served.answers < 2 && served.failures.is_empty();
        changed.wait_while_for(&mut served, waits, 2 * ANSWER_TIMEOUT);
        let mut served = served.clone();
        if served.answers == 0 && served.failures.is_empty() {
            served.failures.push("no answer at all".into());
        }
        served
    }
}

impl Drop for Questions {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn ask(socket: &PathBuf) -> std::io::Result<()> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    stream.set_write_timeout(Some(ANSWER_TIMEOUT))?;
    echo(&mut stream)
}

//! One worker process.

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use talon_sdk::tracing;
use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::process::{Child, Command};
use tokio::sync::{Notify, mpsc};

use crate::counters::Counters;
use crate::frame;
use crate::message::{FromWorker, MachineId, ToWorker, WorkerMessage};
use crate::worker;

/// How long a worker may take to begin what it was told to: it may have to start, and to compile other scripts. 30 seconds: on a busy
/// machine 256 scripts take a few. A worker that passes it is started again.
pub(super) const START_LIMIT: Duration = Duration::from_secs(30);

/// How many messages of one machine may wait. More than one call logs; a worker that sends more waits itself.
const ROUTE_MESSAGES: usize = 256;

/// Why a worker ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExitCause {
    /// It was ended for this machine.
    Killed(MachineId),
    /// It crashed. With more than one machine at work, nobody knows whose work it was.
    ByItself { alone: bool },
}

/// A worker process. Dropping the last handle ends it.
pub(super) struct Process {
    // Unbounded, and yet bounded: each machine has one call at most, and what belongs to it.
    orders: mpsc::UnboundedSender<Vec<u8>>,
    routes: Arc<Mutex<Routes>>,
    kill: Arc<Notify>,
}

struct Routes {
    by_machine: HashMap<MachineId, mpsc::Sender<WorkerMessage>>,
    exit_cause: Option<ExitCause>,
}

/// What one machine says, until this is dropped.
pub(super) struct Route {
    pub(super) messages: mpsc::Receiver<WorkerMessage>,
    machine: MachineId,
    routes: Arc<Mutex<Routes>>,
}

impl Drop for Route {
    fn drop(&mut self) {
        let _ = self.routes.lock().by_machine.remove(&self.machine);
    }
}

impl Process {
    /// Starts one. It has no environment and nothing open but its socket.
    pub(super) fn start(program: &Path, counters: &Arc<Counters>) -> io::Result<Arc<Self>> {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let child = Command::new(program)
            .arg(worker::ARGUMENT)
            .env_clear()
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let (reader, writer) = UnixStream::from_std(ours)?.into_split();
        let (orders, queued) = mpsc::unbounded_channel();
        let routes = Arc::new(Mutex::new(Routes { by_machine: HashMap::new(), exit_cause: None }));
        let kill = Arc::new(Notify::new());
        let _writing = tokio::spawn(write_orders(writer, queued));
        let _reading = tokio::spawn(read_answers(
            reader,
            Arc::clone(&routes),
            child,
            Arc::clone(&kill),
            Arc::clone(counters),
        ));
        Ok(Arc::new(Self { orders, routes, kill }))
    }

    /// Gives it an order. Never waits.
    pub(super) fn send(&self, order: &ToWorker) -> io::Result<()> {
        let bytes = frame::encode(order)?;
        // One that has ended says so by its routes.
        let _ = self.orders.send(bytes);
        Ok(())
    }

    /// Listens to a machine. Of a worker that has ended the route is at its end.
    pub(super) fn route(&self, machine: MachineId) -> Route {
        let (sender, messages) = mpsc::channel(ROUTE_MESSAGES);
        let mut routes = self.routes.lock();
        if routes.exit_cause.is_none() {
            let _ = routes.by_machine.insert(machine, sender);
        }
        Route { messages, machine, routes: Arc::clone(&self.routes) }
    }

    /// Ends it, for this machine. From now on it counts as ended.
    pub(super) fn kill(&self, machine: MachineId) {
        let mut routes = self.routes.lock();
        let _ = routes.exit_cause.get_or_insert(ExitCause::Killed(machine));
        routes.by_machine.clear();
        self.kill.notify_one();
    }

    /// Why it ended; `None` while it runs.
    pub(super) fn exit_cause(&self) -> Option<ExitCause> {
        self.routes.lock().exit_cause
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.routes.lock().exit_cause.get_or_insert(ExitCause::Killed(0));
        self.kill.notify_one();
    }
}

async fn write_orders(mut writer: OwnedWriteHalf, mut queued: mpsc::UnboundedReceiver<Vec<u8>>) {
    while let Some(bytes) = queued.recv().await {
        if writer.write_all(&bytes).await.is_err() {
            return;
        }
    }
}

/// Passes on what the worker says until it ends, and waits for its exit.
async fn read_answers(
    mut reader: OwnedReadHalf,
    routes: Arc<Mutex<Routes>>,
    mut child: Child,
    kill: Arc<Notify>,
    counters: Arc<Counters>,
) {
    loop {
        let read = tokio::select! {
            read = frame::read_async::<FromWorker>(&mut reader) => read,
            () = kill.notified() => break,
        };
        match read {
            Ok(Some(FromWorker { machine, message })) => {
                let route = routes.lock().by_machine.get(&machine).cloned();
                if let Some(route) = route {
                    // Nobody may listen any more.
                    let _ = route.send(message).await;
                }
            }
            Ok(None) => break,
            Err(error) => {
                tracing::error!(%error, "a worker sent what is no message, and is ended");
                break;
            }
        }
    }
    let by_itself = {
        let mut routes = routes.lock();
        let alone = routes.by_machine.len() <= 1;
        let exit_cause = *routes.exit_cause.get_or_insert(ExitCause::ByItself { alone });
        routes.by_machine.clear();
        matches!(exit_cause, ExitCause::ByItself { .. })
    };
    // It may be gone already.
    let _ = child.start_kill();
    let status = child.wait().await;
    if by_itself {
        counters.crashed.add();
        match status {
            Ok(status) => tracing::error!(%status, "a worker ended by itself; the next call starts it again"),
            Err(error) => tracing::error!(%error, "a worker ended by itself"),
        }
    }
}

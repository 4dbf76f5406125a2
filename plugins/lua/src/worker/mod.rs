//! The process that runs scripts: a thread and a machine for each. It reads orders from its standard input, a socket, and ends with it.

mod outbox;
mod remote_host;
mod script_thread;

use std::collections::HashMap;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

use crate::frame;
use crate::message::{MachineId, ToWorker, WorkerMessage};
use outbox::Outbox;
use script_thread::ScriptThread;

/// The argument that makes the program a worker.
pub(crate) const ARGUMENT: &str = "worker";

/// Runs until the plugin closes the socket.
pub(crate) fn run() -> ExitCode {
    let opened = std::io::stdin().as_fd().try_clone_to_owned().map(UnixStream::from);
    match opened.and_then(|stream| Ok((stream.try_clone()?, stream))) {
        Ok((writer, reader)) => serve(writer, reader),
        Err(error) => {
            eprintln!("talon-lua {ARGUMENT} is started by talon-lua alone: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve(writer: UnixStream, mut reader: UnixStream) -> ExitCode {
    let outbox = Outbox::new(writer);
    let mut scripts: HashMap<MachineId, ScriptThread> = HashMap::new();
    loop {
        let order = match frame::read::<ToWorker>(&mut reader) {
            Ok(Some(order)) => order,
            // Threads may be in the middle of scripts: the process ends with them.
            Ok(None) => return ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("a message that is none: {error}");
                return ExitCode::FAILURE;
            }
        };
        match order {
            ToWorker::Load { machine, script } => {
                match ScriptThread::start(machine, script, outbox.clone()) {
                    Ok(thread) => {
                        let _ = scripts.insert(machine, thread);
                    }
                    Err(error) => {
                        eprintln!("no thread for a script: {error}");
                        return ExitCode::FAILURE;
                    }
                }
            }
            ToWorker::Test { machine, script, tests_name, tests } => {
                if let Err(error) = script_thread::test(machine, script, tests_name, tests, outbox.clone()) {
                    eprintln!("no thread for tests: {error}");
                    return ExitCode::FAILURE;
                }
            }
            ToWorker::Call { machine, call, point, context } => match scripts.get(&machine) {
                Some(script) => script.call(call, point, context),
                None => outbox.tell(machine, WorkerMessage::Unknown { call }),
            },
            ToWorker::Answer { machine, answer } => {
                if let Some(script) = scripts.get(&machine) {
                    script.answer(answer);
                }
            }
            ToWorker::Cancel { machine, call } => {
                if let Some(script) = scripts.get(&machine) {
                    script.cancel(call);
                }
            }
            ToWorker::Unload { machine } => {
                let _ = scripts.remove(&machine);
            }
        }
    }
}

#[cfg(test)]
#[path = "worker_tests.rs"]
mod tests;

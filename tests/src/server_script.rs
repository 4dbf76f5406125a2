//! A server of the tests, in Python, outside of any jail.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A running script that serves until its standard input ends. It is ended when this is dropped.
#[derive(Debug)]
pub struct ServerScript {
    child: Child,
    ports: Vec<u16>,
}

impl ServerScript {
    /// Starts it, and waits until it prints its ports, in one line.
    ///
    /// # Panics
    /// If it does not start, or prints something else.
    #[must_use]
    pub fn start(python: impl AsRef<Path>, script: &Path, args: &[impl AsRef<OsStr>]) -> Self {
        let mut child = Command::new(python.as_ref())
            .arg(script)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("Python starts");
        let mut ports = String::new();
        let output = child.stdout.take().expect("stdout is piped");
        BufReader::new(output).read_line(&mut ports).expect("it prints its ports");
        let ports = ports.split_whitespace().map(|port| port.parse().expect("a port")).collect();
        Self { child, ports }
    }

    /// One of the ports, in the order in which it prints them.
    ///
    /// # Panics
    /// If it has fewer.
    #[must_use]
    pub fn port(&self, index: usize) -> u16 {
        self.ports[index]
    }
}

impl Drop for ServerScript {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

//! Connections that wait for the next operation.

use parking_lot::Mutex;
use talon_sink::trust::Trust;

use crate::connection::{Connection, OpenError};
use crate::settings::Server;

/// The most connections that wait. talon-state makes 16 calls at once.
const MAX_IDLE: usize = 16;

/// The connections of one password: another one begins anew.
#[derive(Default)]
struct Idle {
    password: Option<String>,
    connections: Vec<Connection>,
}

/// Connections that wait.
#[derive(Default)]
pub(crate) struct Pool(Mutex<Idle>);

impl Pool {
    /// One that waits, or a new one.
    pub(crate) async fn take(
        &self,
        server: &Server,
        password: Option<&str>,
        trust: Option<&Trust>,
    ) -> Result<Connection, OpenError> {
        let waiting = {
            let mut idle = self.0.lock();
            if idle.password.as_deref() != password {
                *idle = Idle { password: password.map(str::to_owned), connections: Vec::new() };
            }
            idle.connections.pop()
        };
        match waiting {
            Some(mut connection) => match connection.check_again(server).await {
                Ok(()) => Ok(connection),
                // The server may have closed it meanwhile, as it does with all of them.
                Err(_) => {
                    self.clear();
                    Connection::open(server, password, trust).await
                }
            },
            None => Connection::open(server, password, trust).await,
        }
    }

    /// Puts one back whose operation went well.
    pub(crate) fn put(&self, connection: Connection, password: Option<&str>) {
        let mut idle = self.0.lock();
        if idle.connections.len() < MAX_IDLE && idle.password.as_deref() == password {
            idle.connections.push(connection);
        }
    }

    /// Drops those that wait: one of them failed, so the others did.
    pub(crate) fn clear(&self) {
        self.0.lock().connections.clear();
    }
}

//! Keeps the plugins' state in Valkey, or in Redis.
//!
//! | module | content |
//! |---|---|
//! | `settings` | what an operator writes, checked |
//! | `connection` | a connection whose server keeps what it acknowledges |
//! | `durability` | whether it does |
//! | `loading` | a server that still reads its data |
//! | `pool` | connections that wait for the next operation |
//! | `keys` | names of keys in the server |
//! | `operations` | the operations |
//! | `store` | the action |

mod connection;
mod durability;
mod keys;
mod loading;
mod operations;
mod pool;
mod settings;
mod store;

use std::process::ExitCode;

use talon_sdk::Plugin;

use crate::store::Valkey;

fn main() -> ExitCode {
    Plugin::new("valkey")
        .description("Keeps the plugins' state in Valkey or Redis.")
        .tool(store::store())
        .init(|settings| async move { Valkey::new(settings) })
        .serve()
}

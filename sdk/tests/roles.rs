//! The programs that `talon new rust --role` writes are Rust. That they work, tests of `talon new` see.

#![expect(dead_code, reason = "each is a program of its own, which nothing here runs")]

#[path = "../../plugins-examples/roles/rust/api_route.rs"]
mod api_route;
#[path = "../../plugins-examples/roles/rust/auth_provider.rs"]
mod auth_provider;
#[path = "../../plugins-examples/roles/rust/channel.rs"]
#[expect(clippy::disallowed_methods, reason = "its thread looks at a directory from time to time")]
mod channel;
#[path = "../../plugins-examples/roles/rust/hook.rs"]
mod hook;
#[path = "../../plugins-examples/roles/rust/notification_sink.rs"]
mod notification_sink;
#[path = "../../plugins-examples/roles/rust/scheduled_task.rs"]
mod scheduled_task;
#[path = "../../plugins-examples/roles/rust/storage_backend.rs"]
mod storage_backend;

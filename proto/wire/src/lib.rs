//! Serves gRPC requests on h2 directly, for the few methods that make up nearly all requests.
//!
//! A whole HTTP server with a gRPC server on it adds a dozen layers, boxes and copies to each request.
//! Measured, that adds half of a small call's cost, in a plugin as in the supervisor. So both serve `Execute`
//! with this crate, and pass everything else to tonic's generated servers, whose answers are sent the same
//! way.
//!
//! Both ends of a connection between supervisor and plugin use [`LazyWritable`], a socket that saves wake-ups under load.
//!
//! ```no_run
//! use talon_wire::{Answer, answer, is_plain, message, deadline_of};
//! # use tonic::codegen::http::Request;
//! # async fn serve(request: Request<h2::RecvStream>, respond: h2::server::SendResponse<prost::bytes::Bytes>) {
//! let (head, body) = request.into_parts();
//! let deadline = deadline_of(&head.headers);
//! let work = async {
//!     let asked: String = message::read(body, 1 << 20).await?;
//!     Ok(Answer::Message(message::framed(&asked)))
//! };
//! answer(respond, deadline, work).await;
//! # }
//! ```

mod answer;
mod lazy_writable;
pub mod message;
mod request_body;
mod timeout;

pub use answer::{Answer, answer, run_until_reset, send};
pub use lazy_writable::{BusyFlag, LazyWritable};
pub use request_body::{is_plain, request_body};
pub use timeout::deadline_of;

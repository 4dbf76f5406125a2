//! Serving a gRPC request on h2 itself, for the few that are nearly all there are.
//!
//! A whole HTTP server with a gRPC one on it puts a dozen of layers, boxes and copies around each request. Measured, they cost a
//! small call half as much again, on the side of a plugin as on that of the supervisor. So either serves `Execute` with what
//! is here, and hands everything else to tonic's generated servers, whose answers go out the same way.
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
pub mod message;
mod received;
mod timeout;

pub use answer::{Answer, answer, awaited, send};
pub use received::{is_plain, received};
pub use timeout::deadline_of;

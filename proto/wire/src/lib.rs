//! Serves gRPC requests on h2 directly, for the few methods that make up nearly all requests.
//!
//! A whole HTTP server with a gRPC server on it adds a dozen layers, boxes and copies to each request.
//! Measured, that adds half of a small call's cost, in a plugin as in the supervisor. So both serve `Execute`
//! with this crate, and pass everything else to tonic's generated servers, whose answers are sent the same
//! way.
//!
//! Both ends of a connection use what makes small calls cheap:
//!
//! | type | what it saves |
//! |---|---|
//! | [`LazyWritable`] | wake-ups of a busy connection, whenever its peer has read |
//! | [`CoalescingWriter`] | writes, on a connection that another library drives |
//! | [`TurnWriter`] | writes, on a connection whose task knows when its turn ends |
//! | [`BusyPoll`] | waking up a core for an answer that comes soon |
//!
//! What tonic's own channels connect with is a [`Connector`].
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
mod busy_poll;
mod channel;
mod coalescing;
pub mod frames;
mod lazy_writable;
mod load_detector;
pub mod message;
mod message_reader;
mod request_body;
mod timeout;
mod turn_writer;
mod write_buffer;

pub use answer::{Answer, answer, run_until_reset, send};
pub use busy_poll::{BusyPoll, BusyPollCounts};
pub use channel::{Connector, Duplex};
pub use coalescing::CoalescingWriter;
pub use lazy_writable::{BusyFlag, LazyWritable};
pub use load_detector::LoadDetector;
pub use message_reader::{MessageError, MessageReader};
pub use request_body::{is_plain, request_body};
pub use timeout::deadline_of;
pub use turn_writer::{TurnFlusher, TurnWriter, coalesce_turns};

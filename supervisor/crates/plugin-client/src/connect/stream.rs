//! The bytes of a connection before encryption.

use talon_wire::LazyWritable;
use tokio::net::TcpStream;
use tokio_util::either::Either;

/// A connection before encryption.
pub(crate) type PlainStream = Either<LazyWritable, TcpStream>;

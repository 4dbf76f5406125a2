//! Which chunks of a turn a follower gets between the first and the last: each of the others would cost a message, and wake up two
//! processes.

use talon_proto::agent::chunk::Kind;
use tonic::Status;

/// A choice of chunks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum ChunkFilter {
    /// All of them.
    #[default]
    All,
    /// Pieces of the answer, and notices. No piece is left out for a slow reader: its program passes them on, and cannot take them from
    /// the end.
    Text,
    /// None: the end has the answer.
    None,
}

impl ChunkFilter {
    /// Reads `chunks` of a request.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for an unknown word.
    pub(crate) fn parse(word: &str) -> Result<Self, Status> {
        match word {
            "" | "all" => Ok(Self::All),
            "text" => Ok(Self::Text),
            "none" => Ok(Self::None),
            _ => Err(Status::invalid_argument("chunks is all, text or none")),
        }
    }

    /// Whether a follower gets this chunk.
    pub(super) fn has(self, chunk: &Kind) -> bool {
        match chunk {
            Kind::Started(_) | Kind::Done(_) | Kind::Error(_) => true,
            Kind::Text(_) | Kind::Notice(_) => self != Self::None,
            _ => self == Self::All,
        }
    }
}

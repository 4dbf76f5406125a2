//! A budget of HTTP/2 frames that carry nothing for the application.
//!
//! PING and SETTINGS have to be answered, and every frame has to be read. A peer that sends them without end
//! keeps a thread busy at no cost of its own, whatever the limits of streams and bytes are, and h2 has no
//! limit for them. So a layer below h2 reads the heads of frames, in both directions, and ends the connection
//! of a peer that exceeds its budget.
//!
//! | module | contents |
//! |---|---|
//! | `scanner` | the heads of frames, in whatever pieces their bytes come |
//! | `budget` | what a peer may send: pure, without a clock |
//! | `limited` | the layer |

mod budget;
mod limited;
mod scanner;

pub use budget::{
    CONTROL_BURST, CONTROL_PER_SECOND, CREDIT_BYTES, CREDIT_PER_FRAME, FrameFloodError, FrameLimits,
    MAX_CREDIT, MAX_EMPTY_DATA, TINY_BURST, TINY_DATA_BYTES, TINY_PER_SECOND,
};
pub use limited::{ConnectionSide, FrameLimited, MAX_FRAMES_PER_POLL};

//! Turns of no session: the client keeps the conversation, and may have tools of its own.
//!
//! | file | content |
//! |---|---|
//! | `client_tools` | the tools of a client, checked |
//! | `conversation` | reads the messages of a request: what came before, what is asked, what followed already |
//! | `spoken`, `history_text` | one message; a conversation as one text, which hooks see whole |
//! | `result` | what a client's tool answered, as models see it |
//! | `turn_cache` | what turns did that their clients do not know, for an hour |
//! | `images` | the bytes of images, in memory |
//! | `error` | why a request is refused |

mod client_tools;
mod conversation;
mod error;
mod history_text;
mod images;
mod result;
mod spoken;
mod turn_cache;

pub(crate) use client_tools::{known_choice, known_tools};
pub(crate) use conversation::ConversationReader;
pub(crate) use error::ConversationError;
pub(crate) use history_text::told_conversation;
pub(crate) use images::PassingImages;
pub(crate) use result::client_result;
pub(crate) use turn_cache::{CachedTurn, TurnCache};

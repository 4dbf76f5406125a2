//! The agent's faces on the command line: clients of `agent.sock`, like every other face.
//!
//! | module | what |
//! |---|---|
//! | `reach` | the connection, and what its errors mean |
//! | `turn` | one turn on its way: heard, shown, asked about, cancelled |
//! | `ask`, `chat` | a question; a conversation |
//! | `session`, `memory`, `model`, `approval` | what the agent keeps and what waits |
//! | `json`, `words` | all of it for programs, and for people |

mod approval;
mod ask;
mod chat;
mod json;
mod memory;
mod model;
mod reach;
mod session;
mod turn;
mod words;

pub(super) use approval::ApprovalVerb;
pub(super) use ask::AskArgs;
pub(super) use chat::ChatArgs;
pub(super) use memory::MemoryVerb;
pub(super) use model::ModelVerb;
pub(super) use session::SessionVerb;

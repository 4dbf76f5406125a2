//! What happens in sessions, for clients that follow.
//!
//! Durable events are in the journal and are read from there, whoever follows and however slowly: a follower holds a
//! cursor for each session, and at most one page of events. [`SessionFeed`] only says in which sessions there is
//! something new, and keeps what is not durable, once for all followers: the attempt that a model is making, and the
//! latest of what its calls put out.
//!
//! | file | content |
//! |---|---|
//! | `feed` | who follows what, and who is to look where |
//! | `live_turn` | the state of a running turn that is not durable |
//! | `live_listener` | fills that from a turn's chunks |
//! | `followed_sessions` | the store's sessions; tells the feed of each write |
//! | `subscriber` | one follower's events |
//! | `backlog` | a session's events from the store |

mod backlog;
mod feed;
mod followed_sessions;
mod live_listener;
mod live_turn;
mod subscriber;

pub(crate) use feed::{Audience, SessionFeed};
pub(crate) use followed_sessions::FollowedSessions;
pub(crate) use live_listener::LiveListener;
pub(crate) use subscriber::{FollowError, Subscriber};

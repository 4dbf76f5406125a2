//! The shadow loop: observations of a person's work, and the ghosts that come of them.
//!
//! ```text
//!  a watcher ─ Observe ─► observation: bounds ─► loop: the policy ─► worker: one question at a time ─► a model
//!                                                   │                                                   │ proposal, or nothing
//!                                                   └──────────── ghost ◄───────────────────────────────┘
//!  a person ─ DecideGhost ─► loop ─► goal: an ordinary turn in a session of its own
//! ```
//!
//! - `observation`: what a watcher sends, within its bounds; `redaction`: secrets that it left; `watchers`: which were heard; `question`: what a model is asked, and its answer. Pure.
//! - `record`: what is stored of one person; `store`: the key-values that hold all
//! - `shadow_loop`: the state of all people, on the disk before anybody sees it; `ghosts`, `senders`: the writes, which compare; `decisions`, `views`: what people do, and see;
//!   `pending_question`: what is asked next, and what is noted of it; `lifetime`: what time changes, and what is removed; `forget_epoch`: whom another agent forgot
//! - `sources`: events of plugins as observations
//! - `status`, `people`: how the loop is over all people; `model_problem`: why no model can be asked; `counts`: what metrics count
//! - `worker`: asks the models, and has time pass; `account`: the money of the day; `goal`: the turns of approved ghosts
//!
//! What is being asked is stored before it is asked, and its ghost has an id that was chosen then: a process that is killed
//! meanwhile asks again, and makes no second ghost.

mod account;
mod counts;
mod decisions;
mod error;
mod forget_epoch;
mod ghosts;
mod goal;
mod lifetime;
mod model_problem;
mod observation;
mod pending_question;
mod people;
mod question;
mod record;
mod redaction;
mod senders;
mod shadow_loop;
mod sources;
mod status;
mod store;
mod views;
mod watchers;
mod worker;

pub(crate) use error::ShadowError;
pub(crate) use model_problem::model_problem;
pub(crate) use shadow_loop::ShadowLoop;
pub(crate) use views::Audience;
pub(crate) use worker::watch_over;

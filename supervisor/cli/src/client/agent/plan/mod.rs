//! The plan of a session, for `ask`, `chat` and `session plan`.
//!
//! | module | contents | pure |
//! |---|---|---|
//! | `edit` | the words that change a plan | yes |
//! | `lines` | the plan for people | yes |
//! | `set` | sends a changed plan | |

mod edit;
mod lines;
mod set;

pub(super) use edit::{PlanEdit, WORDS};
pub(super) use lines::{plan_lines, step_lines};
pub(super) use set::{edit_plan, set_request};

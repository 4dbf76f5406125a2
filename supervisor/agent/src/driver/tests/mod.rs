//! Turns with a scripted model and fakes for everything else.

mod budgets;
mod fakes;
mod interrupted;
mod loops;
mod setting;
mod stopped;
mod summaries;
mod tools;

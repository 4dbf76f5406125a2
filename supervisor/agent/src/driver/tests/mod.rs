//! Turns on a prepared model (`scripted`, which asks nobody) and with everything else of the world stood in for.

mod budgets;
mod fakes;
mod interrupted;
mod loops;
mod setting;
mod stopped;
mod summaries;
mod tools;

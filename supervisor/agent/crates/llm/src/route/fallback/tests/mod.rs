//! The clock is paused: waits take no time, and what was waited can be told to the millisecond.

mod costs;
mod faults;
mod giving_up;
mod health;
mod listener;
mod provider;
mod random;
mod setting;

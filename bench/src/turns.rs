//! A process that measures when it is told to, one turn at a time: what runs elsewhere has its turns in between, and the
//! machine is looked at between two of them.

use std::process::Command;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::book::{Book, Unit};
use crate::driver::Driver;
use crate::worker;

/// What a process is told for a turn; anything else, or nothing more, is its end.
const TURN: &str = "turn";

/// A figure of one turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Told {
    /// The suite and what was done in it.
    pub case: String,
    /// Who did it.
    pub contender: String,
    /// What was looked at.
    pub metric: String,
    /// In what it is counted.
    pub unit: Unit,
    /// How much.
    pub value: f64,
}

impl Told {
    /// A figure.
    #[must_use]
    pub fn new(case: &str, contender: &str, metric: &str, unit: Unit, value: f64) -> Self {
        let [case, contender, metric] = [case, contender, metric].map(str::to_owned);
        Self { case, contender, metric, unit, value }
    }
}

/// The side that measures: says that it is ready, and takes a turn for each line that asks for one.
///
/// # Errors
/// What a turn said that failed; the parent reads it from stderr.
pub async fn take(mut turn: impl AsyncFnMut() -> Result<Vec<Told>>) -> Result<()> {
    worker::ready()?;
    let mut lines = worker::lines();
    while lines.recv().await.as_deref() == Some(TURN) {
        let told = turn().await?;
        worker::say(&told)?;
    }
    Ok(())
}

/// The side that tells it to.
pub struct Turns {
    driver: Driver,
}

impl Turns {
    /// Starts `command` and waits until it is ready.
    ///
    /// # Errors
    /// If it does not get ready; what it said is on stderr.
    pub fn start(name: &'static str, command: &mut Command) -> Result<Self> {
        Ok(Self { driver: Driver::start(name, command, Vec::new(), ())? })
    }

    /// One turn.
    ///
    /// # Errors
    /// If it failed.
    pub fn turn(&mut self) -> Result<Vec<Told>> {
        let line = self.driver.ask(TURN)?;
        serde_json::from_str(&line).with_context(|| format!("{}: {line}", self.driver.name))
    }
}

impl Drop for Turns {
    fn drop(&mut self) {
        // Answered by its end, once it has cleared away what it made; a process that is killed clears nothing.
        let _ = self.driver.ask("end");
    }
}

/// Writes what was told into the book, for cases compared with this yardstick.
pub fn write(book: &mut Book, told: Vec<Told>, yardstick: Option<&'static str>) {
    for Told { case, contender, metric, unit, value } in told {
        book.page(case, yardstick).add(&contender, &metric, unit, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_survives_the_way_and_is_written_by_round() {
        let told = vec![Told::new("guard/a", "wrap", "time", Unit::Microseconds, 1.5)];
        let line = serde_json::to_string(&told).expect("texts and numbers");
        let mut book = Book::default();
        for _ in 0..2 {
            write(&mut book, serde_json::from_str(&line).expect("it was just written"), Some("wrap"));
        }
        assert_eq!(book.samples("guard/a", "wrap", "time").expect("it was told").0, [1.5, 1.5]);
    }

    #[test]
    fn a_process_takes_turns_until_it_is_told_to_end() {
        let told = r#"[{"case":"c","contender":"x","metric":"m","unit":"ms","value":2.0}]"#;
        // As a worker does: ready, an answer for each turn, and its end at any other word.
        let script = format!(
            "echo '{{\"ready\":true}}'; while read -r l && [ \"$l\" = turn ]; do echo '{told}'; done"
        );
        let mut turns =
            Turns::start("a script", Command::new("sh").args(["-c", &script])).expect("a shell starts");
        for _ in 0..2 {
            let told = turns.turn().expect("it answers");
            assert_eq!(told, [Told::new("c", "x", "m", Unit::Milliseconds, 2.0)]);
        }
    }
}

//! A process that measures on request, one turn at a time: other processes have their turns in between, and
//! the noise probe runs between two of them.

use std::process::Command;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::driver::Driver;
use crate::figures::{Figures, Unit};
use crate::worker;

/// The request for a turn; any other line, or the end of the input, ends the process.
const TURN: &str = "turn";

/// A figure of one turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// The suite and the case.
    pub case: String,
    /// The contender.
    pub contender: String,
    /// The metric.
    pub metric: String,
    /// Its unit.
    pub unit: Unit,
    /// Its value.
    pub value: f64,
}

impl Measurement {
    /// A measurement of one figure.
    #[must_use]
    pub fn new(case: &str, contender: &str, metric: &str, unit: Unit, value: f64) -> Self {
        let [case, contender, metric] = [case, contender, metric].map(str::to_owned);
        Self { case, contender, metric, unit, value }
    }
}

/// The measuring side: reports that it is ready, and takes a turn for each request.
///
/// # Errors
/// Why a turn failed; the parent reads it from stderr.
pub async fn serve_turns(mut turn: impl AsyncFnMut() -> Result<Vec<Measurement>>) -> Result<()> {
    worker::ready()?;
    let mut lines = worker::lines();
    while lines.recv().await.as_deref() == Some(TURN) {
        let told = turn().await?;
        worker::write_line(&told)?;
    }
    Ok(())
}

/// The requesting side.
pub struct Turns {
    driver: Driver,
}

impl Turns {
    /// Starts `command` and waits until it is ready.
    ///
    /// # Errors
    /// If it does not get ready; its output is on stderr.
    pub fn start(name: &'static str, command: &mut Command) -> Result<Self> {
        Ok(Self { driver: Driver::start(name, command, Vec::new(), ())? })
    }

    /// Requests one turn.
    ///
    /// # Errors
    /// If it failed.
    pub fn turn(&mut self) -> Result<Vec<Measurement>> {
        let line = self.driver.ask(TURN)?;
        serde_json::from_str(&line).with_context(|| format!("{}: {line}", self.driver.name))
    }
}

impl Drop for Turns {
    fn drop(&mut self) {
        // This returns when the process has ended after its cleanup; a killed process would not clean up.
        let _ = self.driver.ask("end");
    }
}

/// Records the measurements of a turn, for cases compared with this yardstick.
pub fn record(book: &mut Figures, told: Vec<Measurement>, yardstick: Option<&'static str>) {
    for Measurement { case, contender, metric, unit, value } in told {
        book.case(case, yardstick).add(&contender, &metric, unit, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_survives_the_way_and_is_written_by_round() {
        let told = vec![Measurement::new("guard/a", "wrap", "time", Unit::Microseconds, 1.5)];
        let line = serde_json::to_string(&told).expect("texts and numbers");
        let mut book = Figures::default();
        for _ in 0..2 {
            record(&mut book, serde_json::from_str(&line).expect("it was just written"), Some("wrap"));
        }
        assert_eq!(book.samples("guard/a", "wrap", "time").expect("it was told").0, [1.5, 1.5]);
    }

    #[test]
    fn a_process_takes_turns_until_it_is_told_to_end() {
        let told = r#"[{"case":"c","contender":"x","metric":"m","unit":"ms","value":2.0}]"#;
        // As a worker does: ready, a reply to each turn, and exit on any other line.
        let script = format!(
            "echo '{{\"ready\":true}}'; while read -r l && [ \"$l\" = turn ]; do echo '{told}'; done"
        );
        let mut turns =
            Turns::start("a script", Command::new("sh").args(["-c", &script])).expect("a shell starts");
        for _ in 0..2 {
            let told = turns.turn().expect("it answers");
            assert_eq!(told, [Measurement::new("c", "x", "m", Unit::Milliseconds, 2.0)]);
        }
    }
}

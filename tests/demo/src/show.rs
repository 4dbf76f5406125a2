//! What the demo prints: headings, commands as a person would type them, their output, and checks.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// Lines of a command's output that are shown; the rest is counted.
const LINES_SHOWN: usize = 16;

pub(crate) struct Show {
    colour: bool,
    step: usize,
    checks: usize,
    failed: Vec<String>,
}

impl Show {
    pub(crate) fn new() -> Self {
        let colour = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        Self { colour, step: 0, checks: 0, failed: Vec::new() }
    }

    fn paint(&self, code: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    pub(crate) fn heading(&mut self, text: &str) {
        self.step += 1;
        println!("\n{}", self.paint("1;36", &format!("{}. {text}", self.step)));
    }

    pub(crate) fn say(&self, text: &str) {
        println!("   {text}");
    }

    /// A command line and what it printed.
    pub(crate) fn command(&self, line: &str, output: &str) {
        println!("   {}", self.paint("1", &format!("$ talon {line}")));
        let lines: Vec<&str> = output.lines().collect();
        for line in lines.iter().take(LINES_SHOWN) {
            println!("   {}", self.paint("2", &format!("│ {}", cut(line))));
        }
        if lines.len() > LINES_SHOWN {
            println!("   {}", self.paint("2", &format!("│ … and {} lines more", lines.len() - LINES_SHOWN)));
        }
    }

    /// Checks and prints a condition.
    pub(crate) fn check(&mut self, what: &str, holds: bool) {
        self.checks += 1;
        if holds {
            println!("   {} {what}", self.paint("32", "✓"));
        } else {
            println!("   {} {what}", self.paint("31", "✗"));
            self.failed.push(what.to_owned());
        }
    }

    /// A spinner for a step that takes a while.
    pub(crate) fn waiting(&self, what: &str) -> ProgressBar {
        if !std::io::stderr().is_terminal() {
            println!("   … {what}");
            return ProgressBar::hidden();
        }
        let bar = ProgressBar::new_spinner().with_message(what.to_owned());
        if let Ok(style) = ProgressStyle::with_template("   {spinner} {msg} ({elapsed})") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(100));
        bar
    }

    pub(crate) fn failed(&self, error: &anyhow::Error) {
        println!("\n   {} {error:#}", self.paint("31", "✗"));
        println!("\n{}", self.paint("1;31", "The demo could not be carried through."));
    }

    pub(crate) fn end(self) -> ExitCode {
        if self.failed.is_empty() {
            println!("\n{}", self.paint("1;32", &format!("All {} checks hold.", self.checks)));
            return ExitCode::SUCCESS;
        }
        println!(
            "\n{}",
            self.paint("1;31", &format!("{} of {} checks do not hold:", self.failed.len(), self.checks))
        );
        for what in &self.failed {
            println!("   ✗ {what}");
        }
        ExitCode::FAILURE
    }
}

fn cut(line: &str) -> String {
    const WIDTH: usize = 110;
    if line.chars().count() <= WIDTH {
        return line.to_owned();
    }
    line.chars().take(WIDTH - 1).chain(['…']).collect()
}

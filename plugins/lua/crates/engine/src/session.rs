//! A session: lines that an author types, one after the other in one machine.

use crate::error::{CallError, LoadError, bounded};
use crate::limits::MAX_SHOWN_BYTES;
use crate::machine::Machine;
use crate::testing::PRELUDE;
use crate::{Library, Limits, Point, source_text};

/// The name of what is typed, in errors.
const LINE: &str = "line";
/// Makes a text of a value: [`Machine::evaluate`].
const SHOW: &str = concat!(include_str!("shown.lua"), "\nreturn shown");
/// How the compiler says that a text ends too early.
const ENDS_EARLY: &str = "got <eof>";

/// A machine that an author talks to: a script if there is one, `expect` and `context` as tests have them, and a sample `ctx`.
pub struct Session {
    script: Option<(String, String)>,
    /// Defines the sample.
    sample: String,
    limits: Limits,
    libraries: Vec<Library>,
    machine: Machine,
}

/// What became of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Evaluation {
    /// It ran. What it returned, as text of at most [`MAX_SHOWN_BYTES`]; empty if it returned nothing.
    Text(String),
    /// It goes on: evaluate it again together with the next line.
    Incomplete,
}

impl Session {
    /// Begins one, with a script of this name and source if there is one. `message` is that of the sample.
    ///
    /// # Errors
    /// [`LoadError`] of the script.
    pub fn begin(
        script: Option<(&str, &[u8])>,
        message: &str,
        limits: &Limits,
        libraries: &[Library],
    ) -> Result<Self, LoadError> {
        let script = match script {
            Some((name, source)) => Some((name.to_owned(), source_text(source)?.to_owned())),
            None => None,
        };
        let sample = format!("ctx = context {{ message = {} }}", literal(message));
        let machine = machine(script.as_ref(), &sample, limits, libraries)?;
        Ok(Self { script, sample, limits: *limits, libraries: libraries.to_vec(), machine })
    }

    /// The functions of the script that are called.
    #[must_use]
    pub fn points(&self) -> Vec<Point> {
        self.machine.points().collect()
    }

    /// Runs a line: an expression, whose values are shown, or statements.
    ///
    /// # Errors
    /// [`LoadError`]: it does not compile, or fails. One that passed its limit of time or memory takes the machine with it, and the
    /// next line meets a new one.
    pub fn evaluate(&mut self, line: &str) -> Result<Evaluation, LoadError> {
        let evaluated = match self.run(&format!("return {line}")) {
            Err(LoadError::Syntax(_)) => self.run(line),
            evaluated => evaluated,
        };
        match evaluated {
            Ok(values) => Ok(Evaluation::Text(bounded(values.join("\t"), MAX_SHOWN_BYTES))),
            Err(LoadError::Syntax(text)) if text.trim_end().ends_with(ENDS_EARLY) => {
                Ok(Evaluation::Incomplete)
            }
            Err(LoadError::Run(error)) if error.breaks_machine() => {
                self.machine = machine(self.script.as_ref(), &self.sample, &self.limits, &self.libraries)?;
                let text = format!("{error}\nWhat earlier lines set is gone.");
                Err(LoadError::Run(CallError::new(error.kind, text)))
            }
            Err(error) => Err(error),
        }
    }

    fn run(&self, chunk: &str) -> Result<Vec<String>, LoadError> {
        let _ = source_text(chunk.as_bytes())?;
        self.machine.evaluate((LINE, chunk), ("shown.lua", SHOW), &self.libraries)
    }
}

fn machine(
    script: Option<&(String, String)>,
    sample: &str,
    limits: &Limits,
    libraries: &[Library],
) -> Result<Machine, LoadError> {
    let machine = match script {
        Some((name, source)) => Machine::load(name, source, limits, libraries)?,
        None => Machine::without_script(limits, libraries)?,
    };
    machine.add("testing.lua", PRELUDE, libraries)?;
    machine.add("sample", sample, libraries)?;
    Ok(machine)
}

/// A text as a literal of the language.
fn literal(text: &str) -> String {
    let bytes: String = text.bytes().map(|byte| format!("\\{byte:03}")).collect();
    format!("\"{bytes}\"")
}

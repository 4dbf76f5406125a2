//! One finding.

use anstyle::{AnsiColor, Style};
use serde_json::{Value, json};

/// How one check came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Ok,
    /// Works, though not as well as it could.
    Warn,
    /// Something that is asked for is missing.
    Fail,
}

impl Verdict {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }

    pub(super) fn style(self) -> Style {
        match self {
            Self::Ok => AnsiColor::Green.on_default(),
            Self::Warn => AnsiColor::Yellow.on_default(),
            Self::Fail => AnsiColor::Red.on_default(),
        }
    }
}

/// What checks are about, in the order in which they are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Section {
    Configuration,
    Files,
    Programs,
    Supervisor,
    Service,
    Logs,
    Machine,
    Sandbox,
}

pub(super) const SECTIONS: [Section; 8] = [
    Section::Configuration,
    Section::Files,
    Section::Programs,
    Section::Supervisor,
    Section::Service,
    Section::Logs,
    Section::Machine,
    Section::Sandbox,
];

impl Section {
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Configuration => "CONFIGURATION",
            Self::Files => "FILES AND DIRECTORIES",
            Self::Programs => "PROGRAMS",
            Self::Supervisor => "SUPERVISOR",
            Self::Service => "SERVICE",
            Self::Logs => "LOGS, TRACES, AUDIT",
            Self::Machine => "MACHINE",
            Self::Sandbox => "SANDBOX",
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Configuration => "configuration",
            Self::Files => "files",
            Self::Programs => "programs",
            Self::Supervisor => "supervisor",
            Self::Service => "service",
            Self::Logs => "logs",
            Self::Machine => "machine",
            Self::Sandbox => "sandbox",
        }
    }
}

/// What was looked at, and what came of it.
#[derive(Debug)]
pub(super) struct Check {
    pub(super) section: Section,
    pub(super) what: String,
    pub(super) verdict: Verdict,
    pub(super) says: String,
    /// Why it matters; empty where it is fine, or where that goes without saying.
    pub(super) why: &'static str,
    /// What to do; empty where nothing is, or where `says` ends with it.
    pub(super) fix: String,
}

impl Check {
    pub(super) fn new(
        section: Section,
        what: impl Into<String>,
        verdict: Verdict,
        says: impl Into<String>,
    ) -> Self {
        Self { section, what: what.into(), verdict, says: says.into(), why: "", fix: String::new() }
    }

    pub(super) fn because(self, why: &'static str) -> Self {
        Self { why, ..self }
    }

    pub(super) fn fix(self, fix: impl Into<String>) -> Self {
        Self { fix: fix.into(), ..self }
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "section": self.section.word(),
            "check": self.what,
            "status": self.verdict.word(),
            "message": self.says,
            "why": self.why,
            "do": self.fix,
        })
    }
}

/// Makes the checks of one section.
#[derive(Debug, Clone, Copy)]
pub(super) struct Of(pub(super) Section, pub(super) &'static str);

impl Of {
    pub(super) fn ok(self, says: impl Into<String>) -> Check {
        Check::new(self.0, self.1, Verdict::Ok, says)
    }

    pub(super) fn warn(self, says: impl Into<String>) -> Check {
        Check::new(self.0, self.1, Verdict::Warn, says)
    }

    pub(super) fn fail(self, says: impl Into<String>) -> Check {
        Check::new(self.0, self.1, Verdict::Fail, says)
    }
}

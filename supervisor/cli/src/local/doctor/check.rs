//! The result of one check.

use anstyle::{AnsiColor, Style};
use serde_json::{Value, json};

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Ok,
    /// Works, but not as well as it could.
    Warn,
    /// Something required is missing.
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

/// Groups of checks, in the order of the output.
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

/// A check and its result.
#[derive(Debug)]
pub(super) struct Check {
    pub(super) section: Section,
    pub(super) subject: String,
    pub(super) verdict: Verdict,
    pub(super) message: String,
    /// Why it matters; empty if the check is ok or the reason is obvious.
    pub(super) reason: &'static str,
    /// What to do; empty if there is nothing to do, or if `message` ends with it.
    pub(super) fix: String,
}

impl Check {
    pub(super) fn new(
        section: Section,
        what: impl Into<String>,
        verdict: Verdict,
        says: impl Into<String>,
    ) -> Self {
        Self { section, subject: what.into(), verdict, message: says.into(), reason: "", fix: String::new() }
    }

    pub(super) fn with_reason(self, why: &'static str) -> Self {
        Self { reason: why, ..self }
    }

    pub(super) fn with_fix(self, fix: impl Into<String>) -> Self {
        Self { fix: fix.into(), ..self }
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "section": self.section.word(),
            "check": self.subject,
            "status": self.verdict.word(),
            "message": self.message,
            "why": self.reason,
            "do": self.fix,
        })
    }
}

/// Creates the checks of one section.
#[derive(Debug, Clone, Copy)]
pub(super) struct CheckBuilder(pub(super) Section, pub(super) &'static str);

impl CheckBuilder {
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

//! `talon lua test`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::library::Libraries;
use super::tool::Tool;
use crate::failure::Failure;
use crate::global::Global;
use crate::output::Output;

/// Run the tests of scripts: the functions `test_…` in NAME_test.lua beside NAME.lua.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon lua test
  talon lua test ./scripts
  talon lua test ./scripts --report junit > report.xml")]
pub(crate) struct TestArgs {
    /// Scripts, and directories of scripts; one without tests is passed over. Without any, `plugins.lua.scripts_dir` of the
    /// configuration.
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// The format of the result; --output json means the same as json here.
    #[arg(long, value_enum, value_name = "FORMAT")]
    report: Option<ReportFormat>,
    #[command(flatten)]
    libraries: Libraries,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ReportFormat {
    /// The Test Anything Protocol.
    Tap,
    /// JUnit XML, for build servers.
    Junit,
    /// One JSON value.
    Json,
}

impl ReportFormat {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Tap => "tap",
            Self::Junit => "junit",
            Self::Json => "json",
        }
    }
}

impl TestArgs {
    pub(super) fn run(self, global: &Global, out: &mut Output) -> Result<u8, Failure> {
        let mut tool = Tool::new("test")?;
        self.libraries.add_to(&mut tool);
        let format = match self.report {
            Some(format) => format,
            None if out.is_json() => ReportFormat::Json,
            None => ReportFormat::Tap,
        };
        tool.option("format", format.as_str());
        tool.scripts(&self.paths, global)?;
        tool.run(out)
    }
}

//! Checks of Talon's other programs: whether they are installed, and in this version.

use std::path::Path;

use talon_supervisor::config::{Config, Engine};
use talon_supervisor::{agent, program_lookup, state};
use tokio::process::Command;

use super::bounded::output_of;
use super::check::{Check, CheckBuilder, Section};

/// The programs, and what is missing without them.
const PROGRAMS: [(&str, &str); 7] = [
    ("talon-gateway", "nothing is served over HTTP (gateway.enabled)"),
    ("talon-top", "`talon top` cannot show anything"),
    ("talon-watch", "`talon watch` cannot observe anything"),
    ("talon-mcp", "`talon mcp` cannot offer actions to MCP hosts"),
    ("talon-mcp-bridge", "MCP servers cannot be plugins"),
    ("talon-framed-bridge", "plugins of OpenTalon v0 cannot be run"),
    ("talon-service-bridge", "go-plugin programs with other services cannot be run"),
];

pub(super) async fn checks(config: Option<&Config>) -> Vec<Check> {
    let mut checks = Vec::new();
    let of = CheckBuilder(Section::Programs, "talon-state");
    if let Some(config) =
        config.filter(|config| config.state.engine != Engine::Off || config.state.plugins.is_some())
    {
        checks.push(match state::find_program(config.state.program.as_deref()) {
            Ok(program) => version(of, &program).await,
            Err(missing) => of
                .fail(missing.to_string())
                .with_reason("plugins cannot keep anything, and `talon export` and its kin fail"),
        });
    }
    let of = CheckBuilder(Section::Programs, "talon-agent");
    let wanted = config.filter(|config| config.runs_agent());
    let program = agent::find_program(wanted.and_then(|config| config.agent.program.as_deref()));
    checks.push(match (program, wanted) {
        (Ok(program), _) => version(of, &program).await,
        (Err(missing), Some(_)) => of.fail(missing.to_string()).with_reason("the agent does not run"),
        (Err(missing), None) => {
            of.warn(missing.to_string()).with_reason("there can be no agent (agent.enabled)")
        }
    });
    for (name, why) in PROGRAMS {
        let of = CheckBuilder(Section::Programs, name);
        checks.push(match program_lookup::find(name) {
            Ok(program) => version(of, &program).await,
            Err(missing) => of.warn(missing.to_string()).with_reason(why),
        });
    }
    checks
}

/// Whether a program has the same version as this one.
async fn version(of: CheckBuilder, program: &Path) -> Check {
    const OWN: &str = env!("CARGO_PKG_VERSION");
    let shown = program.display();
    // Talon's programs need no environment to print their version.
    match output_of(Command::new(program).arg("--version").env_clear()).await {
        Ok(text) if text.trim() == format!("{} {OWN}", of.1) => of.ok(format!("{shown} ({OWN})")),
        Ok(text) => {
            let said = text.lines().next().unwrap_or("nothing");
            of.fail(format!("{shown} is not of version {OWN}: it says {said:?}"))
                .with_reason("parts of different versions do not understand each other")
                .with_fix("install all of one version, then restart the supervisor")
        }
        Err(error) => {
            of.fail(format!("{shown} cannot be run: {error}")).with_fix("install it again, beside talon")
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::super::check::Verdict;
    use super::*;

    // Promises: CLI-27
    #[tokio::test]
    async fn another_version_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let of = CheckBuilder(Section::Programs, "talon-top");
        for (says, verdict) in [
            (format!("talon-top {}", env!("CARGO_PKG_VERSION")), Verdict::Ok),
            ("talon-top 0.0.9".to_owned(), Verdict::Fail),
            (String::new(), Verdict::Fail),
        ] {
            let path = dir.path().join(format!("p{}", says.len()));
            std::fs::write(&path, format!("#!/bin/sh\necho '{says}'\n")).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
            assert_eq!(version(of, &path).await.verdict, verdict, "{says:?}");
        }
        assert_eq!(version(of, Path::new("/nonexistent")).await.verdict, Verdict::Fail);
    }
}

//! The command line: which verbs there are, and the call of each.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{ColorChoice, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::client::{agent, call, event, gateway, plugin, reload, status, stop, token};
use crate::exit;
use crate::failure::Failure;
use crate::global::Global;
use crate::host_socket::HostSocket;
use crate::local::{
    audit, completions, config, conformance, doctor, exec, guard, jail, lua, man, mcp, new, serve, setup,
    shell_init, state, state_transfer, top, watch,
};
use crate::output::{Output, write_stderr};
use crate::runtime::{block_on, block_on_until_signalled};
use crate::schedule;

/// Runs tool plugins in jails and guards every call to them.
#[derive(Debug, Parser)]
#[command(
    name = "talon",
    version,
    max_term_width = 110,
    after_help = after_help(),
    arg_required_else_help = true
)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Setup(setup::SetupArgs),
    Serve(serve::ServeArgs),
    Call(call::CallArgs),
    Ask(agent::AskArgs),
    Chat(agent::ChatArgs),
    #[command(subcommand)]
    Session(agent::SessionVerb),
    #[command(subcommand)]
    Approval(agent::ApprovalVerb),
    #[command(subcommand)]
    Memory(agent::MemoryVerb),
    Forget(agent::ForgetSenderArgs),
    #[command(subcommand)]
    Model(agent::ModelVerb),
    #[command(subcommand)]
    Schedule(schedule::ScheduleVerb),
    #[command(subcommand)]
    Notification(agent::NotificationVerb),
    #[command(subcommand)]
    Shadow(agent::ShadowVerb),
    #[command(subcommand)]
    Plugin(plugin::PluginVerb),
    #[command(subcommand)]
    Extension(agent::ExtensionVerb),
    #[command(subcommand)]
    Gateway(gateway::GatewayVerb),
    #[command(subcommand)]
    Token(token::TokenVerb),
    #[command(subcommand)]
    Event(event::EventVerb),
    Events(event::EventsArgs),
    Status(status::StatusArgs),
    Stop(stop::StopArgs),
    Reload(reload::ReloadArgs),
    Top(top::TopArgs),
    Watch(watch::WatchArgs),
    ShellInit(shell_init::ShellInitArgs),
    #[command(subcommand)]
    State(state::StateVerb),
    Export(state_transfer::ExportArgs),
    Import(state_transfer::ImportArgs),
    Backup(state_transfer::BackupArgs),
    Restore(state_transfer::RestoreArgs),
    #[command(subcommand)]
    Audit(audit::AuditVerb),
    #[command(subcommand)]
    Config(config::ConfigVerb),
    Doctor(doctor::DoctorArgs),
    Exec(exec::ExecArgs),
    Mcp(mcp::McpArgs),
    Conformance(conformance::ConformanceArgs),
    New(new::NewArgs),
    #[command(subcommand)]
    Lua(lua::LuaVerb),
    #[command(subcommand)]
    Jail(jail::JailVerb),
    #[command(subcommand)]
    Guard(guard::GuardVerb),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
}

/// Runs the command line of this process.
pub(crate) fn main() -> ExitCode {
    ExitCode::from(run(std::env::args_os().collect()))
}

fn run(args: Vec<OsString>) -> u8 {
    let command = Cli::command().color(help_color(&args));
    let cli = match command.try_get_matches_from(args).and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => {
            // A closed stdout must not turn a request for help into a failure.
            let _ = error.print();
            return if error.use_stderr() { exit::USAGE } else { exit::OK };
        }
    };
    let mut out = Output::new(&cli.global);
    let result = cli.verb.run(&cli.global, &mut out);
    let code = result.unwrap_or_else(|failure| out.failure(&failure));
    match out.finish() {
        Ok(()) => code,
        Err(failure) => {
            write_stderr(failure.line(), false);
            failure.code()
        }
    }
}

impl Verb {
    fn run(self, global: &Global, out: &mut Output) -> Result<u8, Failure> {
        let socket = &HostSocket::new(global);
        match self {
            Self::Setup(args) => block_on_until_signalled(args.run(global, out)),
            Self::Serve(args) => args.run(global),
            Self::Call(args) => block_on(args.run(socket, out)),
            Self::Ask(args) => block_on(args.run(socket, out)),
            Self::Chat(args) => block_on(args.run(socket, out)),
            Self::Session(verb) => block_on(verb.run(socket, out)),
            Self::Approval(verb) => block_on(verb.run(socket, out)),
            Self::Memory(verb) => block_on(verb.run(socket, out)),
            Self::Forget(args) => block_on(args.run(socket, out)),
            Self::Model(verb) => block_on(verb.run(socket, out)),
            Self::Schedule(verb) => verb.run(socket, out),
            Self::Notification(verb) => block_on(verb.run(socket, out)),
            Self::Shadow(verb) => block_on(verb.run(socket, out)),
            Self::Plugin(verb) => block_on(verb.run(socket, out)),
            Self::Extension(verb) => block_on(verb.run(socket, out)),
            Self::Gateway(verb) => block_on(verb.run(socket, out)),
            Self::Token(verb) => block_on(verb.run(socket, out)),
            Self::Event(verb) => block_on(verb.run(socket, out)),
            Self::Events(args) => block_on(args.run(socket, out)),
            Self::Status(args) => block_on(args.run(socket, out)),
            Self::Stop(args) => block_on(args.run(socket, out)),
            Self::Reload(args) => block_on(args.run(socket, out)),
            Self::Top(args) => args.run(socket, global, out),
            Self::Watch(args) => args.run(socket),
            Self::ShellInit(args) => args.run(out),
            Self::State(verb) => verb.run(global, out),
            Self::Export(args) => block_on_until_signalled(args.run(global, out)),
            Self::Import(args) => block_on_until_signalled(args.run(global, out)),
            Self::Backup(args) => block_on_until_signalled(args.run(global, out)),
            Self::Restore(args) => block_on_until_signalled(args.run(global, out)),
            Self::Audit(verb) => verb.run(global, out),
            Self::Config(verb) => verb.run(global, out),
            Self::Doctor(args) => block_on(args.run(global, out)),
            Self::Exec(args) => args.run(global, out),
            Self::Mcp(args) => args.run(global, out),
            Self::Conformance(args) => args.run(global, out),
            Self::New(args) => args.run(out),
            Self::Lua(verb) => verb.run(global, out),
            Self::Jail(verb) => verb.run(out),
            Self::Guard(verb) => verb.run(global, out),
            Self::Completions(args) => args.run(&Cli::command(), out),
            Self::Man(args) => args.run(Cli::command(), out),
        }
    }
}

/// clap prints help and errors before `--color` is parsed.
fn help_color(args: &[OsString]) -> ColorChoice {
    let mut choice = ColorChoice::Auto;
    for (index, arg) in args.iter().enumerate() {
        let value = match arg.to_str() {
            Some("--") => break,
            Some("--color") => args.get(index + 1).and_then(|next| next.to_str()),
            Some(text) => text.strip_prefix("--color="),
            None => None,
        };
        choice = match value {
            Some("always") => ColorChoice::Always,
            Some("never") => ColorChoice::Never,
            Some("auto") => ColorChoice::Auto,
            _ => choice,
        };
    }
    choice
}

fn after_help() -> String {
    let mut text = String::from(
        "Examples:\n  talon serve\n  talon call hello.greet name=World\n  talon plugin list\n  talon chat\n  \
         talon exec ./my-plugin greet name=World\n\nExit codes:\n",
    );
    for (code, meaning) in exit::TABLE {
        text.push_str(&format!("  {code:>3}  {meaning}\n"));
    }
    text.push_str(
        "\nEnvironment:\n  TALON_CONFIG       the configuration file\n  \
         TALON_HOST_SOCKET  the supervisor's socket\n  \
         TALON_LOG          what is logged, such as info or talon_plugin=debug\n  \
         NO_COLOR           no colour when set\n  \
         TALON_SCREEN_READER  for screen readers: words for symbols, and no animations",
    );
    text
}

#[cfg(test)]
#[path = "command_line_tests.rs"]
mod tests;

//! The bridge as a plugin: connects when it is initialised, serves, and ends with the server or on request.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::Read as _;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http::header::AUTHORIZATION;
use http::{HeaderName, HeaderValue};
use talon_bridge::environment::plugin_name;
use talon_sdk::{Notifier, Plugin, ToolError};
use tokio::sync::OnceCell;
use tokio::time::Instant;

use crate::command::{
    CLIENT_SECRET_VARIABLE, Command, CommandError, LOGOUT, LoginCommand, Target, URL_VARIABLE,
};
use crate::config::Config;
use crate::connect::{connect, server_name};
use crate::connect_error::ConnectError;
use crate::http::Login;
use crate::http::authorization::Authorization;
use crate::oauth::{self, Credential, LoginRequest, TokenSource};
use crate::roots::Roots;
use crate::sampling::Sampling;
use crate::session::Session;

/// Threads that serve calls; few, because the server does the work.
const WORKERS: usize = 2;
/// The library's log is for its authors; the bridge logs what matters to operators.
const LOG_FILTER: &str = "info,rmcp=off";
/// The declared name when the plugin has none.
const DEFAULT_NAME: &str = "mcp-bridge";

/// The largest credential, as the store takes values.
const MAX_CREDENTIAL_BYTES: u64 = 1 << 20;

/// Exit codes. The second one is `EX_TEMPFAIL` of sysexits.h: the supervisor tries again for as long as the
/// server is away. The third one is `EX_CONFIG`: it does not try again.
const FAILURE_EXIT: i32 = 1;
const OUTAGE_EXIT: i32 = 75;
const PERMANENT_EXIT: i32 = 78;

/// What the plugin's parts share.
struct Bridge {
    command: Command,
    started: Instant,
    notifier: Notifier,
    /// What `Init` brought.
    config: OnceLock<Config>,
    session: OnceCell<Session>,
    /// With which exit code to give up after the last attempt to connect.
    failure_exit: AtomicI32,
    /// Whether its tools were listed before.
    offered: AtomicBool,
}

/// Runs the bridge with the arguments after its own name.
pub(crate) fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    if matches!(args.as_slice(), [only] if only == "--version" || only == "-V") {
        println!("talon-mcp-bridge {}", env!("CARGO_PKG_VERSION"));
        return ExitCode::SUCCESS;
    }
    if matches!(args.as_slice(), [only] if only == LOGOUT) {
        return block_on(withdraw_login().boxed());
    }
    let url = std::env::var(URL_VARIABLE).ok();
    let job: BoxFuture<'static, ExitCode> = match LoginCommand::parse(&args) {
        Some(login) => match login {
            Ok(login) => print_login(login, url.unwrap_or_default()).boxed(),
            Err(error) => return refuse(&error),
        },
        None => match Command::parse(args, url.as_deref()) {
            Ok(command) => serve(command).boxed(),
            Err(error) => return refuse(&error),
        },
    };
    block_on(job)
}

fn block_on(job: BoxFuture<'static, ExitCode>) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(WORKERS).enable_all().build();
    match runtime {
        Ok(runtime) => {
            let code = runtime.block_on(job);
            runtime.shutdown_background();
            code
        }
        Err(error) => {
            eprintln!("cannot set up the runtime: {error}");
            ExitCode::FAILURE
        }
    }
}

fn refuse(error: &CommandError) -> ExitCode {
    eprintln!("{error}");
    ExitCode::FAILURE
}

/// Logs in, and prints the credential for `talon mcp login`, which stores it.
async fn print_login(login: LoginCommand, url: String) -> ExitCode {
    let request = LoginRequest {
        url,
        client_id: login.client_id,
        client_secret: std::env::var(CLIENT_SECRET_VARIABLE).ok().filter(|secret| !secret.is_empty()),
        scope: login.scope,
        device: login.device,
    };
    let credential = match oauth::login(request).await {
        Ok(credential) => serde_json::to_string(&credential).map_err(|error| error.to_string()),
        Err(error) => Err(talon_error_chain::error_chain(&error)),
    };
    match credential {
        Ok(credential) => {
            println!("{credential}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Withdraws the login on standard input. Prints whether its authorization server takes tokens back.
async fn withdraw_login() -> ExitCode {
    let mut credential = Vec::new();
    let input = std::io::stdin().take(MAX_CREDENTIAL_BYTES).read_to_end(&mut credential);
    let credential: Option<Credential> = input.ok().and_then(|_| serde_json::from_slice(&credential).ok());
    let Some(credential) = credential else {
        eprintln!("what is stored is no login");
        return ExitCode::FAILURE;
    };
    match oauth::logout(&credential).await {
        Ok(revoked) => {
            println!("{revoked}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{}", talon_error_chain::error_chain(&error));
            ExitCode::FAILURE
        }
    }
}

async fn serve(command: Command) -> ExitCode {
    let description = match &command.target {
        Target::Program(..) => format!("The MCP server {}, in its own jail.", server_name(&command.target)),
        Target::Url(_) => format!("The MCP server {}.", server_name(&command.target)),
    };
    let bridge = Arc::new(Bridge {
        command,
        started: Instant::now(),
        notifier: Notifier::new(),
        config: OnceLock::new(),
        session: OnceCell::new(),
        failure_exit: AtomicI32::new(FAILURE_EXIT),
        offered: AtomicBool::new(false),
    });
    let name = plugin_name();
    let (init, refresh) = (bridge.clone(), bridge.clone());
    let plugin = Plugin::new(name.unwrap_or_else(|| DEFAULT_NAME.to_owned()))
        .description(description)
        .log_filter(LOG_FILTER)
        .notifier(bridge.notifier.clone())
        .init(move |config: Config| {
            let bridge = init.clone();
            async move { bridge.init(config).await }
        })
        .refresh(move || {
            let bridge = refresh.clone();
            async move { bridge.tools().await }
        });
    let served = plugin.serve_async().await;
    if let Some(session) = bridge.session.get() {
        session.stop().await;
    }
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}", talon_error_chain::error_chain(&error));
            ExitCode::FAILURE
        }
    }
}

impl Bridge {
    /// A deadline at this percentage of the start timeout. The rest is for the following steps, so that the
    /// bridge's error about a slow server comes before the supervisor's error about a slow bridge.
    fn phase_deadline(&self, percent: u32) -> Instant {
        self.started + self.command.start_timeout * percent / 100
    }

    async fn init(&self, config: Config) -> Result<(), ToolError> {
        config.revision()?;
        config.headers()?;
        Roots::of(config.roots.as_ref(), &self.command.granted)?;
        if config.is_for_http() && matches!(self.command.target, Target::Program(..)) {
            return Err(ToolError::new(
                "config.headers: a server without a url takes no headers; give it env or args",
            ));
        }
        // If a host sends it twice, the first config stays.
        let _ = self.config.set(config);
        match self.session().await {
            Ok(_) => Ok(()),
            Err(error) => self.give_up(&error),
        }
    }

    async fn session(&self) -> Result<&Session, ToolError> {
        let connecting = || async {
            let config = self.config.get().cloned().unwrap_or_default();
            let target = &self.command.target;
            // Long after the start there is no start timeout left, so it gets at least this long.
            let until = self.phase_deadline(75).max(Instant::now() + Duration::from_millis(500));
            let (revision, headers) = (config.revision()?, config.headers()?);
            let login = self.login(&headers).await?;
            let roots = Roots::of(config.roots.as_ref(), &self.command.granted)?;
            let connected =
                Box::pin(connect(target, revision, headers, login, (roots, Sampling::from_env()), until))
                    .await;
            let code = match &connected {
                Err(ConnectError::Away(_)) => OUTAGE_EXIT,
                Err(ConnectError::Import { .. }) => PERMANENT_EXIT,
                _ => FAILURE_EXIT,
            };
            self.failure_exit.store(code, Ordering::Relaxed);
            let connected =
                connected.map_err(|error| ToolError::new(talon_error_chain::error_chain(&error)))?;
            Ok::<_, ToolError>(Session::start(
                connected,
                server_name(target),
                config.tools.clone(),
                self.notifier.clone(),
                |why| give_up(why, FAILURE_EXIT),
            ))
        };
        self.session.get_or_try_init(connecting).await
    }

    /// The tokens of a login, unless the operator set a header that says who we are.
    async fn login(&self, headers: &HashMap<HeaderName, HeaderValue>) -> Result<Login, ToolError> {
        let command = format!("talon mcp login {}", plugin_name().as_deref().unwrap_or("PLUGIN"));
        let mut login = Login { tokens: None, command: command.as_str().into() };
        let Target::Url(address) = &self.command.target else { return Ok(login) };
        if headers.contains_key(&AUTHORIZATION) {
            return Ok(login);
        }
        // A supervisor without state has no logins.
        let Ok(state) = talon_sdk::State::from_env() else { return Ok(login) };
        let tokens = TokenSource::load(state, address.as_str(), command)
            .await
            .map_err(|error| ToolError::new(talon_error_chain::error_chain(&error)))?;
        login.tokens = tokens.map(|tokens| Arc::new(tokens) as Arc<dyn Authorization>);
        Ok(login)
    }

    async fn tools(&self) -> Result<Vec<talon_sdk::Tool>, ToolError> {
        let session = match self.session().await {
            Ok(session) => session,
            Err(error) => self.give_up(&error),
        };
        let starting = !self.offered.load(Ordering::Relaxed);
        let tools = session.tools(starting.then(|| self.phase_deadline(90))).await;
        match tools {
            Ok(tools) => {
                self.offered.store(true, Ordering::Relaxed);
                Ok(tools)
            }
            Err(error) if starting => self.give_up(&error),
            Err(error) => Err(error),
        }
    }

    fn give_up(&self, error: &ToolError) -> ! {
        give_up(error.message(), self.failure_exit.load(Ordering::Relaxed))
    }
}

/// Exits when the server is unreachable or has ended, with the reason as the last line. The settings are not
/// refused, because no operator can fix this there. Calls in flight get no answer; the supervisor reports
/// that.
fn give_up(why: &str, code: i32) -> ! {
    eprintln!("{why}");
    std::process::exit(code)
}

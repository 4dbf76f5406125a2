//! Checks whether the endpoints for logs, traces and monitoring can be reached.

use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::Path;

use http_body_util::Empty;
use hyper::client::conn::http1;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use talon_proto::host::GetStatusResponse;
use talon_supervisor::admin;
use talon_supervisor::config::{Config, LogFormat};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

use super::bounded::ANSWER_TIMEOUT;
use super::check::{Check, CheckBuilder, Section};

/// The socket of systemd's journal.
const JOURNAL: &str = "/run/systemd/journal/socket";

const fn check_named(what: &'static str) -> CheckBuilder {
    CheckBuilder(Section::Logs, what)
}

/// The health check over HTTP of the running supervisor, if it has such a socket.
pub(super) async fn healthz(status: &GetStatusResponse) -> Option<Check> {
    let of = CheckBuilder(Section::Supervisor, "healthz");
    let path = Path::new(&status.runtime_dir).join(admin::SOCKET_NAME);
    if !path.exists() {
        return None;
    }
    let asked = timeout(ANSWER_TIMEOUT, ask(&path)).await;
    let shown = path.display();
    Some(match asked {
        Ok(Ok(answer)) if answer.is_success() => of.ok(format!("{shown} says that it is well")),
        Ok(Ok(answer)) => of
            .warn(format!("{shown} answers {answer}"))
            .with_reason("monitoring takes it for ill")
            .with_fix("`talon status` says what is wrong"),
        Ok(Err(error)) => of
            .warn(format!("{shown} does not answer: {}", talon_error_chain::error_chain(&error)))
            .with_reason("monitoring sees nothing")
            .with_fix("join its group (admin.group), or ask as root; else see the supervisor's log"),
        Err(_) => of
            .fail(format!("{shown} does not answer within {} seconds", ANSWER_TIMEOUT.as_secs()))
            .with_reason("the supervisor hangs, or has too much to do")
            .with_fix("see its log and `talon top`"),
    })
}

/// Why there was no answer.
#[derive(Debug, thiserror::Error)]
enum HealthError {
    #[error(transparent)]
    Connect(#[from] io::Error),
    #[error(transparent)]
    Http(#[from] hyper::Error),
    #[error(transparent)]
    Request(#[from] tonic::codegen::http::Error),
}

/// One request on a connection of its own: a client with a pool would bring HTTP/2 into the program once more.
async fn ask(socket: &Path) -> Result<StatusCode, HealthError> {
    let stream = UnixStream::connect(socket).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let request = Request::get("/healthz").header("host", "localhost").body(Empty::<bytes::Bytes>::new())?;
    // Its errors are the request's, too.
    let connection = tokio::spawn(connection);
    let answer = sender.send_request(request).await;
    connection.abort();
    Ok(answer?.status())
}

pub(super) async fn checks(config: Option<&Config>, status: Option<&GetStatusResponse>) -> Vec<Check> {
    let mut checks = Vec::new();
    if let Some(config) = config {
        checks.extend(journal(config.log.format));
        if let Some(endpoint) = &config.traces.endpoint {
            checks.push(traces(endpoint).await);
        }
    }
    if let Some(dropped) = status.map(|status| status.log_lines_dropped).filter(|count| *count > 0) {
        checks.push(
            check_named("log")
                .warn(format!("{dropped} lines of the supervisor's own were lost"))
                .with_reason("the receiver (journal, pipe, disk) was too slow")
                .with_fix("look there; `log.level` makes fewer of them"),
        );
    }
    checks
}

fn journal(format: LogFormat) -> Option<Check> {
    let of = check_named("journal");
    let there = Path::new(JOURNAL).exists();
    match (format, there.then(connect_journal)) {
        (_, Some(Ok(()))) => Some(of.ok(format!("{JOURNAL} takes entries"))),
        (LogFormat::Journald, None) => Some(
            of.fail(format!("log.format is journald, and there is no {JOURNAL}"))
                .with_reason("the supervisor has nowhere to log to")
                .with_fix("set log.format to auto"),
        ),
        (LogFormat::Journald, Some(Err(error))) => Some(
            of.fail(format!("{JOURNAL} takes nothing: {error}"))
                .with_reason("the supervisor has nowhere to log to")
                .with_fix("systemctl status systemd-journald"),
        ),
        (_, Some(Err(error))) => Some(
            of.warn(format!("{JOURNAL} takes nothing: {error}"))
                .with_fix("systemctl status systemd-journald"),
        ),
        (_, None) => None,
    }
}

fn connect_journal() -> io::Result<()> {
    UnixDatagram::unbound()?.connect(JOURNAL)
}

/// The trace collector.
async fn traces(endpoint: &str) -> Check {
    let of = check_named("traces");
    let connected = timeout(ANSWER_TIMEOUT, async {
        if let Some(path) = endpoint.strip_prefix("unix:") {
            UnixStream::connect(path).await.map(drop)
        } else {
            let authority = endpoint.split_once("://").map_or(endpoint, |(_, rest)| rest);
            TcpStream::connect(authority.trim_end_matches('/')).await.map(drop)
        }
    });
    let error = match connected.await {
        Ok(Ok(())) => return of.ok(format!("{endpoint} takes connections")),
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("no answer within {} seconds", ANSWER_TIMEOUT.as_secs()),
    };
    of.warn(format!("{endpoint} cannot be reached: {error}"))
        .with_reason("calls go on, and their traces are lost")
        .with_fix("start the collector, let this user connect to it, or change traces.endpoint")
}

#[cfg(test)]
mod tests {
    use super::super::check::Verdict;
    use super::*;

    #[tokio::test]
    async fn a_collector_is_reached_or_it_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("otlp.sock");
        let unix = format!("unix:{}", path.display());
        assert_eq!(traces(&unix).await.verdict, Verdict::Warn);
        let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        assert_eq!(traces(&unix).await.verdict, Verdict::Ok);
        let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        assert_eq!(traces(&format!("http://{}", tcp.local_addr().unwrap())).await.verdict, Verdict::Ok);
        assert_eq!(traces("http://127.0.0.1:1").await.verdict, Verdict::Warn);
    }
}

//! Stands in for `talon-agent` in tests of the supervisor's side: it implements its control protocol, serves
//! its API, and executes its clients' commands. The commands are listed in `service.rs`.
//!
//! Its standard input is the control socket, as `talon-agent`'s is.

mod service;
mod state;

use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use hyper_util::rt::TokioIo;
use talon_agent_settings::{MAX_BUNDLE_BYTES, SettingsBundle};
use talon_control::memfd;
use talon_proto::agent::agent_server::AgentServer;
use talon_proto::agent::{AttachClient, Configure, HostConnection, NeedHost, Ready, from_agent, to_agent};
use talon_proto::state::open;
use tokio::net::UnixStream;
use tokio_stream::StreamExt as _;
use tonic::transport::{Channel, Endpoint, Server};

use service::Service;
use state::{Line, Shared, send};

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let stdin: OwnedFd = std::io::stdin().as_fd().try_clone_to_owned()?;
    let line = Arc::new(Line::new(stdin)?);
    let known = Shared::default();
    send(&line, from_agent::Kind::NeedHost(NeedHost { id: 1 })).await?;
    // It ends when the control socket is closed.
    while let Some(packet) = line.receive().await? {
        let given = packet.descriptor;
        match packet.message.kind {
            Some(to_agent::Kind::Configure(configure)) => {
                let ready = configured(&known, configure, given.context("settings")?)?;
                send(&line, from_agent::Kind::Ready(ready)).await?;
            }
            Some(to_agent::Kind::HostConnection(HostConnection { .. })) => {
                let channel = channel(given.context("a connection")?)?;
                let mut known = known.lock();
                known.host = Some(channel);
                known.hosts += 1;
            }
            Some(to_agent::Kind::AttachClient(client)) => {
                serve(client, given.context("a connection")?, Arc::clone(&known), Arc::clone(&line))?;
            }
            Some(to_agent::Kind::AttachModel(_) | to_agent::Kind::DetachModel(_)) | None => {
                bail!("an unknown message")
            }
        }
    }
    Ok(())
}

/// It complains about the text of the rules, so that a test can choose the complaint.
fn configured(known: &Shared, told: Configure, settings: OwnedFd) -> anyhow::Result<Ready> {
    let bytes = memfd::read(settings, u64::try_from(MAX_BUNDLE_BYTES)?)?;
    anyhow::ensure!(told.settings_bytes == u64::try_from(bytes.len())?, "the length is as it was told");
    let handed = SettingsBundle::from_bytes(&bytes)?;
    let Some(open::Engine::Sqlite(sqlite)) = told.open.context("a database")?.engine else {
        bail!("a file was to be opened")
    };
    // In its home, which it may write to.
    std::fs::write(&sqlite.path, "")?;
    let problems = handed.settings.orchestrator.rules.clone();
    let mut known = known.lock();
    known.handed = handed;
    known.configured += 1;
    Ok(Ready { engine: "sqlite".to_owned(), place: sqlite.path, problems, full: String::new() })
}

/// A channel over an inherited connection.
fn channel(connection: OwnedFd) -> anyhow::Result<Channel> {
    let stream = net::UnixStream::from(connection);
    stream.set_nonblocking(true)?;
    let mut stream = Some(TokioIo::new(UnixStream::from_std(stream)?));
    let connector = tower::service_fn(move |_| {
        let stream = stream.take().ok_or_else(|| std::io::Error::other("it was used up"));
        async move { stream }
    });
    Ok(Endpoint::from_static("http://host.invalid").connect_with_connector_lazy(connector))
}

fn serve(client: AttachClient, connection: OwnedFd, known: Shared, line: Arc<Line>) -> anyhow::Result<()> {
    let stream = net::UnixStream::from(connection);
    stream.set_nonblocking(true)?;
    let stream = UnixStream::from_std(stream)?;
    let incoming = tokio_stream::once(std::io::Result::Ok(stream)).chain(tokio_stream::pending());
    let service = AgentServer::new(Service { client, known, line });
    tokio::spawn(Server::builder().serve_with_incoming(service, incoming));
    Ok(())
}

//! From the start of the gateway's process until it serves: by its control socket, as the supervisor starts it, without a jail.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use talon_control::Control;
use talon_proto::gateway::{Configure, FromGateway, Limits, ToGateway, from_gateway, to_gateway};
use talon_tests::program;
use tokio::time::timeout;

use super::contenders::GATEWAY;
use crate::figures::Unit;
use crate::suites::Bench;

/// Only a limit for hangs.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) async fn run(bench: &mut Bench<'_>) -> Result<()> {
    bench.progress.set_message("gateway/start");
    let rounds = if bench.plan.quick { 5 } else { 21 };
    for round in 0..=rounds {
        bench.probe.run_once();
        let took = once().await?;
        // The first reads its file from the disk.
        if round > 0 {
            bench.book.case("gateway/start", None).add(
                GATEWAY,
                "ready",
                Unit::Milliseconds,
                took.as_secs_f64() * 1e3,
            );
        }
    }
    Ok(())
}

async fn once() -> Result<Duration> {
    let (ours, theirs) = talon_control::pair()?;
    let begin = Instant::now();
    let mut command = Command::new(program("talon-gateway"));
    let mut child = command.env("TALON_LOG", "warn").stdin(theirs).stdout(Stdio::null()).spawn()?;
    drop(command);
    let control: Control<ToGateway, FromGateway> = Control::new(ours)?;
    control.send(&ToGateway { kind: Some(to_gateway::Kind::Configure(configure())) }, None).await?;
    let ready = async {
        while let Some(packet) = control.receive().await? {
            match packet.message.kind {
                Some(from_gateway::Kind::Ready(_)) => return anyhow::Ok(begin.elapsed()),
                Some(from_gateway::Kind::Refused(refused)) => bail!("the gateway: {}", refused.message),
                _ => {}
            }
        }
        bail!("the gateway ended; see above")
    };
    let took = timeout(PATIENCE, ready).await.context("the gateway is not ready")?;
    // The end of the socket is its order to end.
    drop(control);
    child.wait()?;
    took
}

/// As the supervisor's defaults are, on a port of the kernel's choice.
fn configure() -> Configure {
    Configure {
        address: "127.0.0.1:0".to_owned(),
        max_role: "call".to_owned(),
        tokens: true,
        limits: Some(Limits {
            connections: 4096,
            connections_per_address: 2048,
            header_timeout_ms: 30_000,
            body_timeout_ms: 60_000,
            body_bytes: 9 << 20,
            requests_per_minute: 1200,
            requests_per_minute_per_address: 3000,
            websockets: 4096,
            websockets_per_caller: 128,
            messages_per_websocket: 1024,
            background_turns: 2048,
            unread_timeout_ms: 30_000,
        }),
        activation: "mention".to_owned(),
        ..Configure::default()
    }
}

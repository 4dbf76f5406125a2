//! Three layers of the guard around a tool of one's own: no supervisor, no process, no gRPC.
//!
//! A host that already talks to its tools keeps doing so. It writes one service that makes a [`RawAnswer`] of
//! whatever the tool said, and puts in front of it the layers it wants: here a deadline, a bounded number of
//! calls, and a breaker.
//!
//! Run it with `cargo run -p talon-guard --example standalone`.

use std::time::Duration;

use prost::Message as _;
use talon_guard::{
    AdmissionLayer, AdmissionSettings, BreakerLayer, BreakerSettings, Call, CallError, DeadlineLayer, Origin,
    RawAnswer, Timeouts, reason,
};
use talon_proto::plugin::ToolResultResponse;
use tower::{Service, ServiceBuilder, ServiceExt as _, service_fn};

/// The host's own tool: it answers, dawdles or crashes, as it is told.
async fn tool(call: Call) -> Result<RawAnswer, CallError> {
    match call.action.as_str() {
        "greet" => {
            let content = "hello".to_owned();
            let answer = ToolResultResponse { call_id: call.id, content, ..Default::default() };
            Ok(RawAnswer(answer.encode_to_vec().into()))
        }
        "dawdle" => std::future::pending().await,
        _ => Err(CallError::fault(reason::DIED, "the tool crashed")),
    }
}

async fn run(service: &mut impl Service<Call, Response = RawAnswer, Error = CallError>, action: &str) {
    let answer = match service.ready().await {
        Ok(service) => service.call(Call::new("1", "own-tool", action, Origin::Program)).await,
        Err(error) => Err(error),
    };
    match answer {
        Ok(RawAnswer(bytes)) => println!("{action:>7}: {} bytes", bytes.len()),
        Err(error) => println!("{action:>7}: {} ({})", error, error.reason()),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let breaker = BreakerLayer::new(BreakerSettings { failures: 3, ..Default::default() });
    let breaker_gauge = breaker.gauge();
    let timeouts = Timeouts { default: Duration::from_millis(200), ..Default::default() };

    let mut guarded = ServiceBuilder::new()
        // Outermost: the time a call waits for its turn counts too.
        .layer(DeadlineLayer::new(timeouts))
        // Above admission: a call that is refused takes no place.
        .layer(breaker)
        .layer(AdmissionLayer::new(AdmissionSettings { concurrency: 4, queue: 8 }))
        .service(service_fn(tool));

    run(&mut guarded, "greet").await;
    run(&mut guarded, "dawdle").await;
    run(&mut guarded, "crash").await;
    println!("breaker: {}", breaker_gauge.state().word());
    run(&mut guarded, "crash").await;
    println!("breaker: {}", breaker_gauge.state().word());
    run(&mut guarded, "greet").await;
}

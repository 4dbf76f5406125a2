//! A plugin that tells events: numbered ones from its start on, and any that a test wants. Each start tells the numbered ones again,
//! as a plugin does that keeps its events itself. `flood` tells as fast as it can.
//!
//! `talon-event-teller [NUMBER]`

use std::collections::BTreeMap;
use std::process::ExitCode;

use talon_proto::plugin::{Action, Parameter};
use talon_sdk::{EventSource, Plugin, SourceEvent, Tool, ToolError};

fn action(name: &str, takes: &[&str]) -> Action {
    let text = |name: &&str| Parameter {
        name: (*name).to_owned(),
        r#type: "string".to_owned(),
        ..Parameter::default()
    };
    Action {
        name: name.to_owned(),
        description: format!("Does {name}."),
        parameters: takes.iter().map(text).collect(),
        ..Action::default()
    }
}

fn numbered(number: usize) -> SourceEvent {
    SourceEvent::new(format!("numbered/{number}"), "numbered", format!("event {number}"))
}

/// Tells an event, and waits until the host has it.
async fn tell(args: BTreeMap<String, String>, events: EventSource) -> Result<String, ToolError> {
    let arg = |name: &str| args.get(name).cloned().unwrap_or_default();
    let event = SourceEvent::new(arg("id"), arg("topic"), arg("summary")).details(arg("details"));
    let event = if arg("from").is_empty() { event } else { event.field("from", arg("from")) };
    match events.deliver(event).await {
        Ok(()) => Ok("told".to_owned()),
        Err(error) => Ok(error.to_string()),
    }
}

/// Tells until its queue has been full a few times.
async fn flood(events: EventSource) -> Result<String, ToolError> {
    let mut told = 0;
    for number in 0..100_000_u32 {
        told += u32::from(events.tell(SourceEvent::new(format!("flood/{number}"), "flood", "x")).is_ok());
    }
    Ok(format!("{told} of 100000 wait"))
}

fn main() -> ExitCode {
    let events = EventSource::new();
    let count = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or_default();
    for number in 0..count {
        if events.tell(numbered(number)).is_err() {
            eprintln!("the queue is full at {number}");
            return ExitCode::FAILURE;
        }
    }
    let (teller, flooder, counter) = (events.clone(), events.clone(), events.clone());
    let names = ["id", "topic", "summary", "details", "from"];
    Plugin::new("talon-event-teller")
        .description("Tells events.")
        .tools([
            Tool::dynamic(action("tell", &names), move |args, _| tell(args, teller.clone())),
            Tool::dynamic(action("flood", &[]), move |_, _| flood(flooder.clone())),
            Tool::dynamic(action("waiting", &[]), move |_, _| {
                let waiting = counter.waiting();
                async move { Ok::<_, ToolError>(waiting.to_string()) }
            }),
        ])
        .events(events)
        .serve()
}

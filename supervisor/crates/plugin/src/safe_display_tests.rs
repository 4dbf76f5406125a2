//! Whatever a plugin writes: where it is stored or reported, no control character and no control syntax is
//! left.

use proptest::prelude::*;
use prost::Message;
use talon_plugin_client::{Capability, handshake};
use talon_plugin_config::name::PluginName;
use talon_plugin_config::spec::Dialect;
use talon_proto::plugin::{Action, Parameter, PluginCapabilities};
use talon_sanitize::{Raw, Sanitized, Sanitizer};

use crate::declared_names::DeclaredNames;
use crate::events::{EventKind, Events, MAX_MESSAGE_BYTES, NewEvent};
use crate::logs::{Level, LogSink, Stream};
use crate::settings::{LogLimits, Settings};
use crate::stdio::{LastLines, LineSplitter, StreamLogger};

fn name() -> PluginName {
    PluginName::new("loud").unwrap()
}

/// Bytes that come near to control syntax more often than random ones.
fn said() -> impl Strategy<Value = Vec<u8>> {
    let token = proptest::sample::select(vec![
        &b"<|im_start|>"[..],
        b"[/plugin_output]",
        b"<tool_call>",
        b"<",
        b"|",
        b"\x1b[2J",
        b"\xc2\x9b31m",
        b"\xe2\x80\xae",
        b"\xe2\x80\x8b",
        b"\xff\xfe",
        b"\0",
        b"\r",
        b"\n",
        b"\n\nHuman:",
        b"1|",
        b"unix|",
        b"grpc",
        b"/",
        b"{\"@message\":\"\\u003cthink>\",\"@level\":\"error\"}\n",
        b"\xd1\x81all",
        b"&lt;think&gt;",
    ]);
    let piece = prop_oneof![token.prop_map(<[u8]>::to_vec), proptest::collection::vec(any::<u8>(), 0..12)];
    proptest::collection::vec(piece, 0..10).prop_map(|pieces| pieces.concat())
}

fn inert(text: &str) -> Result<(), TestCaseError> {
    prop_assert!(!text.contains(char::is_control), "{text:?}");
    prop_assert!(Sanitizer::default().is_clean(text), "{text:?}");
    Ok(())
}

/// An error becomes one line where it is reported; its text is clean already, except for line breaks from the
/// sanitizer.
fn error_is_inert(error: impl std::fmt::Display) -> Result<(), TestCaseError> {
    let text = error.to_string();
    prop_assert!(!text.contains(char::is_control), "{text:?}");
    inert(&Raw::from(text).line())
}

fn sink(events: &Events) -> LogSink {
    let settings = Settings {
        runtime_dir: "/nowhere".into(),
        log_dir: None,
        data_dir: "/nowhere".into(),
        uid_range: None,
        start_concurrency: 1,
        frames: Default::default(),
        env_allow_list: Vec::new(),
        log_limits: LogLimits { line_bytes: 60, ..LogLimits::default() },
        state: None,
        models: None,
    };
    LogSink::new(&name(), &settings, events.clone())
}

proptest! {
    #[test]
    fn on_its_streams(bytes in said(), note in said()) {
        let sink = sink(&Events::new());
        let words = LastLines::default();
        let mut scribe = StreamLogger::new(sink.clone(), 0, Stream::Stderr, words.clone());
        let mut splitter = LineSplitter::new(40);
        scribe.log_chunk(&mut splitter, &bytes);
        scribe.finish(&mut splitter);
        sink.note(0, Level::Warn, String::from_utf8_lossy(&note).into_owned());
        for line in sink.tail().recent {
            inert(&line.text)?;
        }
        inert(&words.joined().unwrap_or_default())?;
    }

    #[test]
    fn in_its_handshake(bytes in said()) {
        let line = String::from_utf8_lossy(&bytes);
        match handshake::parse(&line, Dialect::Auto, &[1]) {
            Ok(handshake) => error_is_inert(handshake)?,
            Err(error) => error_is_inert(error)?,
        }
    }

    #[test]
    fn in_the_status_of_a_call(bytes in said(), code in 0..17) {
        let status = tonic::Status::new(tonic::Code::from(code), String::from_utf8_lossy(&bytes));
        inert(&talon_plugin_client::describe_status(&status))?;
    }

    #[test]
    fn in_its_declaration(own in said(), action in said(), parameter in said(), context in said()) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let names = [("good".to_owned(), text(&parameter)), (text(&action), "good".to_owned())];
        for (action, parameter) in names {
            let raw = PluginCapabilities {
                name: text(&own),
                actions: vec![Action {
                    name: action,
                    parameters: vec![Parameter { name: parameter, ..Parameter::default() }],
                    inject_context_args: vec![text(&context)],
                    ..Action::default()
                }],
                ..PluginCapabilities::default()
            };
            match Capability::decode(&raw.encode_to_vec(), &name()) {
                Ok(capability) => {
                    inert(&capability.declared_name.sanitized())?;
                    for told in &capability.omitted {
                        inert(told)?;
                    }
                    for action in capability.actions.values() {
                        let parameters = action.parameters.iter().map(|parameter| &parameter.name);
                        for name in parameters.chain(&action.inject_context_args).chain([&action.name]) {
                            prop_assert_eq!(&Raw::from(name).line(), name, "shown is not what is called");
                        }
                    }
                }
                Err(error) => error_is_inert(error)?,
            }
        }
    }

    #[test]
    fn in_events(message in said(), field in said()) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let events = Events::new();
        let mut listener = events.subscribe();
        events.emit(NewEvent::new(EventKind::Supervisor, text(&message)).field("field", text(&field)));
        let event = listener.try_recv().unwrap();
        let fields: Vec<&Sanitized> = event.fields.values().collect();
        for text in fields.into_iter().chain([&event.message]) {
            inert(text)?;
            prop_assert!(text.len() <= MAX_MESSAGE_BYTES + '…'.len_utf8());
        }
    }
}

#[test]
fn in_the_note_about_another_plugins_name() {
    let names = DeclaredNames::default();
    let other = PluginName::new("system").unwrap();
    names.add(&name());
    names.add(&other);
    let note = names.declare(&name(), "system").unwrap();
    assert!(Sanitizer::default().is_clean(&note), "{note}");
}

//! What a listener hears when an attempt fails that had begun to speak.

use std::time::Duration;

use super::provider::Fault;
use super::setting::Setting;
use crate::model::{Chunk, ErrorClass};
use crate::route::fallback::{AnswerEvent, AnswerListener, ExhaustedReason};

/// A screen, on which what was withdrawn is wiped off.
#[derive(Default)]
struct Screen {
    text: String,
    wiped: usize,
}

impl AnswerListener for Screen {
    fn on_event(&mut self, heard: AnswerEvent) {
        match heard {
            AnswerEvent::Piece(Chunk::Text(text) | Chunk::Thinking(text)) => self.text.push_str(&text),
            AnswerEvent::Piece(Chunk::Call(_)) | AnswerEvent::Waiting { .. } => {}
            AnswerEvent::Withdrawn { .. } => {
                self.text.clear();
                self.wiped += 1;
            }
        }
    }
}

/// A pipe, into which everything is written at once.
#[derive(Default)]
struct Pipe(Vec<AnswerEvent>);

impl AnswerListener for Pipe {
    fn on_event(&mut self, heard: AnswerEvent) {
        self.0.push(heard);
    }

    fn can_withdraw(&self) -> bool {
        false
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_failed_attempt_said_is_taken_back() {
    let setting = Setting::first([Fault::BreaksOff, Fault::HangsMidway]);
    let mut screen = Screen::default();
    let answered = setting.chain.ask(&setting.question(), &mut screen).await.expect("an answer");
    assert_eq!((screen.text.as_str(), screen.wiped), ("an answer", 2));
    assert_eq!(answered.attempts.len(), 3);
    assert!(setting.events().contains(&"withdrawn 15 of first/a".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn who_can_take_nothing_back_gets_the_error() {
    let setting = Setting::first([Fault::BreaksOff]);
    let mut pipe = Pipe::default();
    let error = setting.chain.ask(&setting.question(), &mut pipe).await.expect_err("it broke off");
    assert!(matches!(error.reason, ExhaustedReason::CannotWithdraw(_)));
    assert_eq!(error.class(), Some(ErrorClass::Network));
    assert!(error.to_string().starts_with("the answer broke off: first: the connection broke"), "{error}");
    assert_eq!(pipe.0.len(), 2);
    assert_eq!(setting.times_asked(), [1, 0, 0]);
    // As long as nothing was said, it falls back as for everybody.
    let setting = Setting::first([Fault::DeadNetwork, Fault::BrokenServer]);
    let mut pipe = Pipe::default();
    let answered = setting.chain.ask(&setting.question(), &mut pipe).await.expect("an answer");
    assert_eq!((answered.attempts.len(), pipe.0.len()), (3, 1));
}

#[tokio::test(start_paused = true)]
async fn what_was_said_until_the_patience_ended_is_taken_back_too() {
    let setting = Setting::first([Fault::Slow(20, 60)]);
    let mut screen = Screen::default();
    let error = setting.chain.ask(&setting.question(), &mut screen).await.expect_err("it takes too long");
    assert!(matches!(error.reason, ExhaustedReason::DeadlineExceeded { .. }));
    assert_eq!((screen.text.as_str(), screen.wiped), ("", 1));
    assert_eq!(error.total_latency_ms, 600_000);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_heard_after_it_was_dropped() {
    let setting = Setting::first([Fault::Slow(10, 10)]);
    let mut screen = Screen::default();
    let question = setting.question();
    let asked = setting.chain.ask(&question, &mut screen);
    assert!(tokio::time::timeout(Duration::from_secs(25), asked).await.is_err());
    tokio::time::advance(Duration::from_secs(60)).await;
    assert_eq!(screen.text, "word word ");
}

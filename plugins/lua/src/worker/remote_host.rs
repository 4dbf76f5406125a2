//! What a script asks for, asked of the plugin.

use std::sync::mpsc::Receiver;

use talon_lua_engine::{Host, KvValue, LogLevel};

use super::outbox::Outbox;
use crate::message::{Answer, MachineId, Question, WorkerMessage};

/// The host of one script's calls.
pub(super) struct RemoteHost {
    machine: MachineId,
    outbox: Outbox,
    answers: Receiver<Answer>,
}

impl RemoteHost {
    pub(super) fn new(machine: MachineId, outbox: Outbox, answers: Receiver<Answer>) -> Self {
        Self { machine, outbox, answers }
    }

    fn ask(&self, question: Question) -> Result<Answer, String> {
        self.outbox.tell(self.machine, WorkerMessage::Asked(question));
        match self.answers.recv() {
            Ok(Answer::Failed(message)) => Err(message),
            Ok(answer) => Ok(answer),
            Err(_) => Err("the plugin is gone".to_owned()),
        }
    }
}

fn unexpected<T>(_: Answer) -> Result<T, String> {
    Err("the plugin answered something else than was asked: this is a defect of talon-lua".to_owned())
}

impl Host for RemoteHost {
    fn log(&self, level: LogLevel, message: &str) {
        self.outbox.tell(self.machine, WorkerMessage::Logged { level, message: message.to_owned() });
    }

    fn kv_get(&self, key: &str) -> Result<Option<KvValue>, String> {
        match self.ask(Question::KvGet { key: key.to_owned() })? {
            Answer::Value(value) => Ok(value),
            other => unexpected(other),
        }
    }

    fn kv_set(&self, key: &str, value: KvValue) -> Result<(), String> {
        match self.ask(Question::KvSet { key: key.to_owned(), value })? {
            Answer::Stored => Ok(()),
            other => unexpected(other),
        }
    }

    fn kv_delete(&self, key: &str) -> Result<bool, String> {
        match self.ask(Question::KvDelete { key: key.to_owned() })? {
            Answer::Existed(existed) => Ok(existed),
            other => unexpected(other),
        }
    }

    fn llm(&self, prompt: &str, model: Option<&str>) -> Result<String, String> {
        let model = model.map(str::to_owned);
        match self.ask(Question::Model { prompt: prompt.to_owned(), model })? {
            Answer::Text(text) => Ok(text),
            other => unexpected(other),
        }
    }
}

//! A host in memory.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use talon_lua_engine::{Context, Host, KvValue, LogLevel};

/// Key-values, log and answers of a model, in memory.
#[derive(Default)]
pub(crate) struct MemoryHost {
    pub(crate) log: RefCell<Vec<(LogLevel, String)>>,
    pub(crate) values: RefCell<BTreeMap<String, KvValue>>,
    /// What a model answers, the first first; without one it fails.
    pub(crate) answers: RefCell<Vec<String>>,
    pub(crate) asked: RefCell<Vec<(String, Option<String>)>>,
}

impl MemoryHost {
    pub(crate) fn new() -> Rc<Self> {
        Self::answering(&[])
    }

    pub(crate) fn answering(answers: &[&str]) -> Rc<Self> {
        let answers = answers.iter().map(|answer| (*answer).to_owned()).collect();
        Rc::new(Self { answers: RefCell::new(answers), ..Self::default() })
    }
}

impl Host for MemoryHost {
    fn log(&self, level: LogLevel, message: &str) {
        self.log.borrow_mut().push((level, message.to_owned()));
    }

    fn kv_get(&self, key: &str) -> Result<Option<KvValue>, String> {
        Ok(self.values.borrow().get(key).cloned())
    }

    fn kv_set(&self, key: &str, value: KvValue) -> Result<(), String> {
        let _ = self.values.borrow_mut().insert(key.to_owned(), value);
        Ok(())
    }

    fn kv_delete(&self, key: &str) -> Result<bool, String> {
        Ok(self.values.borrow_mut().remove(key).is_some())
    }

    fn llm(&self, prompt: &str, model: Option<&str>) -> Result<String, String> {
        self.asked.borrow_mut().push((prompt.to_owned(), model.map(str::to_owned)));
        let mut answers = self.answers.borrow_mut();
        if answers.is_empty() { Err("no model".to_owned()) } else { Ok(answers.remove(0)) }
    }
}

pub(crate) fn context(message: &str) -> Context {
    Context {
        message: message.to_owned(),
        session_id: "s1".to_owned(),
        sender: "ada".to_owned(),
        channel: "cli".to_owned(),
        ..Context::default()
    }
}

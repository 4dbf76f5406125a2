//! A host that has what the command line says.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};

use talon_lua_engine::{Host, KvValue, LogLevel};

/// Key-values and answers of a model from the command line; log lines are kept.
#[derive(Debug, Default)]
pub(super) struct CannedHost {
    pub(super) values: RefCell<BTreeMap<String, KvValue>>,
    pub(super) answers: RefCell<VecDeque<String>>,
    pub(super) lines: RefCell<Vec<String>>,
}

impl Host for CannedHost {
    fn log(&self, level: LogLevel, message: &str) {
        self.lines.borrow_mut().push(format!("{}: {message}", level.as_str()));
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

    fn llm(&self, _: &str, _: Option<&str>) -> Result<String, String> {
        let answer = self.answers.borrow_mut().pop_front();
        answer.ok_or_else(|| "there is no answer left: add one with --llm".to_owned())
    }
}

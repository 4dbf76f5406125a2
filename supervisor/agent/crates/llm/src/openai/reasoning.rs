//! OpenRouter's `reasoning_details`, which arrive in pieces and go back whole.

use serde_json::{Map, Value};

use crate::limits::MAX_TEXT_BYTES;
use crate::remote::Failure;

/// Fields whose pieces are strung together; the last value of all others counts.
const TEXTS: [&str; 3] = ["text", "summary", "data"];

/// Details of one answer.
#[derive(Default)]
pub(super) struct Details {
    blocks: Vec<Map<String, Value>>,
    bytes: usize,
}

impl Details {
    pub(super) fn add(&mut self, pieces: &[Value]) -> Result<(), Failure> {
        for piece in pieces.iter().filter_map(Value::as_object) {
            self.bytes += Value::Object(piece.clone()).to_string().len();
            if self.bytes > MAX_TEXT_BYTES {
                return Err(Failure::too_large("what it thought", MAX_TEXT_BYTES));
            }
            let same = |block: &&mut Map<String, Value>| {
                block.get("type") == piece.get("type") && block.get("index") == piece.get("index")
            };
            match self.blocks.last_mut().filter(same) {
                Some(block) => merge(block, piece),
                None => self.blocks.push(piece.clone()),
            }
        }
        Ok(())
    }

    pub(super) fn take(&mut self) -> Option<Value> {
        let blocks = std::mem::take(&mut self.blocks);
        (!blocks.is_empty()).then(|| blocks.into_iter().map(Value::Object).collect())
    }
}

fn merge(block: &mut Map<String, Value>, piece: &Map<String, Value>) {
    for (field, value) in piece {
        match (block.get_mut(field), value) {
            (Some(Value::String(text)), Value::String(more)) if TEXTS.contains(&field.as_str()) => {
                text.push_str(more)
            }
            (Some(_), Value::Null) => {}
            _ => drop(block.insert(field.clone(), value.clone())),
        }
    }
}

//! Scans one JSON-RPC message without building values from it.
//!
//! For a message that is too large to be decoded, two facts are needed: which call it answers, so that this
//! call can fail with an error, and whether decoding would be cheap. `[[],[],…` costs a hundred times its
//! size in memory, so the size alone does not bound what decoding allocates.

use rmcp::model::{NumberOrString, RequestId};

/// The most values in one message, lists and objects counted with their content. Half a million take some
/// hundred MiB of memory once decoded, a tenth of what a plugin may use; a real answer of 8 MiB has some ten
/// thousand.
pub(crate) const MAX_VALUES: u64 = 500_000;
/// The longest id, as it is written. Our ids are numbers.
const MAX_ID_BYTES: usize = 32;
/// The longest field name that is compared.
const MAX_KEY_BYTES: usize = 8;

/// The state of the scan after the bytes so far.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    depth: u64,
    values: u64,
    in_string: bool,
    escaped: bool,
    /// Within the outermost object: whether a value is expected, and of which field.
    in_value: bool,
    key: Vec<u8>,
    id: Vec<u8>,
    has_method: bool,
}

impl Scan {
    /// Scans some more bytes.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.step(byte);
        }
    }

    fn step(&mut self, byte: u8) {
        if self.in_string {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => {
                    self.in_string = false;
                    self.keep_id(byte);
                    return;
                }
                _ => {}
            }
            if self.depth == 1 && !self.in_value && self.key.len() <= MAX_KEY_BYTES {
                self.key.push(byte);
            }
            self.keep_id(byte);
            return;
        }
        match byte {
            b'"' => {
                self.in_string = true;
                if self.depth == 1 && !self.in_value {
                    self.key.clear();
                }
                self.keep_id(byte);
            }
            b'{' | b'[' => {
                self.depth += 1;
                self.values += 1;
            }
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            b':' if self.depth == 1 => {
                self.in_value = true;
                self.has_method |= self.key == b"method";
                if self.key == b"id" {
                    self.id.clear();
                }
            }
            b',' => {
                self.values += 1;
                if self.depth == 1 {
                    self.in_value = false;
                    self.key.clear();
                }
            }
            _ if !byte.is_ascii_whitespace() => self.keep_id(byte),
            _ => {}
        }
    }

    fn keep_id(&mut self, byte: u8) {
        if self.depth == 1 && self.in_value && self.key == b"id" && self.id.len() <= MAX_ID_BYTES {
            self.id.push(byte);
        }
    }

    /// Whether decoding it would take too much memory.
    pub(crate) fn is_costly(&self) -> bool {
        self.values > MAX_VALUES
    }

    /// The request that it answers, if it is a response.
    pub(crate) fn answered(&self) -> Option<RequestId> {
        if self.has_method {
            return None;
        }
        match serde_json::from_slice(&self.id).ok()? {
            serde_json::Value::String(text) => Some(NumberOrString::String(text.into())),
            serde_json::Value::Number(number) => number.as_i64().map(NumberOrString::Number),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn scanned(text: &str) -> Scan {
        let mut scan = Scan::default();
        for chunk in text.as_bytes().chunks(3) {
            scan.feed(chunk);
        }
        scan
    }

    #[test]
    fn the_id_is_found_wherever_it_stands() {
        let seven = Some(NumberOrString::Number(7));
        for text in [
            r#"{"jsonrpc":"2.0","id":7,"result":{}}"#,
            r#"{ "result" : {"id": 3, "x": [{"id": 4}]} , "id" : 7 }"#,
            r#"{"error":{"code":1,"message":"\"id\":9,\\"},"id":7}"#,
            r#"{"a":[1,2,{"method":"x"}],"id":7}"#,
        ] {
            assert_eq!(scanned(text).answered(), seven, "{text}");
        }
        assert_eq!(
            scanned(r#"{"id":"a,\"b","result":1}"#).answered(),
            Some(NumberOrString::String("a,\"b".into()))
        );
        for text in
            [r#"{"method":"ping","id":7}"#, r#"{"result":{"id":7}}"#, r#"{"id":null}"#, r#"{"id":[7]}"#, "[]"]
        {
            assert_eq!(scanned(text).answered(), None, "{text}");
        }
    }

    #[test]
    fn many_small_values_are_costly() {
        assert!(!scanned(&json!({"id": 1, "result": vec![0; 1000]}).to_string()).is_costly());
        let many = "[],".repeat(usize::try_from(MAX_VALUES).unwrap());
        assert!(scanned(&format!("{{\"result\":[{many}1]}}")).is_costly());
        assert!(!scanned(&json!({ "result": "[,".repeat(1_000_000) }).to_string()).is_costly());
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            r#"[a-z"\\:,{}\[\]]{0,8}"#.prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(r#"id|method|[a-z"\\:,]{0,4}"#, inner, 0..4)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_scan_says_what_reading_says(before in any_json(), id in any::<i64>(), after in any_json()) {
            let message = json!({"a": before, "id": id, "result": after});
            prop_assert_eq!(scanned(&message.to_string()).answered(), Some(NumberOrString::Number(id)));
            let request = json!({"params": after, "id": id, "method": "x"});
            prop_assert_eq!(scanned(&request.to_string()).answered(), None);
        }
    }
}

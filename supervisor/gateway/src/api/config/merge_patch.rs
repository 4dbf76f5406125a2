//! A JSON merge patch (RFC 7396) as edits of single keys.

use serde_json::Value;
use talon_config_json::MergePatchError;
use talon_proto::host::ConfigEdit;

use crate::problem::{Problem, ProblemKind};

/// The most keys of one patch: as many as the supervisor takes.
const MAX_EDITS: usize = 200;

/// The edits of a patch.
///
/// # Errors
/// A [`Problem`] if it is no object, or has too many keys, or an object below a key is empty: such a patch would change nothing there.
pub(super) fn edits(patch: Value) -> Result<Vec<ConfigEdit>, Problem> {
    let edits = talon_config_json::edits(patch).map_err(|error| match error {
        MergePatchError::NotAnObject => Problem::new(
            ProblemKind::Unprocessable,
            "a patch is an object: {\"agent\": {\"turn\": {\"iterations\": 12}}}",
        ),
        MergePatchError::EmptyObject(key) => {
            let key = key.join(".");
            let detail = format!(
                "{key} is {{}}, which changes nothing: name keys below it, or send null to remove it"
            );
            Problem::new(ProblemKind::Unprocessable, detail).with_fields([key])
        }
    })?;
    if edits.len() > MAX_EDITS {
        let detail = format!("the patch has more than {MAX_EDITS} keys: send it in parts");
        return Err(Problem::new(ProblemKind::Unprocessable, detail));
    }
    Ok(edits)
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;

    // Promises: GW-127
    #[test]
    fn an_object_is_a_patch_and_null_removes() {
        let made = edits(json!({"agent": {"turn": {"iterations": 12}, "allow": null}})).unwrap();
        let mut keys: Vec<(String, bool)> =
            made.iter().map(|edit| (edit.key.join("/"), edit.value.is_some())).collect();
        keys.sort();
        assert_eq!(keys, [("agent/allow".to_owned(), false), ("agent/turn/iterations".to_owned(), true)]);
        assert!(edits(json!([1])).is_err());
        let empty = edits(json!({"agent": {"turn": {"iterations": 12}}, "log": {"x": {}}})).unwrap_err();
        assert!(empty.detail().contains("log.x"), "{empty:?}");
        let many: Map<String, Value> = (0..=MAX_EDITS).map(|key| (key.to_string(), json!(1))).collect();
        assert!(edits(Value::Object(many)).is_err());
    }
}

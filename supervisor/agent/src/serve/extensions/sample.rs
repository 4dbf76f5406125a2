//! The built-in sample of a role, with what a client gives laid over it.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use talon_extensions::Role;
use talon_extensions::contract::{
    ApiRequest, AuthRequest, ChannelRequest, HookRequest, NotificationRequest, ScheduledTaskRequest,
    StorageRequest, full_sample, sample,
};

/// The largest sample; twice the longest message of a person.
const MAX_SAMPLE_BYTES: usize = 512 << 10;

/// The arguments of the role. Objects of the sample get the members that are given, and keep the others.
pub(super) fn with_sample(role: Role, json: &str) -> Result<Value, String> {
    if json.len() > MAX_SAMPLE_BYTES {
        return Err(format!(
            "the sample has {} bytes, and {MAX_SAMPLE_BYTES} are the most: shorten it",
            json.len()
        ));
    }
    let mut values = sample(role);
    // It sends nothing unless it is asked to.
    if role == Role::Channel {
        values["op"] = "open".into();
    }
    if !json.trim().is_empty() {
        let given: Map<String, Value> = serde_json::from_str(json)
            .map_err(|error| format!("the sample is no JSON object: {error}; see docs/extensions"))?;
        let known = full_sample(role);
        for (name, value) in given {
            // A job's own arguments stand beside those of the role.
            if known.get(&name).is_none() && role != Role::ScheduledTask {
                let names: Vec<&str> =
                    known.as_object().into_iter().flat_map(Map::keys).map(String::as_str).collect();
                return Err(format!("the role {role} has no argument {name:?}: it has {}", names.join(", ")));
            }
            match (values.get_mut(&name), value) {
                (Some(Value::Object(fields)), Value::Object(more)) => fields.extend(more),
                (_, value) => values[name] = value,
            }
        }
    }
    let checked = match role {
        Role::Filter | Role::RequestHook | Role::ResponseHook => fits::<HookRequest>(&values),
        Role::NotificationSink => fits::<NotificationRequest>(&values),
        Role::ScheduledTask => fits::<ScheduledTaskRequest>(&values),
        Role::AuthProvider => fits::<AuthRequest>(&values),
        Role::ApiRoute => fits::<ApiRequest>(&values),
        Role::StorageBackend => fits::<StorageRequest>(&values),
        Role::Channel => fits::<ChannelRequest>(&values),
    };
    checked.map_err(|error| format!("the sample does not fit the role {role}: {error}"))?;
    Ok(values)
}

fn fits<T: DeserializeOwned>(values: &Value) -> Result<(), serde_json::Error> {
    T::deserialize(values).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_laid_over_the_built_in_one() {
        let asked = with_sample(Role::RequestHook, r#"{"message": "x", "session": {"sender": "bob"}}"#)
            .expect("fits");
        assert_eq!(
            (&asked["message"], &asked["session"]["sender"], &asked["session"]["turn"]),
            (&"x".into(), &"bob".into(), &1.into())
        );
        for role in Role::ALL.into_iter().filter(|role| *role != Role::Channel) {
            assert_eq!(with_sample(role, ""), Ok(sample(role)));
        }
        let channel = |json| with_sample(Role::Channel, json).expect("fits")["op"].clone();
        assert_eq!((channel(""), channel(r#"{"op": "send"}"#)), ("open".into(), "send".into()));
        assert!(with_sample(Role::ScheduledTask, r#"{"older_than_days": 3}"#).is_ok());
        for (role, json, says) in [
            (Role::Filter, "[]", "no JSON object"),
            (Role::Filter, r#"{"mesage": ""}"#, "it has message, session, metadata"),
            (Role::Filter, r#"{"message": 7}"#, "does not fit"),
            (Role::NotificationSink, r#"{"event": {"kind": "x.y"}}"#, "does not fit"),
            (Role::ApiRoute, r#"{"method": "BREW"}"#, "does not fit"),
        ] {
            assert!(with_sample(role, json).expect_err(json).contains(says), "{json}");
        }
    }
}

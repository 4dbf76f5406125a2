//! The methods that are offered, with their types.

use std::path::Path;

use prost_reflect::{DescriptorPool, MessageDescriptor, MethodDescriptor};
use prost_types::method_options::IdempotencyLevel;
use talon_bridge::text::{MAX_ERROR_TEXT_BYTES, cut};
use talon_descriptor::DescriptorError;
use tonic::codegen::http::uri::PathAndQuery;

use crate::command::Command;
use crate::comments;

/// One method as an action.
#[derive(Debug, Clone)]
pub(crate) struct Method {
    /// The action's name.
    pub(crate) action: String,
    /// Its full name, for messages: `proto.KV/Get`.
    pub(crate) name: String,
    /// Its path on the wire.
    pub(crate) path: PathAndQuery,
    /// What its author wrote about it.
    pub(crate) description: String,
    /// Whether its author says that it changes nothing.
    pub(crate) is_read_only: bool,
    /// The request.
    pub(crate) input: MessageDescriptor,
    /// The answer.
    pub(crate) output: MessageDescriptor,
}

/// The methods, and those that are not offered because they stream.
#[derive(Debug)]
pub(crate) struct Methods {
    pub(crate) offered: Vec<Method>,
    pub(crate) streaming: Vec<String>,
}

/// Why the descriptor cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MethodsError {
    /// Names do not fit together.
    #[error(transparent)]
    Descriptor(#[from] DescriptorError),
    /// Types do not fit together.
    #[error("{0}: write it anew by protoc --include_imports --descriptor_set_out=FILE")]
    Types(String),
}

/// Reads the descriptor and the service's methods in it.
pub(crate) fn read(command: &Command) -> Result<Methods, MethodsError> {
    let bytes = talon_descriptor::read(Path::new(&command.descriptor))?;
    of_descriptor(&bytes, command)
}

pub(crate) fn of_descriptor(bytes: &[u8], command: &Command) -> Result<Methods, MethodsError> {
    let actions = talon_descriptor::actions(bytes, &command.service, &command.methods)?;
    let pool = DescriptorPool::decode(bytes)
        .map_err(|error| MethodsError::Types(cut(&error.to_string(), MAX_ERROR_TEXT_BYTES)))?;
    let missing = || MethodsError::Types(format!("{} cannot be resolved", command.service));
    let service = pool.get_service_by_name(&command.service).ok_or_else(missing)?;
    let offered = actions.methods.into_iter().map(|(action, name)| {
        let method = service.methods().find(|method| method.name() == name).ok_or_else(missing)?;
        method_of(action, &method).ok_or_else(missing)
    });
    Ok(Methods { offered: offered.collect::<Result<_, _>>()?, streaming: actions.streaming })
}

fn method_of(action: String, method: &MethodDescriptor) -> Option<Method> {
    let name = format!("{}/{}", method.parent_service().full_name(), method.name());
    let comment = comments::of(method.parent_file().file_descriptor_proto(), method.path());
    let options = method.method_descriptor_proto().options.as_ref();
    let is_read_only =
        options.is_some_and(|options| options.idempotency_level() == IdempotencyLevel::NoSideEffects);
    Some(Method {
        action,
        path: format!("/{name}").parse().ok()?,
        description: if comment.is_empty() { format!("Calls {name}.") } else { comment },
        name,
        is_read_only,
        input: method.input(),
        output: method.output(),
    })
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;
    use crate::fixture::descriptor;

    const SOURCE: &str = "syntax = \"proto3\"; package p;
        message Key { string key = 1; }
        service KV {
          // Reads the value of a key.
          rpc Get(Key) returns (Key) { option idempotency_level = NO_SIDE_EFFECTS; }
          rpc Put(Key) returns (Key);
          rpc Watch(Key) returns (stream Key);
        }";

    #[test]
    fn methods_have_what_their_author_wrote() {
        let line = ["--descriptor", "/x", "--service", "p.KV", "--", "x"].map(OsString::from);
        let command = Command::parse(line).unwrap();
        let methods = of_descriptor(&descriptor(SOURCE), &command).unwrap();
        let [get, put] = methods.offered.as_slice() else { panic!("{methods:?}") };
        assert_eq!((get.name.as_str(), get.path.as_str()), ("p.KV/Get", "/p.KV/Get"));
        assert_eq!((get.description.as_str(), get.is_read_only), ("Reads the value of a key.", true));
        assert_eq!((put.description.as_str(), put.is_read_only), ("Calls p.KV/Put.", false));
        assert_eq!(methods.streaming, ["Watch"]);
    }
}

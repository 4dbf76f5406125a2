//! A foreign gRPC service by its descriptor: which of its methods are actions, and under which names.
//!
//! It reads a `FileDescriptorSet`, as `protoc --include_imports --descriptor_set_out` writes it, and of that
//! only names, imports and what streams. Types are the bridge's matter.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use prost::Message as _;
use prost_types::{FileDescriptorProto, FileDescriptorSet, MethodDescriptorProto};
use talon_action_name::action_name;

/// The largest descriptor, in bytes: gRPC's own bound of a message. Terraform's and Vault's plugin protocols
/// have less than a twentieth of it with all comments. A larger one is refused.
pub const MAX_DESCRIPTOR_BYTES: u64 = 4 << 20;
/// The most methods that become actions: as many as the supervisor takes from one plugin.
pub const MAX_METHODS: usize = 1024;
/// How many names an error lists.
const MAX_LISTED: usize = 8;
/// How many bytes of a name an error shows.
const MAX_SHOWN_BYTES: usize = 100;

/// Which methods of a service are actions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceActions {
    /// Its full name.
    pub service: String,
    /// The actions, by name: the methods that they call.
    pub methods: BTreeMap<String, String>,
    /// Its methods that stream, if no names are given: they are not offered.
    pub streaming: Vec<String>,
}

/// Why a descriptor cannot be used. The messages end with what to do next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DescriptorError {
    /// It cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is no ordinary file.
    #[error("{} is no file: name the file that protoc --descriptor_set_out wrote", .0.display())]
    NoFile(PathBuf),
    /// It is too large.
    #[error(
        "{} is larger than {} MiB: let protoc write only the service's file and its imports",
        .0.display(),
        MAX_DESCRIPTOR_BYTES >> 20
    )]
    TooLarge(PathBuf),
    /// It is not the message.
    #[error(
        "it is no FileDescriptorSet ({0}): write it by protoc --include_imports --descriptor_set_out=FILE"
    )]
    Malformed(String),
    /// A file is missing in it.
    #[error("{file} imports {import}, which is not in it: write it by protoc with --include_imports")]
    MissingImport {
        /// The file that imports.
        file: String,
        /// What it imports.
        import: String,
    },
    /// The service is missing.
    #[error("it has no service {service}; it has {present}: correct service, or describe that service")]
    NoService {
        /// The service.
        service: String,
        /// Those that it has.
        present: String,
    },
    /// A method is missing.
    #[error("{service} has no method {method}; it has {present}: correct methods")]
    NoMethod {
        /// The service.
        service: String,
        /// The method.
        method: String,
        /// Those that it has.
        present: String,
    },
    /// A method streams.
    #[error("the method {method} of {service} streams, and a call has one answer: remove it from methods")]
    Streams {
        /// The service.
        service: String,
        /// The method.
        method: String,
    },
    /// All methods stream.
    #[error(
        "{service} has no method with one question and one answer, and no other can be an action: {streaming}"
    )]
    OnlyStreams {
        /// The service.
        service: String,
        /// Its methods.
        streaming: String,
    },
    /// A name that no action can have.
    #[error(
        "{action:?}, for the method {method}, is no action's name: write 1 to 64 of a-z, A-Z, 0-9, _ and -, such as {example}"
    )]
    BadAction {
        /// The method.
        method: String,
        /// The name.
        action: String,
        /// The same name, escaped.
        example: String,
    },
    /// Two methods have the same action.
    #[error(
        "the methods {first} and {second} are both the action {action}: give each another name in methods"
    )]
    Duplicate {
        /// The action.
        action: String,
        /// One method.
        first: String,
        /// The other one.
        second: String,
    },
    /// There are too many.
    #[error("{service} has {count} methods, and at most {MAX_METHODS} can be actions: list those in methods")]
    TooMany {
        /// The service.
        service: String,
        /// How many it has.
        count: usize,
    },
}

/// Reads a descriptor's file. Blocking.
///
/// # Errors
/// [`DescriptorError`]: it cannot be read, or is too large.
pub fn read(path: &Path) -> Result<Vec<u8>, DescriptorError> {
    use rustix::fs::{Mode, OFlags, open};

    let failed = |source: io::Error| DescriptorError::Io { path: path.to_owned(), source };
    // A FIFO without a writer must not block.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(open(path, flags, Mode::empty()).map_err(|error| failed(error.into()))?);
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(DescriptorError::NoFile(path.to_owned()));
    }
    let mut bytes = Vec::new();
    file.take(MAX_DESCRIPTOR_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MAX_DESCRIPTOR_BYTES {
        return Err(DescriptorError::TooLarge(path.to_owned()));
    }
    Ok(bytes)
}

/// The actions of a service. `names` has the methods that are offered, with the names of their actions; if it
/// is empty, every method that does not stream is offered under its own name, escaped if that is no action's.
///
/// # Errors
/// [`DescriptorError`]: it is malformed or incomplete, or lacks what is named.
pub fn actions(
    descriptor: &[u8],
    service: &str,
    names: &BTreeMap<String, String>,
) -> Result<ServiceActions, DescriptorError> {
    let set = FileDescriptorSet::decode(descriptor)
        .map_err(|error| DescriptorError::Malformed(shown(&error.to_string())))?;
    check_imports(&set)?;
    let methods = methods(&set, service)?;
    let (streaming, unary): (Vec<_>, Vec<_>) = methods.iter().partition(|method| streams(method));
    let mut actions = ServiceActions {
        service: service.to_owned(),
        methods: BTreeMap::new(),
        streaming: streaming.iter().map(|method| shown(method.name())).collect(),
    };
    if names.is_empty() {
        if unary.is_empty() {
            let streaming = listed(streaming.iter().map(|method| method.name()));
            return Err(DescriptorError::OnlyStreams { service: shown(service), streaming });
        }
        for method in unary {
            actions.insert(action_name(method.name()), method.name())?;
        }
        return Ok(actions);
    }
    for (name, action) in names {
        let Some(method) = methods.iter().find(|method| method.name() == name) else {
            let present = listed(unary.iter().map(|method| method.name()));
            return Err(DescriptorError::NoMethod { service: shown(service), method: shown(name), present });
        };
        if streams(method) {
            return Err(DescriptorError::Streams { service: shown(service), method: shown(name) });
        }
        let escaped = action_name(action);
        if escaped != *action {
            let (method, action) = (shown(name), shown(action));
            return Err(DescriptorError::BadAction { method, action, example: escaped });
        }
        actions.insert(escaped, name)?;
    }
    Ok(actions)
}

impl ServiceActions {
    fn insert(&mut self, action: String, method: &str) -> Result<(), DescriptorError> {
        if self.methods.len() == MAX_METHODS {
            return Err(DescriptorError::TooMany { service: shown(&self.service), count: MAX_METHODS + 1 });
        }
        match self.methods.get(&action) {
            None => {
                self.methods.insert(action, method.to_owned());
                Ok(())
            }
            Some(first) => {
                let (first, second) = (shown(first), shown(method));
                Err(DescriptorError::Duplicate { action, first, second })
            }
        }
    }
}

fn check_imports(set: &FileDescriptorSet) -> Result<(), DescriptorError> {
    let present: BTreeSet<&str> = set.file.iter().map(FileDescriptorProto::name).collect();
    for file in &set.file {
        if let Some(import) = file.dependency.iter().find(|import| !present.contains(import.as_str())) {
            return Err(DescriptorError::MissingImport { file: shown(file.name()), import: shown(import) });
        }
    }
    Ok(())
}

fn methods<'s>(
    set: &'s FileDescriptorSet,
    service: &str,
) -> Result<&'s [MethodDescriptorProto], DescriptorError> {
    let services = || {
        set.file.iter().flat_map(|file| {
            file.service.iter().map(move |service| (full_name(file.package(), service.name()), service))
        })
    };
    match services().find(|(name, _)| name == service) {
        Some((_, found)) => Ok(&found.method),
        None => {
            let names: Vec<String> = services().map(|(name, _)| name).collect();
            let present = listed(names.iter().map(String::as_str));
            Err(DescriptorError::NoService { service: shown(service), present })
        }
    }
}

fn full_name(package: &str, name: &str) -> String {
    if package.is_empty() { name.to_owned() } else { format!("{package}.{name}") }
}

fn streams(method: &MethodDescriptorProto) -> bool {
    method.client_streaming() || method.server_streaming()
}

/// The first of these names.
fn listed<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let names: Vec<String> = names.map(shown).collect();
    match names.len() {
        0 => "none".to_owned(),
        count if count <= MAX_LISTED => names.join(", "),
        count => format!("{} and {} more", names[..MAX_LISTED].join(", "), count - MAX_LISTED),
    }
}

/// A text of the descriptor's, on one line of bounded length.
fn shown(text: &str) -> String {
    let end = text.floor_char_boundary(MAX_SHOWN_BYTES);
    let mark = if end < text.len() { "…" } else { "" };
    format!("{}{mark}", text[..end].escape_debug())
}

#[cfg(test)]
mod tests;

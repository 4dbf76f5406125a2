//! A service that is not `PluginService`, and is translated.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

/// What the bridge of a foreign service is started with. The service's name is the spec's `service`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ForeignService {
    /// The file with its descriptor, a `FileDescriptorSet`; absolute.
    pub descriptor: PathBuf,
    /// The methods that are offered, and their actions' names. Empty: all that do not stream.
    pub methods: BTreeMap<String, String>,
}

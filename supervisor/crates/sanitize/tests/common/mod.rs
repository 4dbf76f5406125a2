//! What the integration tests share.

pub(crate) mod decode;
pub(crate) mod grow;
pub(crate) mod oracle;

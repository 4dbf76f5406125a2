//! What every request passes before a route sees it.
//!
//! | module | contents |
//! |---|---|
//! | `site` | under which name it came, and from which site's page |
//! | `rate` | how many requests its address sent |
//! | `identify` | who it is for |
//! | `framing` | where it ends, and that nothing is hidden behind it |
//! | `body` | how large its body may be, and how long it may take |
//! | `security_headers` | what a browser must not do with the answer |

mod body;
mod framing;
mod identify;
mod rate;
mod security_headers;
mod site;

pub(crate) use body::bounded_body;
pub(crate) use framing::close_after_chunks;
pub(crate) use identify::{identify, require_caller};
pub(crate) use rate::limited_by_address;
pub(crate) use security_headers::security_headers;
pub(crate) use site::{cross_origin, own_site};

//! `#[filter]`, `#[request_hook]`, `#[notification_sink]` and the other attributes of roles: a tool with a role.

use proc_macro::TokenStream;

use crate::options::Options;
use crate::tool;

/// Expands an attribute of a role on a function.
pub(crate) fn expand(role: &str, options: TokenStream, item: TokenStream) -> TokenStream {
    expanded(role, options.into(), item.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// The same on tokens that tests can make.
pub(crate) fn expanded(
    role: &str,
    options: proc_macro2::TokenStream,
    item: proc_macro2::TokenStream,
) -> Result<proc_macro2::TokenStream, syn::Error> {
    let mut options = Options::parse(options)?;
    options.roles.insert(0, role.to_owned());
    tool::expand_with(options, item)
}

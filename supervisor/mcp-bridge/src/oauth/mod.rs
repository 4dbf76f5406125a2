//! OAuth 2.1 for servers with a URL: `talon mcp login`, and the tokens that came of it.
//!
//! | module | what it does |
//! |---|---|
//! | `client` | who we are to an authorization server |
//! | `fetch` | one request to a server of a login: bounded, no redirects |
//! | `metadata` | which authorization server a server names, and what that one says of itself |
//! | `device` | the person's consent on another device |
//! | `login` | registration, the person's consent, the first tokens |
//! | `logout` | withdraws the tokens |
//! | `redirect` | waits for the browser to come back |
//! | `token` | asks the token endpoint; the credential that is stored |
//! | `token_source` | the token of each request of the running bridge: kept in the plugin's state, and refreshed |
//!
//! The login is run by the operator, outside of any jail. The refresh is the bridge's, in the plugin's jail: so
//! the tokens are in the plugin's own process and its state alone (docs/decisions/0020).

mod client;
mod device;
mod error;
mod fetch;
mod login;
mod logout;
mod metadata;
mod redirect;
mod token;
mod token_source;

pub(crate) use login::{LoginRequest, login};
pub(crate) use logout::logout;
pub(crate) use token::Credential;
pub(crate) use token_source::TokenSource;

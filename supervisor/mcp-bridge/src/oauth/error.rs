//! Why there is no token.

/// Why a login or a refresh failed. The texts end with what to do next; none holds a token.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OauthError {
    #[error("{url} cannot be reached: {why}")]
    Unreachable { url: String, why: String },
    #[error(
        "{url} answers with a redirect to {location:?}, which is not followed: nothing of a login leaves the server that was named"
    )]
    Redirect { url: String, location: String },
    #[error("{url} answers with HTTP {status}: {text:?}")]
    Status { url: String, status: u16, text: String },
    #[error("{url} answers something else than was expected: {why}; report it to its operator")]
    Answer { url: String, why: String },
    #[error("{0:?} is no address for a login: it has to begin with https:// (or http://, on this machine)")]
    Address(String),
    #[error("its metadata is at {named:?}, which is not on its own host and port: refused")]
    ForeignMetadata { named: String },
    #[error(
        "its metadata is about {named:?}, and not about {asked:?}: refused, because tokens for it could be used elsewhere"
    )]
    Resource { named: String, asked: String },
    #[error(
        "{asked} says that it is the issuer {named:?}: refused, because it may stand in for another authorization server"
    )]
    Issuer { asked: String, named: String },
    #[error(
        "it names no authorization server: ask its operator how one logs in, and put a header into config.headers"
    )]
    NoAuthorizationServer,
    #[error(
        "{issuer} does not offer PKCE with S256, without which a code could be stolen on its way: refused"
    )]
    NoPkce { issuer: String },
    #[error(
        "{issuer} registers no clients on request: register one with it, and give its id with --client-id"
    )]
    NoRegistration { issuer: String },
    #[error(
        "{issuer} has no login on another device: leave --device out, and paste the address of the page that the browser could not open"
    )]
    NoDevice { issuer: String },
    #[error(
        "its code for the other device is none that a person could type: refused; report it to its operator"
    )]
    UserCode,
    #[error(
        "its endpoint to withdraw tokens is at {named:?}, which is not where they came from: refused, nothing was sent there"
    )]
    ForeignRevocation { named: String },
    #[error("the authorization server refuses: {error}{description}")]
    Refused { error: String, description: String },
    #[error(
        "the answer of the browser belongs to another login, or to another authorization server: begin again, and use the newest address"
    )]
    ForeignAnswer,
    #[error("no login came within {0} minutes: begin again")]
    Timeout(u64),
    #[error("cannot wait for the browser: {0}")]
    Listen(#[source] std::io::Error),
    #[error("no random numbers: {0}")]
    Random(#[from] getrandom::Error),
    #[error("the plugin's state cannot be used: {0}")]
    State(#[from] talon_sdk::StateError),
    #[error("the login is over: {why}")]
    LoginNeeded { why: String },
}

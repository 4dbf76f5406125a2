//! The end of a login: its tokens are withdrawn where they came from (RFC 7009).

use super::error::OauthError;
use super::fetch::address;
use super::metadata::authorization_server;
use super::token::{Credential, refusal};

/// Withdraws the tokens of a stored credential. Whether its authorization server has an endpoint for that.
///
/// The refresh token first: with it the access tokens end, too, at most servers.
pub(crate) async fn logout(credential: &Credential) -> Result<bool, OauthError> {
    let server = authorization_server(&credential.issuer).await?;
    let Some(endpoint) = &server.revocation_endpoint else { return Ok(false) };
    let endpoint = address(endpoint)?;
    // Tokens go to nobody but the server that they came from.
    let known = [address(&credential.issuer)?, address(&credential.token_endpoint)?];
    if !known.iter().any(|place| place.origin() == endpoint.origin()) {
        return Err(OauthError::ForeignRevocation { named: super::fetch::origin_and_path(&endpoint) });
    }
    let refresh = credential.refresh_token.iter().map(|token| (token, "refresh_token"));
    for (token, hint) in refresh.chain([(&credential.access_token, "access_token")]) {
        let fields = [("token", token.as_str()), ("token_type_hint", hint)];
        let reply = credential.client.post(&endpoint, &fields).await?;
        match refusal(&reply) {
            // It withdraws tokens of the other kind alone.
            Some(OauthError::Refused { error, .. }) if error == "unsupported_token_type" => {}
            Some(refused) => return Err(refused),
            None => reply.succeeded()?,
        }
    }
    Ok(true)
}

//! Tokens and browser sessions: issued and revoked by administrators, checked for the gateway.

use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use talon_guard::Origin;
use talon_listen::delegation::is_subject;
use talon_proto::host::{
    CheckCredentialRequest, CheckCredentialResponse, CreateTokenRequest, CreateTokenResponse,
    CredentialChange, ListTokensRequest, ListTokensResponse, OpenGatewayRequest, OpenGatewayResponse,
    RedeemLinkRequest, RedeemLinkResponse, RevokeTokenRequest, RevokeTokenResponse, WatchCredentialsRequest,
};
use tokio::sync::broadcast::error::RecvError;
use tonic::{Request, Response, Status};

use super::context::HostContext;
use crate::config::{Role, name_of};
use crate::credentials::{CredentialError, Credentials, Digest, TokenGrant};
use crate::gateway::GatewaySupervisor;
use crate::peer::{AuthorizedPeer, Peer, require};
use crate::to_wire::status_text;

pub(super) async fn create(
    context: &HostContext,
    request: Request<CreateTokenRequest>,
) -> Result<Response<CreateTokenResponse>, Status> {
    require(&request, Role::Admin)?;
    let grant = TokenGrant::try_from(request.into_inner())
        .map_err(|error| Status::invalid_argument(status_text(error.to_string())))?;
    let (token, record) = credentials(context)?.issue(grant).await.map_err(status)?;
    Ok(Response::new(CreateTokenResponse { token, credential: Some(record.into()) }))
}

pub(super) async fn list(
    context: &HostContext,
    request: Request<ListTokensRequest>,
) -> Result<Response<ListTokensResponse>, Status> {
    require(&request, Role::Admin)?;
    let records = credentials(context)?.list().await.map_err(status)?;
    Ok(Response::new(ListTokensResponse { credentials: records.into_iter().map(Into::into).collect() }))
}

pub(super) async fn revoke(
    context: &HostContext,
    request: Request<RevokeTokenRequest>,
) -> Result<Response<RevokeTokenResponse>, Status> {
    require(&request, Role::Admin)?;
    credentials(context)?.revoke(&request.get_ref().id).await.map_err(status)?;
    Ok(Response::new(RevokeTokenResponse {}))
}

/// A link for the caller: whose browser it is follows from who asks.
pub(super) async fn open(
    context: &HostContext,
    request: Request<OpenGatewayRequest>,
) -> Result<Response<OpenGatewayResponse>, Status> {
    let permitted = require(&request, Role::Call)?;
    let AuthorizedPeer { peer, origin } = permitted;
    if origin != Origin::Person || peer.delegation.is_some() || peer.allowed.is_some() {
        return Err(Status::permission_denied(
            "a session of a browser is for a person who may call everything: see origin and allow of host.peers",
        ));
    }
    let Some(gateway) = context.info.gateway.as_ref().and_then(GatewaySupervisor::url) else {
        return Err(Status::failed_precondition(
            "no gateway serves: set gateway.enabled and start talon again, or see `talon status` for why it does not",
        ));
    };
    let mut scopes = vec!["chat".to_owned(), "approve".to_owned()];
    let role = peer.rights.map(|(role, _)| role);
    for scope in request.into_inner().scopes {
        let needed = match scope.as_str() {
            "chat" | "approve" => continue,
            "operate" => Role::Operate,
            "admin" => Role::Admin,
            _ => {
                return Err(Status::invalid_argument(
                    "a browser's session has the scopes chat, approve, operate and admin",
                ));
            }
        };
        if role < Some(needed) {
            return Err(Status::permission_denied(status_text(format!(
                "the scope {scope} needs that role: leave it out"
            ))));
        }
        scopes.push(scope);
    }
    let uid = peer.uid;
    let named = tokio::task::spawn_blocking(move || name_of(uid)).await;
    let name = named.ok().and_then(Result::ok).flatten().unwrap_or_else(|| format!("uid-{uid}"));
    let subject = format!("gw:local/{name}");
    if !is_subject(&subject) {
        return Err(Status::failed_precondition("the user's name cannot stand in a subject"));
    }
    let (code, expires_unix_ms) = credentials(context)?.link(subject, scopes).map_err(status)?;
    Ok(Response::new(OpenGatewayResponse { url: format!("{gateway}/open/{code}"), expires_unix_ms }))
}

pub(super) async fn check(
    context: &HostContext,
    request: Request<CheckCredentialRequest>,
) -> Result<Response<CheckCredentialResponse>, Status> {
    require_gateway(&request)?;
    let CheckCredentialRequest { id, digest } = request.into_inner();
    let record = credentials(context)?.check(&id, digest_of(&digest)?).await.map_err(status)?;
    Ok(Response::new(CheckCredentialResponse { credential: Some(record.into()) }))
}

pub(super) async fn redeem(
    context: &HostContext,
    request: Request<RedeemLinkRequest>,
) -> Result<Response<RedeemLinkResponse>, Status> {
    require_gateway(&request)?;
    let RedeemLinkRequest { id, digest } = request.into_inner();
    let (token, record) = credentials(context)?.redeem(&id, digest_of(&digest)?).await.map_err(status)?;
    Ok(Response::new(RedeemLinkResponse { token, credential: Some(record.into()) }))
}

pub(super) fn watch(
    context: &HostContext,
    request: &Request<WatchCredentialsRequest>,
) -> Result<Response<BoxStream<'static, Result<CredentialChange, Status>>>, Status> {
    require_gateway(request)?;
    let revoked = credentials(context)?.revocations();
    let changes = stream::unfold(revoked, async |mut revoked| match revoked.recv().await {
        Ok(revoked_id) => Some((Ok(CredentialChange { revoked_id }), revoked)),
        // The gateway ends what hangs on a credential, and asks again.
        Err(RecvError::Lagged(_)) => Some((Err(Status::data_loss("some revocations were missed")), revoked)),
        Err(RecvError::Closed) => None,
    });
    Ok(Response::new(context.until_closing(changes.boxed(), None)))
}

fn credentials(context: &HostContext) -> Result<&Credentials, Status> {
    context.info.credentials.as_ref().ok_or_else(|| {
        Status::failed_precondition(
            "tokens are stored in talon-state, and this supervisor keeps no state (state.engine: off): set another engine and start it again",
        )
    })
}

/// These requests tell which secrets hold: the gateway alone asks them.
fn require_gateway<T>(request: &Request<T>) -> Result<(), Status> {
    if request.extensions().get::<Peer>().is_some_and(Peer::is_gateway) {
        return Ok(());
    }
    Err(Status::permission_denied(
        "only the gateway asks this, on the connection that the supervisor gave it",
    ))
}

fn digest_of(bytes: &[u8]) -> Result<Digest, Status> {
    Digest::of_bytes(bytes).ok_or_else(|| Status::invalid_argument("a digest has 32 bytes"))
}

fn status(error: CredentialError) -> Status {
    let text = status_text(error.to_string());
    match error {
        CredentialError::Full(_) => Status::resource_exhausted(text),
        CredentialError::Unknown(_) => Status::not_found(text),
        CredentialError::Invalid => Status::unauthenticated(text),
        CredentialError::Random(_) | CredentialError::Store(_) => Status::unavailable(text),
    }
}

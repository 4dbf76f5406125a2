//! HTTP/2 without a gRPC library, so that an answer can be any sequence of bytes.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use futures_util::{Stream, StreamExt as _};
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use talon_proto::plugin::{PluginInitRequest, ToolCallRequest};
use tokio::net::UnixListener;
use tokio::sync::{Mutex, broadcast};
use tokio_stream::wrappers::BroadcastStream;

use crate::capabilities::capabilities;
use crate::deferred::DeferredResults;
use crate::events::Events;
use crate::fault_kinds::{Fault, StartFault};
use crate::headers::Headers;
use crate::options::Options;
use crate::reply::Reply;
use crate::shared::Shared;
use crate::{actions, faults, flood, hostile};

/// How many lines of calls wait for who listens.
const NOTICES: usize = 64;

type Body = StreamBody<Pin<Box<dyn Stream<Item = Result<Frame<Bytes>, Infallible>> + Send>>>;

pub(crate) async fn serve(listener: UnixListener, options: Options) -> anyhow::Result<()> {
    let events = options.events.map(Events::new);
    let shared = Arc::new(Shared {
        events,
        notices: broadcast::Sender::new(NOTICES),
        options,
        calls: AtomicU64::new(0),
        declared: AtomicU64::new(0),
        one_at_a_time: Mutex::new(()),
        late: DeferredResults::default(),
        called: Arc::default(),
    });
    loop {
        let (stream, _) = listener.accept().await?;
        let stream = match shared.options.flood {
            Some(flood) => flood::serve_until(stream, flood, shared.called.clone())?,
            None => stream,
        };
        let shared = shared.clone();
        tokio::spawn(async move {
            let service = hyper::service::service_fn(move |request| answer(shared.clone(), request));
            let mut builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            builder.max_frame_size(1 << 20).initial_stream_window_size(4 << 20);
            if let Err(error) = builder.serve_connection(TokioIo::new(stream), service).await {
                eprintln!("misbehave: connection: {error}");
            }
        });
    }
}

async fn answer(shared: Arc<Shared>, request: Request<Incoming>) -> Result<Response<Body>, std::io::Error> {
    let path = request.uri().path().to_owned();
    let headers = Headers::of(request.headers());
    let mut body = request.into_body().collect().await.map_err(std::io::Error::other)?.to_bytes();
    let message = if body.len() >= 5 {
        body.advance(5);
        body
    } else {
        Bytes::new()
    };
    let _turn = match shared.options.single_threaded {
        true => Some(shared.one_at_a_time.lock().await),
        false => None,
    };
    match route(&shared, &path, message, &headers).await {
        Reply::Message(message) => {
            let mut framed = BytesMut::with_capacity(message.len() + 5);
            framed.put_u8(0);
            framed.put_u32(u32::try_from(message.len()).map_err(std::io::Error::other)?);
            framed.put(message);
            let framed = framed.freeze();
            Ok(response(Box::pin(futures_util::stream::iter([
                Ok(Frame::data(framed)),
                Ok(Frame::trailers(status(0, ""))),
            ]))))
        }
        Reply::Raw { claimed, body } => {
            let mut prefix = BytesMut::with_capacity(5);
            prefix.put_u8(0);
            prefix.put_u32(claimed);
            let frames = futures_util::stream::iter([Ok(Frame::data(prefix.freeze()))])
                .chain(body.map(|piece| Ok(Frame::data(piece))))
                .chain(futures_util::stream::iter([Ok(Frame::trailers(status(0, "")))]));
            Ok(response(Box::pin(frames)))
        }
        Reply::Messages(messages) => {
            let end = futures_util::stream::iter([Ok(Frame::trailers(status(0, "")))]);
            Ok(response(Box::pin(messages.map(|message| Ok(Frame::data(message))).chain(end))))
        }
        Reply::Status { code, message } => {
            Ok(response(Box::pin(futures_util::stream::iter([Ok(Frame::trailers(status(code, &message)))]))))
        }
        Reply::Reset => Err(std::io::Error::other("reset on purpose")),
        Reply::Never => std::future::pending().await,
    }
}

fn response(frames: Pin<Box<dyn Stream<Item = Result<Frame<Bytes>, Infallible>> + Send>>) -> Response<Body> {
    let mut response = Response::new(StreamBody::new(frames));
    response.headers_mut().insert("content-type", HeaderValue::from_static("application/grpc"));
    response
}

fn status(code: u16, message: &str) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from(code));
    if let Ok(value) = HeaderValue::from_str(message) {
        trailers.insert("grpc-message", value);
    }
    trailers
}

fn unimplemented_rpc(path: &str) -> Reply {
    Reply::Status { code: 12, message: format!("no such method {path}") }
}

/// Whether a health check is about the service that go-plugin asks for, or about the whole server: the
/// request's one field is the service's name.
fn is_ours(message: &[u8]) -> bool {
    message.is_empty() || message.get(2..) == Some(talon_proto::HEALTH_SERVICE.as_bytes())
}

async fn route(shared: &Arc<Shared>, path: &str, message: Bytes, headers: &Headers) -> Reply {
    let options = &shared.options;
    if let Some(reply) = hostile::reply(options, path) {
        return reply;
    }
    match path {
        "/opentalon.plugin.v1.PluginService/Init" if options.minimal => unimplemented_rpc(path),
        "/opentalon.plugin.v1.PluginService/Init" => match options.lie {
            StartFault::InitFails => {
                Reply::Status { code: 3, message: "configure: the setting root is missing".into() }
            }
            _ => {
                let config = PluginInitRequest::decode(message).unwrap_or_default().config_json;
                faults::init(options.wrong, &config);
                Reply::Message(Bytes::new())
            }
        },
        "/opentalon.plugin.v1.PluginService/Capabilities" => match options.lie {
            StartFault::CapabilitiesHang => Reply::Never,
            _ => {
                let mut declared = capabilities(options);
                faults::declare(shared, &mut declared);
                Reply::Message(declared.encode_to_vec().into())
            }
        },
        "/opentalon.plugin.v1.PluginService/RefreshCapabilities" if !options.minimal => {
            let mut declared = capabilities(options);
            declared.description = format!("refreshed after {} calls", shared.calls.load(Ordering::Relaxed));
            faults::refresh(shared, &mut declared);
            Reply::Message(declared.encode_to_vec().into())
        }
        "/opentalon.plugin.v1.PluginService/Execute" => {
            shared.calls.fetch_add(1, Ordering::Relaxed);
            if !options.flood_on_stdio {
                shared.called.notify_waiters();
            }
            match ToolCallRequest::decode(message) {
                Ok(call) => match faults::execute(shared, &call, headers.time).await {
                    Some(reply) => reply,
                    None => actions::execute(shared, call, headers).await,
                },
                Err(error) => Reply::Status { code: 13, message: error.to_string() },
            }
        }
        "/grpc.health.v1.Health/Check" if !options.no_health => match options.lie {
            // HealthCheckResponse{status = NOT_SERVING}
            StartFault::NeverHealthy => Reply::Message(Bytes::from_static(&[0x08, 0x02])),
            StartFault::Unhealthy if shared.calls.load(Ordering::Relaxed) > 0 => {
                Reply::Message(Bytes::from_static(&[0x08, 0x02]))
            }
            _ if is_ours(&message) || options.wrong == Some(Fault::HealthForAnybody) => {
                Reply::Message(Bytes::from_static(&[0x08, 0x01]))
            }
            _ => Reply::Status { code: 5, message: "there is no such service".into() },
        },
        "/talon.plugin.v1.EventSource/Subscribe" => {
            shared.events.as_ref().map_or_else(|| unimplemented_rpc(path), Events::subscribe)
        }
        "/talon.plugin.v1.EventSource/Acknowledge" => match &shared.events {
            Some(events) => events.acknowledge(message),
            None => unimplemented_rpc(path),
        },
        "/talon.plugin.v1.Notices/Listen" if options.wrong == Some(Fault::OutputLines) => {
            let notices = BroadcastStream::new(shared.notices.subscribe());
            Reply::Messages(Box::pin(notices.filter_map(|notice| std::future::ready(notice.ok()))))
        }
        "/plugin.GRPCStdio/StreamStdio" if options.flood_on_stdio => {
            shared.called.notify_waiters();
            Reply::Never
        }
        "/plugin.GRPCController/Shutdown" if options.wrong == Some(Fault::ShutdownIgnored) => {
            Reply::Message(Bytes::new())
        }
        "/plugin.GRPCController/Shutdown" if !options.minimal && !options.ignore_signals => {
            std::process::exit(0)
        }
        _ => unimplemented_rpc(path),
    }
}

//! The pages: `/` for who runs Talon, `/chat` for who talks to it. Files that are compiled in, compressed when the program is built; they
//! know nothing, and get everything from the routes under `/api` like any other client.
//!
//! | module | contents |
//! |---|---|
//! | `asset` | the files, as the build script found them |
//! | `encoding` | which compressed form a client takes |
//!
//! Who is not signed in gets them as well, and is told there how to sign in.

mod asset;
mod encoding;

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH, UPGRADE,
    VARY,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode};

use asset::{ASSETS, Asset, PREFIX};
use encoding::Encoding;

/// What a page may do: load our own scripts, styles and pictures, and speak to its own server. No script that stands in a page runs, and
/// no text becomes markup (trusted types), so that what a model writes stays text even if a page had a mistake.
const POLICY: &str = include_str!("policy.txt");
/// A file under `/assets` has a digest of all of them in its path: it never changes.
const FOREVER: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");
/// A page is asked for each time, and answered with 304 if it is the same.
const ASK_EACH_TIME: HeaderValue = HeaderValue::from_static("no-cache");

/// A layer: answers for the pages and their files, before anybody is asked who he is. A browser whose session has expired still gets the
/// page, which says so.
pub(crate) async fn pages(request: Request, next: Next) -> Response {
    // `/` is also the WebSocket's.
    let is_read =
        [Method::GET, Method::HEAD].contains(request.method()) && !request.headers().contains_key(UPGRADE);
    match find(request.uri().path()).filter(|_| is_read) {
        Some((asset, kept)) => serve(asset, kept, request.headers()),
        None => next.run(request).await,
    }
}

/// The file of a path, and how long it may be kept.
fn find(path: &str) -> Option<(&'static Asset, HeaderValue)> {
    let (name, kept) = match path {
        "/" => ("control.html", ASK_EACH_TIME),
        "/chat" => ("chat.html", ASK_EACH_TIME),
        _ => (path.strip_prefix(PREFIX)?, FOREVER),
    };
    let place = ASSETS.binary_search_by_key(&name, |asset| asset.name).ok()?;
    Some((&ASSETS[place], kept))
}

fn serve(asset: &Asset, kept: HeaderValue, headers: &HeaderMap) -> Response {
    let encoding = Encoding::best(headers);
    let etag = format!("\"{}-{}\"", asset.digest, encoding.name());
    let is_known = headers
        .get(IF_NONE_MATCH)
        .and_then(|known| known.to_str().ok())
        .is_some_and(|known| known.split(',').any(|one| one.trim().trim_start_matches("W/") == etag));
    let body = match encoding {
        _ if is_known => Bytes::new(),
        Encoding::Brotli => Bytes::from_static(asset.brotli),
        Encoding::Gzip => Bytes::from_static(asset.gzip),
        Encoding::Identity => Bytes::from_static(asset.plain),
    };
    let mut response = body.into_response();
    if is_known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(asset.media_type));
    headers.insert(CACHE_CONTROL, kept);
    headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY.trim_ascii()));
    headers.insert(ETAG, HeaderValue::try_from(etag).expect("it is hexadecimal digits and a word"));
    if encoding != Encoding::Identity && !is_known {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static(encoding.name()));
    }
    response
}

#[cfg(test)]
#[path = "pages_tests.rs"]
mod tests;

//! Checks of routes.

use super::findings::{Findings, shown};
use crate::contract::is_header_name;
use crate::limits::{MAX_BODY_BYTES, MAX_HEADERS, MAX_PATH_BYTES, MAX_ROUTES};
use crate::{Role, RouteEntry};

/// What all paths begin with, so that none hides a path of the gateway's own.
const ROOT: &str = "/x/";
/// Headers with secrets, or of the connection; they are the gateway's business.
const NEVER_PASSED_ON: [&str; 8] = [
    "authorization",
    "connection",
    "cookie",
    "host",
    "proxy-authorization",
    "transfer-encoding",
    "upgrade",
    "x-talon-token",
];

pub(super) fn check(found: &mut Findings, routes: &[RouteEntry]) {
    found.check_count(Role::ApiRoute, routes.len(), MAX_ROUTES, "join some with a path that ends with /*");
    for (index, route) in routes.iter().enumerate() {
        let mut of = found.of(Role::ApiRoute, index);
        match path_problem(&route.path) {
            Some((message, help)) => of.problem("path", format!("{:?} {message}", shown(&route.path)), help),
            None => {
                if let Some(other) = routes[..index].iter().find(|other| other.overlaps(route)) {
                    let message = format!(
                        "{} {} overlaps {} of the entry {}",
                        route.method,
                        route.path,
                        other.path,
                        shown(other.name())
                    );
                    of.problem(
                        "path",
                        message,
                        "change one of them, so that one action answers each request",
                    );
                }
            }
        }
        of.check_deadline(route.deadline);
        if route.max_body_bytes > MAX_BODY_BYTES {
            let message = format!("{} is more than {MAX_BODY_BYTES}", route.max_body_bytes);
            of.problem("max_body_bytes", message, "write at most that: a call's arguments have 1 MiB");
        }
        if route.headers.len() > MAX_HEADERS {
            let message = format!("lists {} headers, and {MAX_HEADERS} are the most", route.headers.len());
            of.problem("headers", message, "remove some");
        }
        for name in &route.headers {
            if !is_header_name(name) {
                of.problem("headers", format!("{:?} is no name of a header", shown(name)), "correct it");
            } else if NEVER_PASSED_ON.contains(&name.to_ascii_lowercase().as_str()) {
                let help = "remove it: the action gets `subject`, and no secret";
                of.problem("headers", format!("{name} is never passed on"), help);
            }
        }
    }
}

/// Why a path is none. A path has segments of letters, digits, `-`, `_`, `.` and `~`, and perhaps `/*` at its end: then it is
/// the same however it is encoded.
fn path_problem(path: &str) -> Option<(&'static str, &'static str)> {
    const HELP: &str = "write a path such as /x/tickets, or /x/files/* for all below it";
    let Some(below) = path.strip_prefix(ROOT) else {
        return Some(("does not begin with /x/", HELP));
    };
    if path.len() > MAX_PATH_BYTES {
        return Some(("is longer than 256 bytes", "shorten it"));
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.~".contains(c);
    let is_segment = |segment: &str| {
        !segment.is_empty() && segment != "." && segment != ".." && segment.chars().all(plain)
    };
    let segments = below.strip_suffix("/*").unwrap_or(below);
    if !segments.split('/').all(is_segment) {
        return Some(("is no plain path", HELP));
    }
    None
}

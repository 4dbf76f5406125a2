//! Which compressed form a client takes.

use http::HeaderMap;
use http::header::ACCEPT_ENCODING;

/// A form in which files are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    Brotli,
    Gzip,
    Identity,
}

impl Encoding {
    /// The smallest that the client takes. A client that says nothing gets the file as it is.
    pub(super) fn best(headers: &HeaderMap) -> Self {
        let values = headers.get_all(ACCEPT_ENCODING).into_iter().filter_map(|value| value.to_str().ok());
        let taken: Vec<&str> = values.flat_map(|value| value.split(',')).filter_map(taken).collect();
        let takes = |encoding: Self| taken.iter().any(|name| name.eq_ignore_ascii_case(encoding.name()));
        [Self::Brotli, Self::Gzip].into_iter().find(|encoding| takes(*encoding)).unwrap_or(Self::Identity)
    }

    /// Its name in HTTP.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Brotli => "br",
            Self::Gzip => "gzip",
            Self::Identity => "identity",
        }
    }
}

/// The name of an encoding, unless it is refused by `q=0`.
fn taken(part: &str) -> Option<&str> {
    let mut parts = part.split(';').map(str::trim);
    let name = parts.next()?;
    let refused = parts
        .filter_map(|parameter| parameter.strip_prefix("q="))
        .any(|weight| weight.parse::<f32>().is_ok_and(|weight| weight == 0.0));
    (!refused).then_some(name)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn the_smallest_that_is_taken_is_sent() {
        for (accepted, best) in [
            ("gzip, deflate, br, zstd", Encoding::Brotli),
            ("gzip;q=1.0, br;q=0", Encoding::Gzip),
            ("GZIP", Encoding::Gzip),
            ("br;q=0.000, gzip;q=0", Encoding::Identity),
            ("deflate, brr", Encoding::Identity),
            ("", Encoding::Identity),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(accepted));
            assert_eq!(Encoding::best(&headers), best, "{accepted}");
        }
        assert_eq!(Encoding::best(&HeaderMap::new()), Encoding::Identity);
    }
}

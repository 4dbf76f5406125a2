//! The allow-list: the hosts and ports that a plugin may reach.

use std::net::IpAddr;

use talon_sanitize::{Raw, Sanitized};

use crate::host_port::{self, Host, HostPort, HostPortError};

/// The most entries of one list. 256: a plugin that needs more hosts than a person can review at once needs
/// [`talon_jail::Network::Host`] instead. A longer list is refused.
pub const MAX_ENTRIES: usize = 256;

/// How much of an entry is shown in an error: a whole name and its port.
const SHOWN_BYTES: usize = 270;

/// The hosts and ports that one plugin may reach. An empty list allows nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowList {
    entries: Vec<AllowEntry>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum AllowEntry {
    /// Exactly this host and port.
    Exact(HostPort),
    /// Every name with this suffix, which begins with a dot.
    Subdomains { suffix: String, port: u16 },
}

/// Why a list is refused. Entries are shown bounded and sanitized.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AllowListError {
    /// More than [`MAX_ENTRIES`].
    #[error(
        "sandbox.allow has {count} entries and takes {MAX_ENTRIES} (use *.DOMAIN:PORT for the hosts of one domain, or sandbox.network: full)"
    )]
    TooMany {
        /// How many there are.
        count: usize,
    },
    /// An entry that is not valid.
    #[error("sandbox.allow cannot take {shown:?}: {problem}")]
    Entry {
        /// The entry.
        shown: Sanitized,
        /// The problem, and what to write.
        problem: HostPortError,
    },
}

impl AllowList {
    /// Parses a list. An entry is one of
    ///
    /// - `api.example.org:443`: that name, in any case, with or without its trailing dot;
    /// - `*.example.org:443`: every name below that domain, not the domain itself;
    /// - `10.0.0.5:5432`, `[2001:db8::1]:443`: that address, which may then also be a private one.
    ///
    /// Names must be in DNS form: ASCII, with `xn--` where a name has other letters.
    ///
    /// # Errors
    /// [`AllowListError`] for the first invalid entry, and for more than [`MAX_ENTRIES`].
    pub fn parse(entries: &[String]) -> Result<Self, AllowListError> {
        if entries.len() > MAX_ENTRIES {
            return Err(AllowListError::TooMany { count: entries.len() });
        }
        let entry = |text: &String| {
            AllowEntry::parse(text.trim()).map_err(|problem| AllowListError::Entry {
                shown: Raw::from(text).line_within(SHOWN_BYTES),
                problem,
            })
        };
        Ok(Self { entries: entries.iter().map(entry).collect::<Result<_, _>>()? })
    }

    /// Whether a request may connect to this host and port.
    #[must_use]
    pub fn allows(&self, asked: &HostPort) -> bool {
        self.entries.iter().any(|entry| entry.matches(asked))
    }

    /// The entries that name one host, in their order.
    pub fn exact_hosts(&self) -> impl Iterator<Item = &HostPort> {
        self.entries.iter().filter_map(|entry| match entry {
            AllowEntry::Exact(place) => Some(place),
            AllowEntry::Subdomains { .. } => None,
        })
    }

    /// Whether the list names this exact address. Then the address is allowed even if it is not public.
    #[must_use]
    pub fn names_address(&self, ip: IpAddr, port: u16) -> bool {
        self.allows(&HostPort { host: Host::Ip(ip), port })
    }
}

impl AllowEntry {
    fn parse(text: &str) -> Result<Self, HostPortError> {
        let (host, port) = host_port::split_host_port(text)?;
        let Some(domain) = host.strip_prefix("*.") else {
            return Ok(Self::Exact(HostPort::parse(text)?));
        };
        let domain = host_port::parse_name(domain)?;
        // *.org would allow a large part of the internet, and *.5 is no domain.
        if !domain.contains('.') || host_port::ends_in_a_number(&domain) {
            return Err(HostPortError::BadWildcard);
        }
        Ok(Self::Subdomains { suffix: format!(".{domain}"), port: host_port::parse_port(port)? })
    }

    fn matches(&self, asked: &HostPort) -> bool {
        match (self, &asked.host) {
            (Self::Exact(place), _) => place == asked,
            // A name cannot begin with a dot, so there is a label before the suffix.
            (Self::Subdomains { suffix, port }, Host::Name(name)) => {
                *port == asked.port && name.ends_with(suffix.as_str())
            }
            (Self::Subdomains { .. }, Host::Ip(_)) => false,
        }
    }
}

#[cfg(test)]
#[path = "allow_list_tests.rs"]
mod tests;

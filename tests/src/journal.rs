//! systemd's journal, as a logging program sees it: a datagram socket.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use tokio::net::UnixDatagram;

/// Only a limit for hangs, not an expectation of speed.
const WAIT_TIMEOUT: Duration = Duration::from_secs(60);

/// A journal that stores nothing: it only reads while a test waits for an entry; otherwise its socket fills
/// up.
#[derive(Debug)]
pub struct Journal {
    socket: UnixDatagram,
}

/// The fields of an entry.
pub type Entry = BTreeMap<String, String>;

impl Journal {
    /// A journal at a path.
    ///
    /// # Panics
    /// When the socket cannot be bound.
    #[must_use]
    pub fn at(path: &Path) -> Self {
        Self { socket: UnixDatagram::bind(path).expect("the socket can be bound") }
    }

    /// The next entry that satisfies the predicate; others are discarded.
    ///
    /// # Panics
    /// When there is none, or one that violates the protocol.
    pub async fn entry(&self, wanted: impl Fn(&Entry) -> bool) -> Entry {
        let mut datagram = vec![0; 256 << 10];
        let look = async {
            loop {
                let size = self.socket.recv(&mut datagram).await.expect("the socket can be read");
                let entry = parse(&datagram[..size]);
                if wanted(&entry) {
                    return entry;
                }
            }
        };
        tokio::time::timeout(WAIT_TIMEOUT, look).await.expect("such an entry comes")
    }
}

fn parse(datagram: &[u8]) -> Entry {
    let text = std::str::from_utf8(datagram).expect("what is sent is text");
    let fields = text.split_terminator('\n').map(|line| {
        let (name, value) = line.split_once('=').unwrap_or_else(|| panic!("no field: {line:?}"));
        let good = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
        assert!(name.bytes().all(good), "the journal refuses {name:?}");
        (name.to_owned(), value.to_owned())
    });
    fields.collect()
}

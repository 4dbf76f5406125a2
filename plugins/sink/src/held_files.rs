//! Files that are asked for piece by piece, and downloaded whole.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use talon_sdk::channel::{ChannelReply, ChannelRequest, MAX_PIECE_BYTES};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};

use crate::delivery::Delivery;

/// The most files that are downloaded or held at once. 4: as many as the agent asks for at once; with the largest of 20 MB they have 80 MB.
const MAX_FILES: usize = 4;
/// How long a file may take from when it is asked for, the wait for its place included. 50 s: below the minute that a call of the channel has
/// unless its entry says otherwise; then it is asked for again.
const FETCH_TIME: Duration = Duration::from_secs(50);
/// How long a further file waits for a place. 20 s: more than half of [`FETCH_TIME`] is left for the file; then it is asked for again.
const PLACE_TIME: Duration = Duration::from_secs(20);
/// How long a file is held without being asked for its next piece. A minute: the agent asks at once, or not any more.
const HOLD_TIME: Duration = Duration::from_secs(60);

/// The most bytes that a file may have which is asked for: what the agent takes (0: as much as there is), within what the service gives.
#[must_use]
pub fn most_bytes(asked: u64, limit: u64) -> u64 {
    if asked == 0 { limit } else { asked.min(limit) }
}

/// Files of which pieces were asked for. Cheap to clone; clones share the files.
#[derive(Clone)]
pub struct HeldFiles(Arc<Inner>);

struct Inner {
    held: Mutex<HeldMap>,
    places: Arc<Semaphore>,
}

#[derive(Default)]
struct HeldMap {
    files: HashMap<String, HeldFile>,
    /// Counts what was ever held, so that a file which is held anew is not let go for its earlier time.
    next: u64,
}

struct HeldFile {
    number: u64,
    bytes: Bytes,
    /// Its place.
    place: OwnedSemaphorePermit,
}

impl Default for HeldFiles {
    fn default() -> Self {
        let places = Arc::new(Semaphore::new(MAX_FILES));
        Self(Arc::new(Inner { held: Mutex::default(), places }))
    }
}

impl HeldFiles {
    /// The piece that is asked for. A file that is not held is downloaded, once there is a place for it.
    pub async fn piece(
        &self,
        asked: &ChannelRequest,
        download: impl Future<Output = Result<Bytes, Delivery>>,
    ) -> ChannelReply {
        let held = self.0.held.lock().files.remove(&asked.file);
        let (bytes, place) = match held {
            Some(HeldFile { bytes, place, .. }) => (bytes, place),
            None => match timeout(FETCH_TIME, self.fetch(download)).await {
                Ok(Ok(fetched)) => fetched,
                Ok(Err(delivery)) => return delivery.channel_reply(),
                Err(_) => return ChannelReply::retry("the file did not come in time"),
            },
        };
        let Some(rest) = usize::try_from(asked.offset).ok().and_then(|offset| bytes.get(offset..)) else {
            return ChannelReply::refused("the file has fewer bytes than were asked for before");
        };
        let piece = &rest[..rest.len().min(MAX_PIECE_BYTES)];
        let more = piece.len() < rest.len();
        let reply = ChannelReply::piece(piece, more);
        if more {
            self.hold(&asked.file, bytes, place);
        }
        reply
    }

    /// Downloads a whole file, once there is a place for it.
    async fn fetch(
        &self,
        download: impl Future<Output = Result<Bytes, Delivery>>,
    ) -> Result<(Bytes, OwnedSemaphorePermit), Delivery> {
        let place = timeout(PLACE_TIME, Arc::clone(&self.0.places).acquire_owned()).await;
        // Closed by nobody.
        let Ok(Ok(place)) = place else {
            return Err(Delivery::retry("as many files as may be are under way"));
        };
        Ok((download.await?, place))
    }

    /// Holds a file until its next piece is asked for, and lets it go if none is.
    fn hold(&self, file: &str, bytes: Bytes, place: OwnedSemaphorePermit) {
        let number = {
            let mut held = self.0.held.lock();
            held.next += 1;
            let number = held.next;
            held.files.insert(file.to_owned(), HeldFile { number, bytes, place });
            number
        };
        let (inner, file) = (Arc::downgrade(&self.0), file.to_owned());
        tokio::spawn(async move {
            sleep(HOLD_TIME).await;
            let Some(inner) = inner.upgrade() else { return };
            let mut held = inner.held.lock();
            if held.files.get(&file).is_some_and(|held| held.number == number) {
                held.files.remove(&file);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use talon_sdk::channel::ChannelOp;
    use tokio::time::Instant;

    use super::*;

    fn asked(file: &str, offset: usize) -> ChannelRequest {
        ChannelRequest {
            op: ChannelOp::Fetch,
            id: String::new(),
            conversation: String::new(),
            text: String::new(),
            buttons: Vec::new(),
            attempt: 0,
            file: file.to_owned(),
            offset: offset as u64,
            max_bytes: 0,
        }
    }

    fn whole() -> Bytes {
        Bytes::from(vec![7; MAX_PIECE_BYTES + 3])
    }

    // Promises: GW-228
    #[tokio::test]
    async fn a_file_is_downloaded_once_whatever_its_pieces() {
        let held = HeldFiles::default();
        let first = held.piece(&asked("a", 0), async { Ok(whole()) }).await;
        assert_eq!(first, ChannelReply::piece(&whole()[..MAX_PIECE_BYTES], true));
        let second = held.piece(&asked("a", MAX_PIECE_BYTES), async { panic!("it is held") }).await;
        assert_eq!(second, ChannelReply::piece(&[7; 3], false));
        let gone = held.piece(&asked("a", 0), async { Err(Delivery::refused("gone")) }).await;
        assert_eq!(gone, ChannelReply::refused("gone"));
        let behind = held.piece(&asked("b", 9), async { Ok(Bytes::from_static(b"x")) }).await;
        assert!(!behind.is_delivered());
    }

    // Promises: GW-228
    #[tokio::test(start_paused = true)]
    async fn a_further_file_waits_for_a_place_and_one_that_nobody_wants_is_let_go() {
        let held = HeldFiles::default();
        for number in 0..MAX_FILES {
            assert!(held.piece(&asked(&number.to_string(), 0), async { Ok(whole()) }).await.is_delivered());
        }
        // None of the others makes room for it.
        let further = held.piece(&asked("further", 0), async { panic!("there is no place") }).await;
        assert!(!further.is_delivered());
        let second = held.piece(&asked("0", MAX_PIECE_BYTES), async { panic!("it is held") }).await;
        assert_eq!(second, ChannelReply::piece(&[7; 3], false));
        assert!(held.piece(&asked("further", 0), async { Ok(whole()) }).await.is_delivered());
        sleep(HOLD_TIME).await;
        tokio::task::yield_now().await;
        let again = held.piece(&asked("1", 0), async { Ok(Bytes::from_static(b"x")) }).await;
        assert_eq!(again, ChannelReply::piece(b"x", false));
    }

    #[tokio::test(start_paused = true)]
    async fn the_wait_for_a_place_and_the_download_fit_into_a_call() {
        let held = HeldFiles::default();
        for number in 0..MAX_FILES {
            assert!(held.piece(&asked(&number.to_string(), 0), async { Ok(whole()) }).await.is_delivered());
        }
        let began = Instant::now();
        let (first, further) = (asked("0", MAX_PIECE_BYTES), asked("further", 0));
        let (late, _room) = tokio::join!(held.piece(&further, pending()), async {
            sleep(PLACE_TIME / 2).await;
            held.piece(&first, async { panic!("it is held") }).await
        });
        assert_eq!(late, ChannelReply::retry("the file did not come in time"));
        let took = began.elapsed();
        assert!(took < FETCH_TIME + Duration::from_secs(1), "{took:?}");
    }
}

//! Limits how many bytes of requests are held that are not whole yet, in total and per user.
//!
//! A count of such requests would have to be as small as if each had the largest size; in bytes, thousands of small ones may come at once.

use std::collections::HashMap;
use std::hash::Hash;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http_body::{Body as HttpBody, Frame, SizeHint};
use parking_lot::Mutex;
use tonic::Status;
use tonic::codegen::Bytes;

/// Counts bytes, in total and per uid, or per another key that stands for one user.
#[derive(Debug)]
pub struct ByteLimiter<K: Hash + Eq + Clone> {
    most: usize,
    most_of_one: usize,
    held: Mutex<HeldBytes<K>>,
}

#[derive(Debug)]
struct HeldBytes<K> {
    all: usize,
    by_key: HashMap<K, usize>,
}

/// The bytes of one request, given back on drop.
#[derive(Debug)]
pub struct BytePermit<K: Hash + Eq + Clone> {
    limiter: Arc<ByteLimiter<K>>,
    key: K,
    bytes: usize,
}

impl<K: Hash + Eq + Clone> ByteLimiter<K> {
    /// A limiter with a total limit and a limit per user, in bytes.
    #[must_use]
    pub fn new(most: usize, most_of_one: usize) -> Arc<Self> {
        Arc::new(Self { most, most_of_one, held: Mutex::new(HeldBytes { all: 0, by_key: HashMap::new() }) })
    }

    /// A permit of this user's for nothing yet.
    pub fn permit(self: &Arc<Self>, key: K) -> BytePermit<K> {
        BytePermit { limiter: Arc::clone(self), key, bytes: 0 }
    }
}

impl<K: Hash + Eq + Clone> BytePermit<K> {
    /// Takes more bytes.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED if there are not so many left, of all or of this user; what was taken stays so.
    pub fn grow(&mut self, more: usize) -> Result<(), Status> {
        let ByteLimiter { most, most_of_one, held } = &*self.limiter;
        let mut held = held.lock();
        let own = held.by_key.get(&self.key).copied().unwrap_or(0);
        if held.all.saturating_add(more) > *most || own.saturating_add(more) > *most_of_one {
            return Err(Status::resource_exhausted(format!(
                "requests that are being sent may have {} MiB of one user, {} MiB of all, at once: try again in a moment",
                most_of_one >> 20,
                most >> 20
            )));
        }
        held.all += more;
        held.by_key.insert(self.key.clone(), own + more);
        self.bytes += more;
        Ok(())
    }

    /// Gives back all of it.
    fn release(&mut self) {
        if self.bytes == 0 {
            return;
        }
        let mut held = self.limiter.held.lock();
        held.all -= self.bytes;
        if let Some(own) = held.by_key.get_mut(&self.key) {
            *own -= self.bytes;
            if *own == 0 {
                held.by_key.remove(&self.key);
            }
        }
        self.bytes = 0;
    }
}

impl<K: Hash + Eq + Clone> Drop for BytePermit<K> {
    fn drop(&mut self) {
        self.release();
    }
}

/// A request's body whose bytes are counted until it is read to its end, or dropped. It fails with RESOURCE_EXHAUSTED.
#[derive(Debug)]
pub struct UnreadBody<B, K: Hash + Eq + Clone> {
    body: B,
    permit: BytePermit<K>,
}

impl<B, K: Hash + Eq + Clone> UnreadBody<B, K> {
    /// Of a permit for nothing yet.
    #[must_use]
    pub fn new(body: B, permit: BytePermit<K>) -> Self {
        Self { body, permit }
    }
}

impl<B, K> HttpBody for UnreadBody<B, K>
where
    B: HttpBody<Data = Bytes, Error = Status> + Unpin,
    K: Hash + Eq + Clone + Unpin,
{
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        match &polled {
            Poll::Ready(None) => self.permit.release(),
            Poll::Ready(Some(Ok(frame))) => {
                if let Some(data) = frame.data_ref()
                    && let Err(status) = self.permit.grow(data.len())
                {
                    return Poll::Ready(Some(Err(status)));
                }
            }
            Poll::Ready(Some(Err(_))) | Poll::Pending => {}
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: GW-139
    #[test]
    fn one_user_cannot_take_all_bytes_and_they_come_back() {
        let limiter = ByteLimiter::new(100, 60);
        let (mut ada, mut more_of_ada, mut bob) =
            (limiter.permit("ada"), limiter.permit("ada"), limiter.permit("bob"));
        assert!(ada.grow(40).is_ok() && more_of_ada.grow(20).is_ok());
        assert_eq!(ada.grow(1).unwrap_err().code(), tonic::Code::ResourceExhausted);
        assert!(bob.grow(40).is_ok() && bob.grow(1).is_err(), "of all");
        ada.release();
        assert!(bob.grow(20).is_ok() && bob.grow(1).is_err(), "of one");
        drop((ada, more_of_ada, bob));
        let held = limiter.held.lock();
        assert!(held.all == 0 && held.by_key.is_empty(), "a free place is forgotten");
    }
}

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};

use super::*;
use crate::write_buffer::MAX_BUFFERED_BYTES;

/// Accepts this many bytes, stores them, and counts the writes.
struct Socket {
    room: usize,
    taken: Vec<u8>,
    writes: usize,
    shut: bool,
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(from)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        from: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.room == 0 {
            return Poll::Pending;
        }
        let before = self.taken.len();
        let room = std::mem::take(&mut self.room);
        self.taken.extend(from.iter().flat_map(|piece| piece.iter()).take(room));
        let count = self.taken.len() - before;
        // An unlimited socket stays unlimited.
        self.room = if room == usize::MAX { room } else { 0 };
        self.writes += 1;
        Poll::Ready(Ok(count))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.shut = true;
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Poll::Pending
    }
}

#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A connection, and a task that drives it.
struct Bench {
    gathered: CoalescingWriter<Socket>,
    woken: Arc<Woken>,
}

impl Bench {
    fn new(room: usize) -> Self {
        let socket = Socket { room, taken: Vec::new(), writes: 0, shut: false };
        Self { gathered: CoalescingWriter::new(socket), woken: Arc::default() }
    }

    fn poll<T>(&mut self, poll: impl FnOnce(Pin<&mut CoalescingWriter<Socket>>, &mut Context<'_>) -> T) -> T {
        let waker = Waker::from(Arc::clone(&self.woken));
        poll(Pin::new(&mut self.gathered), &mut Context::from_waker(&waker))
    }

    /// One poll as HTTP/2 does it: it reads, writes each of these with a flush, and flushes. Returns what was
    /// sent.
    fn turn(&mut self, pieces: &[&[u8]]) -> Vec<u8> {
        let mut taken = Vec::new();
        assert!(self.poll(|gathered, cx| gathered.poll_read(cx, &mut ReadBuf::new(&mut [0]))).is_pending());
        for piece in pieces {
            let Poll::Ready(written) = self.poll(|gathered, cx| gathered.poll_write(cx, piece)) else {
                break;
            };
            taken.extend(&piece[..written.unwrap()]);
            let _ = self.flush();
        }
        let _ = self.flush();
        taken
    }

    fn flush(&mut self) -> Poll<io::Result<()>> {
        self.poll(|gathered, cx| gathered.poll_flush(cx))
    }

    fn woken(&self) -> usize {
        self.woken.0.load(Ordering::Relaxed)
    }
}

#[test]
fn small_pieces_go_out_together_in_the_turn_that_was_asked_for() {
    let mut bench = Bench::new(usize::MAX);
    bench.turn(&[b"headers ", b"message "]);
    assert_eq!((bench.gathered.written.stream.writes, bench.woken()), (0, 1));
    // Another task has written something in between.
    bench.turn(&[b"end"]);
    let socket = &bench.gathered.written.stream;
    assert_eq!((socket.taken.as_slice(), socket.writes), (&b"headers message end"[..], 1));
    bench.turn(&[]);
    assert_eq!(
        (bench.gathered.written.stream.writes, bench.woken()),
        (1, 1),
        "there is nothing to come again for"
    );
}

#[test]
fn large_pieces_are_not_copied_and_keep_their_place() {
    let mut bench = Bench::new(usize::MAX);
    let large = vec![b'x'; MAX_BUFFERED_BYTES + 1];
    assert_eq!(bench.turn(&[&large]), large);
    assert_eq!(
        (bench.gathered.written.stream.writes, bench.woken(), bench.gathered.written.buffer.capacity()),
        (1, 0, 0)
    );
    bench.turn(&[b"before", &large]);
    assert!(bench.gathered.written.stream.taken[large.len()..].starts_with(b"beforex"));
}

#[test]
fn the_end_takes_what_is_kept_along() {
    let mut bench = Bench::new(usize::MAX);
    bench.turn(&[b"last words"]);
    assert!(bench.poll(|gathered, cx| gathered.poll_shutdown(cx)).is_ready());
    assert!(bench.gathered.written.stream.shut && bench.gathered.written.stream.taken == b"last words");
}

#[test]
fn whatever_is_written_arrives_in_order_however_little_the_socket_takes() {
    let mut random: u64 = 7;
    let mut next = |below: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(random >> 33).unwrap() % below
    };
    let mut bench = Bench::new(0);
    let mut said = Vec::new();
    for _ in 0..1000 {
        bench.gathered.written.stream.room = [0, 1, 100, 5000, usize::MAX][next(5)];
        let pieces: Vec<Vec<u8>> = (0..next(4))
            .map(|_| {
                let most = [2, 300, 3 * MAX_BUFFERED_BYTES][next(3)];
                let first = u8::try_from(next(256)).unwrap();
                (0..next(most)).map(|at| first.wrapping_add(at as u8)).collect()
            })
            .filter(|piece: &Vec<u8>| !piece.is_empty())
            .collect();
        said.extend(bench.turn(&pieces.iter().map(Vec::as_slice).collect::<Vec<_>>()));
        assert!(bench.gathered.written.buffer.len() <= MAX_BUFFERED_BYTES);
    }
    bench.gathered.written.stream.room = usize::MAX;
    bench.turn(&[]);
    bench.turn(&[]);
    assert!(
        bench.gathered.written.stream.taken == said,
        "{} bytes of {}",
        bench.gathered.written.stream.taken.len(),
        said.len()
    );
}

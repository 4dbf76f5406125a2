use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

/// Takes a few bytes at a time, now and then none, and counts the writes.
#[derive(Default)]
struct Host {
    got: Vec<u8>,
    writes: usize,
    /// How much it takes at once; 0: everything.
    takes: usize,
    /// It has no room every other time.
    full: bool,
    ended: bool,
}

impl AsyncWrite for Host {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.takes > 0 {
            self.full = !self.full;
            if self.full {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
        self.writes += 1;
        let most = if self.takes > 0 { self.takes } else { usize::MAX };
        let before = self.got.len();
        self.got.extend(slices.iter().flat_map(|slice| slice.iter()).take(most));
        let taken = self.got.len() - before;
        Poll::Ready(Ok(taken))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.ended = true;
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for Host {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Poll::Pending
    }
}

async fn write(gather: &mut Gather<Host>, bytes: &[u8]) {
    let mut rest = bytes;
    while !rest.is_empty() {
        let (head, tail) = rest.split_at(rest.len() / 3);
        let slices = [IoSlice::new(head), IoSlice::new(tail)];
        let written = poll_fn(|cx| Pin::new(&mut *gather).poll_write_vectored(cx, &slices)).await;
        rest = &rest[written.expect("it is written")..];
    }
    poll_fn(|cx| Pin::new(&mut *gather).poll_flush(cx)).await.expect("it is flushed");
}

/// What a connection's task does when it runs again.
async fn comes_back(gather: &mut Gather<Host>) {
    poll_fn(|cx| {
        let mut buffer = [0; 1];
        let read = Pin::new(&mut *gather).poll_read(cx, &mut ReadBuf::new(&mut buffer));
        assert!(read.is_pending(), "the host says nothing");
        if gather.waiting() > 0 { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
}

#[tokio::test]
async fn small_writes_go_out_together_when_the_task_comes_back() {
    let mut gather = Gather::new(Host::default());
    for number in 0..60_u8 {
        write(&mut gather, &[number; 1000]).await;
    }
    assert_eq!(gather.stream.writes, 0);
    comes_back(&mut gather).await;
    assert_eq!((gather.stream.writes, gather.stream.got.len()), (1, 60_000));
    assert!(gather.held.capacity() <= KEPT_BYTES);
    comes_back(&mut gather).await;
    assert_eq!(gather.stream.writes, 1);
}

#[tokio::test]
async fn whoever_writes_is_told_to_come_back_once() {
    let woken = Arc::new(Woken::default());
    let waker = std::task::Waker::from(woken.clone());
    let mut cx = Context::from_waker(&waker);
    let mut gather = Gather::new(Host::default());
    for round in 1..4 {
        for _ in 0..5 {
            assert!(Pin::new(&mut gather).poll_write(&mut cx, b"small").is_ready());
        }
        assert_eq!(woken.0.load(Ordering::Relaxed), round);
        assert!(Pin::new(&mut gather).poll_read(&mut cx, &mut ReadBuf::new(&mut [0; 1])).is_pending());
    }
    assert_eq!(gather.stream.got.len(), 75);
}

#[tokio::test]
async fn a_large_write_takes_along_what_is_held_and_is_not_copied() {
    let mut gather = Gather::new(Host::default());
    write(&mut gather, b"head").await;
    write(&mut gather, &[7; DIRECT_BYTES]).await;
    assert_eq!((gather.stream.writes, gather.stream.got.len()), (1, 4 + DIRECT_BYTES));
    assert_eq!(gather.waiting(), 0);
}

#[tokio::test]
async fn nothing_is_lost_or_out_of_order_with_a_host_that_takes_little() {
    for takes in [1, 7, 1000, 9000] {
        let mut gather = Gather::new(Host { takes, ..Host::default() });
        let mut expected = Vec::new();
        for number in 0..40_usize {
            let length = [3, 900, DIRECT_BYTES + 11, 1, 5000][number % 5];
            let bytes: Vec<u8> =
                (0..length).map(|at| u8::try_from((at + number) % 251).unwrap_or(0)).collect();
            write(&mut gather, &bytes).await;
            expected.extend(bytes);
            if number % 7 == 0 {
                comes_back(&mut gather).await;
            }
        }
        poll_fn(|cx| Pin::new(&mut gather).poll_shutdown(cx)).await.expect("it ends");
        assert!(gather.stream.ended && gather.stream.got == expected, "{takes}");
    }
}

#[derive(Default)]
struct Woken(AtomicUsize);

impl std::task::Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

use std::future::poll_fn;

use super::*;
use crate::write_buffer::{DIRECT_BYTES, IDLE_CAPACITY_BYTES, MAX_BUFFERED_BYTES};

/// Takes a few bytes at a time, now and then none, and counts the writes.
#[derive(Default)]
struct Host {
    got: Vec<u8>,
    writes: usize,
    /// How much it takes at once; 0: everything.
    takes: usize,
    /// It has no room every second time.
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

async fn write(to: &mut TurnWriter<Host>, bytes: &[u8]) {
    let mut rest = bytes;
    while !rest.is_empty() {
        let (head, tail) = rest.split_at(rest.len() / 3);
        let slices = [IoSlice::new(head), IoSlice::new(tail)];
        let written = poll_fn(|cx| Pin::new(&mut *to).poll_write_vectored(cx, &slices)).await;
        rest = &rest[written.expect("it is written")..];
    }
    poll_fn(|cx| Pin::new(&mut *to).poll_flush(cx)).await.expect("it is flushed");
}

async fn over(turn: &TurnFlusher<Host>) {
    poll_fn(|cx| turn.poll_flush_turn(cx)).await.expect("it is sent");
}

/// How often the host was written to, and how much it has.
fn came(to: &TurnWriter<Host>) -> (usize, usize) {
    let held = to.0.lock();
    (held.stream.writes, held.stream.got.len())
}

#[tokio::test]
async fn small_writes_go_out_together_when_the_turn_is_over() {
    let (mut to, turn) = coalesce_turns(Host::default());
    for number in 0..60_u8 {
        write(&mut to, &[number; 1000]).await;
    }
    assert_eq!(came(&to).0, 0);
    assert_eq!(to.0.lock().buffer.capacity(), MAX_BUFFERED_BYTES, "in one step");
    over(&turn).await;
    assert_eq!(came(&to), (1, 60_000));
    assert!(to.0.lock().buffer.capacity() <= IDLE_CAPACITY_BYTES);
    over(&turn).await;
    assert_eq!(came(&to).0, 1);
}

#[tokio::test]
async fn a_large_write_takes_along_what_is_held_and_is_not_copied() {
    let (mut to, _turn) = coalesce_turns(Host::default());
    write(&mut to, b"head").await;
    write(&mut to, &[7; DIRECT_BYTES]).await;
    assert_eq!(came(&to), (1, 4 + DIRECT_BYTES));
    assert_eq!(to.0.lock().pending(), 0);
}

#[tokio::test]
async fn nothing_is_lost_or_out_of_order_with_a_host_that_takes_little() {
    for takes in [1, 7, 1000, 9000] {
        let (mut to, turn) = coalesce_turns(Host { takes, ..Host::default() });
        let mut expected = Vec::new();
        for number in 0..40_usize {
            let length = [3, 900, DIRECT_BYTES + 11, 1, 5000][number % 5];
            let bytes: Vec<u8> =
                (0..length).map(|at| u8::try_from((at + number) % 251).unwrap_or(0)).collect();
            write(&mut to, &bytes).await;
            expected.extend(bytes);
            if number % 7 == 0 {
                over(&turn).await;
                assert_eq!(came(&to).1, expected.len());
            }
        }
        poll_fn(|cx| Pin::new(&mut to).poll_shutdown(cx)).await.expect("it ends");
        let held = to.0.lock();
        assert!(held.stream.ended && held.stream.got == expected, "{takes}");
    }
}

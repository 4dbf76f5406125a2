use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;

/// More than a socket holds.
const MUCH: usize = 8 << 20;

fn pair() -> io::Result<(LazyWritable, UnixStream)> {
    let (ours, theirs) = UnixStream::pair()?;
    Ok((LazyWritable::new(ours)?, theirs))
}

#[tokio::test]
async fn what_is_sent_comes_and_what_comes_is_read() {
    let (mut ours, mut theirs) = pair().unwrap();
    ours.write_all(b"ask").await.unwrap();
    let mut asked = [0; 3];
    theirs.read_exact(&mut asked).await.unwrap();
    assert_eq!(&asked, b"ask");
    theirs.write_all(b"answer").await.unwrap();
    drop(theirs);
    let mut answer = Vec::new();
    ours.read_to_end(&mut answer).await.unwrap();
    assert_eq!(answer, b"answer");
}

#[tokio::test]
async fn more_than_there_is_room_for_waits_until_it_is_taken() {
    let (mut ours, mut theirs) = pair().unwrap();
    let much: Vec<u8> = (0..MUCH).map(|at| (at % 251) as u8).collect();
    let sent = much.clone();
    let sending = tokio::spawn(async move {
        let (head, rest) = sent.split_at(100);
        let both = [IoSlice::new(head), IoSlice::new(rest)];
        let first = ours.write_vectored(&both).await?;
        ours.write_all(&sent[first..]).await?;
        ours.shutdown().await?;
        io::Result::Ok(ours)
    });
    let mut came = Vec::new();
    theirs.read_to_end(&mut came).await.unwrap();
    assert!(came == much, "{} bytes came", came.len());
    let mut ours = sending.await.unwrap().unwrap();
    // And both halves still work, one after the other.
    theirs.write_all(b"still there").await.unwrap();
    drop(theirs);
    let mut rest = Vec::new();
    ours.read_to_end(&mut rest).await.unwrap();
    assert_eq!(rest, b"still there");
}

#[tokio::test]
async fn a_busy_one_asks_for_room_only_while_there_is_none() {
    let (mut ours, mut theirs) = pair().unwrap();
    let busy = BusyFlag::default();
    ours.set_busy_flag(&busy);
    busy.set(true);
    let piece = vec![1; 64 << 10];
    let mut sent = 0;
    let mut cx = Context::from_waker(Waker::noop());
    while let Poll::Ready(taken) = Pin::new(&mut ours).poll_write(&mut cx, &piece) {
        sent += taken.unwrap();
    }
    assert!(ours.writer.is_some());
    let mut took = vec![0; sent];
    theirs.read_exact(&mut took).await.unwrap();
    ours.write_all(b"more").await.unwrap();
    assert!(ours.writer.is_none());
    busy.set(false);
    ours.write_all(b"more").await.unwrap();
    assert!(ours.writer.is_some());
    busy.set(true);
    ours.write_all(b"more").await.unwrap();
    assert!(ours.writer.is_none());
}

#[tokio::test]
async fn who_only_waits_for_an_answer_is_not_woken_when_the_question_is_taken() {
    struct Count(AtomicUsize);
    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let (mut ours, mut theirs) = pair().unwrap();
    ours.write_all(b"ask").await.unwrap();
    let woken = Arc::new(Count(AtomicUsize::new(0)));
    let waker = Waker::from(woken.clone());
    let mut into = [0; 8];
    let mut read = |ours: &mut LazyWritable| {
        let mut into = ReadBuf::new(&mut into);
        Pin::new(ours).poll_read(&mut Context::from_waker(&waker), &mut into).map(|read| read.is_ok())
    };
    assert_eq!(read(&mut ours), Poll::Pending);
    let mut asked = [0; 3];
    theirs.read_exact(&mut asked).await.unwrap();
    tokio::task::yield_now().await;
    assert_eq!(woken.0.load(Ordering::SeqCst), 0);
    theirs.write_all(b"answer").await.unwrap();
    while woken.0.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(read(&mut ours), Poll::Ready(true));
}

#[tokio::test]
async fn nobody_at_the_other_end_is_an_error() {
    let (mut ours, theirs) = pair().unwrap();
    drop(theirs);
    assert_eq!(ours.write_all(b"ask").await.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
}

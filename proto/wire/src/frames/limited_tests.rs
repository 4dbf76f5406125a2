use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use h2::server::Builder;
use prost::bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tonic::codegen::http::{Request, Response};

use super::*;
use crate::frames::CONTROL_BURST;
use crate::frames::scanner::HEADERS;

const PREFACE: &[u8; PREFACE_BYTES] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0, 0, payload.len() as u8, kind, 0, 0, 0, 0, 0];
    frame.extend(payload);
    frame
}

fn limited(stream: DuplexStream, side: ConnectionSide) -> (FrameLimited<DuplexStream>, Arc<AtomicUsize>) {
    let floods = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&floods);
    let limited = FrameLimited::new(stream, side, FrameLimits::default(), move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    (limited, floods)
}

/// Sends these bytes again and again until the connection ends, and reads what comes.
async fn flood(stream: DuplexStream, bytes: Vec<u8>) {
    let (mut read, mut write) = tokio::io::split(stream);
    let answers = tokio::spawn(async move {
        let mut into = vec![0; 64 << 10];
        while read.read(&mut into).await.is_ok_and(|count| count > 0) {}
    });
    let many = bytes.repeat(100);
    while write.write_all(&many).await.is_ok() {}
    answers.abort();
}

// Promises: WIRE-15
#[tokio::test]
async fn a_client_that_floods_a_server_loses_its_connection() {
    for frame in [frame(4, &[]), frame(6, b"flooding"), frame(8, &[0, 0, 0, 1]), frame(0xfa, &[0; 60])] {
        let (ours, mut theirs) = duplex(64 << 10);
        let (ours, floods) = limited(ours, ConnectionSide::Server);
        theirs.write_all(PREFACE).await.unwrap();
        let serving = async {
            let mut connection = Builder::new().handshake::<_, Bytes>(ours).await?;
            connection.accept().await.transpose().map(drop)
        };
        let (served, ()) = tokio::join!(serving, flood(theirs, [self::frame(4, &[]), frame].concat()));
        let error = served.unwrap_err();
        assert!(error.is_io() && error.to_string().contains("control frames without end"), "{error}");
        assert_eq!(floods.load(Ordering::Relaxed), 1);
    }
}

// Promises: WIRE-15
#[tokio::test]
async fn a_server_that_floods_its_client_loses_its_connection() {
    // A head with the status 103, of the only stream, again and again.
    let early_hints = [&[0, 0, 5, 1, 4, 0, 0, 0, 1, 0x08, 3][..], b"103"].concat();
    for one in [frame(6, b"flooding"), early_hints] {
        let (ours, theirs) = duplex(64 << 10);
        let (ours, floods) = limited(ours, ConnectionSide::Client);
        let calling = async {
            let (mut sender, connection) = h2::client::handshake::<_>(ours).await.unwrap();
            let connection = tokio::spawn(connection);
            let request = Request::get("http://localhost/").body(()).unwrap();
            let (answer, _) = sender.send_request(request, true).unwrap();
            assert!(answer.await.is_err());
            connection.await.unwrap().unwrap_err()
        };
        let flooding = async {
            let mut theirs = theirs;
            theirs.write_all(&frame(4, &[])).await.unwrap();
            let (mut scanner, mut called) = (FrameScanner::after(PREFACE_BYTES), false);
            while !called {
                let byte = theirs.read_u8().await.unwrap();
                scanner.scan(&[byte], |head| called = head.kind == HEADERS);
            }
            flood(theirs, one).await;
        };
        let (error, ()) = tokio::join!(calling, flooding);
        assert!(error.to_string().contains("control frames without end"), "{error}");
        assert_eq!(floods.load(Ordering::Relaxed), 1);
    }
}

// Promises: WIRE-16
#[tokio::test]
async fn ten_thousand_calls_on_one_connection_are_no_flood() {
    let (ours, theirs) = duplex(64 << 10);
    let (client, client_floods) = limited(ours, ConnectionSide::Client);
    let (server, server_floods) = limited(theirs, ConnectionSide::Server);
    let serving = tokio::spawn(async move {
        let mut connection = Builder::new().handshake::<_, Bytes>(server).await.unwrap();
        while let Some(accepted) = connection.accept().await {
            let (_, mut respond) = accepted.unwrap();
            let mut body = respond.send_response(Response::new(()), false).unwrap();
            body.send_data(Bytes::from_static(b"ok"), true).unwrap();
        }
    });
    let (mut sender, connection) = h2::client::handshake::<_>(client).await.unwrap();
    tokio::spawn(connection);
    for _ in 0..10_000 {
        let request = Request::post("http://localhost/").body(()).unwrap();
        sender = sender.ready().await.unwrap();
        let (answer, mut body) = sender.send_request(request, false).unwrap();
        body.send_data(Bytes::from_static(b"a call"), true).unwrap();
        assert!(answer.await.unwrap().into_body().data().await.unwrap().is_ok());
    }
    drop(sender);
    serving.await.unwrap();
    assert_eq!((client_floods.load(Ordering::Relaxed), server_floods.load(Ordering::Relaxed)), (0, 0));
}

// Promises: WIRE-16
#[tokio::test]
async fn within_one_poll_few_control_frames_are_read() {
    let (ours, mut theirs) = duplex(64 << 10);
    let (mut ours, _) = limited(ours, ConnectionSide::Client);
    let count = CONTROL_BURST / 2;
    theirs.write_all(&frame(6, b"flooding").repeat(count as usize)).await.unwrap();
    let (mut polls, mut read) = (0, 0);
    let mut into = [0; 17 * 16];
    while read < 17 * count as usize {
        let mut in_this_poll = 0;
        std::future::poll_fn(|cx| {
            let mut into = ReadBuf::new(&mut into);
            while Pin::new(&mut ours).poll_read(cx, &mut into).is_ready() {
                in_this_poll += into.filled().len();
                into.clear();
            }
            Poll::Ready(())
        })
        .await;
        assert!(in_this_poll <= 17 * MAX_FRAMES_PER_POLL as usize, "{in_this_poll}");
        read += in_this_poll;
        polls += 1;
    }
    assert_eq!(polls, count / MAX_FRAMES_PER_POLL);
}

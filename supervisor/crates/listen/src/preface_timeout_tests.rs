use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;

// Promises: HOST-18
#[tokio::test(start_paused = true)]
async fn who_does_not_begin_to_speak_in_time_is_cut_off() {
    for said in [0, 1, PREFACE_BYTES - 1] {
        let (mut client, ours) = UnixStream::pair().unwrap();
        let mut ours = PrefaceTimeout::new(ours, ());
        client.write_all(&vec![b'x'; said]).await.unwrap();
        let mut read = vec![0; said];
        ours.read_exact(&mut read).await.unwrap();
        let late = ours.read_u8().await.unwrap_err();
        assert_eq!(late.kind(), io::ErrorKind::TimedOut, "after {said} bytes");
    }
}

#[tokio::test(start_paused = true)]
async fn who_has_begun_may_be_silent() {
    let (mut client, ours) = UnixStream::pair().unwrap();
    let mut ours = PrefaceTimeout::new(ours, ());
    client.write_all(&[b'x'; PREFACE_BYTES]).await.unwrap();
    ours.read_exact(&mut [0; PREFACE_BYTES]).await.unwrap();
    assert!(tokio::time::timeout(PREFACE_TIMEOUT * 10, ours.read_u8()).await.is_err());
}

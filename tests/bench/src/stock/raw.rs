//! Frames on a unix socket: a request of 128 bytes that names a number of bytes, and a response of that
//! length. This is the lower limit for any kind of call.

use std::path::{Path, PathBuf};

use anyhow::Result;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use crate::load::Caller;

/// The length of the other contenders' requests.
const REQUEST_BYTES: usize = 128;

pub(super) async fn serve(socket: &Path) -> Result<()> {
    let listener = super::listen::listen(socket)?;
    loop {
        let (stream, _) = listener.accept().await?;
        // Ends with its connection.
        tokio::spawn(async move { drop(answer(stream).await) });
    }
}

async fn answer(mut stream: UnixStream) -> Result<()> {
    let mut request = [0_u8; REQUEST_BYTES];
    let mut content = Vec::new();
    loop {
        stream.read_exact(&mut request).await?;
        let wanted: [u8; 4] = request[..4].try_into()?;
        let wanted = u32::from_le_bytes(wanted) as usize;
        if content.len() != wanted {
            content = crate::content::text(wanted).into_bytes();
        }
        stream.write_all(&content).await?;
    }
}

/// A connection for each caller.
pub(super) struct Frames {
    socket: PathBuf,
    stream: Option<UnixStream>,
    buffer: Vec<u8>,
}

impl Frames {
    pub(super) fn to(socket: PathBuf) -> Self {
        Self { socket, stream: None, buffer: Vec::new() }
    }
}

impl Clone for Frames {
    fn clone(&self) -> Self {
        Self::to(self.socket.clone())
    }
}

impl Caller for Frames {
    async fn call(&mut self, content_bytes: usize) -> Result<()> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            none => none.insert(UnixStream::connect(&self.socket).await?),
        };
        let mut request = [0_u8; REQUEST_BYTES];
        request[..4].copy_from_slice(&u32::try_from(content_bytes)?.to_le_bytes());
        stream.write_all(&request).await?;
        self.buffer.resize(content_bytes, 0);
        stream.read_exact(&mut self.buffer).await?;
        Ok(())
    }
}

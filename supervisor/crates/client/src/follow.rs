//! Streams that are reopened when the supervisor is replaced.

use tonic::transport::Channel;
use tonic::{Response, Status, Streaming};

use talon_proto::host::host_client::HostClient;

use crate::client::Client;
use crate::known::Known;
use crate::patience::Patience;

/// An update of a subscription.
#[derive(Debug, Clone, PartialEq)]
pub enum Followed<T> {
    /// The next item.
    Item(T),
    /// The stream was reopened, with the same supervisor or the next one: items in between are lost.
    Again,
}

/// A stream of a supervisor, such as its events, that continues with the supervisor that replaces it.
#[derive(Debug)]
pub struct Follower<T, Q> {
    client: Client,
    question: Q,
    stream: Option<Streaming<T>>,
    begun: bool,
}

impl Client {
    /// Subscribes to the stream that the request opens; the request is repeated for each supervisor.
    pub fn follow<T, Q, F>(&self, question: Q) -> Follower<T, Q>
    where
        Q: FnMut(HostClient<Channel>) -> F,
        F: Future<Output = Result<Response<Streaming<T>>, Status>>,
    {
        Follower { client: self.clone(), question, stream: None, begun: false }
    }
}

impl<T, Q, F> Follower<T, Q>
where
    Q: FnMut(HostClient<Channel>) -> F,
    F: Future<Output = Result<Response<Streaming<T>>, Status>>,
{
    /// The next update. `None`: the supervisor ended, and no other came within [`crate::RECONNECT_WINDOW`].
    ///
    /// # Errors
    /// The supervisor's answer, or why it cannot be reached if it never was.
    pub async fn next(&mut self) -> Result<Option<Followed<T>>, Status> {
        let mut patience = Patience::new(None);
        loop {
            let ended = match &mut self.stream {
                Some(stream) => match stream.message().await {
                    Ok(Some(item)) => return Ok(Some(Followed::Item(item))),
                    Ok(None) => Status::unavailable("the supervisor ended the stream"),
                    Err(status) if Known::of(&status) == Known::Answered => return Err(status),
                    Err(status) => status,
                },
                None => match (self.question)(self.client.host()).await {
                    Ok(opened) => {
                        self.stream = Some(opened.into_inner());
                        if std::mem::replace(&mut self.begun, true) {
                            return Ok(Some(Followed::Again));
                        }
                        continue;
                    }
                    Err(status) if Known::of(&status) == Known::Answered || !self.begun => {
                        return Err(status);
                    }
                    Err(status) => status,
                },
            };
            self.stream = None;
            if !self.client.waits(&ended, &mut patience).await {
                return Ok(None);
            }
        }
    }
}

//! Streams that are reopened when the supervisor is replaced.

use tonic::transport::Channel;
use tonic::{Response, Status, Streaming};

use talon_proto::host::host_client::HostClient;

use crate::client::Client;
use crate::request_fate::RequestFate;
use crate::retry_window::RetryWindow;

/// An update of a subscription.
#[derive(Debug, Clone, PartialEq)]
pub enum StreamUpdate<T> {
    /// The next item.
    Item(T),
    /// The stream was reopened, with the same supervisor or the next one: items in between are lost.
    Reconnected,
}

/// A stream of a supervisor, such as its events, that continues with the supervisor that replaces it.
#[derive(Debug)]
pub struct Subscription<T, Q> {
    client: Client,
    request: Q,
    stream: Option<Streaming<T>>,
    begun: bool,
}

impl Client {
    /// Subscribes to the stream that the request opens; the request is repeated for each supervisor.
    pub fn subscribe<T, Q, F>(&self, question: Q) -> Subscription<T, Q>
    where
        Q: FnMut(HostClient<Channel>) -> F,
        F: Future<Output = Result<Response<Streaming<T>>, Status>>,
    {
        Subscription { client: self.clone(), request: question, stream: None, begun: false }
    }
}

impl<T, Q, F> Subscription<T, Q>
where
    Q: FnMut(HostClient<Channel>) -> F,
    F: Future<Output = Result<Response<Streaming<T>>, Status>>,
{
    /// The next update. `None`: the supervisor ended, and no other came within [`crate::RECONNECT_WINDOW`].
    ///
    /// # Errors
    /// The supervisor's answer, or why it cannot be reached if it never was.
    pub async fn next(&mut self) -> Result<Option<StreamUpdate<T>>, Status> {
        let mut patience = RetryWindow::new(None);
        loop {
            let ended = match &mut self.stream {
                Some(stream) => match stream.message().await {
                    Ok(Some(item)) => return Ok(Some(StreamUpdate::Item(item))),
                    Ok(None) => Status::unavailable("the supervisor ended the stream"),
                    Err(status) if RequestFate::from_status(&status) == RequestFate::Answered => {
                        return Err(status);
                    }
                    Err(status) => status,
                },
                None => match (self.request)(self.client.host()).await {
                    Ok(opened) => {
                        self.stream = Some(opened.into_inner());
                        if std::mem::replace(&mut self.begun, true) {
                            return Ok(Some(StreamUpdate::Reconnected));
                        }
                        continue;
                    }
                    Err(status)
                        if RequestFate::from_status(&status) == RequestFate::Answered || !self.begun =>
                    {
                        return Err(status);
                    }
                    Err(status) => status,
                },
            };
            self.stream = None;
            if !self.client.wait_for_supervisor(&ended, &mut patience).await {
                return Ok(None);
            }
        }
    }
}

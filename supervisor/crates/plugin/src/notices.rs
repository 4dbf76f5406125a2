//! What a process tells unasked (`talon.plugin.v1.Notices`): how far its calls are, and that it offers something else now.
//!
//! It is opened once the process takes calls, for those that shook hands in go-plugin's dialect, and opened again when it
//! breaks. Whatever a plugin sends here costs little and reaches nobody but those who follow its own calls: the messages
//! are small, most of a flood is thrown away and the rest is not even read, and a change is looked into now and then.

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{BoxStream, StreamExt};
use talon_proto::notices::Notice;
use talon_proto::notices::notice::Kind;
use talon_sanitize::{Raw, inert};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::common::Common;
use crate::events::{EventKind, NewEvent};
use crate::execute::{MAX_PROGRESS_MESSAGE_BYTES, Progress};
use crate::followed::News;
use crate::live::Live;
use crate::logs::Level;
use crate::plugin::REFRESH_TIMEOUT;

/// The largest notice that is read, in bytes: a message of 1 KiB, a call's id, and plenty for fields that come later. A larger
/// one ends the stream, which is opened again after [`RETRY`].
pub(crate) const MAX_NOTICE_BYTES: usize = 16 << 10;
/// How many notices of one process are looked at within a [`WINDOW`]: ten a second for each of some twenty calls, which is more
/// than a plugin is let run at once by default. The next ones are thrown away and counted.
const MAX_HEARD: u32 = 256;
/// How many are read at all within a [`WINDOW`]; then the plugin waits until it is over.
const MAX_READ: u32 = 4096;
/// See [`MAX_HEARD`].
const WINDOW: Duration = Duration::from_secs(1);
/// How often it is told at most that notices were thrown away.
const DROPPED_NOTE: Duration = Duration::from_secs(60);

/// Before a stream that broke is opened again; doubles up to the longest wait.
const RETRY: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(60);

/// After capabilities were read anew because the plugin said so, before that is done again. It doubles up to the longest
/// pause for a plugin that goes on saying so, and begins anew once it was quiet for [`QUIET_PAUSES`].
const REFRESH_PAUSE: Duration = Duration::from_secs(1);
const REFRESH_PAUSE_MAX: Duration = Duration::from_secs(60);

/// After how many pauses in which nothing was said a plugin counts as quiet. After a single one it could say so once in every
/// other pause and never wait longer than the first.
const QUIET_PAUSES: u32 = 3;

/// One process whose notices are heard.
#[derive(Clone)]
pub(crate) struct Ear {
    pub(crate) common: Arc<Common>,
    pub(crate) instance: u32,
    pub(crate) live: Arc<Live>,
}

impl Ear {
    /// Hears what the process tells until it has no such service. Whoever started it ends it with the process.
    pub(crate) async fn listen(self) {
        let mut wait = RETRY;
        // Of the process: one that ends its stream and opens it anew gets no more for it.
        let mut budget = Budget::new();
        let (changed, changes) = watch::channel(());
        let refreshing = self.clone().refresh_when(changes);
        let hearing = async {
            while let Some(notices) = self.live.client.notices().await {
                if self.hear(notices, &changed, &mut budget).await {
                    wait = RETRY;
                }
                tokio::time::sleep(wait).await;
                wait = (2 * wait).min(RETRY_MAX);
            }
            self.live.hear(false);
        };
        tokio::select! {
            () = hearing => {}
            () = refreshing => {}
        }
    }

    /// Until the stream ends. Whether anything came.
    async fn hear(
        &self,
        mut notices: BoxStream<'static, Notice>,
        changed: &watch::Sender<()>,
        budget: &mut Budget,
    ) -> bool {
        let mut any = false;
        // When progress is due that came too soon.
        let mut due: Option<Instant> = None;
        loop {
            let notice = tokio::select! {
                notice = notices.next() => notice,
                () = sleep_until(due) => {
                    due = self.tell_due();
                    continue;
                }
            };
            let Some(notice) = notice else { return any };
            any = true;
            let heard = budget.spend().await;
            if let Some(dropped) = budget.unsaid() {
                let text =
                    inert!("{} notices were dropped: it sends more than {} a second", dropped, MAX_HEARD);
                self.common.logs.note(self.instance, Level::Warn, text);
            }
            if !heard {
                continue;
            }
            match notice.kind {
                Some(Kind::CapabilitiesChanged(_)) => {
                    changed.send_replace(());
                }
                Some(Kind::Progress(told)) => {
                    if let Some(progress) = progress(&told) {
                        match self.live.progress(&told.call_id, progress) {
                            Some(news) => self.tell(&news),
                            None if due.is_none() => due = self.tell_due(),
                            None => {}
                        }
                    }
                }
                None => {}
            }
        }
    }

    /// Tells what had to wait; when to look again.
    fn tell_due(&self) -> Option<Instant> {
        let (news, next) = self.live.due();
        for news in &news {
            self.tell(news);
        }
        next
    }

    fn tell(&self, news: &News) {
        let News { call_id, action, follower, progress } = news;
        if let Some(follower) = follower {
            follower.hear(progress);
        }
        let message = match (progress.message.as_str(), progress.total) {
            ("", None) => format!("{action}: {}", progress.progress),
            ("", Some(total)) => format!("{action}: {} of {total}", progress.progress),
            (message, _) => format!("{action}: {message}"),
        };
        let mut event = NewEvent::new(EventKind::CallProgress, message)
            .plugin(&self.common.spec.name)
            .instance(self.instance)
            .field("call_id", call_id)
            .field("action", action)
            .field("progress", progress.progress);
        if let Some(total) = progress.total {
            event = event.field("total", total);
        }
        self.common.events.emit(event);
    }

    /// Reads capabilities anew when the plugin said that they changed: at once, and then not too often.
    async fn refresh_when(self, mut changes: watch::Receiver<()>) {
        let mut pause = REFRESH_PAUSE;
        while changes.changed().await.is_ok() {
            self.refresh().await;
            let refreshed = Instant::now();
            tokio::time::sleep(pause).await;
            if changes.changed().await.is_err() {
                return;
            }
            changes.mark_changed();
            let quiet = refreshed.elapsed() > pause * (QUIET_PAUSES + 1);
            pause = if quiet { REFRESH_PAUSE } else { (2 * pause).min(REFRESH_PAUSE_MAX) };
        }
    }

    /// As an operator would, for this process alone: the others tell for themselves.
    async fn refresh(&self) {
        let asked = self.live.client.refresh_capabilities(REFRESH_TIMEOUT);
        let note = match tokio::time::timeout(REFRESH_TIMEOUT, asked).await {
            Ok(Ok(Some(capability))) => {
                self.common.set_capability(capability);
                return;
            }
            Ok(Ok(None)) => {
                "it says that its tools changed, and has no RefreshCapabilities: what was known stays".into()
            }
            Ok(Err(cause)) => inert!("it says that its tools changed, and they could not be read: {}", cause),
            Err(_) => inert!(
                "it says that its tools changed, and did not tell them within {} s",
                REFRESH_TIMEOUT.as_secs()
            ),
        };
        self.common.logs.note(self.instance, Level::Warn, note);
    }
}

/// What was told, if it tells anything.
fn progress(told: &talon_proto::notices::Progress) -> Option<Progress> {
    let amount = |value: f64| value.is_finite() && value >= 0.0;
    amount(told.progress).then(|| Progress {
        progress: told.progress,
        total: told.total.filter(|total| amount(*total)),
        message: Raw::from(&told.message).line_within(MAX_PROGRESS_MESSAGE_BYTES),
    })
}

/// How much of a flood is listened to.
struct Budget {
    began: Instant,
    read: u32,
    dropped: u64,
    told: Option<Instant>,
}

impl Budget {
    fn new() -> Self {
        Self { began: Instant::now(), read: 0, dropped: 0, told: None }
    }

    /// Counts a notice; whether it is to be looked at. It waits when there are far too many.
    async fn spend(&mut self) -> bool {
        if self.read >= MAX_READ {
            tokio::time::sleep_until(self.began + WINDOW).await;
        }
        if self.began.elapsed() >= WINDOW {
            (self.began, self.read) = (Instant::now(), 0);
        }
        self.read += 1;
        let heard = self.read <= MAX_HEARD;
        self.dropped += u64::from(!heard);
        heard
    }

    /// How many were thrown away since that was told, if it is time to tell it.
    fn unsaid(&mut self) -> Option<u64> {
        let due = self.told.is_none_or(|told| told.elapsed() >= DROPPED_NOTE);
        if self.dropped == 0 || !due {
            return None;
        }
        self.told = Some(Instant::now());
        Some(std::mem::take(&mut self.dropped))
    }
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
#[path = "notices_tests.rs"]
mod tests;

//! The agent: its shared state, on which requests work.
//!
//! | file | content |
//! |---|---|
//! | `complete` | turns of no session |
//! | `setup` | models, host client, tools and workspace, built from a configuration |
//! | `configuration` | what the supervisor hands over |
//! | `main_session` | the session of a message that names none |
//! | `limits` | the configured limits, in the types of the loop |
//! | `delete_session` | deletes sessions, also old ones |
//! | `start` | starts and resumes turns |
//! | `repeat` | what became of a question that is asked again |
//! | `override_values` | what a session or request wants otherwise, checked |
//! | `spec` | the specification of a turn, from configuration, session and request |
//! | `session_metadata` | a session's open turn, title and tools |

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use talon_event_bus::EventBus;
use talon_guard::Sanitizer;
use talon_proto::agent::Ready;
use talon_proto::state::Refused as NotOpened;
use talon_store::{Error, Memory, NotificationCounts, Sessions, Store, Timestamp};
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::approval::{ApprovalQueue, ConfirmSettings};
use crate::bus::{BusObserver, HostFeed};
use crate::costs::Costs;
use crate::driver::{Driver, TurnRunner};
use crate::events::{FollowedSessions, SessionFeed};
use crate::hooks::RoleHost;
use crate::host_client::{EventStream, HostClient, HostConnector};
use crate::jobs::JobTable;
use crate::media_store::MediaStore;
use crate::metrics::Metrics;
use crate::notify::{BudgetEvents, HostEvents, NewEvent, Notifier, ReportingRunner, approval_waiting};
use crate::operations::OperationLog;
use crate::plan::PlanRegistry;
use crate::proposals::{ProposalParts, ProposalRegistry};
use crate::recall::IndexReport;
use crate::retention::RetentionLog;
use crate::schedule::ActionHosts;
use crate::shadow::ShadowLoop;
use crate::stateless::TurnCache;
use crate::traces::Tracer;
use crate::turns::{MessageQueues, RunningTurns};

mod complete;
mod configuration;
mod delete_session;
mod limits;
mod main_session;
mod override_values;
mod probe_signal;
mod repeat;
mod session_metadata;
mod setup;
mod spec;
mod start;

use probe_signal::ProbeSignal;
use setup::SharedParts;

pub(crate) use configuration::Configuration;
pub(crate) use limits::CANCEL_WAIT;
pub(crate) use override_values::{known_model, known_thinking};
pub(crate) use repeat::EarlierTurn;
pub(crate) use session_metadata::{
    CREATED, LOCAL_ONLY, MAIN, OPEN_TURN, OWN_KEYS, SAMPLING, TITLE, TOOLS, VERBOSE, sampling_of, tools_of,
};
pub(crate) use setup::Setup;
pub(crate) use spec::{TurnRequest, local_only};

/// How long a status request waits for each part of the agent. The supervisor allows 5 s for the answer, and
/// kills an agent that misses three.
const PROBLEM_WAIT: Duration = Duration::from_secs(1);

/// The time between two checks for room while there is none. It bounds what the supervisor hears of a disk
/// that is nearly full: two messages each time.
const ROOM_CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// The agent.
pub(crate) struct Agent {
    pub(crate) store: Store,
    /// What happens now, for whoever watches.
    pub(crate) bus: EventBus,
    /// What happens in sessions, for those who follow.
    pub(crate) feed: SessionFeed,
    pub(crate) sessions: Arc<dyn Sessions>,
    pub(crate) memory: Arc<dyn Memory>,
    pub(crate) approvals: Arc<ApprovalQueue>,
    pub(crate) media: Arc<MediaStore>,
    pub(crate) plans: Arc<PlanRegistry>,
    pub(crate) tracer: Arc<Tracer>,
    pub(crate) costs: Arc<Costs>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) turns: RunningTurns,
    /// Messages that wait for the end of their session's turn.
    pub(crate) queues: MessageQueues,
    /// What turns of no session did, for the next request of their clients.
    pub(crate) turn_cache: Arc<TurnCache>,
    pub(crate) jobs: Arc<JobTable>,
    pub(crate) proposals: Arc<ProposalRegistry>,
    /// What is changed, for the supervisor's audit log.
    pub(crate) operations: Arc<OperationLog>,
    pub(crate) retention: RetentionLog,
    pub(crate) notifier: Arc<Notifier>,
    pub(crate) shadow: Arc<ShadowLoop>,
    pub(crate) runner: Arc<dyn TurnRunner>,
    pub(crate) started: Timestamp,
    pub(crate) probing: Arc<ProbeSignal>,
    /// Notified when a memory was stored, or the configuration changed.
    pub(crate) memory_changed: Arc<Notify>,
    /// Why the database refuses writes, while it has no room for them.
    full: Mutex<Option<String>>,
    setup: RwLock<Arc<Setup>>,
    parts: SharedParts,
}

impl Agent {
    /// Creates the agent on an open store, with its first configuration; it runs until `ending`.
    ///
    /// # Errors
    /// The message for the supervisor, if the store cannot be read.
    pub(crate) async fn new(
        store: Store,
        configuration: &Configuration,
        connect: Arc<dyn HostConnector>,
        ending: CancellationToken,
    ) -> Result<Arc<Self>, NotOpened> {
        let bundle = &configuration.bundle;
        let unreadable = |error: &dyn std::error::Error| NotOpened {
            message: format!(
                "the agent's database cannot be read: {}; see the log of talon-agent",
                talon_error_chain::error_chain(error)
            ),
            retryable: false,
        };
        let confirm = ConfirmSettings::of(bundle);
        let approvals =
            ApprovalQueue::open(store.key_values(), confirm).await.map_err(|error| unreadable(&error))?;
        let costs = Arc::new(Costs::new(store.key_values()).map_err(|error| unreadable(&error))?);
        let media = MediaStore::new(store.key_values(), bundle.settings.agent.media);
        let media = Arc::new(media.map_err(|error| unreadable(&error))?);
        let tracer = Arc::<Tracer>::default();
        let (metrics, probing) = (Arc::<Metrics>::default(), Arc::<ProbeSignal>::default());
        let memory_changed = Arc::<Notify>::default();
        let (feed, bus) = (SessionFeed::default(), EventBus::default());
        let sessions: Arc<dyn Sessions> = FollowedSessions::new(store.sessions(), feed.clone(), bus.clone());
        approvals.keep_in(Arc::clone(&sessions));
        approvals.announce_on(bus.clone());
        let plans = PlanRegistry::new(Arc::clone(&sessions));
        let notifier = Notifier::new(store.outbox());
        notifier.configure(&configuration.extensions.notifications);
        approvals.observe({
            let notifier = Arc::clone(&notifier);
            Box::new(move |approval| notifier.notify(approval_waiting(approval)))
        });
        let shadow = &bundle.settings.shadow;
        let shadow = ShadowLoop::open(
            store.key_values(),
            Arc::clone(&notifier),
            shadow,
            Arc::clone(&metrics),
            bus.clone(),
        )
        .await;
        let shadow = shadow.map_err(|error| unreadable(&error))?;
        let budget_events = BudgetEvents::new(Arc::clone(&notifier));
        let observer = BusObserver::new(Arc::clone(&metrics) as _, bus.clone());
        let runner: Arc<dyn TurnRunner> = Arc::new(ReportingRunner {
            inner: Arc::new(Driver::observed(Arc::new(observer))),
            notifier: Arc::clone(&notifier),
            budgets: Arc::clone(&budget_events),
        });
        let host = Arc::new(HostClient::new(connect));
        let jobs = Arc::<JobTable>::default();
        jobs.configure(&configuration.extensions.schedule);
        let proposals = ProposalParts {
            store: store.job_proposals(),
            source: Arc::clone(&host) as _,
            jobs: Arc::clone(&jobs),
            notifier: Arc::clone(&notifier),
        };
        let proposals = ProposalRegistry::open(proposals).await.map_err(|error| unreadable(&error))?;
        let parts = SharedParts {
            role_host: Arc::clone(&host) as _,
            entry_states: Arc::clone(&host) as _,
            accepted_jobs: Arc::clone(&host) as _,
            host_feed: Arc::clone(&host) as _,
            host_events: Arc::new(EventStream::of_supervisor(Arc::clone(&host))),
            plugin_events: Arc::new(EventStream::of_plugins(Arc::clone(&host))),
            host,
            memory: store.memory(),
            sessions: Arc::clone(&sessions),
            vectors: store.memory_vectors(),
            memory_changed: Arc::clone(&memory_changed),
            key_values: store.key_values(),
            approvals: Arc::clone(&approvals),
            media: Arc::clone(&media),
            tracer: Arc::clone(&tracer),
            calibration: Arc::default(),
            costs: Arc::clone(&costs),
            metrics: Arc::clone(&metrics),
            budget_events,
            probing: Arc::clone(&probing),
            runner: Arc::clone(&runner),
            sanitizer: Arc::new(Sanitizer::default()),
            plugin_calls: Arc::default(),
        };
        let setup = Arc::new(Setup::new(configuration, &parts, None));
        if let Err(error) = costs.open_day(setup.environment.chain.ledgers()).await {
            return Err(unreadable(&error));
        }
        Ok(Arc::new(Self {
            bus,
            feed,
            sessions,
            memory: store.memory(),
            store,
            approvals,
            media,
            plans,
            tracer,
            costs,
            metrics,
            turns: RunningTurns::new(ending, &bundle.settings.agent.limits),
            queues: MessageQueues::default(),
            turn_cache: Arc::default(),
            jobs,
            proposals,
            operations: Arc::new(OperationLog::new(bundle.settings.agent.limits.requests)),
            retention: RetentionLog::default(),
            notifier,
            shadow,
            runner,
            started: Timestamp::now(),
            probing,
            memory_changed,
            full: Mutex::new(None),
            setup: RwLock::new(setup),
            parts,
        }))
    }

    /// What actions of jobs are called through.
    pub(crate) fn action_hosts(&self) -> ActionHosts {
        ActionHosts {
            host: Arc::clone(&self.parts.role_host),
            entries: Arc::clone(&self.parts.entry_states),
            accepted: Arc::clone(&self.parts.accepted_jobs),
        }
    }

    /// The environment and configuration for new turns.
    pub(crate) fn setup(&self) -> Arc<Setup> {
        Arc::clone(&self.setup.read())
    }

    /// Tells an event to people, as far as the configuration says.
    pub(crate) fn notify(&self, event: NewEvent) {
        self.notifier.notify(event);
    }

    /// The supervisor's events.
    pub(crate) fn host_events(&self) -> Arc<dyn HostEvents> {
        Arc::clone(&self.parts.host_events)
    }

    /// What the supervisor says of its plugins and its configuration.
    pub(crate) fn host_feed(&self) -> Arc<dyn HostFeed> {
        Arc::clone(&self.parts.host_feed)
    }

    /// The events that plugins tell.
    pub(crate) fn plugin_events(&self) -> Arc<dyn HostEvents> {
        Arc::clone(&self.parts.plugin_events)
    }

    /// By what the store knows the numbers of the supervisor's events: several supervisors may share a database.
    pub(crate) fn event_source(&self) -> String {
        match self.store.engine() {
            "sqlite" => "host".to_owned(),
            _ => format!("host {}", rustix::system::uname().nodename().to_string_lossy()),
        }
    }

    /// How actions are called in a role.
    pub(crate) fn role_host(&self) -> Arc<dyn RoleHost> {
        Arc::clone(&self.parts.role_host)
    }

    /// Applies a new configuration. Running turns keep theirs.
    pub(crate) fn configure(&self, configuration: &Configuration) {
        let bundle = &configuration.bundle;
        let setup = Arc::new(Setup::new(configuration, &self.parts, Some(&self.setup())));
        self.approvals.configure(ConfirmSettings::of(bundle));
        self.media.configure(bundle.settings.agent.media);
        self.turns.configure(&bundle.settings.agent.limits);
        self.jobs.configure(&configuration.extensions.schedule);
        self.notifier.configure(&configuration.extensions.notifications);
        *self.setup.write() = setup;
        self.shadow.configure(&bundle.settings.shadow);
        // Plugins may have come or gone with it.
        self.proposals.wake();
        self.probing.notify();
        self.memory_changed.notify_one();
    }

    /// The `Ready` message for the supervisor; within [`PROBLEM_WAIT`], however slow the disk is.
    pub(crate) async fn ready(&self) -> Ready {
        let setup = self.setup();
        let mut problems = setup.problems.clone();
        problems.extend(setup.workspace.problems_within(PROBLEM_WAIT).await);
        Ready {
            engine: self.store.engine().to_owned(),
            place: self.store.location(),
            problems,
            full: self.full.lock().clone().unwrap_or_default(),
        }
    }

    /// All present problems, each with what to do. A part that does not answer within [`PROBLEM_WAIT`] counts
    /// as one; otherwise the agent might be taken for dead.
    pub(crate) async fn problems(&self) -> Vec<String> {
        let setup = self.setup();
        let mut problems = setup.problems.clone();
        let (store, files) = tokio::join!(
            timeout(PROBLEM_WAIT, self.store.check()),
            setup.workspace.problems_within(PROBLEM_WAIT),
        );
        match store {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => problems
                .push(format!("the agent's database does not answer: {}", talon_error_chain::error_chain(&error))),
            Err(_) => problems.push(format!(
                "the agent's database does not answer within {PROBLEM_WAIT:?}: see whether its disk or its server is overloaded"
            )),
        }
        problems.extend(files);
        problems.extend(self.retention.problem());
        problems
    }

    /// Waits until the database stops taking writes for lack of room, or takes them again. It polls in between
    /// only. For one caller.
    pub(crate) async fn room_changed(&self) {
        let was_full = self.full.lock().is_some();
        if was_full {
            loop {
                tokio::time::sleep(ROOM_CHECK_INTERVAL).await;
                match self.store.check_room().await {
                    Ok(()) => break,
                    Err(Error::Closed) => return std::future::pending().await,
                    Err(_) => {}
                }
            }
            tracing::info!("there is room for the agent's writes again");
            *self.full.lock() = None;
            return;
        }
        loop {
            self.store.refused_for_room().await;
            // A notification may be older than the room that there is now.
            if let Err(error @ Error::Full(_)) = self.store.check_room().await {
                let problem = talon_error_chain::error_chain(&error);
                tracing::error!(problem, "the agent's writes are refused: there is no room for them");
                *self.full.lock() = Some(problem);
                return;
            }
        }
    }

    /// Why the database refuses writes, while it has no room for them.
    pub(crate) fn room_problem(&self) -> Option<String> {
        self.full.lock().clone()
    }

    /// How many memories are found by meaning; `None` without a model for it, or if unknown within
    /// [`PROBLEM_WAIT`].
    pub(crate) async fn memory_vectors(&self) -> Option<IndexReport> {
        let index = self.setup().index.clone()?;
        timeout(PROBLEM_WAIT, index.report()).await.ok()?.ok()
    }

    /// The number of calls that wait for a person; `None` if unknown within [`PROBLEM_WAIT`].
    pub(crate) async fn approvals_pending(&self) -> Option<usize> {
        timeout(PROBLEM_WAIT, self.approvals.pending(None)).await.ok()
    }

    /// How many proposed jobs wait for the operator; `None` if unknown within [`PROBLEM_WAIT`].
    pub(crate) async fn proposals_waiting(&self) -> Option<usize> {
        timeout(PROBLEM_WAIT, self.proposals.waiting()).await.ok()?.ok()
    }

    /// How many notifications there are; `None` if unknown within [`PROBLEM_WAIT`].
    pub(crate) async fn notification_counts(&self) -> Option<NotificationCounts> {
        timeout(PROBLEM_WAIT, self.store.outbox().counts()).await.ok()?.ok()
    }
}

#[cfg(test)]
mod own_tools_tests;

//! The commands for its clients. A `GetLoop` carries a command in the place of a session, and returns the
//! result the same way:
//!
//! | command | result |
//! |---|---|
//! | `identity` | the client as the supervisor reports it: uid, gid, sender, role, origin |
//! | `rules`, `variable NAME` | its configuration: the operator's rules, and a variable |
//! | `configured`, `hosts` | how often it was configured, and how many connections to the host it received |
//! | `call PLUGIN ACTION TEXT` | the content of the call's answer |
//! | `you` | its identity at the host: role and origin |
//! | `restart PLUGIN`, `shutdown`, `reload`, `describe` | the code with which the host refuses what needs another role |
//! | `read PATH`, `write PATH` | the content of a file of the machine, or the error |
//! | `another` | asks for another connection to the host |
//! | `chatter` | asks for a connection to the host 2000 times |
//! | `hang` | stops answering |
//! | `die` | exits at once |

use std::sync::Arc;

use talon_proto::agent::agent_server::Agent;
use talon_proto::agent::*;
use talon_proto::host::host_client::HostClient;
use talon_proto::host::{
    ExecuteRequest, GetStatusRequest as HostStatusRequest, ReloadRequest, RestartRequest, ShutdownRequest,
};
use talon_proto::state::DescribeRequest;
use talon_proto::state::operator_client::OperatorClient;
use tonic::transport::Channel;
use tonic::{Request, Response, Status};

use crate::state::{Line, Shared, send};

/// For one client.
pub(super) struct Service {
    pub(super) client: AttachClient,
    pub(super) known: Shared,
    pub(super) line: Arc<Line>,
}

fn failed(error: impl std::fmt::Display) -> Status {
    Status::internal(error.to_string())
}

fn code<T>(answer: Result<T, Status>) -> String {
    answer.map_or_else(|status| format!("{:?}", status.code()), |_| "Ok".to_owned())
}

impl Service {
    fn host(&self) -> Result<Channel, Status> {
        self.known.lock().host.clone().ok_or_else(|| Status::unavailable("there is no host yet"))
    }

    async fn run_command(&self, words: &[&str]) -> Result<String, Status> {
        let known = || self.known.lock();
        Ok(match words {
            ["identity"] => {
                let AttachClient { uid, gid, sender, role, origin, .. } = &self.client;
                format!("{uid} {gid} {sender} {role} {origin}")
            }
            ["rules"] => known().handed.settings.orchestrator.rules.join("; "),
            ["variable", name] => known().handed.environment.get(*name).cloned().unwrap_or_default(),
            ["configured"] => known().configured.to_string(),
            ["hosts"] => known().hosts.to_string(),
            ["call", plugin, action, text] => {
                let request = ExecuteRequest {
                    plugin: (*plugin).to_owned(),
                    action: (*action).to_owned(),
                    args: [("text".to_owned(), (*text).to_owned())].into(),
                    context: [("session_id".to_owned(), "a test's".to_owned())].into(),
                    ..ExecuteRequest::default()
                };
                let answer = HostClient::new(self.host()?).execute(request).await?.into_inner();
                if answer.error.is_empty() { answer.content } else { answer.error }
            }
            ["you"] => {
                let status = HostClient::new(self.host()?).get_status(HostStatusRequest {}).await?;
                let you = status.into_inner().you.unwrap_or_default();
                format!("{} {}", you.role, you.origin)
            }
            ["restart", plugin] => {
                let request = RestartRequest { name: (*plugin).to_owned() };
                code(HostClient::new(self.host()?).restart(request).await)
            }
            ["shutdown"] => code(HostClient::new(self.host()?).shutdown(ShutdownRequest {}).await),
            ["reload"] => code(HostClient::new(self.host()?).reload(ReloadRequest::default()).await),
            ["describe"] => {
                code(OperatorClient::new(self.host()?).describe(DescribeRequest::default()).await)
            }
            ["read", path] => std::fs::read_to_string(path).unwrap_or_else(|error| error.kind().to_string()),
            ["write", path] => match std::fs::write(path, "x") {
                Ok(()) => "written".to_owned(),
                Err(error) => error.kind().to_string(),
            },
            ["another"] => {
                self.need_host(2).await?;
                String::new()
            }
            ["chatter"] => {
                for id in 0..2000 {
                    self.need_host(id).await?;
                }
                String::new()
            }
            ["hang"] => loop {
                // Blocks its only thread, and with that every client.
                std::thread::park();
            },
            ["die"] => std::process::exit(3),
            other => return Err(Status::invalid_argument(format!("no such word: {other:?}"))),
        })
    }

    async fn need_host(&self, id: u64) -> Result<(), Status> {
        send(&self.line, from_agent::Kind::NeedHost(NeedHost { id })).await.map_err(failed)
    }
}

fn unimplemented<T>() -> Result<Response<T>, Status> {
    Err(Status::unimplemented("not by talon-test-agent"))
}

#[tonic::async_trait]
impl Agent for Service {
    type AskStream = tokio_stream::Pending<Result<Chunk, Status>>;
    type AttachStream = tokio_stream::Pending<Result<Chunk, Status>>;
    type FollowStream = tokio_stream::Pending<Result<Event, Status>>;

    async fn follow(&self, _: Request<FollowRequest>) -> Result<Response<Self::FollowStream>, Status> {
        unimplemented()
    }

    async fn get_loop(&self, request: Request<GetLoopRequest>) -> Result<Response<LoopState>, Status> {
        let words = request.into_inner().session_id;
        let words: Vec<&str> = words.split(' ').collect();
        Ok(Response::new(LoopState { goal: self.run_command(&words).await?, ..LoopState::default() }))
    }

    async fn get_status(&self, _: Request<GetStatusRequest>) -> Result<Response<GetStatusResponse>, Status> {
        Ok(Response::new(GetStatusResponse { pid: std::process::id(), ..GetStatusResponse::default() }))
    }

    async fn list_jobs(&self, _: Request<ListJobsRequest>) -> Result<Response<ListJobsResponse>, Status> {
        unimplemented()
    }

    async fn list_occurrences(
        &self,
        _: Request<ListOccurrencesRequest>,
    ) -> Result<Response<ListOccurrencesResponse>, Status> {
        unimplemented()
    }

    async fn run_job(&self, _: Request<RunJobRequest>) -> Result<Response<Occurrence>, Status> {
        unimplemented()
    }

    async fn set_plan(&self, _: Request<SetPlanRequest>) -> Result<Response<Plan>, Status> {
        unimplemented()
    }

    async fn pause_job(&self, _: Request<PauseJobRequest>) -> Result<Response<Job>, Status> {
        unimplemented()
    }

    async fn decide_job_proposal(
        &self,
        _: Request<DecideJobProposalRequest>,
    ) -> Result<Response<JobProposal>, Status> {
        unimplemented()
    }

    async fn list_notifications(
        &self,
        _: Request<ListNotificationsRequest>,
    ) -> Result<Response<ListNotificationsResponse>, Status> {
        unimplemented()
    }

    async fn retry_notifications(
        &self,
        _: Request<RetryNotificationsRequest>,
    ) -> Result<Response<RetryNotificationsResponse>, Status> {
        unimplemented()
    }

    async fn test_notification(
        &self,
        _: Request<TestNotificationRequest>,
    ) -> Result<Response<Notification>, Status> {
        unimplemented()
    }

    async fn test_extension(
        &self,
        _: Request<TestExtensionRequest>,
    ) -> Result<Response<TestExtensionResponse>, Status> {
        unimplemented()
    }

    async fn get_metrics(
        &self,
        _: Request<GetMetricsRequest>,
    ) -> Result<Response<GetMetricsResponse>, Status> {
        let sample = |labels: &[(&str, &str)], value| Sample {
            labels: labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            value,
            ..Sample::default()
        };
        let family = |name: &str, kind: &str, samples| MetricFamily {
            name: name.to_owned(),
            kind: kind.to_owned(),
            help: "A number of a test's".to_owned(),
            samples,
        };
        let buckets = [(0.5, 1), (f64::INFINITY, 3)].map(|(bound, count)| Bucket { bound, count }).to_vec();
        let timed = Sample { value: 4.5, buckets, count: 3, ..Sample::default() };
        Ok(Response::new(GetMetricsResponse {
            families: vec![
                family("talon_agent_turns_total", "counter", vec![sample(&[("outcome", "do\"ne\n")], 2.0)]),
                family("talon_agent_turn_seconds", "histogram", vec![timed]),
                // Not among the metrics that an agent may have.
                family("talon_ready", "gauge", vec![sample(&[], 0.0)]),
                family("talon_agent_up", "gauge", vec![sample(&[], 7.0)]),
                family("talon_agent_bad name", "gauge", vec![sample(&[], 0.0)]),
            ],
        }))
    }

    async fn ask(&self, _: Request<AskRequest>) -> Result<Response<Self::AskStream>, Status> {
        unimplemented()
    }
    type CompleteStream = tokio_stream::Pending<Result<Chunk, Status>>;
    async fn complete(&self, _: Request<CompleteRequest>) -> Result<Response<Self::CompleteStream>, Status> {
        unimplemented()
    }
    async fn embed(&self, _: Request<EmbedRequest>) -> Result<Response<EmbedResponse>, Status> {
        unimplemented()
    }
    async fn attach(&self, _: Request<AttachRequest>) -> Result<Response<Self::AttachStream>, Status> {
        unimplemented()
    }
    async fn cancel(&self, _: Request<CancelRequest>) -> Result<Response<CancelResponse>, Status> {
        unimplemented()
    }
    async fn create_session(&self, _: Request<CreateSessionRequest>) -> Result<Response<Session>, Status> {
        unimplemented()
    }
    async fn list_sessions(
        &self,
        _: Request<ListSessionsRequest>,
    ) -> Result<Response<ListSessionsResponse>, Status> {
        unimplemented()
    }
    async fn get_session(
        &self,
        _: Request<GetSessionRequest>,
    ) -> Result<Response<GetSessionResponse>, Status> {
        unimplemented()
    }
    async fn update_session(&self, _: Request<UpdateSessionRequest>) -> Result<Response<Session>, Status> {
        unimplemented()
    }
    async fn resume_session(
        &self,
        _: Request<ResumeSessionRequest>,
    ) -> Result<Response<ResumeSessionResponse>, Status> {
        unimplemented()
    }
    async fn delete_session(
        &self,
        _: Request<DeleteSessionRequest>,
    ) -> Result<Response<DeleteSessionResponse>, Status> {
        unimplemented()
    }
    async fn compact_session(
        &self,
        _: Request<CompactSessionRequest>,
    ) -> Result<Response<CompactSessionResponse>, Status> {
        unimplemented()
    }
    async fn undo_turns(&self, _: Request<UndoTurnsRequest>) -> Result<Response<UndoTurnsResponse>, Status> {
        unimplemented()
    }
    async fn list_approvals(
        &self,
        _: Request<ListApprovalsRequest>,
    ) -> Result<Response<ListApprovalsResponse>, Status> {
        unimplemented()
    }
    async fn decide(&self, _: Request<DecideRequest>) -> Result<Response<Approval>, Status> {
        unimplemented()
    }
    async fn list_approval_rules(
        &self,
        _: Request<ListApprovalRulesRequest>,
    ) -> Result<Response<ListApprovalRulesResponse>, Status> {
        unimplemented()
    }
    async fn revoke_approval_rule(
        &self,
        _: Request<RevokeApprovalRuleRequest>,
    ) -> Result<Response<ApprovalRule>, Status> {
        unimplemented()
    }
    async fn forget_sender(
        &self,
        _: Request<ForgetSenderRequest>,
    ) -> Result<Response<ForgetSenderResponse>, Status> {
        unimplemented()
    }
    async fn list_memories(
        &self,
        _: Request<ListMemoriesRequest>,
    ) -> Result<Response<ListMemoriesResponse>, Status> {
        unimplemented()
    }
    async fn get_memory(&self, _: Request<GetMemoryRequest>) -> Result<Response<Memory>, Status> {
        unimplemented()
    }
    async fn forget_memories(
        &self,
        _: Request<ForgetMemoriesRequest>,
    ) -> Result<Response<ForgetMemoriesResponse>, Status> {
        unimplemented()
    }
    async fn list_models(
        &self,
        _: Request<ListModelsRequest>,
    ) -> Result<Response<ListModelsResponse>, Status> {
        unimplemented()
    }
    async fn list_tools(&self, _: Request<ListToolsRequest>) -> Result<Response<ListToolsResponse>, Status> {
        unimplemented()
    }
    async fn list_costs(&self, _: Request<ListCostsRequest>) -> Result<Response<ListCostsResponse>, Status> {
        unimplemented()
    }
    async fn get_costs(&self, _: Request<GetCostsRequest>) -> Result<Response<GetCostsResponse>, Status> {
        unimplemented()
    }

    async fn observe(&self, _: Request<ObserveRequest>) -> Result<Response<ObserveResponse>, Status> {
        unimplemented()
    }

    async fn list_ghosts(
        &self,
        _: Request<ListGhostsRequest>,
    ) -> Result<Response<ListGhostsResponse>, Status> {
        unimplemented()
    }

    async fn get_ghost(&self, _: Request<GetGhostRequest>) -> Result<Response<GetGhostResponse>, Status> {
        unimplemented()
    }

    async fn decide_ghost(&self, _: Request<DecideGhostRequest>) -> Result<Response<Ghost>, Status> {
        unimplemented()
    }

    async fn pause_shadow(&self, _: Request<PauseShadowRequest>) -> Result<Response<ShadowState>, Status> {
        unimplemented()
    }

    async fn get_shadow_stats(
        &self,
        _: Request<GetShadowStatsRequest>,
    ) -> Result<Response<GetShadowStatsResponse>, Status> {
        unimplemented()
    }

    async fn list_shadow_log(
        &self,
        _: Request<ListShadowLogRequest>,
    ) -> Result<Response<ListShadowLogResponse>, Status> {
        unimplemented()
    }

    type FollowGhostsStream = tokio_stream::Pending<Result<GhostEvent, Status>>;

    async fn follow_ghosts(
        &self,
        _: Request<FollowGhostsRequest>,
    ) -> Result<Response<Self::FollowGhostsStream>, Status> {
        unimplemented()
    }

    type WatchBusStream = tokio_stream::Pending<Result<WatchBusResponse, Status>>;

    async fn watch_bus(&self, _: Request<WatchBusRequest>) -> Result<Response<Self::WatchBusStream>, Status> {
        unimplemented()
    }
}

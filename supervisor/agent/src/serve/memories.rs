//! What is remembered beyond a session.

use talon_proto::agent::forget_memories_request::Kind;
use talon_proto::agent::{
    ForgetMemoriesRequest, ForgetMemoriesResponse, GetMemoryRequest, ListMemoriesRequest,
    ListMemoriesResponse, Memory, Workflow, WorkflowStep,
};
use talon_store::{ForgetSelector, MemoryId, MemoryQuery, StoredMemory, Timestamp};
use tonic::Status;

use super::client::{Client, Origin};
use super::service::{Service, page, token};
use super::sessions::unix_ms;
use crate::error_status::store_error_status;
use crate::recall::{is_shared, is_visible_to};

impl Service {
    pub(super) async fn list_memories(
        &self,
        client: &Client,
        request: ListMemoriesRequest,
    ) -> Result<ListMemoriesResponse, Status> {
        let ListMemoriesRequest { text, tags, page_size, page_token } = request;
        let query = MemoryQuery { text: Some(text).filter(|text| !text.is_empty()), tags, source: None };
        let found = async { self.agent.memory.search(&query, &page(&page_token, page_size)?).await };
        let found = found.await.map_err(|error| store_error_status(&error))?;
        // A page may have fewer entries than requested although more follow.
        let seen = found.items.into_iter().filter(|memory| can_see(client, memory));
        Ok(ListMemoriesResponse { memories: seen.map(view).collect(), next_page_token: token(found.next) })
    }

    pub(super) async fn get_memory(
        &self,
        client: &Client,
        request: GetMemoryRequest,
    ) -> Result<Memory, Status> {
        self.memory(client, &request.id).await.map(view)
    }

    /// Reads a memory that the client may see: its user's own, or one without an owner.
    async fn memory(&self, client: &Client, id: &str) -> Result<StoredMemory, Status> {
        let found =
            self.agent.memory.get(parse_memory_id(id)?).await.map_err(|error| store_error_status(&error))?;
        found.filter(|memory| can_see(client, memory)).ok_or_else(|| no_memory(id))
    }

    pub(super) async fn forget_memories(
        &self,
        client: &Client,
        request: ForgetMemoriesRequest,
    ) -> Result<ForgetMemoriesResponse, Status> {
        if client.origin == Origin::Model {
            return Err(Status::permission_denied(
                "a model forgets nothing: use `talon memory forget` by hand",
            ));
        }
        let what = match request.kind {
            None => {
                return Err(Status::invalid_argument("say what is to be forgotten: an id, a tag, or a time"));
            }
            Some(Kind::Id(id)) => {
                let memory = self.memory(client, &id).await?;
                if is_shared(&memory) {
                    client.require_operator("to forget what is everybody's")?;
                }
                ForgetSelector::Id(memory.id)
            }
            // Deletes in bulk, whatever the owner.
            Some(Kind::Tag(tag)) => {
                client.require_operator("to forget many memories at once")?;
                ForgetSelector::Tag(tag)
            }
            Some(Kind::NotUsedSinceUnixMs(since)) => {
                client.require_operator("to forget many memories at once")?;
                ForgetSelector::NotUsedSince(Timestamp::from_millis(i64::try_from(since).unwrap_or(i64::MAX)))
            }
        };
        let forgotten = self.agent.memory.forget(&what).await.map_err(|error| store_error_status(&error))?;
        tracing::info!(forgotten, by = %client.sender, "memories were forgotten");
        Ok(ForgetMemoriesResponse { forgotten })
    }
}

fn can_see(client: &Client, memory: &StoredMemory) -> bool {
    client.is_operator() || is_visible_to(memory, &client.sender)
}

fn parse_memory_id(id: &str) -> Result<MemoryId, Status> {
    MemoryId::new(id).map_err(|_| no_memory(id))
}

fn no_memory(id: &str) -> Status {
    let shown: String = id.chars().take(40).filter(|c| !c.is_control()).collect();
    Status::not_found(format!("there is no memory {shown}: `talon memory list` shows those there are"))
}

fn view(memory: StoredMemory) -> Memory {
    let workflow = memory.workflow.map(|workflow| Workflow {
        trigger: workflow.trigger,
        steps: workflow
            .steps
            .into_iter()
            .map(|step| WorkflowStep { plugin: step.plugin, action: step.action, order: step.order })
            .collect(),
        outcome: workflow.outcome,
    });
    Memory {
        id: memory.id.to_string(),
        content: memory.content,
        tags: memory.tags.into_iter().collect(),
        source: memory.source,
        created_unix_ms: unix_ms(memory.created_at),
        last_used_unix_ms: unix_ms(memory.last_used),
        count: memory.count,
        workflow,
    }
}

// Generated from the gateway's Rust types by the test the_typescript_types_are_those_of_the_gateway.
/** A turn goes on. */
export interface Accepted {
  sessionId: string;
  /** The turn's number in the session. */
  turn: number;
}
export interface Action {
  description: string;
  name: string;
  parameters: Array<Parameter>;
  /** Only people may call it. */
  userOnly: boolean;
}
/** What came of a call. */
export interface ActionAnswer {
  durationUs: number;
  /** By which it is found in `/api/calls`, in events and in the audit log. */
  id: string;
  /** ok, tool_error, refused or fault */
  outcome: string;
  /** The answer, or why there is none; neutralized. */
  output: string;
  /** The text as the plugin sent it: only to be shown as text. */
  raw?: string | null;
  /** A word for programs; empty if it succeeded. */
  reason: string;
  /** Structured content as JSON text; absent without any. */
  structured?: string | null;
}
/** What is called. */
export interface ActionCall {
  /** The arguments, with their types. */
  args?: Record<string, unknown>;
  /** Also the answer as the plugin sent it (scope admin), if the guard keeps it (`guard.keep_raw_bytes`). */
  raw?: boolean;
}
/** Something people should know. */
export interface AgentNotice {
  /** warn or info */
  level: string;
  sessionId: string;
  text: string;
}
/** Where the loop is. */
export interface AgentPhase {
  completed: Array<string>;
  goal: string;
  iteration: number;
  maxIterations: number;
  pending: Array<string>;
  /** planning, deciding, executing, evaluating, compressing, responding or done */
  phase: string;
  sessionId: string;
  /** In US dollars. */
  totalCost: number;
  totalTokensUsed: number;
}
/** The session's plan. */
export interface AgentPlan {
  approved: boolean;
  revision: number;
  sessionId: string;
  steps: Array<PlanStep>;
}
/** A piece of the answer. */
export interface AgentResponse {
  /** Which attempt it belongs to, and where in it, in bytes. Absent where pieces come in order on one stream. */
  attempt?: number | null;
  /** Text, to be appended to what came before. */
  content: string;
  offset?: number | null;
  sessionId: string;
  /** It is the whole answer at once, and takes the place of what came before. */
  whole?: boolean;
}
/** Pieces so far do not count. */
export interface AgentResponseDiscard {
  /** The attempt whose pieces count from now on; absent: all pieces so far are void. */
  attempt?: number | null;
  sessionId: string;
}
/** The answer is over. */
export interface AgentResponseEnd {
  /** How often the loop asked a model. */
  iteration: number;
  /** The model that answered. */
  model: string;
  /** The provider that answered. */
  providerId: string;
  sessionId: string;
  usage: TokenUsage;
}
/** The model thinks. */
export interface AgentThinking {
  sessionId: string;
}
/** A piece of what the model thinks. */
export interface AgentThought {
  /** As in `agent.response`. */
  attempt?: number | null;
  content: string;
  offset?: number | null;
  sessionId: string;
}
/** What came of a message. */
export interface Answer {
  content: string;
  iteration: number;
  model: string;
  providerId: string;
  sessionId: string;
  toolCalls: number;
  /** The turn's number in the session. */
  turn: number;
  usage: TokenUsage;
}
/** Something that waits for a person: a call, a plan, or a question. */
export interface Approval {
  /** Exactly what the plugin gets. */
  args: unknown;
  /** In milliseconds since 1970. */
  askedAt: number;
  decidedBy: string;
  /** Goes back with the decision. */
  digest: string;
  expiresAt: number;
  id: string;
  options: Array<string>;
  /** The question; empty if it is none. */
  question: string;
  /** The JSON Schema of the answer, if it is to be one object. */
  schema?: unknown;
  senderId: string;
  sessionId: string;
  /** pending, approved, answered, denied, expired or cancelled */
  state: string;
  /** The call that waits, as plugin.action; empty for a plan, and for a question of the model. */
  tool: string;
  why: string;
}
/** A record of the audit log. */
export interface AuditEntry {
  /** In milliseconds since 1970. */
  at: number;
  /** `plugin.action` of a call, or the operation's verb; empty otherwise. */
  event: string;
  /** call, operation, or what the log says of itself: started, stopped, lost, … */
  kind: string;
  /** ok, done, refused, failed, …; empty if there is none. */
  outcome: string;
  /** The record as it is in the log. */
  record: unknown;
  /** Counts up by one. */
  sequence: number;
  /** Who caused it: a subject of the gateway, a sender of the agent, or `uid:N`; empty if the supervisor acted by itself. */
  subject: string;
  /** What an operation was about; empty if nothing in particular. */
  target: string;
}
/** Whether the audit log is whole. */
export interface AuditVerdict {
  files: number;
  /** The number and hash of the last record, to be noted elsewhere; absent if it is broken. */
  head?: string | null;
  /** Records that the log itself says are missing, because they could not be written in time. */
  lost: number;
  /** Where it is broken and how, or further findings; empty if there are none. */
  message: string;
  /** Every record is unchanged and follows the one before it. */
  ok: boolean;
  /** Records that were read. */
  records: number;
}
/** Host or agent. */
export interface BackendHealth {
  latencyMs: number;
  status: HealthStatus;
}
/** What waits for a person. */
export interface BusApproval {
  /** call, question or plan */
  about: string;
  action?: string | null;
  /** Its id. */
  approval: string;
  decidedBy?: string | null;
  /** In milliseconds since 1970. */
  expiresAt: number;
  plugin?: string | null;
  /** pending, approved, denied, answered, expired or cancelled */
  state: string;
  subagent?: string | null;
  why: string;
}
/** Keys of the configuration. */
export interface BusConfig {
  /** Those that hold now. */
  keys: Array<string>;
  /** Those that hold after the next start. */
  needsRestart: Array<string>;
}
/** An event of the bus. */
export type BusEnvelope = BusEvent & {
  /** To whom it belongs; absent: to nobody. */
  sender?: string | null;
  /** Counts up by one over all types, also those that were not asked for; begins anew with the agent. Absent for what is no event. */
  sequence?: number | null;
  /** The session in which it happened. */
  sessionId?: string | null;
  /** When it happened, in milliseconds since 1970. */
  timestamp: number;
};
/** An event, by its type. The list is closed. */
export type BusEvent = {
  /** A session got a message. */
  payload: BusMessageIn;
  type: "message.inbound";
} | {
  /** The answer of a turn is complete. */
  payload: BusMessageOut;
  type: "message.outbound";
} | {
  /** A model wants a tool to run. */
  payload: BusToolExecute;
  type: "tool.execute";
} | {
  /** A call has its result, with what each layer of the guard did. */
  payload: BusToolComplete;
  type: "tool.complete";
} | {
  /** What a watcher saw, before anything is decided about it. */
  payload: ShadowEvent;
  type: "shadow.event";
} | {
  /** A proposal that nobody asked for, or that changed. */
  payload: ShadowGhost;
  type: "shadow.ghost";
} | {
  /** A session got its first message. */
  payload: BusSession;
  type: "session.created";
} | {
  /** A session went idle. */
  payload: BusSessionIdle;
  type: "session.idle";
} | {
  /** Another configuration is in force. */
  payload: BusConfig;
  type: "config.changed";
} | {
  /** A turn begins a step in which a model is asked. */
  payload: BusThinking;
  type: "agent.thinking";
} | {
  /** An instance takes calls. */
  payload: BusPlugin;
  type: "plugin.ready";
} | {
  /** An instance failed, and is not started again by itself. */
  payload: BusPlugin;
  type: "plugin.failed";
} | {
  /** An instance waits to be started again. */
  payload: BusPlugin;
  type: "plugin.restarting";
} | {
  /** An instance was stopped. */
  payload: BusPlugin;
  type: "plugin.stopped";
} | {
  /** A process of a plugin ended. */
  payload: BusPlugin;
  type: "plugin.exited";
} | {
  /** A plugin declares other actions, resources, prompts or scripts. */
  payload: BusPlugin;
  type: "plugin.changed";
} | {
  /** A plugin's processes were replaced, or that failed. */
  payload: BusPlugin;
  type: "plugin.replaced";
} | {
  /** A plugin told what happened elsewhere. */
  payload: BusPlugin;
  type: "plugin.event";
} | {
  /** A layer refused a call of a turn. */
  payload: BusGuard;
  type: "guard.refused";
} | {
  /** Control syntax in an answer was neutralized. */
  payload: BusGuard;
  type: "guard.neutralized";
} | {
  /** A plugin gets no calls: it kept sending control syntax. */
  payload: BusGuard;
  type: "guard.quarantined";
} | {
  /** What an action declares is not what was approved. */
  payload: BusGuard;
  type: "guard.declaration_changed";
} | {
  /** A call, a question or a plan waits for a person. */
  payload: BusApproval;
  type: "approval.waiting";
} | {
  /** It was approved, denied or answered. */
  payload: BusApproval;
  type: "approval.decided";
} | {
  /** It waits no more, and nobody decided. */
  payload: BusApproval;
  type: "approval.ended";
} | {
  /** A run of a job begins. */
  payload: BusTask;
  type: "task.started";
} | {
  /** A run of a job is done. */
  payload: BusTask;
  type: "task.completed";
} | {
  /** A run of a job, or the task of a sub-agent, failed. */
  payload: BusTask;
  type: "task.failed";
} | {
  /** A run of a job goes on later. */
  payload: BusTask;
  type: "task.retried";
} | {
  /** An attempt to deliver a notification begins. */
  payload: BusNotification;
  type: "notification.sending";
} | {
  /** A notification was delivered. */
  payload: BusNotification;
  type: "notification.delivered";
} | {
  /** Its sink refused a notification, or all attempts failed. */
  payload: BusNotification;
  type: "notification.failed";
} | {
  /** There will be another attempt. */
  payload: BusNotification;
  type: "notification.retried";
} | {
  /** Events are missing here. */
  payload: MissedEvents;
  type: "missed";
};
/** What the guard did. */
export interface BusGuard {
  action?: string | null;
  callId?: string | null;
  /** The layer that did it. */
  layer: string;
  /** How often control syntax of each family was neutralized. */
  neutralized: Record<string, number>;
  plugin: string;
  reason: string;
}
/** A message that a session got. */
export interface BusMessageIn {
  /** Where it comes from. */
  channel: string;
  /** The client's own id of it. */
  clientId?: string | null;
  leftOutBytes: number;
  /** How many images and other files come with it. */
  media: number;
  senderName?: string | null;
  /** At most 2 KiB of it; the session has all. */
  text: string;
  turn: number;
}
/** An answer. */
export interface BusMessageOut {
  channel: string;
  leftOutBytes: number;
  /** As provider/name. */
  model?: string | null;
  /** At most 2 KiB of it; the session has all. */
  text: string;
  turn: number;
}
/** An attempt to deliver a notification. */
export interface BusNotification {
  attempt: number;
  entry: string;
  kind: string;
  /** Its id. */
  notification: string;
  /** Why it failed. */
  reason?: string | null;
  severity: string;
  summary: string;
}
/** What became of a plugin. */
export interface BusPlugin {
  /** For programs: from, to, reason, exit, topic and the like. */
  fields: Record<string, string>;
  /** 0: it is about all of them. */
  instance: number;
  /** One sentence. */
  message: string;
  plugin: string;
}
/** A new session. */
export interface BusSession {
  channel: string;
  /** In milliseconds since 1970. */
  createdAt: number;
}
/** Nothing more is said of it. */
export type BusSessionIdle = Record<string, unknown>;
/** A run of a job, or the task of a sub-agent. */
export interface BusTask {
  /** The first is 1. */
  attempt: number;
  job?: string | null;
  /** Why it failed. */
  reason?: string | null;
  run?: string | null;
  subagent?: string | null;
}
/** A step of a turn. */
export interface BusThinking {
  iteration: number;
  phase: string;
  turn: number;
}
/** A call with its result. */
export interface BusToolComplete {
  action?: string | null;
  callId: string;
  /** Without the time for which it waited for a person. */
  durationMs: number;
  /** What each layer of the guard did, from the outermost to the plugin; none for a call that never came to the supervisor. */
  layers: Array<Layer>;
  /** succeeded, failed, not_offered, over_the_limit or handed_over */
  outcome: string;
  plugin?: string | null;
  /** A word for why it failed, if the supervisor says so. */
  reason?: string | null;
  subagent?: string | null;
  tool: string;
  /** Whether a limit left anything out of the answer. */
  truncated: boolean;
  turn: number;
}
/** A call that a model wants. */
export interface BusToolExecute {
  action?: string | null;
  /** JSON: at most 2 KiB of it. */
  arguments: string;
  callId: string;
  leftOutBytes: number;
  /** Absent for a tool that does not exist, as the action. */
  plugin?: string | null;
  /** Whose call it is; absent for the agent itself. */
  subagent?: string | null;
  /** The name under which the model called it. */
  tool: string;
  turn: number;
}
/** A call with what the guard did. */
export interface CallDetails {
  /** The answer's text, neutralized. */
  answer?: string | null;
  /** The arguments; absent if they were too long to be kept. */
  args?: unknown;
  call: RecentCall;
  /** Whether the guard keeps the answer as it came (`guard.keep_raw_bytes`). What follows is absent otherwise. */
  kept: boolean;
  /** The guard's layers, the outermost first; empty while it runs. */
  layers: Array<Layer>;
  /** How many bytes of the answer are not there. */
  leftOutBytes: number;
  /** What the guard put into it, in order. */
  spans: Array<Span>;
}
/** What is called. */
export type CallKind = "function";
export interface CalledFunction {
  /** JSON. */
  arguments: string;
  name: string;
}
/** Who the caller is. */
export interface CallerSession {
  channel: string;
  scopes: Array<string>;
  /** What writes of a browser's session carry in the header `X-Talon-Session`. */
  sessionToken?: string | null;
  subject: string;
}
/** Whether a turn was ended. */
export interface Cancelled {
  /** False if there was no turn. */
  cancelled: boolean;
}
/** What somebody says. */
export interface ChannelMessage {
  /** The token's own channel, or absent. */
  channel?: string | null;
  /** The group, with `isGroup`. */
  groupId?: string | null;
  /** Whether it was said in a group. */
  isGroup?: boolean;
  /** Files that belong to it. */
  media?: Array<MediaFile> | null;
  /** Whether the channel marks it as for the agent. In a group only what is marked, or names the agent, is (`gateway.routing`). */
  mentioned?: boolean | null;
  /** Who says it: with a token of the scope `channel`, a sender of it; otherwise the caller, or absent. */
  senderId?: string | null;
  /** What people call the sender. Models see it in groups. */
  senderName?: string | null;
  /** The session; absent: the sender's main one, or the group's. */
  sessionId?: string | null;
  /** At most 256 KiB. */
  text: string;
}
/** A message that a session got. */
export interface ChannelMessageEvent {
  channel: string;
  /** The client's own id of the message, if it gave one. */
  clientId?: string | null;
  /** The channel's own id of the group. */
  groupId?: string | null;
  /** Whether it was said in a group. */
  isGroup: boolean;
  /** Images and files that belong to it. */
  media: Array<MediaInfo>;
  /** Whose session it is in: of a group, `gw:CHANNEL/group:ID`. */
  senderId: string;
  /** Of a message in a group: what people call who said it. */
  senderName?: string | null;
  sessionId: string;
  text: string;
}
/** What the assistant says. */
export interface ChatAnswer {
  /** Null if there are calls alone. */
  content: string | null;
  /** Always null. */
  refusal: Record<string, unknown> | null;
  /** assistant */
  role: string;
  /** Calls that the client makes. */
  tool_calls?: Array<ChatCall>;
}
/** A conversation, and how it is to be answered. OpenAI's other fields are taken at the value that changes nothing; everything else is refused by its name. */
export interface ChatBody {
  /** The most tokens of the answer. */
  max_completion_tokens?: number | null;
  /** The old name of `max_completion_tokens`. */
  max_tokens?: number | null;
  messages: Array<ChatMessage>;
  /** talon, a tier of it (talon/cheap), provider/name, or an alias. */
  model: string;
  /** False: one call of the client's functions at most in each answer. */
  parallel_tool_calls?: boolean | null;
  reasoning_effort?: ReasoningEffort | null;
  response_format?: ChatFormat | null;
  seed?: number | null;
  stop?: Stop | null;
  stream?: boolean | null;
  stream_options?: StreamOptions | null;
  temperature?: number | null;
  tool_choice?: ChatToolChoice | null;
  /** Functions of the client's, beside the server's own tools. */
  tools?: Array<ChatTool> | null;
  top_p?: number | null;
  /** For the client's own books: who the request is for says its credential. */
  user?: string | null;
  verbosity?: Verbosity | null;
}
/** A call of a function of the client's. */
export interface ChatCall {
  function: CalledFunction;
  id: string;
  type?: CallKind;
}
export interface ChatChoice {
  finish_reason: FinishReason;
  index: number;
  /** Always null. */
  logprobs: Record<string, unknown> | null;
  message: ChatAnswer;
}
/** A completion of an answer. */
export interface ChatCompletion {
  /** One. */
  choices: Array<ChatChoice>;
  /** In seconds since 1970. */
  created: number;
  id: string;
  /** As the request named it. */
  model: string;
  /** chat.completion */
  object: string;
  usage: CompletionUsage;
}
/** A text, or parts. */
export type ChatContent = string | Array<ChatPart>;
/** The form of the answer. */
export type ChatFormat = {
  type: "text";
} | {
  type: "json_object";
} | {
  json_schema: JsonSchema;
  type: "json_schema";
};
/** A message of a client. A name, a refusal and the like beside the text are for the client's own books. */
export interface ChatMessage {
  content?: ChatContent | null;
  /** system, developer (the same), user, assistant or tool */
  role: string;
  /** Of a tool's message: the call whose result it is. */
  tool_call_id?: string | null;
  /** Of an assistant's message: the calls that it made. */
  tool_calls?: Array<ChatCall> | null;
}
/** A part of a message. */
export type ChatPart = {
  text: string;
  type: "text";
} | {
  refusal: string;
  type: "refusal";
} | {
  image_url: ImageUrl;
  type: "image_url";
};
/** A tool of the client's. */
export type ChatTool = {
  function: ClientFunction;
  type: "function";
};
/** Which tools the model is left: auto, none, required, or one function. */
export type ChatToolChoice = ToolMode | {
  function: NamedFunction;
};
/** A piece of a call. */
export interface ChunkCall {
  function: ChunkFunction;
  id?: string | null;
  /** Which of the answer's calls it belongs to. */
  index: number;
  /** function */
  type?: string | null;
}
export interface ChunkChoice {
  delta: ChunkDelta;
  finish_reason: FinishReason | null;
  index: number;
  /** Always null. */
  logprobs: Record<string, unknown> | null;
}
/** What a piece adds. */
export interface ChunkDelta {
  content?: string | null;
  /** In the first piece: assistant. */
  role?: string | null;
  /** Of a call that the client makes: its name, or its arguments. */
  tool_calls?: Array<ChunkCall> | null;
}
export interface ChunkFunction {
  /** JSON, or a piece of it. */
  arguments: string;
  name?: string | null;
}
/** A person's answer to a question. */
export interface ClarificationAnswer {
  /** At most 16 KiB. Null: nobody wants to answer. */
  answer?: string | null;
  /** `clarification.request`'s id. */
  id: string;
  /** As in `confirmation.answer`. */
  senderId?: string | null;
}
/** The model, or a plugin, asks a person something. */
export interface ClarificationRequest {
  /** In milliseconds since 1970. */
  expiresAt: number;
  /** The id of the question, which the answer names. */
  id: string;
  /** Answers that are suggested; any other is as good. */
  options: Array<string>;
  /** The plugin whose question it is; absent if it is the model's. */
  plugin?: string | null;
  question: string;
  /** The JSON Schema of the answer, if it is to be one object. */
  schema?: unknown;
  sessionId: string;
}
/** A function that the client calls. */
export interface ClientFunction {
  description?: string | null;
  name: string;
  /** A JSON Schema of its arguments. */
  parameters?: Record<string, unknown> | null;
  strict?: boolean | null;
}
/** How much is compacted. */
export interface CompactWish {
  /** Turns that stay as they were; without it, as configured. */
  keepTurns?: number;
}
/** What was compacted. */
export interface Compacted {
  /** Messages that the summary stands for. */
  messages: number;
  summary: string;
  tokensAfter: number;
  tokensBefore: number;
}
/** A piece of a streamed completion. */
export interface CompletionChunk {
  /** One, or none in the piece with the usage. */
  choices: Array<ChunkChoice>;
  /** In seconds since 1970. */
  created: number;
  id: string;
  /** As the request named it. */
  model: string;
  /** chat.completion.chunk */
  object: string;
  usage?: CompletionUsage | null;
}
export interface CompletionDetails {
  reasoning_tokens: number;
}
/** An event of a streamed completion. `[DONE]` follows the last piece; an error ends the stream without it. */
export type CompletionEvent = CompletionChunk | OpenAiError;
/** What was used. */
export interface CompletionUsage {
  completion_tokens: number;
  completion_tokens_details: CompletionDetails;
  prompt_tokens: number;
  prompt_tokens_details: PromptDetails;
  total_tokens: number;
}
/** A change that was made while Talon ran. */
export interface ConfigChange {
  /** In milliseconds since 1970. */
  at: number;
  /** Who made it. */
  by: string;
  changes: Array<ConfigKeyChange>;
  /** The keys, joined by dots. */
  keys: Array<string>;
  /** Counts up by one. */
  revision: number;
}
/** What a change does. */
export interface ConfigChangeResult {
  /** Keys whose value differs, and that hold from now on. */
  changed: Array<string>;
  /** Keys that hold after the next start of Talon. */
  needsRestart: Array<string>;
  /** For the next `If-Match`. */
  revision: string;
  warnings: Array<string>;
}
/** What a patch would do. */
export interface ConfigCheck {
  changed: Array<string>;
  /** Why it would be refused. */
  errors: Array<ConfigError>;
  needsRestart: Array<string>;
  ok: boolean;
  warnings: Array<string>;
}
/** Why a key is refused. */
export interface ConfigError {
  /** Empty if it is about the whole. */
  key: string;
  message: string;
}
/** What a reload would find. */
export interface ConfigFileCheck {
  /** Keys whose value would differ from what is in force. */
  changed: Array<string>;
  /** Of which the value differs, and that hold after the next start. */
  needsRestart: Array<string>;
  ok: boolean;
  problems: Array<string>;
  warnings: Array<string>;
}
/** A key of a change. Values are those of the overlay; absent where it had none. */
export interface ConfigKeyChange {
  after?: unknown;
  before?: unknown;
  key: string;
}
/** A value of the configuration. */
export interface ConfigSource {
  /** Whether `PATCH /api/config` may set it. */
  editable: boolean;
  /** The steps of its key, joined by dots. */
  key: string;
  /** The steps: names that the operator chose may have dots. */
  path: Array<string>;
  /** default, file, overlay, environment or flag */
  source: string;
  /** Of any type. */
  value: unknown;
  /** File, line and column, or the variable, or the flag. */
  where: string;
  /** Why not, and what to do instead. */
  why: string;
}
/** The values of the configuration one by one. */
export interface ConfigSources {
  /** The config file; empty if there is none. */
  file: string;
  items: Array<ConfigSource>;
  /** Where changes are written; empty if nothing may be changed while Talon runs. */
  overlay: string;
  /** What may be changed: these keys, and all below them. */
  overlayKeys: Array<string>;
  /** For `If-Match`. */
  revision: string;
}
/** The configuration changed. */
export interface ConfigUpdated {
  /** Keys whose value changed. */
  keys: Array<string>;
  /** Of these, those that hold after the next start. */
  needsRestart: Array<string>;
}
/** A person's decision about a call. */
export interface ConfirmationAnswer {
  allow: boolean;
  /** `confirmation.request`'s digest: nothing else is approved. */
  digest: string;
  /** `confirmation.request`'s id. */
  id: string;
  /** With a denial: told to the model. At most 500 bytes. */
  reason?: string;
  /** Who decides: with a token of the scope `channel`, a sender of it; otherwise absent. */
  senderId?: string | null;
}
/** A call, or a plan, waits for a person. */
export interface ConfirmationRequest {
  /** The answers, in the order in which buttons show them. */
  actions: Array<string>;
  /** Exactly what the plugin would get. */
  args: unknown;
  /** What was seen is what is approved: goes back with the answer. */
  digest: string;
  /** In milliseconds since 1970. */
  expiresAt: number;
  /** The id of the approval, which the answer names. */
  id: string;
  sessionId: string;
  /** What people read: `⚠️ The assistant wants to run: …`. */
  text: string;
  /** The tool that would be called, as plugin.action; empty for a plan. */
  tool: string;
  /** Why it asks: always, destructive or pattern. */
  why: string;
}
export interface Cost {
  answers: number;
  cachedPromptTokens: number;
  completionTokens: number;
  /** In US dollars. */
  cost: number;
  /** Of this, what nobody counted. */
  estimated: number;
  failures: number;
  promptTokens: number;
}
/** What models cost. */
export interface Costs {
  byModel: Array<NamedCost>;
  byProvider: Array<NamedCost>;
  dayBudget?: number | null;
  /** With `by`: by day, oldest first, each under its date in UTC; by model or session, the most expensive first, at most 500. */
  rows?: Array<NamedCost> | null;
  session?: Cost | null;
  /** What a session may cost, in US dollars; absent without a limit. */
  sessionBudget?: number | null;
  today: Cost;
}
export interface Counters {
  calls: number;
  faults: number;
  /** In microseconds. */
  p50Us: number;
  p99Us: number;
  refusals: number;
  tainted: number;
  toolErrors: number;
  truncated: number;
}
/** A person's decision. */
export interface Decision {
  /** Whether it may run; of a question, whether it is answered. */
  allow: boolean;
  /** The answer to a question. At most 16 KiB. */
  answer?: string;
  /** What was seen: needed to allow a call. */
  digest?: string;
  /** To allow a plan: the revision that was seen. */
  planRevision?: number;
  /** With a denial: told to the model. At most 500 bytes. */
  reason?: string;
  /** once, session or always; without it, once. */
  scope?: string;
}
/** A request that waits no more. */
export interface DecisionEvent {
  id: string;
  sessionId: string;
  /** approved, answered, denied, expired or cancelled */
  state: string;
}
/** What `/api/health/deep` answers. */
export interface DeepHealth {
  agent: BackendHealth;
  /** Why the last configuration was refused, so that an earlier one holds (scope operate); empty if it was not. */
  configProblem: string;
  host: BackendHealth;
  status: HealthStatus;
  version: string;
}
/** What became of a response. */
export interface DeletedResponse {
  /** Always true. */
  deleted: boolean;
  id: string;
  /** response */
  object: string;
}
/** What the doctor found. */
export interface Diagnosis {
  /** When it looked, in milliseconds since 1970. It looks again half a minute later at the earliest. */
  at: number;
  /** The worst first. */
  items: Array<Finding>;
}
/** What a response repeats of its request, as it was written. */
export interface EchoedFields {
  instructions: string | null;
  max_output_tokens: number | null;
  metadata: Record<string, string>;
  parallel_tool_calls: boolean;
  previous_response_id: string | null;
  reasoning: ReasoningOptions;
  temperature: number | null;
  text: TextOptions;
  tool_choice: ResponseToolChoice;
  tools: Array<ResponseTool>;
  top_p: number | null;
}
/** A text, or several. */
export type EmbeddedTexts = string | Array<string>;
export interface Embedding {
  embedding: EncodedVector;
  /** The text's place. */
  index: number;
  /** embedding */
  object: string;
}
/** Vectors in the order of the texts. */
export interface EmbeddingList {
  data: Array<Embedding>;
  /** As the request named it. */
  model: string;
  /** list */
  object: string;
  usage: EmbeddingUsage;
}
export interface EmbeddingUsage {
  prompt_tokens: number;
  total_tokens: number;
}
/** Texts, and how their vectors are wanted. */
export interface EmbeddingsBody {
  /** How many numbers a vector has, of models that leave the choice. */
  dimensions?: number | null;
  encoding_format?: Encoding | null;
  input: EmbeddedTexts;
  /** talon, or the model of `models.embeddings`. */
  model: string;
  /** For the client's own books. */
  user?: string | null;
}
/** As `encoding_format` says. */
export type EncodedVector = Array<number> | string;
/** How a vector is written: as numbers, or as base64 of little-endian 32-bit floats. */
export type Encoding = "float" | "base64";
/** A message of the gateway: `{id, type, timestamp, payload}`, and a sequence if it is recorded. */
export type Envelope = ServerEvent & {
  /** The event's id; the same if it is sent again. */
  id: string;
  /** Its place among the recorded events of its session: what `resume` goes on from. Absent if it is not recorded. */
  sequence?: number | null;
  /** When it happened, in milliseconds since 1970. */
  timestamp: number;
};
export interface ErrorDetails {
  code: string;
  message: string;
  /** The field that is wrong. */
  param?: string | null;
  /** authentication_error, permission_error, rate_limit_error, invalid_request_error or server_error */
  type: string;
}
/** Something failed. */
export interface ErrorEvent {
  /** What happened, and what to do. */
  message: string;
  /** What there is of an answer. */
  partial?: string | null;
  /** A word for programs. */
  reason: string;
  /** The client's message that it is about; absent if it had no id that could be read. */
  replyTo?: string | null;
  /** When a retry may succeed, in milliseconds. */
  retryAfter?: number | null;
  /** The session whose turn failed; absent if a message of the client did. */
  sessionId?: string | null;
}
/** An action that plays a role. */
export interface Extension {
  /** plugin.action */
  action: string;
  /** Whether the action declares the role. */
  declared: boolean;
  /** Its entry's name. */
  name: string;
  /** Why it does not work, with what to do; empty if it does. */
  reason: string;
  role: string;
  /** ready, waiting or failing */
  state: string;
}
/** One check. */
export interface Finding {
  /** What was looked at. */
  check: string;
  /** What to do; empty if there is nothing to do. */
  fix: string;
  message: string;
  /** configuration, files, programs, supervisor, service, logs, machine or sandbox */
  section: string;
  /** ok, warning or failed */
  state: string;
  /** Why it matters; empty if it is in order or obvious. */
  why: string;
}
/** Why an answer ends. */
export type FinishReason = "stop" | "length" | "tool_calls";
/** A button of a proposal. */
export interface GhostAction {
  label: string;
  payload?: unknown;
  /** approve, dismiss or custom */
  type: string;
}
/** A person's decision about a ghost. */
export interface GhostDecision {
  /** approve, dismiss, snooze or custom */
  decision: string;
  /** With custom: the label of the action. */
  label?: string;
  /** With snooze: for how long, in milliseconds. 0: an hour. */
  snoozeFor?: number;
}
/** Why a ghost is there. */
export interface GhostReasons {
  /** What was found, in the words of the detector. */
  finding: string;
  ghost: ShadowGhost;
  /** Which rules of the policy it passed. */
  passed: Array<string>;
  sent?: ShadowLogEntry | null;
}
/** What `/api/health` and `/api/ready` answer. */
export interface Health {
  status: HealthStatus;
}
/** Whether it answers. */
export type HealthStatus = "ok" | "unavailable";
export interface ImageUrl {
  /** data:image/…;base64,…: links are not fetched. */
  url: string;
}
export interface IncompleteDetails {
  /** max_output_tokens */
  reason: string;
}
/** A call of a function of the client's. */
export interface InputCall {
  /** JSON. */
  arguments: string;
  call_id: string;
  id?: string | null;
  name: string;
}
/** A text, or parts. */
export type InputContent = string | Array<InputPart>;
/** An item of the input. An item without a type is a message. */
export type InputItem = InputMessage & {
  type: "message";
} | InputCall & {
  type: "function_call";
} | InputOutput & {
  type: "function_call_output";
} | InputReference & {
  type: "item_reference";
} | {
  type: "reasoning";
};
/** What somebody says. */
export interface InputMessage {
  content: InputContent;
  /** Of a message that is part of a stored response. */
  id?: string | null;
  /** system, developer (the same), user or assistant */
  role: string;
}
/** The result of a call. */
export interface InputOutput {
  call_id: string;
  output: InputContent;
}
/** A part of a message. */
export type InputPart = {
  text: string;
  type: "input_text";
} | {
  text: string;
  type: "output_text";
} | {
  refusal: string;
  type: "refusal";
} | {
  /** data:image/…;base64,…: links are not fetched. */
  image_url: string;
  type: "input_image";
};
/** A part of a stored response. */
export interface InputReference {
  id: string;
}
export interface InputTokenDetails {
  cached_tokens: number;
}
export interface Instance {
  callsInFlight: number;
  /** Processor time since its start, in microseconds. */
  cpuUs: number;
  generation: number;
  index: number;
  memoryBytes: number;
  pid: number;
  /** With those that it started. */
  processes: number;
  /** Since when it is ready, in milliseconds since 1970; 0 if it is not. */
  readySince: number;
  state: string;
}
export type ItemStatus = "in_progress" | "completed";
/** A job. */
export interface Job {
  id: string;
  last?: Occurrence | null;
  /** In milliseconds since 1970; absent if it never begins. */
  nextAt?: number | null;
  paused: boolean;
  /** The configuration says so: then it cannot be resumed here. */
  pausedByConfiguration: boolean;
  target: string;
  timezone: string;
  /** As it is configured: `cron 0 9 * * 1-5`, `every 6h` or `at 2026-12-24T17:00:00Z`. */
  when: string;
}
/** What of a job changes. */
export interface JobChange {
  /** Whether it rests. */
  paused: boolean;
}
export interface JsonSchema {
  /** A JSON Schema that the answer has to fit. */
  schema: Record<string, unknown>;
}
/** A layer of the guard. */
export interface Layer {
  /** trace, taint, wrap, truncate, sanitize, rescue, validate, resolve, quarantine, deadline, breaker, admission or instance */
  layer: string;
  /** Why, if it did not pass. */
  reason?: string | null;
  /** Its own time in microseconds; absent if nobody looked at calls then. */
  us?: number | null;
  /** pass, changed, deny, fault or skipped */
  verdict: string;
}
/** A line of a plugin's log. */
export interface LogLine {
  instance: number;
  /** trace, debug, info, warn or error */
  level: string;
  /** stdout, stderr, stdio or talon */
  stream: string;
  /** Control characters are made visible. */
  text: string;
  /** In milliseconds since 1970. */
  timestamp: number;
}
/** A file of a message. Its type is told by its bytes. */
export interface MediaFile {
  /** Its bytes, in base64. */
  data: string;
  /** What people call it. */
  name?: string;
}
/** An image or file of a message, without its bytes. */
export interface MediaInfo {
  /** SHA-256 of the bytes, in hex. */
  digest: string;
  /** Of an image, in pixels. */
  height?: number | null;
  /** What people call it; may be empty. */
  name: string;
  /** In bytes. */
  size: number;
  /** Such as image/png, as its bytes tell. */
  type: string;
  /** Of an image, in pixels. */
  width?: number | null;
}
/** Something that the agent remembers. */
export interface Memory {
  content: string;
  /** How often it was recorded. */
  count: number;
  /** In milliseconds since 1970. */
  createdAt: number;
  id: string;
  lastUsedAt: number;
  source: string;
  tags: Array<string>;
}
/** A message. */
export interface Message {
  /** Of a person's message: where it was said. */
  channel?: string | null;
  content: string;
  /** What hooks made of a person's message, as the model was asked; of an answer, what the model had written before. Scope operate alone. */
  hooked?: string | null;
  id: string;
  /** Images and files that belong to it. */
  media?: Array<MediaInfo>;
  /** user, assistant, system or tool */
  role: string;
  /** Of a person's message in a group: who said it. */
  senderName?: string | null;
  /** It stands for older messages. */
  summary?: boolean;
  /** In milliseconds since 1970. */
  timestamp: number;
  toolCalls: Array<MessageToolCall>;
  toolResults: Array<MessageToolResult>;
}
export interface MessageToolCall {
  args: unknown;
  id: string;
  tool: string;
}
export interface MessageToolResult {
  id: string;
  metadata: ToolResultMetadata;
  output: string;
  success: boolean;
  tool: string;
}
/** Events are missing here, since the client reads too slowly. */
export interface MissedEvents {
  /** How many of the types that were asked for. */
  count: number;
}
/** A model that may answer. */
export interface Model {
  alias: string;
  contextWindow: number;
  /** provider/name */
  id: string;
  /** In US dollars for a million tokens; empty if unknown. */
  inputPrice: string;
  /** What it is asked stays on this machine. */
  local: boolean;
  outputPrice: string;
  /** ready, resting, out or not_set_up */
  state: string;
  supportsTools: boolean;
  supportsVision: boolean;
  tier: string;
  /** Why it is not ready. */
  why: string;
}
/** One of them. */
export interface ModelEntry {
  created: number;
  id: string;
  object: string;
  owned_by: string;
}
/** The models that a request may name. */
export interface ModelList {
  data: Array<ModelEntry>;
  object: string;
}
export interface NamedCost {
  cost: Cost;
  name: string;
}
export interface NamedFunction {
  name: string;
}
/** A new session's settings. */
export interface NewSession {
  /** What to note about it; at most 32 entries. */
  labels?: Record<string, string>;
  /** provider/name or alias; without it, as configured. */
  model?: string;
  thinkingLevel?: ThinkingLevel;
  /** Whether channels show arguments and results of calls. */
  verboseLevel?: boolean;
}
/** What one entry is told. */
export interface Notification {
  attempt: number;
  /** How many events it stands for. */
  count: number;
  /** In milliseconds since 1970. */
  createdAt: number;
  details: string;
  endedAt?: number | null;
  entry: string;
  fields: Record<string, string>;
  id: string;
  kind: string;
  nextAt?: number | null;
  /** Why the last attempt failed. */
  note: string;
  /** info, warning or critical */
  severity: string;
  /** waiting, sending, delivered, refused or given_up */
  state: string;
  summary: string;
}
/** A planned time of a job. */
export interface Occurrence {
  attempt: number;
  endedAt?: number | null;
  job: string;
  /** planned, late or manual */
  kind: string;
  /** Why it failed, was missed, or is tried again. */
  note: string;
  /** In milliseconds since 1970. */
  plannedAt: number;
  result: string;
  /** Where it was asked. */
  sessionId?: string | null;
  startedAt?: number | null;
  /** planned, running, done, failed or missed */
  state: string;
  structuredResult?: unknown;
}
/** An error as OpenAI's clients read it. */
export interface OpenAiError {
  error: ErrorDetails;
}
/** What is done with a plugin. */
export type Operation = "start" | "stop" | "restart" | "reload" | "lift-quarantine";
/** A part of an answer. */
export type OutputItem = {
  /** One, or none before its text begins. */
  content: Array<OutputPart>;
  id: string;
  /** assistant */
  role: string;
  status: ItemStatus;
  type: "message";
} | {
  /** JSON. */
  arguments: string;
  /** What its result names. */
  call_id: string;
  id: string;
  name: string;
  status: ItemStatus;
  type: "function_call";
};
/** A text of a message. */
export type OutputPart = {
  /** Always empty. */
  annotations: Array<unknown>;
  /** Always empty. */
  logprobs: Array<unknown>;
  text: string;
  type: "output_text";
};
export interface OutputTokenDetails {
  reasoning_tokens: number;
}
/** A page of a list. */
export interface PageApproval {
  items: Array<{
    /** Exactly what the plugin gets. */
    args: unknown;
    /** In milliseconds since 1970. */
    askedAt: number;
    decidedBy: string;
    /** Goes back with the decision. */
    digest: string;
    expiresAt: number;
    id: string;
    options: Array<string>;
    /** The question; empty if it is none. */
    question: string;
    /** The JSON Schema of the answer, if it is to be one object. */
    schema?: unknown;
    senderId: string;
    sessionId: string;
    /** pending, approved, answered, denied, expired or cancelled */
    state: string;
    /** The call that waits, as plugin.action; empty for a plan, and for a question of the model. */
    tool: string;
    why: string;
  }>;
  /** With which the next page is asked for; absent on the last one. */
  nextCursor?: string | null;
}
/** A page of a list. */
export interface PageAuditEntry {
  items: Array<{
    /** In milliseconds since 1970. */
    at: number;
    /** `plugin.action` of a call, or the operation's verb; empty otherwise. */
    event: string;
    /** call, operation, or what the log says of itself: started, stopped, lost, … */
    kind: string;
    /** ok, done, refused, failed, …; empty if there is none. */
    outcome: string;
    /** The record as it is in the log. */
    record: unknown;
    /** Counts up by one. */
    sequence: number;
    /** Who caused it: a subject of the gateway, a sender of the agent, or `uid:N`; empty if the supervisor acted by itself. */
    subject: string;
    /** What an operation was about; empty if nothing in particular. */
    target: string;
  }>;
  /** With which the next page is asked for; absent on the last one. */
  nextCursor?: string | null;
}
/** A page of a list. */
export interface PageConfigChange {
  items: Array<{
    /** In milliseconds since 1970. */
    at: number;
    /** Who made it. */
    by: string;
    changes: Array<ConfigKeyChange>;
    /** The keys, joined by dots. */
    keys: Array<string>;
    /** Counts up by one. */
    revision: number;
  }>;
  /** With which the next page is asked for; absent on the last one. */
  nextCursor?: string | null;
}
/** A page of a list. */
export interface PageExtension {
  items: Array<{
    /** plugin.action */
    action: string;
    /** Whether the action declares the role. */
    declared: boolean;
    /** Its entry's name. */
    name: string;
    /** Why it does not work, with what to do; empty if it does. */
    reason: string;
    role: string;
    /** ready, waiting or failing */
    state: string;
  }>;
  /** With which the next page is asked for; absent on the last one. */
  nextCursor?: string | null;
}
/** A page of a list. */
export interface PageJob {
  items: Array<{
    id: string;
    last?: Occurrence | null;
    /** In milliseconds since 1970; absent if it never begins. */
    nextAt?: number | null;
    paused: boolean;
    /** The configuration says so: then it cannot be resumed here. */
    pausedByConfiguration: boolean;
    target: string;
    timezone: string;
    /** As it is configured: `cron 0 9 * * 1-5`, `every 6h` or `at 2026-12-24T17:00:00Z`. */
    when: string;
  }>;
  /** With which the next page is asked for; absent on the last one. */
  nextCursor?: string | null;
}
/** A page of a list. */
export interface PageLogLine {
  items: Array<{
    instance: number;
    /** trace, debug, info, warn or error */
    level: string;
    /** stdout, stderr, stdio or talon */
    stream: string;
    /** Control characters are made visible. */
    text: string;
    /** In milliseconds since 1970. */
    timestamp: number;
  }>;
  /** With which the next page is asked for; absent on the last one. */
  nextCursor?: string | null;
}
/** A page of a list. */
export interface PageMemory {
  items: Array<{
    content: string;
    /** How often it was recorded. */
    count: number;
    /** In milliseconds since 1970. */
    createdAt: number;
    id: string;
    lastUsedAt: number;
    source: string;
    tags: Array<string>;
  }>;
  /** With which the next page is asked for; absent on the last one. */
  nextCursor?: string | null;
}
/** A page of a list. */
export interface PageModel {
  items: Array<{
    alias: string;
    contextWindow: number;
    /** provider/name */
    id: string;
    /** In US dollars for a million tokens; empty if unknown. */
    inputPrice: string;
    /** What it is asked stays on this machine. */
    local: boolean;
    outputPrice: string;
    /** ready, resting, out or not_set_up */
    state: string;
    supportsTools: boolean;
    supportsVision: boolean;
    tier: string;
    /** Why it is not ready. */
    why: string;
  }>;
  /** With which the next page is asked for; absent on the last one. */
  nextCursor?: string | null;
}
/** A page of a list. */
export interface PageNotification {
  items: Array<{
    attempt: number;
    /** How many events it stands for. */
    count: number;
    /** In milliseconds since 1970. */
    createdAt: number;
    details: string;
    endedAt?: number | null;
    entry: string;
    fields: Record<string, string>;
    id: string;
    kind: string;
    nextAt?: number | null;
    /** Why the last attempt failed. */
    note: string;
    /** info, warning or critical */
    severity: string;
    /** waiting, sending, delivered, refused or given_up */
    state: string;
    summary: string;
  }>;
  /** With which the next page is asked for; absent on the last one. */
  nextCursor?: string | null;
}
/** A page of a list. */
export interface PageOccurrence {
  items: Array<{
    attempt: number;
    endedAt?: number | null;
    job: string;
    /** planned, late or manual */
    kind: string;
    /** Why it failed, was missed, or is tried again. */
    note: string;
    /** In milliseconds since 1970. */
    plannedAt: number;
    result: string;
    /** Where it was asked. */
    sessionId?: string | null;
    startedAt?: number | null;
    /** planned, running, done, failed or missed */
    state: string;
    structuredResult?: unknown;
  }>;
  /** With which the next page is asked for; absent on the last one. */
  nextCursor?: string | null;
}
/** A page of a list. */
export interface PagePlugin {
  items: Array<{
    /** How many actions it has. */
    actions: number;
    /** Its circuit breaker. */
    breaker: string;
    callsInFlight: number;
    callsWaiting: number;
    /** Actions that declare something else than what was approved. */
    changedActions: Array<string>;
    counters?: Counters | null;
    /** How often one of its processes died since the supervisor started. */
    deaths: number;
    /** up or down: what is wanted. */
    desired: string;
    instances: Array<Instance>;
    name: string;
    /** Protections that are not in force, each with its reason. */
    notEnforced: Array<string>;
    quarantined: boolean;
    /** Why it is where it is, with what to do next. */
    reason: string;
    /** Why what runs is older than what should; empty if it is not. */
    replacementProblem: string;
    /** The scripts that it runs, if it runs scripts (scope operate). */
    scripts: Array<PluginScript>;
    /** discovered, starting, handshaking, ready, unhealthy, draining, stopped, backoff, failed or refused */
    state: string;
  }>;
  /** With which the next page is asked for; absent on the last one. */
  nextCursor?: string | null;
}
/** A page of a list. */
export interface PageRecentCall {
  items: Array<{
    action: string;
    /** In milliseconds since 1970. */
    at: number;
    /** In microseconds; until now if it runs. */
    durationUs: number;
    /** As in the audit log and in events. */
    id: string;
    /** How often control syntax was neutralized in its answer. */
    neutralized: number;
    /** person, model, program or system */
    origin: string;
    /** running, ok, tool_error, refused, fault or cancelled */
    outcome: string;
    plugin: string;
    /** A word for why it did not succeed; empty if it did. */
    reason: string;
    /** The role of an extension that the action plays. */
    role?: string | null;
    sessionId?: string | null;
    /** For whom: a subject of the gateway, a sender of the agent, or `uid:N`. */
    subject: string;
    traceId?: string | null;
  }>;
  /** With which the next page is asked for; absent on the last one. */
  nextCursor?: string | null;
}
/** A page of a list. */
export interface PageSession {
  items: Array<{
    channel: string;
    config: SessionConfig;
    /** In US dollars. */
    cost: number;
    id: string;
    /** What clients noted about it. */
    labels: Record<string, string>;
    /** Absent in lists. */
    messages?: Array<Message> | null;
    metadata: SessionMetadata;
    /** With which the next page of messages is asked for. */
    nextCursor?: string | null;
    /** Whose it is. */
    senderId: string;
    /** created (without a message), active or idle */
    state: string;
    /** The beginning of its first message. */
    title: string;
    /** idle, running, waiting (for an approval) or interrupted */
    turn: string;
  }>;
  /** With which the next page is asked for; absent on the last one. */
  nextCursor?: string | null;
}
/** A page of a list. */
export interface PageShadowGhost {
  items: Array<{
    actions: Array<GhostAction>;
    /** low, medium or high */
    confidence: string;
    /** In milliseconds since 1970. */
    createdAt: number;
    /** In milliseconds since 1970. */
    decidedAt?: number | null;
    /** Who decided about it; absent before that. */
    decidedBy?: string | null;
    expiresAt: number;
    id: string;
    /** Why it offers no act; absent if it offers one. */
    noAct?: string | null;
    /** What was noticed. */
    observation: string;
    /** What is suggested. */
    proposal: string;
    repository: string;
    senderId: string;
    /** The session of its turn, once it was approved. */
    sessionId?: string | null;
    /** When a snoozed one waits again, in milliseconds since 1970. */
    snoozedUntil?: number | null;
    /** waiting, approved, dismissed, snoozed or expired */
    state: string;
    /** What caused it. */
    trigger: string;
  }>;
  /** With which the next page is asked for; absent on the last one. */
  nextCursor?: string | null;
}
/** A page of a list. */
export interface PageShadowLogEntry {
  items: Array<{
    /** In milliseconds since 1970. */
    at: number;
    /** In US dollars. */
    cost: number;
    ghostId: string;
    id: string;
    /** All of them are on this machine. */
    local: boolean;
    /** As provider/name. */
    models: Array<string>;
    note: string;
    /** ghost, nothing, failed or asking */
    outcome: string;
    redactions: number;
    senderId: string;
    /** How many bytes were sent, by their kind. */
    sent: Record<string, number>;
    tokens: number;
    trigger: string;
  }>;
  /** With which the next page is asked for; absent on the last one. */
  nextCursor?: string | null;
}
/** A page of a list. */
export interface PageTool {
  items: Array<{
    action: string;
    /** never, destructive or always: whether a call asks a person first. */
    confirm: string;
    description: string;
    /** Whether it declares that it destroys; absent if it does not say. */
    destructive?: boolean | null;
    name: string;
    /** The JSON Schema of its arguments. */
    parameters: unknown;
    plugin: string;
    readOnly: boolean;
  }>;
  /** With which the next page is asked for; absent on the last one. */
  nextCursor?: string | null;
}
export interface Parameter {
  description: string;
  name: string;
  required: boolean;
  type: string;
}
/** A step of a plan. */
export interface PlanStep {
  /** open, active or done */
  state: string;
  text: string;
}
/** A plugin. */
export interface Plugin {
  /** How many actions it has. */
  actions: number;
  /** Its circuit breaker. */
  breaker: string;
  callsInFlight: number;
  callsWaiting: number;
  /** Actions that declare something else than what was approved. */
  changedActions: Array<string>;
  counters?: Counters | null;
  /** How often one of its processes died since the supervisor started. */
  deaths: number;
  /** up or down: what is wanted. */
  desired: string;
  instances: Array<Instance>;
  name: string;
  /** Protections that are not in force, each with its reason. */
  notEnforced: Array<string>;
  quarantined: boolean;
  /** Why it is where it is, with what to do next. */
  reason: string;
  /** Why what runs is older than what should; empty if it is not. */
  replacementProblem: string;
  /** The scripts that it runs, if it runs scripts (scope operate). */
  scripts: Array<PluginScript>;
  /** discovered, starting, handshaking, ready, unhealthy, draining, stopped, backoff, failed or refused */
  state: string;
}
/** A plugin with its actions. */
export interface PluginDetails {
  actions: Array<Action>;
  description: string;
  plugin: Plugin;
  /** What it declares of roles, and what of it the configuration grants (scope operate). */
  roles: Array<PluginRole>;
  settings: PluginSettings;
}
/** How a plugin and a role stand to each other. */
export interface PluginRole {
  /** How many of its actions declare the role. */
  declared: number;
  failing: number;
  /** How many entries of the configuration give it to one of its actions; how many of those work, wait, or fail. */
  granted: number;
  ready: number;
  role: string;
  waiting: number;
}
/** A script of a plugin that runs scripts. */
export interface PluginScript {
  /** The functions that are called. */
  functions: Array<string>;
  name: string;
  /** Why the newest version does not run, with line and traceback. */
  problem: string;
  /** loaded; outdated: a newer version was refused, and the last good one runs; or failed: none runs */
  state: string;
}
/** How a plugin is run, and what it may do. */
export interface PluginSettings {
  /** What happens to actions that are not what was approved: report or block. */
  changedTools: string;
  /** The program (scope operate). */
  command: string;
  /** What its actions get of a caller's context. */
  context: Array<string>;
  /** How it speaks. */
  dialect: string;
  /** The language models that it may ask, by the names it has for them. */
  models: Array<string>;
  /** What it may use of the host beyond what every plugin may (scope operate): `fs.read /srv/code`. */
  sandboxGrants: Array<string>;
  /** enforce, best-effort or off */
  sandboxMode: string;
  /** none, loopback, proxy or full */
  sandboxNetwork: string;
  /** The profile of its system calls. */
  sandboxProfile: string;
  /** Of the program, which is its version (scope operate). */
  sha256: string;
  /** Of a call, in milliseconds. */
  timeout: number;
}
/** An error, as RFC 9457 has it. */
export interface Problem {
  /** What is wrong, and what to do next. */
  detail: string;
  /** The fields of the request that are wrong. */
  fields?: Array<string>;
  /** The request's name in the gateway's log. */
  requestId?: string | null;
  /** The answer's status. */
  status: number;
  /** The type in a few words. */
  title: string;
  /** One of a closed list: `urn:talon:problem:not-found`. */
  type: string;
}
export interface PromptDetails {
  cached_tokens: number;
}
/** How long models think; none and minimal: not at all. */
export type ReasoningEffort = "none" | "minimal" | "low" | "medium" | "high";
export interface ReasoningOptions {
  effort?: ReasoningEffort | null;
}
/** A call of a plugin's action. */
export interface RecentCall {
  action: string;
  /** In milliseconds since 1970. */
  at: number;
  /** In microseconds; until now if it runs. */
  durationUs: number;
  /** As in the audit log and in events. */
  id: string;
  /** How often control syntax was neutralized in its answer. */
  neutralized: number;
  /** person, model, program or system */
  origin: string;
  /** running, ok, tool_error, refused, fault or cancelled */
  outcome: string;
  plugin: string;
  /** A word for why it did not succeed; empty if it did. */
  reason: string;
  /** The role of an extension that the action plays. */
  role?: string | null;
  sessionId?: string | null;
  /** For whom: a subject of the gateway, a sender of the agent, or `uid:N`. */
  subject: string;
  traceId?: string | null;
}
/** What is said, and how it is to be answered. OpenAI's other fields are taken at the value that changes nothing; everything else is refused by its name. */
export interface ResponseBody {
  input: ResponseInput;
  /** For this response alone. */
  instructions?: string | null;
  max_output_tokens?: number | null;
  /** What is stored with it: at most 16 entries, keys of 64 characters and values of 512. */
  metadata?: Record<string, string> | null;
  /** talon, a tier of it (talon/cheap), provider/name, or an alias. */
  model: string;
  /** False: one call of the client's functions at most in each answer. */
  parallel_tool_calls?: boolean | null;
  /** The stored response that this one goes on from. */
  previous_response_id?: string | null;
  reasoning?: ReasoningOptions | null;
  /** Without it, true. */
  store?: boolean | null;
  stream?: boolean | null;
  temperature?: number | null;
  text?: TextOptions | null;
  tool_choice?: ResponseToolChoice | null;
  /** Functions of the client's, beside the server's own tools. */
  tools?: Array<ResponseTool> | null;
  top_p?: number | null;
  /** For the client's own books: who the request is for says its credential. */
  user?: string | null;
}
/** An event, by its type. The list is closed. */
export type ResponseEvent = {
  response: ResponseObject;
  type: "response.created";
} | {
  response: ResponseObject;
  type: "response.in_progress";
} | {
  item: OutputItem;
  output_index: number;
  type: "response.output_item.added";
} | {
  content_index: number;
  item_id: string;
  output_index: number;
  part: OutputPart;
  type: "response.content_part.added";
} | {
  content_index: number;
  delta: string;
  item_id: string;
  logprobs: Array<unknown>;
  output_index: number;
  type: "response.output_text.delta";
} | {
  content_index: number;
  item_id: string;
  logprobs: Array<unknown>;
  output_index: number;
  text: string;
  type: "response.output_text.done";
} | {
  content_index: number;
  item_id: string;
  output_index: number;
  part: OutputPart;
  type: "response.content_part.done";
} | {
  item: OutputItem;
  output_index: number;
  type: "response.output_item.done";
} | {
  delta: string;
  item_id: string;
  output_index: number;
  type: "response.function_call_arguments.delta";
} | {
  arguments: string;
  item_id: string;
  name: string;
  output_index: number;
  type: "response.function_call_arguments.done";
} | {
  response: ResponseObject;
  type: "response.completed";
} | {
  response: ResponseObject;
  type: "response.incomplete";
} | {
  response: ResponseObject;
  type: "response.failed";
};
export interface ResponseFailure {
  /** server_error */
  code: string;
  message: string;
}
export type ResponseFormat = {
  type: "text";
} | {
  type: "json_object";
} | {
  /** A JSON Schema that the answer has to fit. */
  schema: Record<string, unknown>;
  type: "json_schema";
};
/** What is said: a user's text, or items. */
export type ResponseInput = string | Array<InputItem>;
/** A response. */
export type ResponseObject = EchoedFields & {
  /** Always false. */
  background: boolean;
  /** In seconds since 1970. */
  created_at: number;
  error: ResponseFailure | null;
  id: string;
  incomplete_details: IncompleteDetails | null;
  /** As the request named it. */
  model: string;
  /** response */
  object: string;
  /** The answer, and calls that the client makes. */
  output: Array<OutputItem>;
  /** default */
  service_tier: string;
  status: ResponseStatus;
  /** Whether it can be read again and gone on from. */
  store: boolean;
  /** disabled */
  truncation: string;
  usage: ResponseUsage | null;
  /** Always null. */
  user: Record<string, unknown> | null;
};
/** The state of a response. */
export type ResponseStatus = "in_progress" | "completed" | "incomplete" | "failed";
/** An event with its number. */
export type ResponseStreamEvent = ResponseEvent & {
  /** Counts up from 0 by one. */
  sequence_number: number;
};
/** A tool of the client's. */
export type ResponseTool = ClientFunction & {
  type: "function";
};
/** Which tools the model is left: auto, none, required, or one function. */
export type ResponseToolChoice = ToolMode | {
  name: string;
};
/** What a response used. */
export interface ResponseUsage {
  input_tokens: number;
  input_tokens_details: InputTokenDetails;
  output_tokens: number;
  output_tokens_details: OutputTokenDetails;
  total_tokens: number;
}
/** Follow sessions from where an earlier connection ended. */
export interface Resume {
  /** At most 1024. */
  cursors: Array<SessionCursor>;
  /** Sessions without a cursor are told from this time on: the timestamp of the last event that was seen, in milliseconds since 1970. Absent: from now on. */
  since?: number | null;
}
export interface Retried {
  /** How many are attempted again. */
  notifications: number;
}
/** Which are attempted again. */
export interface RetryWish {
  /** One of them; without it, all that were refused, given up, or wait. */
  id?: string;
}
/** A message. */
export interface Sent {
  /** Files that belong to it. */
  media?: Array<MediaFile>;
  /** For this turn alone: provider/name or alias. */
  model?: string;
  /** A JSON Schema that the answer has to fit. */
  schema?: unknown;
  /** At most 256 KiB. */
  text: string;
  /** For this turn alone. */
  thinkingLevel?: ThinkingLevel;
}
/** What happened over all plugins, a list for each number: entries at one place belong together. At most 8,640 of each. */
export interface SeriesLists {
  /** When each step ended, in milliseconds since 1970, oldest first. */
  at: Array<number>;
  calls: Array<number>;
  callsInFlight: Array<number>;
  callsWaiting: Array<number>;
  faults: Array<number>;
  /** In microseconds, of the latest minutes. */
  p50Us: Array<number>;
  p99Us: Array<number>;
  pluginsReady: Array<number>;
  refusals: Array<number>;
  /** How far samples lie apart, in milliseconds. */
  stepMs: number;
  /** Answers in which control syntax was neutralized. */
  tainted: Array<number>;
  toolErrors: Array<number>;
}
/** An event, by its type. The list is closed: a misspelt one does not compile, and clients ignore those they do not know. */
export type ServerEvent = {
  /** A message that a session got, also over other connections. */
  payload: ChannelMessageEvent;
  type: "channel.message";
} | {
  /** A piece of the answer. */
  payload: AgentResponse;
  type: "agent.response";
} | {
  /** The answer is over. */
  payload: AgentResponseEnd;
  type: "agent.response.end";
} | {
  /** Pieces of the answer so far do not count: another attempt begins. */
  payload: AgentResponseDiscard;
  type: "agent.response.discard";
} | {
  /** Where the loop is. */
  payload: AgentPhase;
  type: "agent.phase";
} | {
  /** The model thinks: for typing indicators, without text. */
  payload: AgentThinking;
  type: "agent.thinking";
} | {
  /** A piece of what the model thinks. */
  payload: AgentThought;
  type: "agent.thought";
} | {
  /** Something people should know while the turn goes on. */
  payload: AgentNotice;
  type: "agent.notice";
} | {
  /** The session's plan, after it changed. */
  payload: AgentPlan;
  type: "agent.plan";
} | {
  /** A sub-agent begins. */
  payload: SubagentStart;
  type: "subagent.start";
} | {
  /** A sub-agent has ended. */
  payload: SubagentResult;
  type: "subagent.result";
} | {
  /** The model calls a tool. */
  payload: ToolCallEvent;
  type: "tool.call";
} | {
  /** What came of a call. */
  payload: ToolResultEvent;
  type: "tool.result";
} | {
  /** What a running call puts out. */
  payload: ToolStreamEvent;
  type: "tool.stream";
} | {
  /** How far a running call has come. */
  payload: ToolProgressEvent;
  type: "tool.progress";
} | {
  /** A call, or a plan, waits for a person. */
  payload: ConfirmationRequest;
  type: "confirmation.request";
} | {
  /** It was decided, or waits no more. */
  payload: DecisionEvent;
  type: "confirmation.decided";
} | {
  /** The model, or a plugin, asks a person something. */
  payload: ClarificationRequest;
  type: "clarification.request";
} | {
  /** It was answered, or waits no more. */
  payload: DecisionEvent;
  type: "clarification.decided";
} | {
  /** A session began, with its first message. */
  payload: SessionCreated;
  type: "session.created";
} | {
  /** A session that was idle is used again. */
  payload: SessionEvent;
  type: "session.resumed";
} | {
  /** A session has become idle. */
  payload: SessionEvent;
  type: "session.idle";
} | {
  /** A session's settings changed, or its turns were undone or compacted: read it again. */
  payload: SessionEvent;
  type: "session.updated";
} | {
  /** A session is not there, or no more. */
  payload: SessionEvent;
  type: "session.deleted";
} | {
  /** The configuration changed (scope admin). */
  payload: ConfigUpdated;
  type: "config.updated";
} | {
  /** What a watcher saw, before anything is decided about it. */
  payload: ShadowEvent;
  type: "shadow.event";
} | {
  /** A proposal that nobody asked for, or that changed. */
  payload: ShadowGhost;
  type: "shadow.ghost";
} | {
  /** A run of a scheduled job begins (scope operate). */
  payload: TaskEvent;
  type: "task.started";
} | {
  /** It is done. */
  payload: TaskEvent;
  type: "task.completed";
} | {
  /** It, or the task of a sub-agent, failed and is not tried again. */
  payload: TaskEvent;
  type: "task.failed";
} | {
  /** It failed and is tried again, or was interrupted and goes on later. */
  payload: TaskEvent;
  type: "task.retried";
} | {
  /** Something failed: a turn, or a message of the client. */
  payload: ErrorEvent;
  type: "error";
};
/** A session. */
export interface Session {
  channel: string;
  config: SessionConfig;
  /** In US dollars. */
  cost: number;
  id: string;
  /** What clients noted about it. */
  labels: Record<string, string>;
  /** Absent in lists. */
  messages?: Array<Message> | null;
  metadata: SessionMetadata;
  /** With which the next page of messages is asked for. */
  nextCursor?: string | null;
  /** Whose it is. */
  senderId: string;
  /** created (without a message), active or idle */
  state: string;
  /** The beginning of its first message. */
  title: string;
  /** idle, running, waiting (for an approval) or interrupted */
  turn: string;
}
/** What of a session changes; what is absent stays. */
export interface SessionChange {
  /** Entries to set; an empty value removes one. */
  labels?: Record<string, string>;
  /** provider/name or alias; empty: as configured. */
  model?: string | null;
  thinkingLevel?: ThinkingLevel | null;
  /** Whether channels show arguments and results of calls. */
  verboseLevel?: boolean | null;
}
/** What a session wants otherwise than the configuration says. `model` and `thinkingLevel` are absent where it is as configured, which is decided for each turn: the model that answered last is in `metadata`. */
export interface SessionConfig {
  model?: string | null;
  thinkingLevel?: ThinkingLevel | null;
  /** Whether channels show arguments and results of calls. */
  verboseLevel: boolean;
}
/** A session began. */
export interface SessionCreated {
  channel: string;
  /** The client's message that began it, if that is known. */
  replyTo?: string | null;
  senderId: string;
  sessionId: string;
}
/** The last event of a session that was seen. */
export interface SessionCursor {
  /** Its `sequence`; 0 for all events of the session. */
  after: number;
  sessionId: string;
}
/** Something became of a session. */
export interface SessionEvent {
  sessionId: string;
}
export interface SessionMetadata {
  /** In milliseconds since 1970. */
  createdAt: number;
  lastActiveAt: number;
  messageCount: number;
  /** The model that answered last. */
  model: string;
}
/** Change what a session wants; `session.updated` tells everybody who follows it. */
export interface SessionUpdate {
  change: SessionChange;
  /** Whose session it is: with a token of the scope `channel`, a sender of it; otherwise absent. */
  senderId?: string | null;
  sessionId: string;
}
/** What a watcher saw, before anything is decided about it. */
export interface ShadowEvent {
  /** commit, test_end, prompt or idle, if a piece of work ended with it. */
  boundary?: string | null;
  /** What the detector found. */
  finding: string;
  /** The watcher's id of it. */
  id: string;
  /** file_changed, command, commit and the like. */
  kind: string;
  /** In milliseconds since 1970, by the watcher's clock. */
  occurredAt: number;
  repository: string;
  /** What it is about: the name of a file, or a command's first words. */
  subject: string;
  /** Which detector found something; absent if none did. */
  trigger?: string | null;
}
/** A proposal that nobody asked for. Nothing acts before a person approves it. */
export interface ShadowGhost {
  actions: Array<GhostAction>;
  /** low, medium or high */
  confidence: string;
  /** In milliseconds since 1970. */
  createdAt: number;
  /** In milliseconds since 1970. */
  decidedAt?: number | null;
  /** Who decided about it; absent before that. */
  decidedBy?: string | null;
  expiresAt: number;
  id: string;
  /** Why it offers no act; absent if it offers one. */
  noAct?: string | null;
  /** What was noticed. */
  observation: string;
  /** What is suggested. */
  proposal: string;
  repository: string;
  senderId: string;
  /** The session of its turn, once it was approved. */
  sessionId?: string | null;
  /** When a snoozed one waits again, in milliseconds since 1970. */
  snoozedUntil?: number | null;
  /** waiting, approved, dismissed, snoozed or expired */
  state: string;
  /** What caused it. */
  trigger: string;
}
/** One question of the loop to a model. */
export interface ShadowLogEntry {
  /** In milliseconds since 1970. */
  at: number;
  /** In US dollars. */
  cost: number;
  ghostId: string;
  id: string;
  /** All of them are on this machine. */
  local: boolean;
  /** As provider/name. */
  models: Array<string>;
  note: string;
  /** ghost, nothing, failed or asking */
  outcome: string;
  redactions: number;
  senderId: string;
  /** How many bytes were sent, by their kind. */
  sent: Record<string, number>;
  tokens: number;
  trigger: string;
}
/** Has the loop of the caller rest, or go on. */
export interface ShadowPause {
  /** For how long, in milliseconds. 0: until it is resumed. */
  pauseFor?: number;
  paused: boolean;
  /** Only in this repository, by its absolute path. */
  repository?: string;
}
/** Whether the loop rests. */
export interface ShadowRest {
  mutedRepositories: Array<string>;
  paused: boolean;
}
/** How the loop of a person is, and what its triggers led to. */
export interface ShadowStats {
  /** In milliseconds. */
  cooldown: number;
  /** In US dollars. */
  costToday: number;
  /** In US dollars; absent without a limit. */
  dayBudget?: number | null;
  /** Absent without a limit. */
  dayBudgetTokens?: number | null;
  /** What watchers dropped since the agent started. */
  droppedByWatchers: number;
  enabled: boolean;
  ghostsLastHour: number;
  /** Only models on this machine are asked. */
  localOnly: boolean;
  maxGhostsPerHour: number;
  /** Which one is asked; empty: the cheapest one. */
  model: string;
  mutedRepositories: Array<string>;
  paused: boolean;
  /** In milliseconds since 1970; absent: until it is resumed. */
  pausedUntil?: number | null;
  /** Why no ghost can be made at all, with what to do; empty otherwise. */
  problem: string;
  /** Local times within which no ghost is made: `22:00-07:00`. */
  quietHours: string;
  tokensToday: number;
  triggers: Array<TriggerStats>;
  /** What it cannot watch, each with what to do. */
  watcherLimits: Array<string>;
  /** When the person's watcher was heard last, in milliseconds since 1970; absent: not since the agent started. */
  watcherSeen?: number | null;
}
/** A place in a text, in UTF-16 units as JavaScript counts them; from `start` to before `end`. */
export interface Span {
  end: number;
  start: number;
}
/** One text, or several. */
export type Stop = string | Array<string>;
/** What a stream has beside its pieces. */
export interface StreamOptions {
  /** False alone. */
  include_obfuscation?: boolean;
  /** Whether the last piece says what was used. */
  include_usage?: boolean;
}
/** A sub-agent has ended. */
export interface SubagentResult {
  agent: string;
  /** In US dollars. */
  cost: number;
  /** In milliseconds. */
  duration: number;
  error?: string | null;
  /** The id of the call that started it. */
  id: string;
  /** What it found; null if it failed. */
  result: unknown;
  sessionId: string;
  tokensUsed: number;
}
/** A sub-agent begins. */
export interface SubagentStart {
  agent: string;
  /** The id of the call that started it. */
  id: string;
  sessionId: string;
  task: string;
}
/** A run of a scheduled job, or the task of a sub-agent. */
export interface TaskEvent {
  /** The first attempt is 1. */
  attempt: number;
  /** The job; absent for a sub-agent. */
  job?: string | null;
  /** Why it failed. */
  reason?: string | null;
  /** By what its run is known in `GET /api/schedule/history`. */
  run?: string | null;
  /** Whose it is. */
  senderId?: string | null;
  /** The session in which it runs. */
  sessionId?: string | null;
  /** The sub-agent; absent for a job. */
  subagent?: string | null;
}
/** The form of the answer. */
export interface TextOptions {
  format?: ResponseFormat | null;
  verbosity?: Verbosity | null;
}
/** How long models think; configured, or an empty text: as the configuration says. */
export type ThinkingLevel = "configured" | "off" | "low" | "medium" | "high" | "";
/** Tokens of a turn. */
export interface TokenUsage {
  completionTokens: number;
  promptTokens: number;
  totalTokens: number;
}
/** A tool that models may call. */
export interface Tool {
  action: string;
  /** never, destructive or always: whether a call asks a person first. */
  confirm: string;
  description: string;
  /** Whether it declares that it destroys; absent if it does not say. */
  destructive?: boolean | null;
  name: string;
  /** The JSON Schema of its arguments. */
  parameters: unknown;
  plugin: string;
  readOnly: boolean;
}
/** The model calls a tool. */
export interface ToolCallEvent {
  /** Its arguments, as one object with their types; what the model wrote as text if that was no object. */
  args: unknown;
  /** Its own id, which its result names; the event has the same. */
  id?: string;
  sessionId: string;
  tool: string;
}
/** Which tools the model is left. */
export type ToolMode = "auto" | "none" | "required";
/** How far a running call has come. */
export interface ToolProgressEvent {
  /** The id of its `tool.call`. */
  id: string;
  message: string;
  progress: number;
  sessionId: string;
  total?: number | null;
}
/** What came of a call. */
export interface ToolResultEvent {
  /** The id of its `tool.call`. */
  id: string;
  metadata: ToolResultMetadata;
  /** The text that the model gets. */
  output: string;
  sessionId: string;
  success: boolean;
  tool: string;
}
/** About a result. */
export interface ToolResultMetadata {
  /** What came of its confirmation: approved, denied, expired or cancelled. Absent if it needed none. */
  confirmation?: string | null;
  /** In milliseconds. */
  executionTime: number;
  /** Whether a limit left anything out. */
  truncated: boolean;
}
/** What a running call puts out. */
export interface ToolStreamEvent {
  /** The id of its `tool.call`. */
  id: string;
  leftOutBytes: number;
  /** Whole lines that were left out since the last of these events, and bytes of these and of lines that were cut. */
  leftOutLines: number;
  lines: Array<string>;
  sessionId: string;
}
export interface TriggerStats {
  approved: number;
  asked: number;
  dismissed: number;
  expired: number;
  ghosts: number;
  /** How many were held back, by the rule that did. */
  heldBack: Record<string, number>;
  observations: number;
  /** Which share of its observations is let through: dismissals lower it, approvals raise it. */
  ratePercent: number;
  trigger: string;
}
/** End the turn that a session is in. */
export interface TurnCancel {
  /** Whose session it is: with a token of the scope `channel`, a sender of it; otherwise absent. */
  senderId?: string | null;
  sessionId: string;
}
/** How much is taken back. */
export interface UndoWish {
  /** Turns, the latest ones; without it, one. */
  turns?: number;
}
/** What was taken back. */
export interface UndoneTurns {
  /** Calls that were made in them, and stay made. */
  calls: number;
  /** The message that began the first of them. */
  text: string;
  /** Turns that were taken back. */
  turns: number;
}
/** How detailed an answer is; the middle is the agent's own way. */
export type Verbosity = "low" | "medium" | "high";
/** The routes, each with the body that it takes and what it answers. */
export interface Routes {
  /** What waits for a person, or did. */
  "GET /api/approvals": { body: undefined; answer: PageApproval; };
  /** Decides: for people, with the scope approve. */
  "POST /api/approvals/{id}": { body: Decision; answer: Approval; };
  /** Records of the audit log, newest first (scope admin). */
  "GET /api/audit": { body: undefined; answer: PageAuditEntry; };
  /** Verifies the chain of the whole audit log (scope admin). A large one takes seconds. */
  "GET /api/audit/verify": { body: undefined; answer: AuditVerdict; };
  /** What happens now, as server-sent events: everybody's with the scope operate, and otherwise the caller's own. Nothing of it is kept: who reads slowly is told how many events are missing (missed), and no emitter waits. `/api/events` tells of sessions without a gap. */
  "GET /api/bus": { body: undefined; answer: never; event: BusEnvelope; };
  /** The latest calls, newest first, with those that run (scope operate). The latest 1,000 are there. */
  "GET /api/calls": { body: undefined; answer: PageRecentCall; };
  /** A call with the guard's layers, and with arguments and answer while the guard keeps the answer (scope admin). It is recorded in the audit log. */
  "GET /api/calls/{id}": { body: undefined; answer: CallDetails; };
  /** The configuration in force, without secrets (scope admin). `ETag` is its revision. */
  "GET /api/config": { body: undefined; answer: Record<string, unknown>; };
  /** Changes the configuration by a JSON merge patch (RFC 7396; scope admin): what `GET /api/config/sources` calls editable. It is checked whole and refused whole, holds at once and over restarts, and `null` gives way to what the config file says. With `If-Match`, only if the configuration is still of that revision. */
  "PATCH /api/config": { body: Record<string, unknown>; answer: ConfigChangeResult; };
  /** Checks the config file as it is now, without bringing it into force (scope admin). */
  "GET /api/config/check": { body: undefined; answer: ConfigFileCheck; };
  /** Checks a patch without bringing it into force (scope admin). */
  "POST /api/config/check": { body: Record<string, unknown>; answer: ConfigCheck; };
  /** What was changed while Talon ran, newest first (scope admin). The latest hundred changes are kept. */
  "GET /api/config/history": { body: undefined; answer: PageConfigChange; };
  /** Every value of the configuration with where it is written, and whether it may be changed here (scope admin). */
  "GET /api/config/sources": { body: undefined; answer: ConfigSources; };
  /** What models cost: today, and one session. */
  "GET /api/costs": { body: undefined; answer: Costs; };
  /** Runs the doctor, or has its latest report (scope operate). */
  "GET /api/doctor": { body: undefined; answer: Diagnosis; };
  /** The events that a WebSocket of the caller gets, from now on, or those of sessions from where `Last-Event-ID` says. Each is an envelope. */
  "GET /api/events": { body: undefined; answer: never; event: Envelope; };
  /** The entries of `extensions` (scope operate). */
  "GET /api/extensions": { body: undefined; answer: PageExtension; };
  /** What the shadow loop proposes, or did; the latest first. */
  "GET /api/ghosts": { body: undefined; answer: PageShadowGhost; };
  /** One ghost, and why it is there. */
  "GET /api/ghosts/{id}": { body: undefined; answer: GhostReasons; };
  /** Decides about a ghost: for people, with the scope approve. Approving begins a turn in a session of its own. */
  "POST /api/ghosts/{id}": { body: GhostDecision; answer: ShadowGhost; };
  /** The process lives. */
  "GET /api/health": { body: undefined; answer: Health; };
  /** The same, with each of both and its time. */
  "GET /api/health/deep": { body: undefined; answer: DeepHealth; };
  /** What the agent remembers for the caller. */
  "GET /api/memories": { body: undefined; answer: PageMemory; };
  /** One memory. */
  "GET /api/memories/{id}": { body: undefined; answer: Memory; };
  /** Forgets one memory. */
  "DELETE /api/memories/{id}": { body: undefined; answer: undefined; };
  /** The models that may answer. */
  "GET /api/models": { body: undefined; answer: PageModel; };
  /** What people are told, or were, or what waits; the latest first (scope operate). */
  "GET /api/notifications": { body: undefined; answer: PageNotification; };
  /** Has notifications be delivered after all (scope operate). */
  "POST /api/notifications/retry": { body: RetryWish; answer: Retried; };
  /** The plugins that the caller may see. */
  "GET /api/plugins": { body: undefined; answer: PagePlugin; };
  /** A plugin, its actions, and what it may do. */
  "GET /api/plugins/{name}": { body: undefined; answer: PluginDetails; };
  /** Calls an action as oneself (scope operate). That the guard or the tool says no is an answer. */
  "POST /api/plugins/{name}/actions/{action}": { body: ActionCall; answer: ActionAnswer; };
  /** The latest lines of a plugin's log (scope operate); with `Accept: text/event-stream` also those that come. */
  "GET /api/plugins/{name}/logs": { body: undefined; answer: PageLogLine; event: LogLine; };
  /** Starts, stops, restarts or reloads a plugin, or ends its quarantine (scope operate). */
  "POST /api/plugins/{name}/{operation}": { body: undefined; answer: Plugin; };
  /** Host and agent answer, so that requests can be served. */
  "GET /api/ready": { body: undefined; answer: Health; };
  /** The jobs (scope operate). */
  "GET /api/schedule": { body: undefined; answer: PageJob; };
  /** What jobs did and will do, the latest planned time first (scope operate). */
  "GET /api/schedule/history": { body: undefined; answer: PageOccurrence; };
  /** Lets a job rest, or go on (scope operate). */
  "PATCH /api/schedule/{job}": { body: JobChange; answer: Job; };
  /** Has a job run now, beside its planned times (scope operate). */
  "POST /api/schedule/{job}/run": { body: undefined; answer: Occurrence; };
  /** Numbers of the last day in steps of ten seconds (scope operate). */
  "GET /api/series": { body: undefined; answer: SeriesLists; };
  /** For whom the request counts, and what it may. */
  "GET /api/session": { body: undefined; answer: CallerSession; };
  /** The caller's sessions, the latest first. */
  "GET /api/sessions": { body: undefined; answer: PageSession; };
  /** Makes a session. */
  "POST /api/sessions": { body: NewSession; answer: Session; };
  /** A session, and a page of its messages. */
  "GET /api/sessions/{id}": { body: undefined; answer: Session; };
  /** Deletes a session, with all that it holds. */
  "DELETE /api/sessions/{id}": { body: undefined; answer: undefined; };
  /** Changes a session's settings. */
  "PATCH /api/sessions/{id}": { body: SessionChange; answer: Session; };
  /** Ends the turn that a session is in. What it has done stays. */
  "POST /api/sessions/{id}/cancel": { body: undefined; answer: Cancelled; };
  /** Puts a summary in the place of the older turns. They stay in the store. */
  "POST /api/sessions/{id}/compact": { body: CompactWish; answer: Compacted; };
  /** The events of one session, from its beginning, or from where `Last-Event-ID` says. */
  "GET /api/sessions/{id}/events": { body: undefined; answer: never; event: Envelope; };
  /** Sends a message, and answers with what comes of it. `Prefer: respond-async` answers at once with 202, `Prefer: wait=SECONDS` does so after that time, and `Accept: text/event-stream` streams the turn's events. `new` in place of an id makes a session. */
  "POST /api/sessions/{id}/send": { body: Sent; answer: Accepted | Answer; event: Envelope; };
  /** Takes back the latest turns. Calls that were made in them stay made. */
  "POST /api/sessions/{id}/undo": { body: UndoWish; answer: UndoneTurns; };
  /** What left for a model, by kind and number of bytes; the latest first. */
  "GET /api/shadow/log": { body: undefined; answer: PageShadowLogEntry; };
  /** Has the loop of the caller rest, or go on: for people, with the scope approve. */
  "POST /api/shadow/pause": { body: ShadowPause; answer: ShadowRest; };
  /** What the triggers of a person led to, and what of the limits is left. */
  "GET /api/shadow/stats": { body: undefined; answer: ShadowStats; };
  /** The tools that models may call for the caller. */
  "GET /api/tools": { body: undefined; answer: PageTool; };
  /** An answer to a conversation that the client keeps. Fields are OpenAI's; docs/gateway-api.md lists those that are honoured. */
  "POST /v1/chat/completions": { body: ChatBody; answer: ChatCompletion; event: CompletionEvent; };
  /** Vectors of texts, by the model of `models.embeddings`. */
  "POST /v1/embeddings": { body: EmbeddingsBody; answer: EmbeddingList; };
  /** The agent, its models and their aliases. */
  "GET /v1/models": { body: undefined; answer: ModelList; };
  /** One model. Its name has slashes, which a path template cannot say: it may be sent as it is, or with each slash as %2F. */
  "GET /v1/models/{model}": { body: undefined; answer: ModelEntry; };
  /** An answer that is stored unless `store` is false. Fields are OpenAI's; docs/gateway-api.md lists those that are honoured. */
  "POST /v1/responses": { body: ResponseBody; answer: ResponseObject; event: ResponseStreamEvent; };
  /** A stored response. */
  "GET /v1/responses/{id}": { body: undefined; answer: ResponseObject; };
  /** Deletes the conversation that a response is a part of. */
  "DELETE /v1/responses/{id}": { body: undefined; answer: DeletedResponse; };
}

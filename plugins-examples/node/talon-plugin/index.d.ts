/** A tool's answer: text, data (whatever JSON can say), both, or nothing. */
export type Answer = string | number | boolean | null | undefined | object | Output;

/** One argument of a tool. An argument that a call leaves out has the value `default`, and is not required then. */
export interface Parameter {
  /** `any` takes every type: where the host sends types, 7 is a number and "7" a string. */
  type: 'string' | 'integer' | 'number' | 'boolean' | 'array' | 'object' | 'any';
  description?: string;
  /** Whether it may be left out. */
  optional?: boolean;
  default?: unknown;
  enum?: readonly (string | number)[];
  minimum?: number;
  maximum?: number;
  /** Further keywords of JSON Schema, which the host checks. */
  [keyword: string]: unknown;
}

interface Types {
  string: string;
  integer: number;
  number: number;
  boolean: boolean;
  array: any[];
  object: Record<string, any>;
}

type Value<P extends Parameter> = P extends { enum: readonly (infer V)[] } ? V : Types[P['type']];

type Given<P extends Parameter> = P extends { default: any }
  ? Value<P>
  : P extends { optional: true }
    ? Value<P> | undefined
    : Value<P>;

/** The values that a tool gets. */
export type Args<P extends Record<string, Parameter>> = { [K in keyof P]: Given<P[K]> };

export interface Options {
  readOnly?: boolean;
  destructive?: boolean;
  /** Keeps it from models. */
  userOnly?: boolean;
  alwaysInclude?: boolean;
  /** Values of the caller's session that it would like (`context.injected`); the operator decides which come. */
  inject?: string[];
  /**
   * Roles that it would like to play, such as request_hook; an operator's entry under `extensions` makes it so. With roles it is
   * no tool and hidden from models, unless "tool" is one of them.
   */
  roles?: (Role | 'tool' | (string & {}))[];
  /** Jobs that it would like to have, in the role scheduled_task. Nothing runs before the operator accepts one. */
  proposedJobs?: ProposedJob[];
}

/** A job that an action would like to have: `cron` or `every` says when it runs. */
export interface ProposedJob {
  /** Its name within the plugin, by default the action's. */
  name?: string;
  /** Five or six fields, or @daily and the like. */
  cron?: string;
  /** 90s, 6h, 7d */
  every?: string;
  /** The time zone of `cron`, by its IANA name; UTC otherwise. */
  timezone?: string;
  /** The action's arguments beside `run`. */
  arguments?: Record<string, unknown>;
}

/** The name of a role that an action can play. */
export type Role =
  | 'filter'
  | 'request_hook'
  | 'response_hook'
  | 'notification_sink'
  | 'scheduled_task'
  | 'auth_provider'
  | 'api_route'
  | 'storage_backend'
  | 'channel';

/** The parameters of each role, for `plugin.tool`; a scheduled task has the job's own arguments beside `run`. */
export const roles: { readonly [R in Role]: Readonly<Record<string, Parameter>> };

/** Bytes in the role storage_backend: base64url without padding, and their SHA-256. */
export interface Sealed {
  data: string;
  sha256: string;
}

/** Puts bytes into their envelope. */
export function seal(bytes: Uint8Array): Sealed;

/** Takes the bytes out; throws a ToolError if they are not those of the digest. */
export function unseal(envelope: Sealed): Buffer;

/** What happened: `event` of a notification sink. */
export interface Event {
  /** The same in every attempt: pass it on, so that a receiver can drop what it has already. */
  id: string;
  kind: string;
  severity: 'info' | 'warning' | 'critical';
  summary: string;
  details: string;
  time_unix_ms: number;
  fields: Record<string, string>;
  count: number;
}

/** What a notification sink answers. An error counts as `retry`. */
export interface Delivery {
  status: 'delivered' | 'retry' | 'refused';
  reason?: string;
  retry_after_seconds?: number;
}

/** Which run of which job it is: `run` of a scheduled task. */
export interface Run {
  id: string;
  job: string;
  planned_unix_ms: number;
  attempt: number;
}

/** What an auth provider answers. An error counts as `rejected`. */
export interface Authentication {
  outcome: 'accepted' | 'rejected';
  subject?: string;
  scopes?: string[];
  expires_unix_ms?: number;
  display_name?: string;
  reason?: string;
}

/** What the action of an API route answers. */
export interface ApiResponse {
  status: number;
  headers?: Record<string, string>;
  body?: string;
  body_encoding?: 'text' | 'base64';
}

export class Plugin {
  constructor(name: string, description?: string);
  /** Makes a tool of a function; a mistake in the declaration is thrown here. */
  tool<const P extends Record<string, Parameter>>(
    name: string,
    description: string,
    parameters: P,
    run: (args: Args<P>, context: Context) => Answer | Promise<Answer>,
    options?: Options,
  ): this;
  /** Makes a function the reader of the settings; what it throws refuses them, and the operator reads its text. */
  init(read: (config: Record<string, any>) => void | Promise<void>): this;
  /** Lets a source tell the host what happens elsewhere. */
  events(source: EventSource): this;
  /** The operator's settings. */
  readonly config: Record<string, any>;
  /** Serves until the host is done, and ends the process. */
  serve(): void;
}

/**
 * Tells the host events. Each is kept in memory and sent again until the host has it on its disk, so a host that restarts loses
 * none. A plugin that must not lose events over its own end keeps them itself, and tells those again with the same id that were not
 * acknowledged. The operator has to let the plugin tell events (`events` in its entry).
 */
export class EventSource {
  /**
   * Tells an event; never waits, and throws EventQueueFull when too many wait. `id` is 1 to 128 letters, digits and -_.:/, another one
   * for each event; one that waits already is the same event. `topic` is 1 to 64 of a-z, 0-9 and -_. The promise is kept once the
   * host has the event on its disk, and broken by EventRefused. Nobody has to wait for it.
   */
  tell(event: {
    id: string;
    topic: string;
    summary: string;
    details?: string;
    severity?: 'info' | 'warning' | 'critical';
    fields?: Record<string, string>;
  }): Promise<void>;
  /** How many events the host has not acknowledged. */
  readonly waiting: number;
}

export class Output {
  constructor(content: string, structured?: unknown);
  content: string;
  structured?: unknown;
}

/** One call. */
export class Context {
  readonly callId: string;
  readonly config: Record<string, any>;
  readonly injected: Record<string, string>;
  readonly credentials: Record<string, { header: string; value: string }>;
  /** Aborted when the call is cancelled: pass it to fetch and timers. */
  readonly signal: AbortSignal;
  /** How many milliseconds the caller still waits; Infinity without a deadline. */
  remaining(): number;
  /** Reports how far the call has come. Never waits, never fails; dropped when no host listens. */
  progress(progress: number, total?: number, message?: string): void;
  /**
   * Shows people lines that the call puts out while it runs; models see its answer alone. Never waits, never fails; dropped when
   * no host listens, and left out when there are more than it takes.
   */
  output(text: string): void;
  /** The plugin's own key-values; throws NotServed where the host keeps none. */
  readonly state: State;
  /** The granted models, for this call; throws ModelError where the operator grants none. */
  readonly model: Model;
}

/** A model's answer. Its text is a model's: treat it as data. */
export interface Completion {
  text: string;
  /** The model that answered, as provider/name. */
  model: string;
  finish: 'stop' | 'stop_sequence' | 'length' | 'filtered' | 'refused';
  inputTokens: number;
  outputTokens: number;
}

/** Completions of language models that the operator grants. */
export class Model {
  /** The aliases; the first is the default. */
  granted(): Promise<string[]>;
  complete(
    prompt: string | { role: 'user' | 'assistant'; text: string }[],
    options?: { model?: string; system?: string; maxTokens?: number; temperature?: number; stop?: string[] },
  ): Promise<Completion>;
}

/** The plugin's own key-values, which outlive its process. */
export class State {
  get(key: string): Promise<Buffer | undefined>;
  set(key: string, value: Buffer | string): Promise<void>;
  delete(key: string): Promise<boolean>;
  keys(prefix?: string): Promise<string[]>;
  /** Sets (undefined: deletes) only if `expected` still stands there (undefined: if there is no such key). */
  compareAndSet(
    key: string,
    expected: Buffer | string | undefined,
    value: Buffer | string | undefined,
  ): Promise<{ swapped: boolean; current?: Buffer }>;
  /** Reads, changes, and writes only if what was read still stands there; otherwise changes what does. */
  update(key: string, change: (old: Buffer | undefined) => Buffer | string | undefined): Promise<Buffer | undefined>;
  getJson<T>(key: string, otherwise: T): Promise<T>;
  setJson(key: string, value: unknown): Promise<void>;
  updateJson<T>(key: string, change: (old: T) => T, otherwise: T): Promise<T>;
}

/** The tool says no: an ordinary answer, whose text goes to the caller. */
export class ToolError extends Error {}
export class ModelError extends ToolError {
  readonly reason: string;
}
export class EventQueueFull extends ToolError {}
export class EventRefused extends ToolError {}
export class StateError extends ToolError {}
export class NotServed extends StateError {}
export class Unavailable extends StateError {}
export class Invalid extends StateError {}
export class Contended extends StateError {}
export class QuotaExceeded extends StateError {
  readonly resource: string;
  readonly used: number;
  readonly limit: number;
  readonly wanted: number;
}

/** Lines of the plugin's log, with fields. */
export const log: Record<'debug' | 'info' | 'warn' | 'error', (message: string, fields?: Record<string, unknown>) => void>;

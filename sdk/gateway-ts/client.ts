// A small typed client of Talon's gateway, for browsers and Node 22: no dependencies. The types are generated: see types.ts.

import type {
  BusEnvelope,
  ChannelMessage,
  ClarificationAnswer,
  ConfirmationAnswer,
  Envelope,
  OpenAiError,
  Problem,
  Resume,
  Routes,
  SessionUpdate,
  TurnCancel,
} from "./types";

export type { Problem };

/** What a client sends, by type. */
export interface ClientPayloads {
  "channel.message": Pick<ChannelMessage, "text"> & Partial<ChannelMessage>;
  "confirmation.answer": ConfirmationAnswer;
  "clarification.answer": ClarificationAnswer;
  resume: Resume;
  "turn.cancel": TurnCancel;
  "session.update": SessionUpdate;
}

/** Thrown for an error answer. */
export class ProblemError extends Error {
  constructor(readonly problem: Problem) {
    super(problem.detail);
  }
}

/** The names in a route's path. */
export type PathName<R extends string> = R extends `${string}{${infer Name}}${infer Rest}` ? Name | PathName<Rest> : never;

/** A route's body; it may be absent where all of its fields may be. */
type Body<B> = [B] extends [undefined] ? { body?: undefined } : {} extends B ? { body?: B } : { body: B };

/** What a route of the description is called with: parts of its path and of its query by their names, and its body. `signal` ends it. */
export type CallOptions<R extends keyof Routes> = Body<Routes[R]["body"]> &
  ([PathName<R>] extends [never] ? { path?: undefined } : { path: Record<PathName<R>, string> }) & {
    query?: Record<string, string>;
    signal?: AbortSignal;
  };

/** They are left out where the route needs none. */
export type CallArguments<R extends keyof Routes> = {} extends CallOptions<R> ? [options?: CallOptions<R>] : [options: CallOptions<R>];

/** The same, of any route. */
interface AnyOptions {
  path?: Record<string, string>;
  query?: Record<string, string>;
  body?: unknown;
  signal?: AbortSignal;
}

/** How events are followed: until `signal` is aborted, then the iteration throws its reason. */
export interface BusOptions {
  signal?: AbortSignal;
}

/** The routes that answer with events; those that can answer otherwise as well do so as their body says (`stream: true`). */
export type EventRoute = { [R in keyof Routes]: Routes[R] extends { event: unknown } ? R : never }[keyof Routes];

/** What ends the stream of a completion. */
const DONE = "[DONE]";

type Method = "GET" | "POST" | "PATCH" | "DELETE";

/** HTTP: sends JSON, and gives JSON, or throws a ProblemError. */
export class GatewayClient {
  /** `token` is absent in a browser's session, which has a cookie; then writes need `sessionToken` (GET /api/session). */
  constructor(
    readonly url: string,
    readonly token?: string,
    readonly sessionToken?: string,
  ) {}

  /** Calls a route: call("GET /api/sessions/{id}", { path: { id } }). */
  async call<R extends keyof Routes>(route: R, ...args: CallArguments<R>): Promise<Routes[R]["answer"]> {
    const options: AnyOptions = args[0] ?? {};
    const [method, path] = target(route, options);
    return this.request<Routes[R]["answer"]>(method, path, options.body, options.signal);
  }

  async request<T>(method: Method, path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
    const answer = await this.send(method, path, "application/json", body, signal);
    return (answer.status === 204 ? undefined : await answer.json()) as T;
  }

  /**
   * Follows the events of a route, to the stream's end: events("POST /v1/chat/completions", { body: { …, stream: true } }). Throws a
   * TypeError if the answer is no stream.
   */
  async *events<R extends EventRoute>(route: R, ...args: CallArguments<R>): AsyncGenerator<Routes[R]["event"]> {
    const options: AnyOptions = args[0] ?? {};
    const [method, path] = target(route, options);
    const answer = await this.send(method, path, "text/event-stream", options.body, options.signal);
    const type = answer.headers.get("content-type") ?? "nothing";
    if (answer.body === null || !type.startsWith("text/event-stream")) {
      await answer.body?.cancel();
      throw new TypeError(`${route} answers with ${type} and not with events: routes below /v1 need stream: true in the body`);
    }
    const reader = answer.body.getReader();
    const decoder = new TextDecoder();
    let rest = "";
    try {
      for (let read = await reader.read(); !read.done; read = await reader.read()) {
        const lines = (rest + decoder.decode(read.value, { stream: true })).split("\n");
        rest = lines.pop() ?? "";
        for (const line of lines) {
          const data = line.startsWith("data:") ? line.slice("data:".length).trim() : "";
          if (data === DONE) return;
          if (data !== "") yield JSON.parse(data) as Routes[R]["event"];
        }
      }
    } finally {
      await reader.cancel();
    }
  }

  /**
   * What happens now: events of these types (`tool.complete`, `tool.*`), of all without any. It ends with the connection, or with
   * `signal`; `missed` says how many events are missing where they are missing.
   */
  async *bus(types: string | string[] = [], { signal }: BusOptions = {}): AsyncGenerator<BusEnvelope> {
    const query = types.length === 0 ? undefined : { type: [types].flat().join(",") };
    yield* this.events("GET /api/bus", { query, signal });
  }

  private async send(method: Method, path: string, accept: string, body?: unknown, signal?: AbortSignal): Promise<Response> {
    const headers: Record<string, string> = { accept };
    if (this.token !== undefined) headers.authorization = `Bearer ${this.token}`;
    if (this.sessionToken !== undefined) headers["x-talon-session"] = this.sessionToken;
    if (body !== undefined) headers["content-type"] = "application/json";
    const answer = await fetch(new URL(path, this.url), {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal,
    });
    if (!answer.ok) throw new ProblemError(await problemOf(answer));
    return answer;
  }
}

/** Method and path of a call. */
function target(route: string, options: AnyOptions): [Method, string] {
  const [method, template] = route.split(" ") as [Method, string];
  const path = template.replace(/\{(\w+)\}/g, (_, name: string) => {
    const part = options.path?.[name] ?? "";
    // The path would be that of another route.
    if (/^\.{0,2}$/.test(part)) throw new TypeError(`${route}: ${JSON.stringify(part)} is no ${name}`);
    return encodeURIComponent(part);
  });
  const query = options.query === undefined ? "" : `?${new URLSearchParams(options.query)}`;
  return [method, path + query];
}

/** The problem of an error answer. What stands between may answer as well, a proxy by a page: then the status is all that is known. */
async function problemOf(answer: Response): Promise<Problem> {
  const problem: unknown = await answer.json().catch((error: unknown) => {
    if (error instanceof SyntaxError) return null;
    throw error;
  });
  if (typeof (problem as Problem | null)?.detail === "string") return problem as Problem;
  const title = answer.statusText || `HTTP ${answer.status}`;
  // Below /v1 errors are OpenAI's.
  const error = (problem as OpenAiError | null)?.error;
  if (typeof error?.message === "string") {
    const fields = typeof error.param === "string" ? [error.param] : [];
    return { type: "about:blank", title, status: answer.status, detail: error.message, fields };
  }
  const detail = `${answer.url} answers with the status ${answer.status}, and not as the gateway does: look at what is between`;
  return { type: "about:blank", title, status: answer.status, detail };
}

/** WebSocket: for a browser's session. Programs open one with their token in the header Authorization, and use `message`. */
export class GatewaySocket {
  private readonly socket: WebSocket;

  constructor(url: string, onEvent: (event: Envelope) => void, onClose: (code: number, reason: string) => void) {
    this.socket = new WebSocket(url);
    this.socket.onmessage = (message) => onEvent(JSON.parse(message.data as string) as Envelope);
    this.socket.onclose = (close) => onClose(close.code, close.reason);
  }

  /** Sends a message, and gives its id: errors about it have it as replyTo. */
  send<K extends keyof ClientPayloads>(type: K, payload: ClientPayloads[K]): string {
    const { id, text } = message(type, payload);
    this.socket.send(text);
    return id;
  }

  close(): void {
    this.socket.close();
  }
}

/** A message as it is sent. */
export function message<K extends keyof ClientPayloads>(type: K, payload: ClientPayloads[K]): { id: string; text: string } {
  const id = `msg_${crypto.randomUUID().replaceAll("-", "").slice(0, 21)}`;
  return { id, text: JSON.stringify({ id, type, timestamp: Date.now(), payload }) };
}

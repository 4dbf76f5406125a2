// A small typed client of Talon's gateway, for browsers and Node 22: no dependencies. The types are generated: see types.ts.

import type {
  BusEnvelope,
  ChannelMessage,
  ClarificationAnswer,
  ConfirmationAnswer,
  Envelope,
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

/** What a route of the description is called with: parts of its path and of its query by their names, and its body. `signal` ends it. */
export interface CallOptions<R extends keyof Routes> {
  path?: Record<string, string>;
  query?: Record<string, string>;
  body?: Routes[R]["body"];
  signal?: AbortSignal;
}

/** How events are followed: until `signal` is aborted, then the iteration throws its reason. */
export interface BusOptions {
  signal?: AbortSignal;
}

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
  call<R extends keyof Routes>(route: R, options: CallOptions<R> = {}): Promise<Routes[R]["answer"]> {
    const [method, template] = route.split(" ") as [Method, string];
    const path = template.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(options.path?.[name] ?? ""));
    const query = options.query === undefined ? "" : `?${new URLSearchParams(options.query)}`;
    return this.request<Routes[R]["answer"]>(method, path + query, options.body, options.signal);
  }

  async request<T>(method: Method, path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
    const headers = this.authorization();
    if (this.sessionToken !== undefined) headers["x-talon-session"] = this.sessionToken;
    if (body !== undefined) headers["content-type"] = "application/json";
    const answer = await fetch(new URL(path, this.url), {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal,
    });
    if (!answer.ok) throw new ProblemError(await problemOf(answer));
    return (answer.status === 204 ? undefined : await answer.json()) as T;
  }

  /**
   * What happens now: events of these types (`tool.complete`, `tool.*`), of all without any. It ends with the connection, or with
   * `signal`; `missed` says how many events are missing where they are missing.
   */
  async *bus(types: string | string[] = [], { signal }: BusOptions = {}): AsyncGenerator<BusEnvelope> {
    const query = types.length === 0 ? "" : `?type=${encodeURIComponent([types].flat().join(","))}`;
    const answer = await fetch(new URL(`/api/bus${query}`, this.url), { headers: this.authorization(), signal });
    if (!answer.ok || answer.body === null) throw new ProblemError(await problemOf(answer));
    const reader = answer.body.getReader();
    const decoder = new TextDecoder();
    let rest = "";
    try {
      for (let read = await reader.read(); !read.done; read = await reader.read()) {
        const lines = (rest + decoder.decode(read.value, { stream: true })).split("\n");
        rest = lines.pop() ?? "";
        for (const line of lines) {
          if (line.startsWith("data:")) yield JSON.parse(line.slice("data:".length)) as BusEnvelope;
        }
      }
    } finally {
      await reader.cancel();
    }
  }

  private authorization(): Record<string, string> {
    return this.token === undefined ? {} : { authorization: `Bearer ${this.token}` };
  }
}

/** The problem of an error answer. What stands between may answer as well, a proxy by a page: then the status is all that is known. */
async function problemOf(answer: Response): Promise<Problem> {
  const problem: unknown = await answer.json().catch((error: unknown) => {
    if (error instanceof SyntaxError) return null;
    throw error;
  });
  if (typeof (problem as Problem | null)?.detail === "string") return problem as Problem;
  const title = answer.statusText || `HTTP ${answer.status}`;
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

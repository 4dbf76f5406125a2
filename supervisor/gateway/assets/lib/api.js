// The gateway's HTTP interface. Errors are RFC 9457 problems; what a server does not have is found out from its own description.

import { learnServerTime } from "./format.js";
import { store } from "./store.js";

/** Who is signed in and whether the gateway answers; views follow it. `auth`: unknown, in, out or revoked. */
export const connection = store({ auth: "unknown", online: true, subject: "", scopes: [], channel: "", paths: null });

/** A gateway that is started again keeps who connects waiting: longer than this, in milliseconds, and it does not answer. What changes
 *  something may take as long as it takes. */
const MOST_WAIT = 15_000;

let sessionToken;

/** An error answer. */
export class ProblemError extends Error {
  constructor(problem, status) {
    super(problem.detail || problem.title || `HTTP ${status}`);
    this.status = status;
    this.fields = problem.fields ?? [];
    this.requestId = problem.requestId ?? "";
    /** The answer as it came: some say more than what is wrong. */
    this.body = problem;
    this.kind = (problem.type ?? "").split(":").pop();
  }
}

/** The gateway does not answer at all. */
export class OfflineError extends Error {
  constructor() {
    super("offline");
    this.kind = "offline";
  }
}

/** A path with its parts and query encoded. */
export function path(strings, ...values) {
  return String.raw({ raw: strings }, ...values.map((value) => encodeURIComponent(value)));
}

/** Sends a request; gives the JSON of its answer. */
export async function request(method, target, { query, body, signal, headers = {} } = {}) {
  const asked = Object.entries(query ?? {}).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const url = asked.length ? `${target}?${new URLSearchParams(asked)}` : target;
  const answer = await send(method, url, { body, signal, headers });
  if (answer.status === 204) return null;
  const json = await answer.json().catch(() => ({}));
  if (!answer.ok) throw problemOf(answer, json);
  return json;
}

async function send(method, url, { body, signal, headers, isStream = false }) {
  const all = { accept: "application/json", ...headers };
  if (sessionToken) all["x-talon-session"] = sessionToken;
  if (body !== undefined) all["content-type"] = "application/json";
  const ends = method === "GET" && !isStream ? AbortSignal.any([AbortSignal.timeout(MOST_WAIT), ...(signal ? [signal] : [])]) : signal;
  let answer;
  try {
    answer = await fetch(url, { method, headers: all, signal: ends, body: body === undefined ? undefined : JSON.stringify(body), credentials: "same-origin", redirect: "error" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    connection.set({ online: false });
    throw new OfflineError();
  }
  learnServerTime(answer.headers.get("date"));
  if (!connection.get().online) connection.set({ online: true });
  return answer;
}

function problemOf(answer, json) {
  if (answer.status === 401) {
    connection.set({ auth: connection.get().auth === "in" || connection.get().auth === "revoked" ? "revoked" : "out" });
  }
  return new ProblemError(json, answer.status);
}

/** Events over HTTP, as they come: `onEvent(data, id)`. */
export async function stream(target, { signal, onEvent, headers = {} }) {
  const answer = await send("GET", target, { signal, headers: { accept: "text/event-stream", ...headers }, isStream: true });
  if (!answer.ok) throw problemOf(answer, await answer.json().catch(() => ({})));
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let waiting = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    waiting += value;
    const events = waiting.split("\n\n");
    waiting = events.pop();
    for (const event of events) {
      const field = (key) => event.split("\n").filter((line) => line.startsWith(`${key}:`)).map((line) => line.slice(key.length + 1).trimStart());
      if (field("data").length) onEvent(JSON.parse(field("data").join("\n")), field("id").at(-1));
    }
  }
}

/** Finds out who the viewer is, and what this server can do. */
export async function signIn() {
  try {
    const who = await request("GET", "/api/session");
    const described = await request("GET", "/api/openapi.json").catch(() => null);
    connection.set({ paths: described?.paths ?? null });
    isSignedIn(who);
  } catch (error) {
    if (error.status === 401) connection.set({ auth: "out" });
    throw error;
  }
}

function isSignedIn(who) {
  sessionToken = who.sessionToken;
  connection.set({ auth: "in", subject: who.subject, scopes: who.scopes, channel: who.channel });
}

/** Asks again who the viewer is: in another tab somebody may have signed in anew. */
export async function refreshSession() {
  isSignedIn(await request("GET", "/api/session"));
}

export function hasScope(scope) {
  const { scopes } = connection.get();
  return scopes.includes(scope) || (scope === "operate" && scopes.includes("admin"));
}

/** Whether this server has a route, by its description. */
export function serves(method, route) {
  return Boolean(connection.get().paths?.[route]?.[method.toLowerCase()]);
}

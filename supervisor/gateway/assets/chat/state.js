// The state of the chat: sessions, the open one, and what goes to and comes from the gateway.

import { path, request, serves } from "../lib/api.js";
import { announce, announceStream } from "../lib/announce.js";
import { t } from "../lib/i18n.js";
import { go, place } from "../lib/router.js";
import { messageId, socket } from "../lib/socket.js";
import { store } from "../lib/store.js";
import { failed } from "../ui/toast.js";
import { drafts, outbox } from "./outbox.js";
import { addOwn, apply, cursor, fromMessages, newTranscript, removeOwn, setStatus, settle } from "./transcript.js";

/** Pages of 200 messages that are read of one session where the agent keeps no events. */
const MOST_PAGES = 50;
/** Sessions whose transcripts are kept in memory: those used least are read again when they are opened. */
const MOST_TRANSCRIPTS = 12;
/** A message without an answer for so long means that the connection is dead, in milliseconds. */
const DEAD_AFTER = 20_000;
const MOST_GHOSTS = 5;

export const chat = store({ sessions: [], cursor: null, sessionsStatus: "loading", sessionsError: null, query: "", models: [], open: null, details: null, transcript: null, error: null, ghosts: [], creating: false });

const transcripts = new Map();
const resumes = new Map();
let keepsEvents = true;
let [speaker, lastHeard] = [null, Date.now()];
/** The timestamp of the latest recorded event. */
let latest = 0;

export const link = socket({ onOpen, onEvent });
link.state.subscribe(() => chat.set({}));

function changed() {
  const { transcript } = chat.get();
  if (transcript) settle(transcript);
  chat.set({});
}

function transcriptOf(id) {
  let known = transcripts.get(id);
  if (!known) known = newTranscript(id);
  transcripts.delete(id);
  transcripts.set(id, known);
  for (const old of transcripts.keys()) {
    if (transcripts.size <= MOST_TRANSCRIPTS) break;
    if (old !== chat.get().open && !transcripts.get(old).running) transcripts.delete(old);
  }
  return known;
}

// ---- what comes

function onOpen() {
  lastHeard = Date.now();
  const { open } = chat.get();
  const followed = [...transcripts].filter(([, known]) => known.followed).map(([id]) => id);
  follow([...new Set(open ? [open, ...followed] : followed)]);
  loadDetails();
  loadSessions();
  loadGhosts();
  flush();
}

/** Asks for the events of these sessions from the last one on that is known, and of others from when they were heard of last. */
function follow(ids) {
  if (!keepsEvents) {
    for (const id of ids) readMessages(id);
    return;
  }
  if (!ids.length && !latest) return;
  const cursors = ids.map((id) => ({ sessionId: id, after: cursor(transcriptOf(id)) }));
  const sent = link.send("resume", latest ? { cursors, since: latest } : { cursors });
  if (sent) resumes.set(sent, ids);
}

function onEvent(event) {
  lastHeard = Date.now();
  const { type, payload } = event;
  if (event.sequence) latest = Math.max(latest, event.timestamp);
  if (type === "error" && resumes.has(payload.replyTo)) {
    const ids = resumes.get(payload.replyTo);
    resumes.delete(payload.replyTo);
    keepsEvents = payload.reason !== "not_implemented" && keepsEvents;
    for (const id of ids) readMessages(id);
    return;
  }
  if (type === "shadow.ghost") {
    onGhost(payload);
    return;
  }
  const id = payload?.sessionId ?? sessionOfMessage(payload?.replyTo);
  if (!id) {
    if (type === "error") failed(new Error(payload.message));
    return;
  }
  if (["session.created", "session.updated", "session.deleted", "session.idle", "session.resumed"].includes(type)) onSessionEvent(type, id, event);
  const transcript = transcripts.get(id);
  if (!transcript) return;
  const isNew = apply(transcript, event);
  if (payload.clientId) confirmSent(payload.clientId);
  else if (type.startsWith("agent.") && !transcript.followed) for (const entry of outbox.own()) if (entry.session === id && entry.sent) confirmSent(entry.id, transcript);
  if (type === "error" && payload.replyTo) outbox.update(payload.replyTo, { failed: payload.message });
  if (isNew && id === chat.get().open) tell(type, payload, transcript);
  if (isNew && ["agent.response.end", "error", "channel.message"].includes(type) && event.timestamp > link.state.get().since) touchSession(id);
  changed();
}

/** One that waits is shown; one that was decided, anywhere, is not. */
function onGhost(ghost) {
  const known = chat.get().ghosts.some(({ id }) => id === ghost.id);
  dismissGhost(ghost.id);
  if (ghost.state && ghost.state !== "waiting") return;
  chat.set(({ ghosts, ...rest }) => ({ ...rest, ghosts: [...ghosts, ghost].slice(-MOST_GHOSTS) }));
  if (!known) announce(`${t("ghost.title")}: ${ghost.observation}`);
}

/** Those that came while nobody was here. */
async function loadGhosts() {
  try {
    const { items } = await request("GET", "/api/ghosts", { query: { state: "waiting", limit: MOST_GHOSTS } });
    for (const ghost of [...items].reverse()) onGhost(ghost);
  } catch {
    // They come again with the next connection.
  }
}

/** Decides about a ghost; opens the session of a turn that begins with it. Of one that nobody keeps, `otherwise` happens. */
export async function decideGhost(ghost, action, otherwise) {
  if (!ghost.state) {
    otherwise();
    dismissGhost(ghost.id);
    return;
  }
  try {
    const label = action.type === "custom" ? { label: action.label } : {};
    const decided = await request("POST", path`/api/ghosts/${ghost.id}`, { body: { decision: action.type, ...label } });
    dismissGhost(ghost.id);
    if (decided.sessionId) go(["s", decided.sessionId]);
  } catch (error) {
    failed(error);
  }
}

function sessionOfMessage(id) {
  return id ? outbox.own().find((entry) => entry.id === id)?.session : null;
}

function confirmSent(id, transcript = null) {
  if (transcript) setStatus(transcript, id, { status: "sent" });
  outbox.remove(id);
}

function onSessionEvent(type, id, event) {
  if (type === "session.deleted") {
    transcripts.delete(id);
    chat.set(({ sessions, ...rest }) => ({ ...rest, sessions: sessions.filter((session) => session.id !== id) }));
    if (chat.get().open === id) chat.set({ error: { status: 404, message: t("chat.deleted") } });
  } else if (event.timestamp > link.state.get().since) {
    touchSession(id);
  }
}

/** Says to a screen reader what happens in the open session. */
function tell(type, payload, transcript) {
  if (type === "agent.response") {
    speaker ??= announceStream();
    speaker.update(transcript.items.findLast((item) => item.kind === "answer")?.text ?? "");
  } else if (["agent.response.end", "tool.call", "error"].includes(type)) {
    speaker?.end();
    speaker = null;
  }
  if (type === "tool.call") announce(t("chat.said_tool", { tool: payload.tool }));
  if (type === "confirmation.request") announce(`${t("approval.wanted")}: ${payload.tool}`, "assertive");
  if (type === "clarification.request") announce(payload.question, "assertive");
  if (type === "error") announce(payload.message, "assertive");
}

let touching = null;
function touchSession() {
  clearTimeout(touching);
  touching = setTimeout(() => {
    loadSessions();
    loadDetails();
  }, 400);
}

// ---- reading

export async function loadSessions(more = false) {
  try {
    const answer = await request("GET", "/api/sessions", { query: { limit: 100, cursor: more ? chat.get().cursor : null } });
    const known = more ? chat.get().sessions : [];
    const seen = new Set(known.map(({ id }) => id));
    chat.set({ sessions: [...known, ...answer.items.filter(({ id }) => !seen.has(id))], cursor: answer.nextCursor ?? null, sessionsStatus: "ready", sessionsError: null });
  } catch (error) {
    if (error.name !== "AbortError") chat.set({ sessionsStatus: chat.get().sessions.length ? "ready" : "failed", sessionsError: error });
  }
}

export async function loadModels() {
  const answer = await request("GET", "/api/models").catch(() => ({ items: [] }));
  chat.set({ models: answer.items });
}

async function loadDetails() {
  const { open } = chat.get();
  if (!open) return;
  try {
    const details = await request("GET", path`/api/sessions/${open}`, { query: { limit: 1 } });
    if (chat.get().open !== open) return;
    const transcript = transcriptOf(open);
    if (details.metadata.messageCount === 0) transcript.loaded = true;
    transcript.running = details.turn === "running" || details.turn === "waiting" || (transcript.running && link.state.get().status === "open" && details.turn !== "idle");
    chat.set({ details, error: null });
  } catch (error) {
    fail(open, error);
  }
}

/** What is there stays shown while the gateway is away. */
function fail(id, error) {
  const { open, transcript } = chat.get();
  if (id === open && (!transcript?.items.length || [403, 404].includes(error.status))) chat.set({ error });
}

/** All messages of a session, where the agent keeps no events; again while its turn goes on. */
async function readMessages(id) {
  try {
    const session = await allMessages(id);
    const transcript = transcriptOf(id);
    fromMessages(transcript, session.messages);
    transcript.running = session.turn === "running" || session.turn === "waiting";
    if (id === chat.get().open) {
      chat.set({ details: session });
      readApprovals(id);
    }
    if (transcript.running && link.state.get().status === "open") setTimeout(() => transcript.running && id === chat.get().open && readMessages(id), 2000);
    changed();
  } catch (error) {
    fail(id, error);
  }
}

/** What waits for a decision in a session, as events: without a record of events they are asked for. */
async function readApprovals(id) {
  const { items } = await request("GET", "/api/approvals", { query: { sessionId: id } }).catch(() => ({ items: [] }));
  const transcript = transcriptOf(id);
  for (const approval of items.filter(({ state }) => state === "pending")) {
    const base = { sessionId: id, id: approval.id, expiresAt: approval.expiresAt };
    if (approval.question) apply(transcript, { type: "clarification.request", payload: { ...base, question: approval.question, options: approval.options, schema: approval.schema }, timestamp: approval.askedAt });
    else apply(transcript, { type: "confirmation.request", payload: { ...base, text: "", actions: [], tool: approval.tool, args: approval.args, why: approval.why, digest: approval.digest }, timestamp: approval.askedAt });
  }
  changed();
}

/** Opens a session, or with null the empty page of a new one. */
export function openSession(id) {
  if (id === chat.get().open && chat.get().transcript) return;
  speaker = null;
  const transcript = id ? transcriptOf(id) : null;
  chat.set({ open: id, transcript, details: null, error: null });
  if (!id) return;
  for (const entry of outbox.own()) if (entry.session === id) addOwn(transcript, { ...entry, files: [], status: entry.failed ? "failed" : "waiting", problem: entry.failed });
  follow([id]);
  loadDetails();
}

// ---- sending

/** Sends a message in the open session, which is made if there is none. */
export async function send(text, media = []) {
  const entry = { id: messageId(), session: chat.get().open, text, at: Date.now() };
  outbox.add(entry, media);
  if (!entry.session) {
    await startSession(entry);
    return;
  }
  show(entry, media);
  flush();
}

function show(entry, media) {
  const transcript = transcriptOf(entry.session);
  addOwn(transcript, { ...entry, files: media.map(({ name }) => name) });
  transcript.loaded = true;
  changed();
}

async function startSession(entry) {
  chat.set({ creating: true });
  try {
    const { newModel, newThinking } = chat.get();
    const session = await request("POST", "/api/sessions", { body: { model: newModel || "", thinkingLevel: newThinking || "" } });
    entry.session = session.id;
    outbox.update(entry.id, { session: session.id });
    chat.set({ creating: false });
    // What was typed while it was made belongs to it.
    const typed = drafts.get("new");
    if (typed.trim() !== entry.text) {
      drafts.set(session.id, typed);
      drafts.set("new", "");
    }
    show(entry, outbox.media(entry.id));
    go(["s", session.id]);
    flush();
    loadSessions();
  } catch (error) {
    chat.set({ creating: false });
    outbox.remove(entry.id);
    throw error;
  }
}

/** Sends what waits. A message that was sent and not confirmed is sent again under its id. */
function flush() {
  for (const entry of outbox.own()) {
    if (!entry.session || entry.failed) continue;
    const transcript = transcriptOf(entry.session);
    addOwn(transcript, { ...entry, files: [] });
    const media = outbox.media(entry.id);
    if (entry.files && !media.length) {
      outbox.update(entry.id, { failed: t("chat.files_lost") });
      setStatus(transcript, entry.id, { status: "failed", problem: t("chat.files_lost") });
      continue;
    }
    const payload = { sessionId: entry.session, text: entry.text, ...(media.length ? { media } : {}) };
    if (link.send("channel.message", payload, entry.id)) {
      outbox.update(entry.id, { sent: true });
      setStatus(transcript, entry.id, { status: "sending" });
      transcript.running = true;
    }
  }
  changed();
}

setInterval(() => {
  const waiting = outbox.own().some((entry) => entry.sent && !entry.failed && Date.now() - entry.at > DEAD_AFTER);
  if (waiting && link.state.get().status === "open" && Date.now() - lastHeard > DEAD_AFTER) link.reconnect();
}, 5000);

export function retryMessage(id) {
  outbox.update(id, { failed: undefined, at: Date.now() });
  const transcript = chat.get().transcript;
  if (transcript) setStatus(transcript, id, { status: "waiting", problem: null });
  flush();
}

export function forgetMessage(id) {
  outbox.remove(id);
  const { transcript } = chat.get();
  if (transcript) removeOwn(transcript, id);
  changed();
}

export async function stop() {
  const { open } = chat.get();
  if (!open) return;
  if (!link.send("turn.cancel", { sessionId: open })) await request("POST", path`/api/sessions/${open}/cancel`).catch(failed);
}

/** Takes turns back, where the server can. */
export function canUndo() {
  return serves("POST", "/api/sessions/{id}/undo");
}

export async function undo(turns) {
  const { open } = chat.get();
  await request("POST", path`/api/sessions/${open}/undo`, { body: { turns } });
  await readMessages(open);
}

/** Decides about a call, or answers a question. */
export async function decide(item, decision) {
  item.deciding = true;
  item.version += 1;
  changed();
  try {
    const answer = await request("POST", path`/api/approvals/${item.id}`, { body: decision });
    item.state = answer.state;
  } catch (error) {
    if (error.status === 404) item.state = "expired";
    failed(error);
  }
  item.deciding = false;
  item.version += 1;
  changed();
}

export async function configure(change) {
  const { open } = chat.get();
  if (!open) {
    chat.set({ ...("model" in change ? { newModel: change.model } : {}), ...("thinkingLevel" in change ? { newThinking: change.thinkingLevel } : {}) });
    return;
  }
  try {
    const details = await request("PATCH", path`/api/sessions/${open}`, { body: change });
    chat.set({ details: { ...chat.get().details, ...details } });
  } catch (error) {
    failed(error);
    changed();
  }
}

export async function removeSession(id) {
  await request("DELETE", path`/api/sessions/${id}`);
  transcripts.delete(id);
  chat.set(({ sessions, ...rest }) => ({ ...rest, sessions: sessions.filter((session) => session.id !== id) }));
  if (chat.get().open === id) go([]);
}

function dismissGhost(id) {
  chat.set(({ ghosts, ...rest }) => ({ ...rest, ghosts: ghosts.filter((ghost) => ghost.id !== id) }));
}

/** A session with all its messages. */
export async function allMessages(id) {
  let [messages, cursor, session] = [[], null, null];
  for (let count = 0; count < MOST_PAGES; count += 1) {
    session = await request("GET", path`/api/sessions/${id}`, { query: { limit: 200, cursor } });
    messages = [...messages, ...(session.messages ?? [])];
    cursor = session.nextCursor;
    if (!cursor) break;
  }
  return { ...session, messages, nextCursor: undefined, isWhole: !cursor };
}

place.subscribe(({ parts }) => openSession(parts[0] === "s" ? parts[1] : null));

// What a session's events and messages become: a list of items. Pure: no elements, no clock, no network.

const encoder = new TextEncoder();
/** Lines of live output that are kept for one call; of more, the latest. */
const MOST_LINES = 500;

/** A session as the page knows it. */
export function newTranscript(id) {
  return { id, items: [], byId: new Map(), events: new Map(), last: 0, isUnsorted: false, wasUnsorted: false, followed: false, loaded: false, running: false, phase: null, plan: null, usage: null, model: "", promptTokens: 0, count: 0 };
}

function push(transcript, item) {
  item.key = `${item.kind}-${item.id ?? (transcript.count += 1)}`;
  item.version = 0;
  insert(transcript, item);
  if (item.id) transcript.byId.set(item.key, item);
  return item;
}

/** What was written and not sent yet stays at the end. */
function insert(transcript, item) {
  let place = transcript.items.length;
  if (isSent(item)) while (place > 0 && !isSent(transcript.items[place - 1])) place -= 1;
  transcript.items.splice(place, 0, item);
}

function isSent(item) {
  return item.kind !== "user" || item.status === "sent";
}

function find(transcript, kind, id) {
  return transcript.byId.get(`${kind}-${id}`);
}

function touch(item, change) {
  Object.assign(item, change);
  item.version += 1;
}

/** The answer, or the thought, that is being written. */
function live(transcript, kind) {
  for (let at = transcript.items.length - 1; at >= 0; at -= 1) {
    const item = transcript.items[at];
    if (item.kind === kind && item.live) return item;
    if ((item.kind === "user" && isSent(item)) || item.kind === "tool") return null;
  }
  return null;
}

/** The last answer since somebody spoke or a tool was called. */
function latestAnswer(transcript) {
  for (let at = transcript.items.length - 1; at >= 0; at -= 1) {
    const item = transcript.items[at];
    if (item.kind === "answer") return item;
    if ((item.kind === "user" && isSent(item)) || item.kind === "tool") return null;
  }
  return null;
}

function seal(transcript) {
  for (const kind of ["answer", "thought"]) {
    const item = live(transcript, kind);
    if (item) touch(item, { live: false });
  }
  transcript.items = transcript.items.filter((item) => !(["answer", "thought"].includes(item.kind) && !item.live && item.text === ""));
}

/** A piece belongs at an offset in bytes: what comes again changes nothing, what begins anew takes the place of what was there. */
function addPiece(transcript, kind, { content, attempt, offset, whole }, at) {
  if (whole) {
    const answer = latestAnswer(transcript);
    if (answer) touch(answer, { text: content, live: false, bytes: undefined });
    else push(transcript, { kind, text: content, live: false, at });
    return;
  }
  const item = live(transcript, kind) ?? push(transcript, { kind, text: "", live: true, at, attempt, bytes: 0 });
  const size = encoder.encode(content).length;
  if (offset === undefined || offset === null) {
    touch(item, { text: item.text + content });
  } else if (offset === 0 || item.attempt !== attempt) {
    if (item.attempt === attempt && item.bytes >= size) return;
    touch(item, { text: content, attempt, bytes: size });
  } else if (offset === item.bytes) {
    touch(item, { text: item.text + content, bytes: item.bytes + size });
  }
}

/** Nothing but what was written and not sent yet. */
function reset(transcript) {
  const waiting = transcript.items.filter((item) => !isSent(item));
  Object.assign(transcript, { items: waiting, byId: new Map(waiting.map((item) => [item.key, item])) });
}

/** Takes an event in. Gives false if it was known already, or is of another session. */
export function apply(transcript, event) {
  const { payload, sequence } = event;
  if (payload?.sessionId && payload.sessionId !== transcript.id) return false;
  if (sequence) {
    if (!transcript.followed) {
      // From now on the recorded events are what counts.
      reset(transcript);
      Object.assign(transcript, { followed: true, loaded: true });
    }
    if (transcript.events.has(sequence)) return false;
    transcript.events.set(sequence, event);
    if (sequence < transcript.last) {
      // What happens now was told before what had happened: put in order before it is shown.
      Object.assign(transcript, { isUnsorted: true, wasUnsorted: true });
      return true;
    }
    transcript.last = sequence;
  }
  return take(transcript, event);
}

/** The sequence after which a connection goes on. */
export function cursor(transcript) {
  return transcript.wasUnsorted ? 0 : transcript.last;
}

/** Puts events in order that did not come in it. */
export function settle(transcript) {
  if (!transcript.isUnsorted) return;
  const live = transcript.items.filter((item) => item.live);
  transcript.isUnsorted = false;
  reset(transcript);
  for (const [, event] of [...transcript.events].sort(([a], [b]) => a - b)) take(transcript, event);
  for (const item of transcript.running ? live : []) insert(transcript, item);
}

function take(transcript, { type, payload, timestamp: at, sequence, id }) {
  switch (type) {
    case "channel.message": {
      const known = payload.clientId ? find(transcript, "user", payload.clientId) : null;
      seal(transcript);
      if (known) {
        touch(known, { status: "sent", at });
        transcript.items.splice(transcript.items.indexOf(known), 1);
        insert(transcript, known);
      } else push(transcript, { kind: "user", id: payload.clientId ?? id, text: payload.text, at, status: "sent", sender: payload.senderName ?? "", channel: payload.channel });
      transcript.running = true;
      return true;
    }
    case "agent.response":
      transcript.running ||= !sequence;
      addPiece(transcript, "answer", payload, at);
      return true;
    case "agent.thought":
      addPiece(transcript, "thought", payload, at);
      return true;
    case "agent.thinking":
      transcript.running = true;
      return true;
    case "agent.phase":
      transcript.phase = payload;
      transcript.running = payload.phase !== "done";
      return true;
    case "agent.response.discard": {
      for (const kind of ["answer", "thought"]) {
        const item = live(transcript, kind);
        if (item && (payload.attempt === undefined || payload.attempt === null || item.attempt !== payload.attempt)) touch(item, { text: "", bytes: 0, attempt: payload.attempt });
      }
      return true;
    }
    case "agent.response.end":
      seal(transcript);
      transcript.running = false;
      transcript.phase = null;
      transcript.usage = payload.usage;
      transcript.promptTokens = payload.usage.promptTokens;
      transcript.model = payload.model;
      touchLastAnswer(transcript, { usage: payload.usage, model: payload.model, provider: payload.providerId, iteration: payload.iteration });
      return true;
    case "agent.notice":
      push(transcript, { kind: "notice", level: payload.level, text: payload.text, at });
      return true;
    case "agent.plan":
      transcript.plan = payload;
      return true;
    case "tool.call":
      seal(transcript);
      if (!find(transcript, "tool", payload.id ?? id)) push(transcript, { kind: "tool", id: payload.id ?? id, tool: payload.tool, args: payload.args, lines: [], leftOut: 0, at });
      transcript.running ||= !sequence;
      return true;
    case "tool.stream": {
      const tool = find(transcript, "tool", payload.id);
      if (!tool || tool.result) return Boolean(tool);
      const lines = [...tool.lines, ...payload.lines];
      touch(tool, { lines: lines.slice(-MOST_LINES), leftOut: tool.leftOut + payload.leftOutLines + Math.max(0, lines.length - MOST_LINES) });
      return true;
    }
    case "tool.progress": {
      const tool = find(transcript, "tool", payload.id);
      if (tool) touch(tool, { progress: payload });
      return Boolean(tool);
    }
    case "tool.result": {
      const tool = find(transcript, "tool", payload.id) ?? push(transcript, { kind: "tool", id: payload.id, tool: payload.tool, args: null, lines: [], leftOut: 0, at });
      touch(tool, { result: payload });
      return true;
    }
    case "subagent.start":
      push(transcript, { kind: "subagent", id: payload.id, agent: payload.agent, task: payload.task, at });
      return true;
    case "subagent.result": {
      const agent = find(transcript, "subagent", payload.id) ?? push(transcript, { kind: "subagent", id: payload.id, agent: payload.agent, task: "", at });
      touch(agent, { result: payload });
      return true;
    }
    case "confirmation.request":
      if (!find(transcript, "approval", payload.id)) push(transcript, { kind: "approval", id: payload.id, request: payload, state: "pending", at });
      return true;
    case "clarification.request":
      if (!find(transcript, "question", payload.id)) push(transcript, { kind: "question", id: payload.id, request: payload, state: "pending", at });
      return true;
    case "confirmation.decided":
    case "clarification.decided": {
      const item = find(transcript, type.startsWith("conf") ? "approval" : "question", payload.id);
      if (item) touch(item, { state: payload.state });
      return Boolean(item);
    }
    case "error":
      return applyError(transcript, payload, at);
    default:
      return false;
  }
}

function applyError(transcript, payload, at) {
  const message = payload.replyTo ? find(transcript, "user", payload.replyTo) : null;
  if (message) {
    touch(message, { status: "failed", problem: payload.message });
    transcript.running = false;
    return true;
  }
  if (!payload.sessionId) return false;
  const answer = live(transcript, "answer");
  if (payload.partial && answer) touch(answer, { text: payload.partial });
  seal(transcript);
  transcript.running = false;
  transcript.phase = null;
  push(transcript, { kind: "error", reason: payload.reason, text: payload.message, at });
  return true;
}

function touchLastAnswer(transcript, change) {
  const answer = transcript.items.findLast((item) => item.kind === "answer");
  if (answer) touch(answer, change);
}

/** A message of this page that is on its way. */
export function addOwn(transcript, { id, text, files, at, status = "waiting" }) {
  if (find(transcript, "user", id)) return;
  push(transcript, { kind: "user", id, text, files, at, status, sender: "" });
}

export function setStatus(transcript, id, change) {
  const item = find(transcript, "user", id);
  if (item) touch(item, change);
}

export function removeOwn(transcript, id) {
  transcript.items = transcript.items.filter((item) => !(item.kind === "user" && item.id === id));
  transcript.byId.delete(`user-${id}`);
}

/** The messages of a session as `GET /api/sessions/{id}` has them: for an agent that keeps no events. */
export function fromMessages(transcript, messages) {
  const open = transcript.items.filter((item) => ["approval", "question"].includes(item.kind) && item.state === "pending");
  reset(transcript);
  Object.assign(transcript, { events: new Map(), isUnsorted: false, wasUnsorted: false, loaded: true });
  for (const message of messages) {
    const at = message.timestamp;
    if (message.role === "user" && message.clientId) removeOwn(transcript, message.clientId);
    if (message.role === "user") push(transcript, { kind: "user", id: message.clientId || message.id, text: message.content, at, status: "sent", sender: message.senderName ?? "" });
    else if (message.summary) push(transcript, { kind: "summary", id: message.id, text: message.content, at });
    else if (message.content && message.role !== "tool") push(transcript, { kind: "answer", id: message.id, text: message.content, live: false, at });
    for (const call of message.toolCalls ?? []) push(transcript, { kind: "tool", id: call.id, tool: call.tool, args: call.args, lines: [], leftOut: 0, at });
    for (const result of message.toolResults ?? []) apply(transcript, { type: "tool.result", payload: result, timestamp: at });
  }
  for (const item of open) {
    insert(transcript, item);
    transcript.byId.set(item.key, item);
  }
}

// What a session does now: the phase of its loop and its sub-agents, as events tell them.

import { path, stream } from "../lib/api.js";

/** Sub-agents that are kept: the latest ones. */
const MOST_AGENTS = 50;
/** Between two attempts to follow, in milliseconds. */
const WAITS = [1000, 2000, 5000, 15_000];

/** Follows a session until `end()`. `get()` has the `phase` of the turn that runs (null if none does), and the `agents`, oldest first. */
export function followSession(id, redraw) {
  const state = { phase: null, agents: new Map() };
  const abort = new AbortController();
  let [last, attempts] = [null, 0];
  const take = ({ type, payload }, eventId) => {
    last = eventId ?? last;
    attempts = 0;
    if (type === "agent.phase") state.phase = payload.phase === "done" ? null : payload;
    else if (["agent.response.end", "error"].includes(type)) state.phase = null;
    else if (type === "subagent.start") state.agents.set(payload.id, { ...payload, result: null });
    else if (type === "subagent.result" && state.agents.has(payload.id)) state.agents.get(payload.id).result = payload;
    else return;
    if (state.agents.size > MOST_AGENTS) state.agents.delete(state.agents.keys().next().value);
    redraw();
  };
  const run = async () => {
    while (!abort.signal.aborted) {
      try {
        await stream(path`/api/sessions/${id}/events`, { signal: abort.signal, onEvent: take, headers: last ? { "last-event-id": last } : {} });
      } catch (error) {
        // What no other attempt changes. The view says by itself what is wrong with the session.
        if (abort.signal.aborted || (error.status >= 400 && error.status < 500 && error.status !== 429)) return;
      }
      await new Promise((resolve) => setTimeout(resolve, WAITS[Math.min(attempts, WAITS.length - 1)]));
      attempts += 1;
    }
  };
  run();
  return { get: () => ({ phase: state.phase, agents: [...state.agents.values()] }), end: () => abort.abort() };
}

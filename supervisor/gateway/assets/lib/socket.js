// The WebSocket: connects, connects again, and says which of both. What is sent while it is closed is the caller's to send again.

import { connection, request } from "./api.js";
import { store } from "./store.js";

/** Waits between attempts, in milliseconds: from the first to the longest, each a little by chance, so that pages do not come all at once. */
const FIRST_WAIT = 400;
const LONGEST_WAIT = 15_000;

/** An id of our own for a message: the same message again has the same, and is one turn. */
export function messageId() {
  const random = crypto.getRandomValues(new Uint8Array(16));
  return `msg_${[...random].map((byte) => byte.toString(36).padStart(2, "0")).join("").slice(0, 21)}`;
}

/** Opens a socket. `state`: connecting, open, waiting (with `until`), or ended (the credential holds no more). */
export function socket({ onOpen, onEvent }) {
  const state = store({ status: "connecting", until: 0, attempts: 0, since: 0 });
  let [current, timer, attempts] = [null, 0, 0];

  const connect = () => {
    clearTimeout(timer);
    if (current && current.readyState <= WebSocket.OPEN) return;
    state.set({ status: "connecting" });
    const mine = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/ws`);
    current = mine;
    mine.addEventListener("open", () => {
      attempts = 0;
      connection.set({ online: true });
      state.set({ status: "open", attempts: 0, since: Date.now() });
      onOpen();
    });
    mine.addEventListener("message", ({ data }) => {
      let event;
      try {
        event = JSON.parse(data);
      } catch {
        return;
      }
      onEvent(event);
    });
    mine.addEventListener("close", () => {
      if (mine === current) again();
    });
  };

  const again = async () => {
    current = null;
    attempts += 1;
    const wait = attempts === 1 ? FIRST_WAIT / 4 : Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** attempts) * (0.75 + Math.random() / 2);
    state.set({ status: "waiting", until: Date.now() + wait, attempts });
    clearTimeout(timer);
    timer = setTimeout(connect, wait);
    // A browser does not say why an upgrade was refused; this does.
    if (attempts > 1) await request("GET", "/api/session").catch(() => null);
    if (["revoked", "out"].includes(connection.get().auth)) {
      clearTimeout(timer);
      state.set({ status: "ended" });
    }
  };

  const soon = () => {
    if (!current && state.get().status === "waiting" && !document.hidden) connect();
  };
  addEventListener("online", soon);
  document.addEventListener("visibilitychange", soon);
  connect();

  return {
    state,
    retryNow: connect,
    /** False if it is not open: then nothing was sent. */
    send(type, payload, id = messageId()) {
      if (current?.readyState !== WebSocket.OPEN) return null;
      current.send(JSON.stringify({ id, type, timestamp: Date.now(), payload }));
      return id;
    },
    /** Closes what seems dead, so that it is opened anew. */
    reconnect() {
      const old = current;
      current = null;
      old?.close();
      again();
    },
  };
}

// Something that is read from the server, and read again as long as a view shows it. What was read stays shown while the server is away.

import { connection } from "./api.js";
import { store } from "./store.js";

/** The longest wait between two attempts, in milliseconds. */
const LONGEST_WAIT = 30_000;

/** Reads by `load(signal)`, every so many milliseconds if `every` is given and the page is seen. The state: loading, ready or failed, with
 *  `data` as last read and `error` of the last attempt. */
export function resource(load, { every = 0 } = {}) {
  const state = store({ status: "loading", data: null, error: null, at: 0 });
  let [timer, failures, abort, ended] = [0, 0, null, false];
  const read = async () => {
    clearTimeout(timer);
    abort?.abort();
    const mine = new AbortController();
    abort = mine;
    try {
      const data = await load(mine.signal);
      if (mine.signal.aborted || ended) return;
      failures = 0;
      state.set({ status: "ready", data, error: null, at: Date.now() });
    } catch (error) {
      if (mine.signal.aborted || ended) return;
      failures += 1;
      state.set({ status: state.get().data === null ? "failed" : "ready", error });
    }
    plan();
  };
  const plan = () => {
    clearTimeout(timer);
    const { error } = state.get();
    const canRecover = !error || error.kind === "offline" || error.status >= 500 || error.status === 429;
    const wait = failures ? Math.min(LONGEST_WAIT, 1000 * 2 ** failures) : every;
    if (!ended && wait && canRecover && connection.get().auth !== "revoked") timer = setTimeout(() => (document.hidden ? plan() : read()), wait);
  };
  const onSeen = () => {
    if (!document.hidden && every && Date.now() - state.get().at > every) read();
  };
  document.addEventListener("visibilitychange", onSeen);
  read();
  return {
    ...state,
    reload: read,
    end() {
      ended = true;
      clearTimeout(timer);
      abort?.abort();
      document.removeEventListener("visibilitychange", onSeen);
    },
  };
}

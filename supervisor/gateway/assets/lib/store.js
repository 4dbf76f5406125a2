// State that views follow, and when they are drawn.

/** A value with subscribers. */
export function store(value) {
  const subscribers = new Set();
  return {
    get: () => value,
    set(next) {
      value = typeof next === "function" ? next(value) : { ...value, ...next };
      for (const subscriber of [...subscribers]) subscriber(value);
    },
    subscribe(subscriber) {
      subscribers.add(subscriber);
      return () => subscribers.delete(subscriber);
    },
  };
}

/** Calls a function at most once a frame, also in a tab that nobody sees: there frames do not come. */
export function onceAFrame(draw) {
  let waiting = false;
  const run = () => {
    if (!waiting) return;
    waiting = false;
    draw();
  };
  return () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(run);
    setTimeout(run, 250);
  };
}

/** What this browser keeps for this page: a small text by name. Without storage (private windows) it is kept until the tab closes. */
export const kept = (() => {
  const memory = new Map();
  const name = (key) => `talon.${key}`;
  return {
    get(key, otherwise = null) {
      try {
        return JSON.parse(localStorage.getItem(name(key))) ?? memory.get(key) ?? otherwise;
      } catch {
        return memory.get(key) ?? otherwise;
      }
    },
    /** False if the browser's storage is full or off: then the tab alone remembers it. */
    set(key, value) {
      memory.set(key, value);
      try {
        if (value === null) localStorage.removeItem(name(key));
        else localStorage.setItem(name(key), JSON.stringify(value));
        if (value === null) memory.delete(key);
        return true;
      } catch {
        return false;
      }
    },
    keys(prefix) {
      const found = new Set([...memory.keys()].filter((key) => key.startsWith(prefix)));
      try {
        for (const key of Object.keys(localStorage)) {
          if (key.startsWith(name(prefix))) found.add(key.slice("talon.".length));
        }
      } catch {
        // The memory has what there is.
      }
      return [...found];
    },
  };
})();

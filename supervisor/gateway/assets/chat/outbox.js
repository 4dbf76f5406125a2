// What was typed and what was sent but not yet confirmed: kept in the browser, so that a restart of either side loses nothing.

import { kept } from "../lib/store.js";

/** The most of an unsent message that the browser keeps, in characters: its storage has some 5 MB for this page. */
const MOST_KEPT = 300_000;

const tab = (() => {
  try {
    const known = sessionStorage.getItem("talon.tab") ?? crypto.randomUUID?.() ?? String(Math.random());
    sessionStorage.setItem("talon.tab", known);
    return known;
  } catch {
    return String(Math.random());
  }
})();

// Held as long as the tab lives: others see by it whose messages nobody sends any more.
navigator.locks?.request(`talon-tab-${tab}`, () => new Promise(() => {}));

export const drafts = {
  get: (session) => kept.get(`draft.${session}`, ""),
  set: (session, text) => kept.set(`draft.${session}`, text.trim() ? text : null),
};

/** Files are kept by this tab alone: they are too large for what a browser stores by name. */
const files = new Map();

export const outbox = {
  add(entry, media = []) {
    if (media.length) files.set(entry.id, media);
    kept.set(`outbox.${entry.id}`, { ...entry, text: entry.text.slice(0, MOST_KEPT), files: media.length, tab });
  },
  update(id, change) {
    const entry = kept.get(`outbox.${id}`);
    if (entry) kept.set(`outbox.${id}`, { ...entry, ...change });
  },
  remove(id) {
    files.delete(id);
    kept.set(`outbox.${id}`, null);
  },
  media: (id) => files.get(id) ?? [],
  /** Those of this tab, in order. */
  own: () => all().filter((entry) => entry.tab === tab),
  /** Takes over those of tabs that are gone. */
  async adopt() {
    const held = await navigator.locks?.query().then(({ held }) => new Set(held.map(({ name }) => name)), () => null);
    for (const entry of all()) {
      if (entry.tab !== tab && !held?.has(`talon-tab-${entry.tab}`)) kept.set(`outbox.${entry.id}`, { ...entry, tab });
    }
  },
};

function all() {
  return kept.keys("outbox.").map((key) => kept.get(key)).filter(Boolean).sort((a, b) => a.at - b.at);
}

// Keyboard shortcuts: one list, from which the page of shortcuts is made. Single letters can be switched off, since they get in the way of
// speech input.

import { kept } from "./store.js";

const shortcuts = [];
let [pending, timer] = ["", 0];

/** A shortcut: `keys` is one key, two after another ("g p"), or with a modifier ("Ctrl+Enter"). Gives a function that removes it. */
export function shortcut(keys, label, run, { inFields = false } = {}) {
  const entry = { keys, label, run, inFields };
  shortcuts.push(entry);
  return () => shortcuts.splice(shortcuts.indexOf(entry), 1);
}

export function listed() {
  return shortcuts.filter((entry, index) => shortcuts.findIndex((other) => other.keys === entry.keys) === index);
}

export const singleKeys = {
  get: () => kept.get("single_keys", true),
  set: (on) => kept.set("single_keys", on),
};

function isField(element) {
  return element.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(element.nodeName) && !["checkbox", "radio", "button", "submit"].includes(element.type);
}

addEventListener("keydown", (event) => {
  if (event.isComposing || event.defaultPrevented) return;
  const modified = event.ctrlKey || event.metaKey || event.altKey;
  const key = event.key.length === 1 ? event.key : event.key;
  const named = `${event.ctrlKey || event.metaKey ? "Ctrl+" : ""}${event.altKey ? "Alt+" : ""}${key}`;
  const field = event.target instanceof Element && isField(event.target);
  if (document.querySelector("dialog[open]") && key !== "Escape") return;
  if (!modified && key.length === 1 && !singleKeys.get() && key !== "?") return;
  const sequence = modified || field ? named : pending ? `${pending} ${key}` : named;
  // The latest one counts: a view may give a key a meaning of its own.
  const found = shortcuts.findLast((entry) => entry.keys === sequence && (!field || entry.inFields));
  clearTimeout(timer);
  pending = "";
  if (found) {
    if (found.run(event) !== false) event.preventDefault();
  } else if (!modified && !field && shortcuts.some((entry) => entry.keys.startsWith(`${key} `))) {
    pending = key;
    timer = setTimeout(() => (pending = ""), 1500);
  }
});

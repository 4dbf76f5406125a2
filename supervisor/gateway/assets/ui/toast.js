// Short messages about what was just done. They are told to screen readers, stay while the pointer is on them, and then go.

import { h } from "../lib/dom.js";
import { announce } from "../lib/announce.js";

let place;

export function toast(text, { look = "", stay = 5000 } = {}) {
  if (!place) {
    place = h("div", { class: "toasts" });
    document.body.append(place);
  }
  let timer;
  const go = () => element.remove();
  const wait = () => (timer = setTimeout(go, look === "bad" ? stay * 2 : stay));
  const element = h("div", { class: `toast ${look}`, on: { pointerenter: () => clearTimeout(timer), pointerleave: wait } }, h("span", { class: "grow" }, text));
  while (place.childElementCount >= 4) place.firstChild.remove();
  place.append(element);
  announce(text, look === "bad" ? "assertive" : "polite");
  wait();
}

/** Says why something failed. */
export function failed(error) {
  toast(error.message || String(error), { look: "bad" });
}

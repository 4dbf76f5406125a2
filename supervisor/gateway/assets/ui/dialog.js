// Dialogs: the browser's own, which keep the focus inside and give it back.

import { h, show } from "../lib/dom.js";
import { t } from "../lib/i18n.js";
import { listed, singleKeys } from "../lib/keys.js";
import { button } from "./parts.js";

let count = 0;

/** Opens a dialog with this content, a function that gets how to close it and how to draw it anew. */
export function openDialog(title, content, { wide = false } = {}) {
  const id = `dialog-${(count += 1)}`;
  const element = h("dialog", { class: wide ? "wide" : "", "aria-labelledby": id, on: { close: () => element.remove() } });
  const close = () => element.close();
  const draw = () => show(element, h("div", { class: "dialog" }, h("div", { class: "row apart" }, h("h2", { id }, title), button(t("action.close"), close, { look: "plain small", sign: "close", iconOnly: true })), content(close, draw)));
  document.body.append(element);
  draw();
  element.showModal();
  return { close, draw, element };
}

/** Asks before something that cannot be taken back. Resolves to whether it is wanted. */
export function confirm(title, text, action, { look = "danger" } = {}) {
  return new Promise((resolve) => {
    let answer = false;
    const { element } = openDialog(title, (close) => [
      h("p", {}, text),
      h("div", { class: "actions" }, button(t("action.cancel"), close), button(action, () => { answer = true; close(); }, { look })),
    ]);
    element.addEventListener("close", () => resolve(answer));
  });
}

/** The page of shortcuts. */
export function openShortcuts() {
  openDialog(t("shortcuts.title"), (close, draw) => [
    h("div", { class: "shortcuts" }, listed().map(({ keys, label }) => [h("span", { class: "row tight" }, keys.split(" ").map((key) => h("kbd", {}, key))), h("span", {}, label)])),
    h("label", { class: "check" }, h("input", { type: "checkbox", checked: singleKeys.get(), on: { change: (event) => { singleKeys.set(event.currentTarget.checked); draw(); } } }), t("shortcuts.single")),
  ]);
}

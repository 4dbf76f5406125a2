// The head of every view.

import { h } from "../lib/dom.js";
import { href } from "../lib/router.js";
import { icon } from "../ui/icons.js";

/** `up`: the list that a detail belongs to, as [label, parts]. */
export function head(title, { text = null, actions = null, up = null, beside = null } = {}) {
  return h("header", { class: "page-head" },
    h("div", { class: "grow stack tight" },
      up ? h("a", { class: "up small", href: href(up[1]) }, icon("back"), up[0]) : null,
      h("div", { class: "row" }, h("h1", {}, title), beside),
      text ? h("p", { class: "muted" }, text) : null),
    actions ? h("div", { class: "row" }, actions) : null);
}

// Names and ids, as links to where they live.

import { h } from "../lib/dom.js";
import { t } from "../lib/i18n.js";
import { href } from "../lib/router.js";
import { name, plain } from "../lib/text.js";

/** Who asked: leads to this person's conversations. Jobs, sinks and users of the machine have none. */
export function who(subject, most = 80) {
  if (!subject) return null;
  return subject.startsWith("gw:") ? h("a", { class: "mono small", href: href(["sessions"], { q: subject }), title: t("link.sessions_of", { name: plain(subject, 200) }) }, name(subject, most)) : h("span", { class: "mono small" }, name(subject, most));
}

/** A call's `plugin.action`: leads to the action. */
export function action(tool, most = 80) {
  const [plugin, ...rest] = String(tool).split(".");
  return rest.length ? h("a", { class: "mono", href: href(["plugins", plugin], { tab: "actions", q: rest.join(".") }) }, name(tool, most)) : h("span", { class: "mono" }, name(tool, most));
}

export function session(id, text = null) {
  return id ? h("a", { class: text ? "" : "mono small", href: href(["sessions", id]) }, text ?? name(id, 60)) : null;
}

/** A text in which a session may be named. */
export function withSession(text) {
  const found = /sess_[0-9A-Za-z]+/.exec(text);
  return found ? [name(text.slice(0, found.index), 60), " ", session(found[0]), " ", name(text.slice(found.index + found[0].length), 60)] : name(text, 60);
}

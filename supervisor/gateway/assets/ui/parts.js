// Small parts: buttons, badges, fields, states.

import { h } from "../lib/dom.js";
import { t } from "../lib/i18n.js";
import { word } from "../lib/word.js";
import { icon } from "./icons.js";

/** A button; `look` has its classes (primary, danger, plain, small). */
export function button(label, click, { look = "", sign = null, disabled = false, title = null, pressed, iconOnly = false, key, type = "button", id } = {}) {
  const attributes = { type, id, class: `button ${look}${iconOnly ? " icon-only" : ""}`, key, disabled, title: iconOnly ? (title ?? label) : title, "aria-label": iconOnly ? label : null, "aria-pressed": pressed === undefined ? null : String(pressed), on: click ? { click } : {} };
  return h("button", attributes, sign ? icon(sign) : null, iconOnly ? null : label);
}

/** A link that looks like a button. */
export function linkButton(label, href, { look = "", sign = null } = {}) {
  return h("a", { class: `button ${look}`, href }, sign ? icon(sign) : null, label);
}

/** What a state means for who looks: good, warn, bad, info, or nothing in particular. */
const MEANING = {
  good: ["ready", "ok", "approved", "done", "delivered", "closed", "answered", "pass", "allow"],
  warn: ["starting", "handshaking", "unhealthy", "draining", "backoff", "waiting", "pending", "late", "half_open", "interrupted", "warning", "sending", "resting", "changed", "neutralized", "warn"],
  bad: ["failed", "refused", "denied", "open", "given_up", "critical", "missed", "failing", "unavailable", "quarantined", "error", "out", "fault", "deny"],
  info: ["running", "active", "planned", "info"],
};

/** A state as a badge. */
export function badge(state, { kind = "state", label = null, look = null } = {}) {
  const meaning = look ?? Object.keys(MEANING).find((key) => MEANING[key].includes(state)) ?? "";
  return h("span", { class: `badge ${meaning}` }, label ?? word(kind, state));
}

/** A field with its label. */
export function field(label, control, { hint = null, problem = null, id } = {}) {
  return h("div", { class: "field" }, h("label", { for: id }, label), hint ? h("span", { class: "hint", id: `${id}-hint` }, hint) : null, control, problem ? h("span", { class: "problem", id: `${id}-problem`, role: "alert" }, problem) : null);
}

/** A choice among few. `options`: values and labels. */
export function choice(label, value, options, change, { id, hidden = true } = {}) {
  const select = h("select", { class: "input", id, "aria-label": hidden ? label : null, title: hidden ? `${label}: ${options.find(([option]) => option === value)?.[1] ?? ""}` : null, on: { change: (event) => change(event.currentTarget.value) } }, options.map(([option, text]) => h("option", { value: option, selected: option === value }, text)));
  return select;
}

/** A field to search in what is shown. */
export function searchField(label, value, change, id = "search") {
  return h("input", { class: "input", type: "search", id, placeholder: label, "aria-label": label, value, maxlength: 200, autocomplete: "off", spellcheck: "false", on: { input: (event) => change(event.currentTarget.value) } });
}

/** Nothing there, not yet, not allowed, not available, not reachable: in the place of what would be shown. */
export function state(sign, title, text = null, action = null) {
  return h("div", { class: "state" }, icon(sign), h("h2", {}, title), text ? h("p", {}, text) : null, action);
}

export function empty(title, text = null, action = null) {
  return state("empty", title, text, action);
}

export function loading(lines = 4) {
  const widths = ["72%", "88%", "61%", "79%", "54%"];
  return h("div", { class: "stack card", css: { padding: "var(--space-5)" }, role: "status", "aria-label": t("state.loading") }, Array.from({ length: lines }, (_, line) => h("div", { class: "skeleton", css: { width: widths[line % widths.length] } })));
}

export function unavailable(what) {
  return state("info", t("unavailable.title"), t("unavailable.text", { what }));
}

/** Why something cannot be shown, said so that one knows what to do. */
export function failure(error, retry = null) {
  const again = retry ? button(t("action.retry"), retry, { sign: "retry" }) : null;
  if (error.kind === "offline") return state("offline", t("offline.title"), t("offline.text"), again);
  if (error.status === 401) return state("lock", t("revoked.title"), t("revoked.text"));
  if (error.status === 403) return state("lock", t("forbidden.title"), error.message);
  if (error.status === 404) return state("empty", t("not_found.title"), error.message);
  if (error.status === 501) return state("info", t("unavailable.title"), error.message);
  return state("warning", t("error.title"), h("span", {}, error.message, error.requestId ? h("span", { class: "faint mono" }, ` ${error.requestId}`) : null), again);
}

/** A resource's state: `show(data)` when there is data, with a note above it while it is not fresh. */
export function shown(state, show, retry = null) {
  if (state.status === "loading") return loading();
  if (state.status === "failed") return h("div", { class: "card" }, failure(state.error, retry));
  const stale = state.error ? notice(state.error.kind === "offline" ? t("offline.stale") : t("error.stale", { message: state.error.message }), "warn") : null;
  return [stale, show(state.data)];
}

/** A remark with a sign. */
export function notice(text, look = "", action = null) {
  return h("div", { class: `notice ${look}` }, icon(look === "good" ? "check" : look === "" ? "info" : "warning"), h("div", { class: "grow" }, text), action);
}

/** A part of a page with a heading. */
export function card(title, content, { actions = null, bare = false, id = null } = {}) {
  return h("section", { class: "card", id }, title ? h("header", {}, h("h2", {}, title), actions ? h("div", { class: "row" }, actions) : null) : null, bare ? content : h("div", { class: "body" }, content));
}

/** Facts about one thing: pairs of a name and a value; those without a value are left out. */
export function facts(pairs) {
  return h("dl", { class: "facts" }, pairs.filter(([, value]) => value !== null && value !== undefined && value !== "" && value !== false).map(([key, value]) => [h("dt", {}, key), h("dd", {}, value)]));
}

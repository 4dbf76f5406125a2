// The list of sessions, newest first, with a filter.

import { h } from "../lib/dom.js";
import { dateTime, relative, serverNow } from "../lib/format.js";
import { t } from "../lib/i18n.js";
import { go, href } from "../lib/router.js";
import { name } from "../lib/text.js";
import { preferences } from "../ui/boot.js";
import { hasScope } from "../lib/api.js";
import { button, linkButton, searchField } from "../ui/parts.js";
import { matches } from "../ui/table.js";
import { focusComposer } from "./composer.js";
import { chat, loadSessions } from "./state.js";

const DAY = 86_400_000;

export function newChat() {
  go([]);
  chat.set({ drawer: false });
  requestAnimationFrame(focusComposer);
}

function group(session) {
  const age = serverNow() - session.metadata.lastActiveAt;
  if (age < DAY) return "today";
  return age < 7 * DAY ? "week" : "older";
}

/** Which list was drawn: it is drawn anew when another was read, and not for each letter of an answer. */
const lists = new WeakMap();
let listsSeen = 0;
function numberOf(list) {
  if (!lists.has(list)) lists.set(list, (listsSeen += 1));
  return lists.get(list);
}

export function sidebar() {
  const { sessions, query, open, cursor, sessionsStatus, sessionsError } = chat.get();
  const memo = [numberOf(sessions), query, open, cursor, sessionsStatus, sessionsError?.message, Math.floor(serverNow() / 60_000)].join("\u0000");
  return h("nav", { class: "side", "aria-label": t("sessions.title"), id: "sessions", memo }, parts);
}

function parts() {
  const { sessions, query, open, cursor, sessionsStatus, sessionsError } = chat.get();
  const found = sessions.filter((session) => matches(query, session.title, session.channel, session.id));
  const groups = ["today", "week", "older"].map((key) => [key, found.filter((session) => group(session) === key)]).filter(([, list]) => list.length);
  return [
    h("div", { class: "row apart side-head" }, h("a", { class: "brand", href: "#/" }, "Talon"), button(t("sessions.new"), newChat, { sign: "plus", look: "small" })),
    searchField(t("sessions.search"), query, (value) => chat.set({ query: value })),
    h("div", { class: "side-list" },
      sessionsStatus === "loading" ? h("p", { class: "faint small" }, t("state.loading")) : null,
      sessionsError ? h("p", { class: "small muted" }, sessionsError.kind === "offline" ? t("offline.title") : sessionsError.message) : null,
      sessionsStatus === "ready" && !found.length ? h("p", { class: "faint small" }, query ? t("sessions.none_found") : t("sessions.none")) : null,
      groups.map(([key, list]) => h("section", { key }, h("h2", {}, t(`sessions.${key}`)), h("ul", {}, list.map((session) => entry(session, session.id === open))))),
      cursor ? button(t("action.load_more"), () => loadSessions(true), { look: "small plain" }) : null),
    h("div", { class: "side-foot" }, hasScope("operate") ? linkButton(t("page.control"), "/", { look: "plain small", sign: "overview" }) : null, h("div", { class: "row tight" }, preferences())),
  ];
}

function entry(session, isOpen) {
  const busy = session.turn === "running" || session.turn === "waiting";
  return h("li", { key: session.id }, h("a", { href: href(["s", session.id]), "aria-current": isOpen ? "page" : null, title: dateTime(session.metadata.lastActiveAt), on: { click: () => chat.set({ drawer: false }) } },
    h("span", { class: "clip" }, session.title ? name(session.title, 80) : t("sessions.untitled")),
    busy ? h("span", { class: `dot ${session.turn}`, role: "img", "aria-label": t(`turn.${session.turn}`) }) : h("span", { class: "faint tiny nowrap" }, relative(session.metadata.lastActiveAt))));
}

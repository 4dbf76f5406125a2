// A proposal of the shadow loop: what was seen, what is suggested, and what one can do with it.

import { path, request } from "../lib/api.js";
import { h } from "../lib/dom.js";
import { ago, bytes, clock, dateTime, dollars, number, serverNow } from "../lib/format.js";
import { t } from "../lib/i18n.js";
import { href } from "../lib/router.js";
import { block, name, plain } from "../lib/text.js";
import { word } from "../lib/word.js";
import { json } from "../ui/code.js";
import { openDialog } from "../ui/dialog.js";
import { icon } from "../ui/icons.js";
import { markdown } from "../ui/markdown.js";
import { badge, button, card, facts, notice } from "../ui/parts.js";
import { failed, toast } from "../ui/toast.js";

const HOUR = 3_600_000;
/** For how long one may be put off, or the loop rests: an hour, the rest of a working day, a day. */
export const TIMES = [["hour", HOUR], ["hours", 4 * HOUR], ["day", 24 * HOUR]];

export const LOOKS = { waiting: "warn", approved: "good", dismissed: "", snoozed: "info", expired: "" };

export const waits = (ghost) => ghost.state === "waiting" && ghost.expiresAt > serverNow();
/** Whether one of them can still be decided about. */
export const isOpen = (ghost) => waits(ghost) || ghost.state === "snoozed";

/** Decides, and says what became of it. Gives whether it was decided. */
export async function decideGhost(ghost, body) {
  try {
    const decided = await request("POST", path`/api/ghosts/${ghost.id}`, { body });
    toast(decided.sessionId ? t("shadow.begun") : `${plain(ghost.observation, 60)}: ${word("ghost", decided.state)}`);
    return true;
  } catch (error) {
    failed(error);
    return false;
  }
}

/** Rests the loop of the viewer, or lets it go on: everywhere, or in one repository. */
export async function rest(body) {
  try {
    await request("POST", "/api/shadow/pause", { body });
    toast(t(body.repository ? (body.paused ? "shadow.muted_one" : "shadow.unmuted_one") : body.paused ? "shadow.rests_now" : "shadow.goes_on", { name: plain(body.repository ?? "", 80) }));
  } catch (error) {
    failed(error);
  }
}

/** Asks for how long. Resolves to milliseconds, 0 for an open end, or null for not at all. */
export function askTime(title, text, { open = false } = {}) {
  return new Promise((resolve) => {
    let answer = null;
    const choose = (time, close) => () => { answer = time; close(); };
    const { element } = openDialog(title, (close) => [
      h("p", {}, text),
      h("div", { class: "actions" }, button(t("action.cancel"), close), TIMES.map(([key, time]) => button(t(`time.${key}`), choose(time, close))), open ? button(t("time.open"), choose(0, close), { look: "primary" }) : null),
    ]);
    element.addEventListener("close", () => resolve(answer));
  });
}

/** What one can do with a proposal. `act(body)` sends a decision. */
function buttons(ghost, { act, busy, mute }) {
  const off = busy.has(ghost.id);
  const does = ghost.noAct ? [] : ghost.actions.filter(({ type }) => type !== "dismiss").slice(0, 8);
  const later = async () => {
    const time = await askTime(t("shadow.snooze"), t("shadow.snooze_text"));
    if (time !== null) act({ decision: "snooze", snoozeFor: time });
  };
  return h("div", { class: "row" },
    does.map((action) => button(plain(action.label, 60), () => act(action.type === "custom" ? { decision: "custom", label: action.label } : { decision: "approve" }), { look: action.type === "approve" ? "primary" : "", sign: action.type === "approve" ? "check" : null, disabled: off })),
    button(t("shadow.dismiss"), () => act({ decision: "dismiss" }), { disabled: off }),
    button(t("shadow.snooze"), later, { look: "plain", sign: "schedule", disabled: off }),
    mute && ghost.repository ? button(t("shadow.mute"), () => mute(ghost.repository), { look: "plain", title: plain(ghost.repository, 300), disabled: off }) : null);
}

function payloads(ghost) {
  const found = ghost.actions.filter(({ payload }) => payload !== undefined && payload !== null).slice(0, 8);
  return found.length ? h("details", { class: "small" }, h("summary", {}, t("shadow.payload")), h("div", { class: "stack" }, found.map(({ label, payload }) => h("div", { class: "stack tight" }, h("h3", {}, name(label, 60)), json(payload, "JSON", `${label}: ${ghost.observation}`))))) : null;
}

/** The last steps of a path; all of it on hovering. */
export function place(text) {
  const steps = text.split("/").filter(Boolean);
  return h("span", { class: "mono small", title: plain(text, 500) }, name(steps.length > 2 ? `…/${steps.slice(-2).join("/")}` : text, 100));
}

/** One as a card. `chosen`: keys decide about it. */
export function ghostCard(ghost, options) {
  const { isChosen = false, everybody = false, whole = false } = options;
  const open = isOpen(ghost);
  const side = ghost.state === "snoozed" && ghost.snoozedUntil ? t("shadow.until", { time: clock(ghost.snoozedUntil, false) }) : waits(ghost) ? t("approval.until", { time: clock(ghost.expiresAt, false) }) : null;
  return h("article", { class: `card approval${isChosen ? " chosen" : ""}`, key: ghost.id, "aria-label": plain(ghost.observation, 120) },
    h("header", {},
      h("h2", { class: "grow" }, name(ghost.observation, 300)),
      h("div", { class: "row tight" }, badge(ghost.confidence, { kind: "confidence", look: ghost.confidence === "high" ? "info" : "" }), waits(ghost) ? null : badge(ghost.state === "waiting" ? "expired" : ghost.state, { kind: "ghost", look: LOOKS[ghost.state] ?? "" }), side ? h("span", { class: "faint small" }, side) : null)),
    h("div", { class: "body stack" },
      h("div", { class: "prose" }, markdown(ghost.proposal)),
      ghost.noAct ? notice(block(ghost.noAct, { most: 500 })) : null,
      payloads(ghost),
      whole ? null : h("p", { class: "row small muted" },
        h("span", { class: "mono" }, name(ghost.trigger, 160)),
        ghost.repository ? place(ghost.repository) : null,
        everybody ? h("a", { class: "mono", href: href(["shadow"], { tab: "triggers", sender: ghost.senderId, everybody: "1" }) }, name(ghost.senderId, 80)) : null,
        ago(ghost.createdAt),
        h("a", { href: href(["shadow", ghost.id]) }, t("shadow.why")),
        ghost.sessionId ? h("a", { href: href(["sessions", ghost.sessionId]) }, t("shadow.turn")) : null),
      open ? h("div", { class: "row apart" }, buttons(ghost, options), isChosen ? h("span", { class: "faint tiny keys-hint" }, ghost.noAct ? null : [h("kbd", {}, "a"), " ", t("shadow.approve"), "  "], h("kbd", {}, "d"), " ", t("shadow.dismiss"), "  ", h("kbd", {}, "s"), " ", t("shadow.snooze")) : null) : null));
}

/** Why one is there: what was found, which rules let it through, and what of it left for which model. */
export function reasons({ ghost, finding, passed, sent }) {
  const all = Object.entries(sent?.sent ?? {});
  return h("div", { class: "columns even" },
    h("div", { class: "stack" },
      card(t("shadow.finding"), h("p", { class: "plain-text" }, block(finding || ghost.observation, { most: 2000 }))),
      card(t("shadow.passed"), passed.length ? h("ul", { class: "passed" }, passed.slice(0, 50).map((rule) => h("li", {}, icon("check"), h("span", {}, name(rule, 300))))) : h("p", { class: "muted" }, t("shadow.passed_none"))),
      card(t("facts"), facts([
        ["id", h("span", { class: "mono small" }, name(ghost.id, 80))],
        [t("shadow.trigger"), h("span", { class: "mono small" }, name(ghost.trigger, 300))],
        [t("sessions.sender"), h("span", { class: "mono small" }, name(ghost.senderId, 120))],
        [t("shadow.repository"), ghost.repository ? h("span", { class: "mono small" }, name(ghost.repository, 500)) : null],
        [t("created"), dateTime(ghost.createdAt)],
        [t("shadow.expires"), isOpen(ghost) ? dateTime(ghost.expiresAt) : null],
        [t("approval.decided_by"), ghost.decidedBy ? h("span", { class: "mono small" }, name(ghost.decidedBy, 120)) : null],
        [t("shadow.decided_at"), ghost.decidedAt ? dateTime(ghost.decidedAt) : null],
        [t("shadow.turn"), ghost.sessionId ? h("a", { class: "mono small", href: href(["sessions", ghost.sessionId]) }, name(ghost.sessionId, 60)) : null],
      ]))),
    h("div", { class: "stack" }, card(t("shadow.sent"), sent ? h("div", { class: "stack" },
      h("p", { class: "muted" }, sent.models.length ? t(sent.local ? "shadow.sent_local" : "shadow.sent_remote", { models: plain(sent.models.join(", "), 200) }) : t("shadow.sent_none")),
      bars(all),
      facts([
        [t("shadow.redactions"), h("span", { class: "number" }, number(sent.redactions))],
        [t("costs.tokens"), h("span", { class: "number" }, number(sent.tokens))],
        [t("cost"), h("span", { class: "number" }, dollars(sent.cost))],
        [t("calls.at"), dateTime(sent.at)],
        [t("calls.reason"), sent.note ? block(sent.note, { most: 500 }) : null],
      ])) : h("p", { class: "muted" }, t("shadow.sent_none")))));
}

/** How much of each kind was sent. */
function bars(all) {
  const most = Math.max(1, ...all.map(([, size]) => size));
  return h("ul", { class: "measures" }, all.slice(0, 20).map(([kind, size]) => h("li", {}, h("span", {}, word("sent", kind)), h("div", { class: "bar", "aria-hidden": "true" }, h("i", { css: { width: `${(size / most) * 100}%` } })), h("span", { class: "number" }, bytes(size)))));
}

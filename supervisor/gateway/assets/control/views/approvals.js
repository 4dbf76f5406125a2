// What waits for a person: what would run, exactly, and who caused it. One key decides about the one that is chosen.

import { path, request } from "../../lib/api.js";
import { h } from "../../lib/dom.js";
import { ago, clock, dateTime, serverNow } from "../../lib/format.js";
import { t } from "../../lib/i18n.js";
import { shortcut } from "../../lib/keys.js";
import { resource } from "../../lib/resource.js";
import { go, href } from "../../lib/router.js";
import { block, name, plain } from "../../lib/text.js";
import { word } from "../../lib/word.js";
import { args } from "../../ui/code.js";
import { badge, button, card, empty, facts, shown } from "../../ui/parts.js";
import { table } from "../../ui/table.js";
import { failed, toast } from "../../ui/toast.js";
import { session, who } from "../links.js";
import { head } from "../page.js";

const waits = (approval) => approval.state === "pending" && approval.expiresAt > serverNow();
const titleOf = (approval) => approval.question || approval.tool || t("approval.plan");

export function open({ parts, redraw }) {
  const list = resource((signal) => request("GET", "/api/approvals", { query: { everybody: true, all: true }, signal }), { every: 3000 });
  list.subscribe(redraw);
  const busy = new Set();
  const decide = async (approval, allow, more = {}) => {
    busy.add(approval.id);
    redraw();
    try {
      const decided = await request("POST", path`/api/approvals/${approval.id}`, { body: { allow, digest: allow ? approval.digest : "", ...more } });
      toast(`${plain(titleOf(approval), 60)}: ${word("state", decided.state)}`);
    } catch (error) {
      failed(error);
    }
    busy.delete(approval.id);
    list.reload();
  };
  const waiting = () => (list.get().data?.items ?? []).filter(waits).sort((a, b) => a.askedAt - b.askedAt);
  const chosen = () => waiting().find(({ id }) => id === parts[0]) ?? waiting()[0];
  const step = (by) => () => {
    const all = waiting();
    const next = all[all.indexOf(chosen()) + by];
    if (next) go(["approvals", next.id]);
  };
  const ends = [
    shortcut("j", t("keys.next"), step(1)), shortcut("k", t("keys.previous"), step(-1)),
    shortcut("a", t("keys.allow"), () => { const one = chosen(); if (one && !one.question) decide(one, true); }),
    shortcut("d", t("keys.deny"), () => { const one = chosen(); if (one) decide(one, false); }),
  ];
  const draw = () => [
    head(t("view.approvals"), { text: t("approvals.text") }),
    shown(list.get(), ({ items }) => {
      const open = waiting();
      const past = items.filter((approval) => !waits(approval)).sort((a, b) => b.askedAt - a.askedAt);
      const found = parts[0] ? past.find(({ id }) => id === parts[0]) : null;
      return h("div", { class: "stack wide" },
        found ? one(found, { decide, busy, isChosen: false }) : null,
        open.length ? h("div", { class: "stack" }, open.map((approval) => one(approval, { decide, busy, isChosen: approval === chosen() }))) : h("div", { class: "card" }, empty(t("approvals.none"), t("approvals.none_text"))),
        past.length ? card(t("approvals.past"), history(past), { bare: true }) : null);
    }, list.reload),
  ];
  return { draw, end: () => { list.end(); ends.forEach((end) => end()); } };
}

function one(approval, { decide, busy, isChosen }) {
  const isOpen = waits(approval);
  const submit = (event) => {
    event.preventDefault();
    const text = event.currentTarget.elements.reason.value;
    if (approval.question) decide(approval, true, { answer: text.slice(0, 16_000) });
    else decide(approval, false, { reason: text.slice(0, 500) });
  };
  return h("article", { class: `card approval${isChosen ? " chosen" : ""}`, key: approval.id, "aria-label": plain(titleOf(approval), 120) },
    h("header", {}, h("div", { class: "row" }, h("h2", { class: approval.tool ? "mono" : "" }, name(approval.question ? t("question.title") : titleOf(approval), 200)), isOpen ? null : badge(approval.state)), isOpen ? h("span", { class: "faint small" }, t("approval.until", { time: clock(approval.expiresAt, false) })) : null),
    h("div", { class: "body stack" },
      approval.question ? h("div", { class: "plain-text" }, block(approval.question, { most: 8000 })) : args(approval.args),
      facts([
        [t("approval.caused_by"), who(approval.senderId, 120)],
        [t("approval.session"), session(approval.sessionId)],
        [t("approval.why"), approval.why ? word("why", approval.why) : null],
        [t("approval.asked"), h("span", { title: dateTime(approval.askedAt) }, ago(approval.askedAt))],
        [t("approval.decided_by"), approval.decidedBy ? name(approval.decidedBy, 100) : null],
      ]),
      isOpen ? h("form", { class: "row", on: { submit } },
        approval.question ? null : button(t("approval.allow"), () => decide(approval, true), { look: "primary", sign: "check", disabled: busy.has(approval.id) }),
        approval.question ? approval.options.slice(0, 20).map((option) => button(plain(option, 100), () => decide(approval, true, { answer: option }), { disabled: busy.has(approval.id) })) : null,
        h("input", { class: "input grow", name: "reason", autocomplete: "off", placeholder: approval.question ? t("question.answer") : t("approval.reason"), "aria-label": approval.question ? t("question.answer") : t("approval.reason") }),
        button(approval.question ? t("question.send") : t("approval.deny"), null, { look: approval.question ? "primary" : "danger", type: "submit", disabled: busy.has(approval.id) }),
        isChosen && !approval.question ? h("span", { class: "faint tiny keys-hint" }, h("kbd", {}, "a"), " ", t("approval.allow"), "  ", h("kbd", {}, "d"), " ", t("approval.deny")) : null) : null));
}

function history(past) {
  return table({
    label: t("approvals.past"), rows: past, keyOf: (approval) => approval.id,
    columns: [
      { key: "what", label: t("approval.what"), lead: true, sort: titleOf, cell: (approval) => h("a", { href: href(["approvals", approval.id]) }, name(titleOf(approval), 100)) },
      { key: "state", label: t("state"), sort: (approval) => approval.state, cell: (approval) => badge(approval.state === "pending" ? "expired" : approval.state) },
      { key: "by", label: t("approval.decided_by"), cell: (approval) => (approval.decidedBy ? h("span", { class: "small" }, name(approval.decidedBy, 80)) : null) },
      { key: "asked", label: t("approval.asked"), end: true, sort: (approval) => approval.askedAt, cell: (approval) => ago(approval.askedAt) },
    ],
  });
}

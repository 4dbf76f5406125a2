// The shadow loop: what it proposes, why, what its triggers led to, and what of it left for a model.

import { path, request, serves } from "../../lib/api.js";
import { h } from "../../lib/dom.js";
import { ago, bytes, compact, dateTime, dollars, number } from "../../lib/format.js";
import { t } from "../../lib/i18n.js";
import { shortcut } from "../../lib/keys.js";
import { resource } from "../../lib/resource.js";
import { href, place as here, setQuery } from "../../lib/router.js";
import { block, name, plain } from "../../lib/text.js";
import { word } from "../../lib/word.js";
import { badge, button, card, choice, empty, notice, searchField, shown, unavailable } from "../../ui/parts.js";
import { matches, table } from "../../ui/table.js";
import { askTime, decideGhost, ghostCard, isOpen, LOOKS, place, reasons, rest, waits } from "../ghost.js";
import { head } from "../page.js";
import { paged, scoped } from "../scoped.js";

const TABS = ["open", "decided", "triggers", "log"];
/** What is asked of one page; the server may give less. */
const MOST = 200;

export function open({ parts, redraw }) {
  if (!serves("GET", "/api/ghosts")) return { draw: () => [head(t("view.shadow"), { text: t("shadow.text") }), h("div", { class: "card" }, unavailable(t("view.shadow")))] };
  return parts[0] ? openOne(parts[0], redraw) : openLoop(redraw);
}

const asked = () => {
  const { everybody, sender } = here.get().query;
  return { tab: TABS.includes(here.get().query.tab) ? here.get().query.tab : "open", everybody: Boolean(everybody), sender };
};

function openLoop(redraw) {
  const query = () => ({ everybody: asked().everybody || null });
  // What can be decided about is asked for by itself: among the newest of all states it would be left out once much is decided.
  const pending = paged("/api/ghosts", () => ({ ...query(), state: "waiting" }), MOST, { every: 4000 });
  const later = paged("/api/ghosts", () => ({ ...query(), state: "snoozed" }), MOST, { every: 10_000 });
  const past = paged("/api/ghosts", query, MOST, { every: 10_000 });
  const log = paged("/api/shadow/log", query, MOST, { every: 10_000 });
  // The head and its buttons are about the viewer's own loop, whoever's triggers are shown.
  const own = resource((signal) => request("GET", "/api/shadow/stats", { signal }), { every: 10_000 });
  const stats = scoped(() => ({ sender: asked().sender }), ({ sender }, signal) => (sender ? request("GET", "/api/shadow/stats", { query: { sender }, signal }) : null), { every: 10_000 });
  const ghosts = [pending, later, past];
  const followed = [...ghosts, log, stats];
  const all = [...followed, own];
  all.forEach((one) => one.subscribe(redraw));
  const busy = new Set();
  const act = (ghost) => async (body) => {
    busy.add(ghost.id);
    redraw();
    await decideGhost(ghost, body);
    busy.delete(ghost.id);
    ghosts.forEach((one) => one.reload());
  };
  const restFor = async (body) => {
    await rest(body);
    own.reload();
  };
  const pause = async () => {
    const time = await askTime(t("shadow.pause"), t("shadow.pause_text"), { open: true });
    if (time !== null) restFor({ paused: true, pauseFor: time });
  };
  const waiting = () => found(pending.items().filter(waits));
  let chosenId = null;
  const chosen = () => waiting().find(({ id }) => id === chosenId) ?? waiting()[0];
  const step = (by) => () => {
    const next = waiting()[waiting().indexOf(chosen()) + by];
    if (!next) return;
    chosenId = next.id;
    redraw();
    requestAnimationFrame(() => document.querySelector(".chosen")?.scrollIntoView({ block: "nearest" }));
  };
  const decide = (body) => () => {
    const ghost = asked().tab === "open" ? chosen() : null;
    if (ghost && !busy.has(ghost.id) && !(body.decision === "approve" && ghost.noAct)) act(ghost)(body);
  };
  const ends = [
    shortcut("j", t("keys.next"), step(1)), shortcut("k", t("keys.previous"), step(-1)),
    shortcut("a", t("keys.approve_ghost"), decide({ decision: "approve" })), shortcut("d", t("keys.dismiss_ghost"), decide({ decision: "dismiss" })), shortcut("s", t("keys.snooze_ghost"), decide({ decision: "snooze" })),
  ];
  const draw = () => {
    const { tab, everybody, sender } = asked();
    const state = own.get().data;
    followed.forEach((one) => one.follow());
    return [
      head(t("view.shadow"), {
        text: t("shadow.text"), beside: state ? loopBadge(state) : null,
        actions: state?.enabled ? (state.paused ? button(t("shadow.resume"), () => restFor({ paused: false }), { look: "primary", sign: "play" }) : button(t("shadow.pause"), pause, { sign: "pause" })) : null,
      }),
      state?.problem ? notice(block(state.problem, { most: 500 }), "warn") : null,
      state?.enabled && state.paused ? notice(state.pausedUntil ? t("shadow.rests_until", { time: dateTime(state.pausedUntil) }) : t("shadow.rests"), "warn") : null,
      h("nav", { class: "tabs", "aria-label": t("parts") }, TABS.map((key) => h("a", { href: href(["shadow"], { tab: key === "open" ? null : key, everybody: everybody ? "1" : null }), "aria-current": key === tab ? "page" : null }, t(`shadow.tab_${key}`), key === "open" && waiting().length ? ` ${waiting().length}${pending.more() ? "+" : ""}` : ""))),
      tab === "triggers" ? triggers(sender ? stats : own, restFor) : tab === "log" ? sentLog(log) : h("div", { class: "stack" }, filters(), tab === "decided" ? decided(past) : undecided({ pending, later, state, chosen, act, busy, restFor })),
    ];
  };
  return { draw, end: () => { all.forEach((one) => one.end()); ends.forEach((end) => end()); } };
}

function found(ghosts) {
  const { q, confidence } = here.get().query;
  return ghosts.filter((ghost) => matches(q, ghost.observation, ghost.proposal, ghost.trigger, ghost.repository, ghost.senderId) && (!confidence || ghost.confidence === confidence));
}

function loopBadge({ enabled, paused }) {
  return badge(!enabled ? "off" : paused ? "rests" : "watches", { kind: "loop", look: !enabled ? "" : paused ? "warn" : "good" });
}

function everybodysBox() {
  return h("label", { class: "check" }, h("input", { type: "checkbox", checked: asked().everybody, on: { change: (event) => setQuery({ everybody: event.currentTarget.checked ? "1" : null }) } }), t("shadow.everybody"));
}

function filters() {
  const { query } = here.get();
  return h("div", { class: "filters" }, searchField(t("shadow.search"), query.q ?? "", (q) => setQuery({ q })), choice(t("shadow.confidence"), query.confidence ?? "", [["", t("shadow.all_confidences")], ...["high", "medium", "low"].map((level) => [level, t(`confidence.${level}`)])], (confidence) => setQuery({ confidence })), everybodysBox());
}

/** Reads further, where there is further. */
function further(list) {
  const more = list.more();
  return more ? h("div", { class: "row" }, button(t("action.load_more"), more)) : null;
}

function undecided({ pending, later, state, chosen, act, busy, restFor }) {
  const { query } = here.get();
  const { everybody } = asked();
  const mute = everybody ? null : (repository) => restFor({ paused: true, repository });
  const one = (ghost) => ghostCard(ghost, { isChosen: ghost === chosen(), everybody, act: act(ghost), busy, mute });
  const snoozed = ({ items }) => {
    // Read at another time than what waits: a proposal stands in one of both.
    const waiting = new Set(pending.items().map(({ id }) => id));
    const rows = found(items.filter(({ id }) => !waiting.has(id)));
    return rows.length || later.more() ? h("section", { class: "stack" }, h("h2", {}, t("shadow.later")), rows.map(one), further(later)) : null;
  };
  const put = later.get();
  // What is wrong is said once, above.
  const isSaid = pending.get().status === "loading" || Boolean(pending.get().error);
  return h("div", { class: "stack wide" },
    shown(pending.get(), ({ items }) => {
      const now = found(items.filter(waits));
      if (now.length) return h("div", { class: "stack" }, now.map(one), further(pending));
      const isFiltered = Boolean(query.q || query.confidence);
      return [h("div", { class: "card" }, isFiltered ? empty(t("none_found")) : state && !state.enabled ? empty(t("shadow.off"), t("shadow.off_text")) : state && !everybody && !state.watcherSeen ? empty(t("shadow.none"), t("shadow.no_watcher")) : empty(t("shadow.none"), t("shadow.none_text"))), further(pending)];
    }, pending.reload),
    isSaid || put.status === "loading" ? (put.data ? snoozed(put.data) : null) : shown(put, snoozed, later.reload));
}

function decided(past) {
  const { everybody } = asked();
  return shown(past.get(), ({ items }) => {
    const rows = found(items.filter((ghost) => !isOpen(ghost)));
    const more = past.more();
    return h("div", { class: "card" }, rows.length ? decidedTable(rows, everybody, more) : empty(here.get().query.q ? t("none_found") : t("shadow.none_decided"), null, more ? button(t("action.load_more"), more) : null));
  }, past.reload);
}

function decidedTable(rows, everybody, more) {
  return table({
    label: t("shadow.tab_decided"), rows, keyOf: (ghost) => ghost.id, more,
    columns: [
      { key: "what", label: t("shadow.proposal"), lead: true, sort: (ghost) => ghost.observation, cell: (ghost) => [h("a", { href: href(["shadow", ghost.id]) }, name(ghost.observation, 120)), h("div", { class: "sub" }, name(ghost.proposal, 160))] },
      { key: "state", label: t("state"), sort: (ghost) => ghost.state, cell: (ghost) => badge(ghost.state === "waiting" ? "expired" : ghost.state, { kind: "ghost", look: LOOKS[ghost.state] ?? "" }) },
      { key: "trigger", label: t("shadow.trigger"), sort: (ghost) => ghost.trigger, cell: (ghost) => h("span", { class: "mono small" }, name(ghost.trigger, 100)) },
      { key: "where", label: t("shadow.repository"), sort: (ghost) => ghost.repository, cell: (ghost) => (ghost.repository ? place(ghost.repository) : null) },
      ...(everybody ? [{ key: "who", label: t("sessions.sender"), sort: (ghost) => ghost.senderId, cell: (ghost) => h("span", { class: "mono small" }, name(ghost.senderId, 80)) }] : []),
      { key: "turn", label: t("shadow.turn"), cell: (ghost) => (ghost.sessionId ? h("a", { href: href(["sessions", ghost.sessionId]) }, t("approval.session")) : null) },
      { key: "at", label: t("calls.at"), end: true, sort: (ghost) => ghost.createdAt, cell: (ghost) => ago(ghost.decidedAt || ghost.createdAt) },
    ],
  });
}

function triggers(stats, restFor) {
  const { sender } = asked();
  return shown(stats.get(), (state) => {
    const held = (one) => Object.entries(one.heldBack).filter(([, count]) => count > 0).map(([rule, count]) => `${word("held", rule)} ${number(count)}`);
    const tile = (label, value, sub) => h("div", { class: "tile card" }, h("span", { class: "muted small" }, label), h("span", { class: "big number" }, value), h("span", { class: "faint tiny" }, sub));
    return h("div", { class: "stack wide" },
      sender ? h("div", { class: "filters" }, button(t("shadow.of", { name: plain(sender, 80) }), () => setQuery({ sender: null }), { sign: "close", look: "small" }), loopBadge(state)) : null,
      h("div", { class: "tiles" },
        tile(t("shadow.hour"), number(state.ghostsLastHour), t("shadow.hour_of", { n: state.maxGhostsPerHour })),
        tile(t("shadow.cost"), dollars(state.costToday), `${state.dayBudget === undefined ? t("costs.no_budget") : t("overview.budget", { budget: dollars(state.dayBudget) })} · ${t("shadow.tokens", { n: compact(state.tokensToday), of: state.dayBudgetTokens === undefined ? "" : ` / ${compact(state.dayBudgetTokens)}` })}`),
        tile(t("shadow.watcher"), h("span", { class: "middle" }, state.watcherSeen ? ago(state.watcherSeen) : t("shadow.not_heard")), t("shadow.watcher_text")),
        tile(t("composer.model"), h("span", { class: "middle" }, name(state.model || t("shadow.cheapest"), 40)), t(state.localOnly ? "shadow.local_only" : "shadow.any_place")),
        tile(t("shadow.quiet"), h("span", { class: "middle" }, state.quietHours ? name(state.quietHours, 30) : t("shadow.quiet_never")), t("shadow.cooldown", { n: number(state.cooldown / 1000) }))),
      state.watcherLimits?.length ? notice([t("shadow.limits"), h("ul", { class: "bullets" }, state.watcherLimits.slice(0, 50).map((limit) => h("li", {}, block(limit, { most: 500 }))))], "warn") : null,
      state.droppedByWatchers ? notice(t("shadow.dropped", { n: state.droppedByWatchers }), "warn") : null,
      h("div", { class: "card" }, state.triggers.length ? table({
        label: t("shadow.tab_triggers"), rows: state.triggers, keyOf: (one) => one.trigger,
        columns: [
          { key: "trigger", label: t("shadow.trigger"), lead: true, sort: (one) => one.trigger, cell: (one) => [h("span", { class: "mono" }, name(one.trigger, 80)), held(one).length ? h("div", { class: "sub" }, `${t("shadow.held")}: ${held(one).join(", ")}`) : null] },
          { key: "observations", label: t("shadow.seen"), end: true, sort: (one) => one.observations, cell: (one) => h("span", { class: "number" }, number(one.observations)) },
          { key: "ghosts", label: t("shadow.proposed"), end: true, sort: (one) => one.ghosts, cell: (one) => h("span", { class: "number" }, number(one.ghosts)) },
          { key: "approved", label: t("shadow.approved"), end: true, sort: (one) => one.approved, cell: (one) => h("span", { class: "number" }, number(one.approved)) },
          { key: "dismissed", label: t("shadow.dismissed"), end: true, sort: (one) => one.dismissed, cell: (one) => h("span", { class: "number" }, number(one.dismissed)) },
          { key: "expired", label: t("shadow.expired"), end: true, sort: (one) => one.expired, cell: (one) => h("span", { class: "number" }, number(one.expired)) },
          { key: "rate", label: t("shadow.rate"), end: true, sort: (one) => one.ratePercent, cell: (one) => h("span", { class: "rate", title: t("shadow.rate_text") }, h("span", { class: "number" }, `${number(one.ratePercent)} %`), h("span", { class: "bar", "aria-hidden": "true" }, h("i", { css: { width: `${Math.min(100, one.ratePercent)}%` } }))) },
        ],
      }) : empty(t("shadow.no_triggers"), t("shadow.no_triggers_text"))),
      state.mutedRepositories.length ? card(t("shadow.muted"), h("ul", { class: "plain-list" }, state.mutedRepositories.slice(0, 200).map((repository) => h("li", { class: "row apart", key: repository }, h("span", { class: "mono small" }, name(repository, 300)), sender ? null : button(t("shadow.unmute"), () => restFor({ paused: false, repository }), { look: "small" }))))) : null);
  }, stats.reload);
}

function sentLog(log) {
  const size = (entry) => Object.values(entry.sent).reduce((sum, one) => sum + one, 0);
  return h("div", { class: "stack" },
    h("div", { class: "filters" }, everybodysBox()),
    shown(log.get(), ({ items }) => h("div", { class: "card" }, items.length ? table({
      label: t("shadow.tab_log"), rows: items, keyOf: (entry) => entry.id, more: log.more(),
      columns: [
        { key: "trigger", label: t("shadow.trigger"), lead: true, sort: (entry) => entry.trigger, cell: (entry) => [h("span", { class: "mono" }, name(entry.trigger, 100)), entry.note ? h("div", { class: "sub" }, name(entry.note, 200)) : null] },
        { key: "outcome", label: t("calls.outcome"), sort: (entry) => entry.outcome, cell: (entry) => h("span", { class: "row tight" }, badge(entry.outcome, { kind: "asked", look: { ghost: "good", failed: "bad", asking: "info" }[entry.outcome] ?? "" }), entry.ghostId ? h("a", { href: href(["shadow", entry.ghostId]) }, t("shadow.proposal")) : null) },
        { key: "models", label: t("composer.model"), cell: (entry) => (entry.models.length ? [h("span", { class: "mono small" }, name(entry.models.join(", "), 120)), h("div", { class: "sub" }, t(entry.local ? "costs.local" : "costs.remote"))] : null) },
        { key: "sent", label: t("shadow.sent_bytes"), end: true, sort: size, cell: (entry) => h("span", { class: "number", title: Object.entries(entry.sent).map(([kind, count]) => `${word("sent", kind)}: ${bytes(count)}`).join("\n") }, bytes(size(entry))) },
        { key: "redactions", label: t("shadow.redactions"), end: true, sort: (entry) => entry.redactions, cell: (entry) => h("span", { class: "number" }, number(entry.redactions)) },
        { key: "cost", label: t("cost"), end: true, sort: (entry) => entry.cost, cell: (entry) => h("span", { class: "number", title: t("tokens", { n: entry.tokens }) }, dollars(entry.cost)) },
        ...(asked().everybody ? [{ key: "who", label: t("sessions.sender"), cell: (entry) => h("span", { class: "mono small" }, name(entry.senderId, 80)) }] : []),
        { key: "at", label: t("calls.at"), end: true, sort: (entry) => entry.at, cell: (entry) => ago(entry.at) },
      ],
    }) : empty(t("shadow.no_log"), t("shadow.no_log_text"))), log.reload));
}

function openOne(id, redraw) {
  const one = resource((signal) => request("GET", path`/api/ghosts/${id}`, { signal }), { every: 10_000 });
  one.subscribe(redraw);
  const busy = new Set();
  const act = async (body) => {
    busy.add(id);
    redraw();
    await decideGhost(one.get().data.ghost, body);
    busy.delete(id);
    one.reload();
  };
  const draw = () => [
    head(t("shadow.proposal"), { up: [t("view.shadow"), ["shadow"]], text: one.get().data ? h("span", { class: "mono" }, name(one.get().data.ghost.trigger, 200)) : null }),
    shown(one.get(), (data) => h("div", { class: "stack wide" }, ghostCard({ ...data.ghost }, { act, busy, whole: true }), reasons(data)), one.reload),
  ];
  return { draw, end: one.end };
}

// Sessions of everybody, and one with its transcript, cost and settings.

import { path, request } from "../../lib/api.js";
import { h } from "../../lib/dom.js";
import { ago, dateTime, dollars, duration, number } from "../../lib/format.js";
import { t } from "../../lib/i18n.js";
import { markdown } from "../../ui/markdown.js";
import { resource } from "../../lib/resource.js";
import { go, href, place, setQuery } from "../../lib/router.js";
import { block, name, plain } from "../../lib/text.js";
import { word } from "../../lib/word.js";
import { args, diff, json } from "../../ui/code.js";
import { confirm } from "../../ui/dialog.js";
import { badge, button, card, choice, empty, facts, linkButton, notice, searchField, shown } from "../../ui/parts.js";
import { matches, table } from "../../ui/table.js";
import { failed, toast } from "../../ui/toast.js";
import { followSession } from "../follow.js";
import { action, who } from "../links.js";
import { head } from "../page.js";

export function open({ parts, redraw }) {
  return parts[0] ? openOne(parts[0], redraw) : openList(redraw);
}

function openList(redraw) {
  let [more, cursor, isReading] = [[], undefined, false];
  const list = resource((signal) => request("GET", "/api/sessions", { query: { all: true, limit: 100 }, signal }), { every: 6000 });
  list.subscribe(redraw);
  const readMore = async () => {
    if (isReading) return;
    isReading = true;
    try {
      const page = await request("GET", "/api/sessions", { query: { all: true, limit: 200, cursor: cursor ?? list.get().data.nextCursor } });
      more = [...more, ...page.items];
      cursor = page.nextCursor ?? null;
    } catch (error) {
      failed(error);
    }
    isReading = false;
    redraw();
  };
  const draw = () => [head(t("view.sessions"), { text: t("sessions.text") }), shown(list.get(), ({ items, nextCursor }) => {
    const { query } = place.get();
    const seen = new Set(items.map(({ id }) => id));
    const all = [...items, ...more.filter(({ id }) => !seen.has(id))];
    const channels = [...new Set(all.map(({ channel }) => channel))].sort();
    const found = all.filter((session) => matches(query.q, session.title, session.senderId, session.id) && (!query.channel || session.channel === query.channel) && (!query.turn || session.turn === query.turn));
    return h("div", { class: "stack" },
      h("div", { class: "filters" }, searchField(t("sessions.search"), query.q ?? "", (q) => setQuery({ q })), choice(t("sessions.channel"), query.channel ?? "", [["", t("sessions.all_channels")], ...channels.map((channel) => [channel, plain(channel, 40)])], (channel) => setQuery({ channel })), choice(t("sessions.turn"), query.turn ?? "", [["", t("all_states")], ...["idle", "running", "waiting", "interrupted"].map((turn) => [turn, t(`turn.${turn}`)])], (turn) => setQuery({ turn }))),
      h("div", { class: "card" }, found.length ? table({
        label: t("view.sessions"), rows: found, keyOf: (session) => session.id, more: (cursor === undefined ? nextCursor : cursor) ? readMore : null,
        columns: [
          { key: "title", label: t("sessions.session"), lead: true, sort: (session) => session.title, cell: (session) => [h("a", { href: href(["sessions", session.id]) }, session.title ? name(session.title, 90) : t("sessions.untitled")), h("div", { class: "sub mono clip" }, name(session.senderId, 80))] },
          { key: "turn", label: t("sessions.turn"), sort: (session) => session.turn, cell: (session) => badge(session.turn, { kind: "turn", look: { running: "info", waiting: "warn", interrupted: "warn" }[session.turn] ?? "" }) },
          { key: "channel", label: t("sessions.channel"), sort: (session) => session.channel, cell: (session) => name(session.channel, 40) },
          { key: "messages", label: t("sessions.messages"), end: true, sort: (session) => session.metadata.messageCount, cell: (session) => h("span", { class: "number" }, number(session.metadata.messageCount)) },
          { key: "cost", label: t("cost"), end: true, sort: (session) => session.cost, cell: (session) => h("span", { class: "number" }, dollars(session.cost)) },
          { key: "active", label: t("sessions.active"), end: true, sort: (session) => session.metadata.lastActiveAt, cell: (session) => ago(session.metadata.lastActiveAt) },
        ],
      }) : empty(all.length ? t("none_found") : t("sessions.none"))));
  }, list.reload)];
  return { draw, end: list.end };
}

function openOne(id, redraw) {
  let earlier = [];
  const live = followSession(id, redraw);
  const one = resource((signal) => request("GET", path`/api/sessions/${id}`, { query: { limit: 200 }, signal }), { every: 5000 });
  one.subscribe(redraw);
  let next;
  const act = (run) => async () => {
    try {
      await run();
    } catch (error) {
      failed(error);
    }
    one.reload();
  };
  const readMore = act(async () => {
    const page = await request("GET", path`/api/sessions/${id}`, { query: { limit: 200, cursor: next ?? one.get().data.nextCursor } });
    earlier = [...earlier, ...page.messages];
    next = page.nextCursor ?? null;
  });
  const cancel = act(async () => {
    const { cancelled } = await request("POST", path`/api/sessions/${id}/cancel`);
    toast(t(cancelled ? "sessions.cancelled" : "sessions.no_turn"));
  });
  const compactIt = act(async () => {
    if (!(await confirm(t("sessions.compact"), t("sessions.compact_text"), t("sessions.compact"), { look: "primary" }))) return;
    const done = await request("POST", path`/api/sessions/${id}/compact`, { body: {} });
    toast(t("sessions.compacted", { n: done.messages, before: done.tokensBefore, after: done.tokensAfter }));
  });
  const undo = act(async () => {
    if (!(await confirm(t("sessions.undo"), t("sessions.undo_text"), t("sessions.undo"), { look: "primary" }))) return;
    const done = await request("POST", path`/api/sessions/${id}/undo`, { body: {} });
    toast(t("sessions.undone", { n: done.turns, calls: done.calls }));
  });
  const remove = async () => {
    if (!(await confirm(t("sessions.delete"), t("sessions.delete_text", { title: plain(one.get().data?.title || id, 80) }), t("action.delete")))) return;
    try {
      await request("DELETE", path`/api/sessions/${id}`);
      toast(t("sessions.deleted"));
      go(["sessions"]);
    } catch (error) {
      failed(error);
    }
  };
  const draw = () => {
    const state = one.get();
    const session = state.data;
    const isBusy = session && (session.turn === "running" || session.turn === "waiting");
    return [
      head(session?.title ? name(session.title, 120) : name(id, 60), {
        up: [t("view.sessions"), ["sessions"]], beside: session ? badge(session.turn, { kind: "turn", look: { running: "info", waiting: "warn" }[session.turn] ?? "" }) : null,
        actions: session ? [linkButton(t("sessions.open_chat"), `/chat#/s/${encodeURIComponent(id)}`, { sign: "sessions" }), isBusy ? button(t("sessions.cancel"), cancel, { sign: "stop" }) : [button(t("sessions.undo"), undo, { sign: "back" }), button(t("sessions.compact"), compactIt)], button(t("action.delete"), remove, { look: "danger", sign: "trash" })] : null,
      }),
      shown(state, (data) => h("div", { class: "columns" },
        h("div", { class: "stack" }, loop(live.get().phase, data.turn), subAgents(live.get().agents), card(t("sessions.transcript"), transcript([...data.messages, ...earlier], (next === undefined ? data.nextCursor : next) ? readMore : null))),
        h("div", { class: "stack" }, card(t("facts"), facts([
          ["id", h("span", { class: "mono small" }, name(data.id, 80))],
          [t("sessions.sender"), who(data.senderId, 120)],
          [t("sessions.channel"), h("a", { href: href(["sessions"], { channel: data.channel }) }, name(data.channel, 40))],
          [t("state"), word("state", data.state)],
          [t("sessions.messages"), h("span", { class: "number" }, number(data.metadata.messageCount))],
          [t("cost"), h("span", { class: "number" }, dollars(data.cost))],
          [t("composer.model"), name(data.config.model || data.metadata.model || "–", 80)],
          [t("composer.thinking"), data.config.thinkingLevel ? t(`thinking.${data.config.thinkingLevel}`) : null],
          [t("created"), dateTime(data.metadata.createdAt)],
          [t("sessions.active"), dateTime(data.metadata.lastActiveAt)],
          ...Object.entries(data.labels).slice(0, 32).map(([key, value]) => [name(key, 60), name(value, 200)]),
        ]))),
      ), one.reload),
    ];
  };
  return { draw, end: () => { one.end(); live.end(); } };
}

/** The loop of a turn, in order; compressing comes where it is needed. */
const PHASES = ["planning", "deciding", "executing", "evaluating", "responding"];

/** The phases drawn, with the one that the turn is in. */
function loop(phase, turn) {
  const at = PHASES.indexOf(phase?.phase);
  const busy = turn === "running" || turn === "waiting";
  const note = turn === "waiting" ? t("phase.person") : phase?.phase === "compressing" ? t("phase.compressing") : phase ? t("phase.step", { n: phase.iteration, most: phase.maxIterations }) : busy ? t("phase.waiting") : t("phase.none");
  const tasks = phase ? [...(phase.completed ?? []).map((task) => [task, "done"]), ...(phase.pending ?? []).map((task) => [task, ""])] : [];
  return card(t("phase.title"), h("div", { class: "stack" },
    h("ol", { class: `loop${busy ? "" : " resting"}` }, PHASES.map((one, place) => h("li", { class: at >= 0 && place < at ? "done" : place === at ? "active" : "", "aria-current": place === at ? "step" : null }, word("phase", one)))),
    phase?.goal ? h("p", { class: "muted small" }, block(phase.goal, { most: 300 })) : null,
    tasks.length ? h("ol", { class: "tasks small" }, tasks.slice(0, 50).map(([task, state]) => h("li", { class: state }, name(task, 300)))) : null), { actions: h("span", { class: "faint small number" }, note, phase?.totalCost ? ` · ${dollars(phase.totalCost)}` : "") });
}

function subAgents(agents) {
  if (!agents.length) return null;
  return card(t("subagent.all"), h("div", { class: "stack" }, agents.map(({ id: key, agent, task, result }) => h("details", { class: "fold", key },
    h("summary", {}, badge(!result ? "running" : result.error ? "failed" : "done", { kind: "call" }), h("span", { class: "mono" }, name(agent, 60)), h("span", { class: "grow clip muted small" }, name(task, 160)), result ? h("span", { class: "faint tiny number" }, `${duration(result.duration)} · ${dollars(result.cost)}`) : null),
    h("div", { class: "fold-body stack" },
      h("div", { class: "plain-text" }, block(task)),
      result?.error ? notice(block(result.error), "bad") : null,
      result && !result.error ? (typeof result.result === "string" ? h("div", { class: "prose" }, markdown(result.result)) : json(result.result)) : null,
      result ? h("p", { class: "faint small" }, t("tokens", { n: result.tokensUsed })) : null)))));
}

function transcript(messages, more) {
  if (!messages.length) return h("p", { class: "muted" }, t("chat.empty"));
  const { query } = place.get();
  const most = Number(query.show) || 100;
  return h("div", { class: "stack transcript" },
    messages.slice(0, most).map((message) => h("article", { key: message.id, memo: `${message.id} ${message.content.length}`, class: `said ${["user", "assistant", "system", "tool"].includes(message.role) ? message.role : "system"}` }, () => [
      h("header", { class: "row apart tiny faint" }, h("strong", {}, t(`role.${message.role === "user" ? "person" : message.role}`)), h("time", {}, dateTime(message.timestamp))),
      message.content && message.role !== "tool" ? h("div", { class: "prose" }, message.role === "user" ? h("div", { class: "plain-text" }, block(message.content)) : markdown(message.content)) : null,
      message.hooked ? h("details", { class: "fold" }, h("summary", {}, t("sessions.hooked")), message.role === "user" ? diff(message.content, message.hooked, `${t("diff")} ${plain(message.id, 60)}`) : diff(message.hooked, message.content, `${t("diff")} ${plain(message.id, 60)}`)) : null,
      (message.toolCalls ?? []).map((call) => h("details", { class: "fold" }, h("summary", {}, h("span", { class: "grow" }, t("call.title"), ": ", h("span", { class: "mono" }, name(call.tool, 80)))), h("div", { class: "fold-body stack" }, h("p", {}, action(call.tool)), args(call.args)))),
      (message.toolResults ?? []).map((result) => h("details", { class: "fold" }, h("summary", {}, badge(result.success ? "done" : "failed", { kind: "call" }), h("span", { class: "mono grow" }, name(result.tool, 80)), h("span", { class: "faint tiny" }, duration(result.metadata.executionTime))), h("div", { class: "fold-body code wrap" }, h("pre", { tabindex: "0", role: "region", "aria-label": t("call.result") }, block(result.output, { most: 10_000 }))))),
    ])),
    messages.length > most ? button(t("action.show_more"), () => setQuery({ show: most + 100 })) : more ? button(t("action.load_more"), more) : null);
}

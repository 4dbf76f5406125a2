// Calls of plugins as they end, and one with the guard's layers, its arguments and its answer.

import { path, request, serves } from "../../lib/api.js";
import { h } from "../../lib/dom.js";
import { ago, dateTime, micros } from "../../lib/format.js";
import { t } from "../../lib/i18n.js";
import { resource } from "../../lib/resource.js";
import { href, place, setQuery } from "../../lib/router.js";
import { block, cutAt, name, visible } from "../../lib/text.js";
import { word } from "../../lib/word.js";
import { args } from "../../ui/code.js";
import { badge, card, choice, empty, facts, notice, searchField, shown, unavailable } from "../../ui/parts.js";
import { matches, table } from "../../ui/table.js";
import { action, session, who } from "../links.js";
import { head } from "../page.js";

const OUTCOMES = ["running", "ok", "tool_error", "refused", "fault", "cancelled"];
const LOOKS = { running: "info", ok: "good", tool_error: "warn", refused: "warn", fault: "bad" };

export function open({ parts, redraw }) {
  if (!serves("GET", "/api/calls")) return { draw: () => [head(t("view.calls"), { text: t("calls.text") }), h("div", { class: "card" }, unavailable(t("view.calls")))] };
  return parts[0] ? openOne(parts[0], redraw) : openList(redraw);
}

function openList(redraw) {
  const list = resource((signal) => request("GET", "/api/calls", { query: { limit: 200 }, signal }), { every: 2000 });
  list.subscribe(redraw);
  const draw = () => [head(t("view.calls"), { text: t("calls.text") }), shown(list.get(), ({ items }) => {
    const { query } = place.get();
    const found = items.filter((call) => matches(query.q, call.plugin, call.action, call.subject ?? "", call.id) && (!query.outcome || call.outcome === query.outcome));
    return h("div", { class: "stack" },
      h("div", { class: "filters" }, searchField(t("calls.search"), query.q ?? "", (q) => setQuery({ q })), choice(t("calls.outcome"), query.outcome ?? "", [["", t("all_states")], ...OUTCOMES.map((outcome) => [outcome, t(`outcome.${outcome}`)])], (outcome) => setQuery({ outcome }))),
      h("div", { class: "card" }, found.length ? table({
        label: t("view.calls"), rows: found, keyOf: (call) => call.id,
        columns: [
          { key: "action", label: t("calls.call"), lead: true, sort: (call) => `${call.plugin}.${call.action}`, cell: (call) => [h("a", { class: "mono", href: href(["calls", call.id]) }, name(`${call.plugin}.${call.action}`, 80)), call.reason ? h("div", { class: "sub" }, name(call.reason, 160)) : null] },
          { key: "outcome", label: t("calls.outcome"), sort: (call) => call.outcome, cell: (call) => h("span", { class: "row tight" }, badge(call.outcome, { kind: "outcome", look: LOOKS[call.outcome] ?? "" }), call.neutralized ? badge("neutralized", { label: t("calls.neutralized", { n: call.neutralized }) }) : null) },
          { key: "who", label: t("calls.who"), cell: (call) => who(call.subject ?? call.origin, 60) },
          { key: "took", label: t("calls.took"), end: true, sort: (call) => call.durationUs, cell: (call) => h("span", { class: "number" }, micros(call.durationUs)) },
          { key: "at", label: t("calls.at"), end: true, sort: (call) => call.at, cell: (call) => ago(call.at) },
        ],
      }) : empty(items.length ? t("none_found") : t("calls.none"), items.length ? null : t("calls.none_text"))));
  }, list.reload)];
  return { draw, end: list.end };
}

function openOne(id, redraw) {
  const one = resource((signal) => request("GET", path`/api/calls/${id}`, { signal }));
  one.subscribe(redraw);
  const draw = () => [
    head(h("span", { class: "mono" }, one.get().data ? name(`${one.get().data.call.plugin}.${one.get().data.call.action}`, 100) : name(id, 60)), { up: [t("view.calls"), ["calls"]], beside: one.get().data ? badge(one.get().data.call.outcome, { kind: "outcome", look: LOOKS[one.get().data.call.outcome] ?? "" }) : null }),
    shown(one.get(), ({ call, layers, kept, args: given, answer, spans }) => h("div", { class: "columns" },
      h("div", { class: "stack" },
        kept ? [given === undefined ? null : card(t("call.arguments"), args(given)), card(t("calls.answer"), h("pre", { class: "plain-text", tabindex: "0", role: "region", "aria-label": t("calls.answer") }, highlighted(answer, spans)))] : notice(t("calls.not_kept")),
        card(t("calls.layers"), layers?.length ? layerList(layers) : h("p", { class: "muted" }, t("calls.no_layers")))),
      card(t("facts"), facts([
        ["id", h("span", { class: "mono small" }, name(call.id, 80))],
        [t("calls.call"), action(`${call.plugin}.${call.action}`, 100)],
        [t("calls.who"), who(call.subject ?? "", 100)],
        [t("calls.origin"), name(call.origin ?? "", 40)],
        [t("approval.session"), session(call.sessionId)],
        [t("calls.at"), dateTime(call.at)],
        [t("calls.took"), h("span", { class: "number" }, micros(call.durationUs))],
        [t("calls.trace"), call.traceId ? h("span", { class: "mono small" }, name(call.traceId, 60)) : null],
        [t("calls.reason"), call.reason ? block(call.reason, { most: 500 }) : null],
      ]))), one.reload),
  ];
  return { draw, end: one.end };
}

/** The guard's layers in the order in which they saw the call, each with its verdict and its part of the time. */
function layerList(layers) {
  const measured = layers.some(({ us }) => us !== undefined && us !== null);
  const most = Math.max(1, ...layers.map(({ us }) => us ?? 0));
  return h("div", { class: "stack" }, measured ? null : h("p", { class: "muted small" }, t("calls.no_times")), h("ol", { class: `layers${measured ? "" : " unmeasured"}` }, layers.map(({ layer, verdict, us, reason }) => h("li", { class: verdict === "skipped" ? "faint" : "" },
    h("div", { class: "grow" }, h("span", {}, word("layer", layer)), reason ? h("div", { class: "sub muted small" }, name(reason, 300)) : null),
    badge(verdict, { kind: "verdict", look: { changed: "warn", deny: "bad", fault: "bad" }[verdict] ?? "" }),
    measured ? [h("span", { class: "bar", "aria-hidden": "true" }, us ? h("i", { css: { width: `${Math.max(1, (us / most) * 100)}%` } }) : null), h("span", { class: "number faint" }, us === undefined || us === null ? "" : micros(us))] : null))));
}

/** A text with what the guard neutralized in it marked. Spans are places in the text, in order. */
function highlighted(text, spans) {
  const shownText = cutAt(text ?? "", 60_000);
  const nodes = [];
  let last = 0;
  for (const { start, end } of (spans ?? []).slice(0, 500)) {
    if (start < last || end > shownText.length) continue;
    nodes.push(visible(shownText.slice(last, start)), h("mark", { class: "mark" }, visible(shownText.slice(start, end))));
    last = end;
  }
  return [nodes, visible(shownText.slice(last))];
}

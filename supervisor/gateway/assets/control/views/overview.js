// What needs a person now, and how the system does.

import { h } from "../../lib/dom.js";
import { bytes, compact, dollars, micros, number } from "../../lib/format.js";
import { t } from "../../lib/i18n.js";
import { href, place, setQuery } from "../../lib/router.js";
import { block } from "../../lib/text.js";
import { icon } from "../../ui/icons.js";
import { button, card, choice, failure, loading } from "../../ui/parts.js";
import { plot } from "../../ui/plot.js";
import { attention, sources } from "../attention.js";
import { head } from "../page.js";
import { plugins, rate, reduced, series, times, values } from "../samples.js";

/** What needs a person is shown in part at first, so that the plots stay in sight. */
const FEW = 5;
const MOST = 200;
/** Where little fits, what needs a person comes first. */
const small = matchMedia("(max-width: 800px)");

export function open({ redraw }) {
  const ends = Object.values(sources).map((source) => source.subscribe(redraw));
  return {
    draw: () => h("div", { class: "stack wide" }, head(t("view.overview")), small.matches ? [needs(), numbers()] : [numbers(), needs()], plots()),
    end: () => ends.forEach((end) => end()),
  };
}

function needs() {
  const { items, hasMore, isComplete } = attention.get();
  const n = hasMore ? `${items.length}+` : items.length;
  if (!items.length && !isComplete) return plugins.get().status === "failed" ? h("div", { class: "card" }, failure(plugins.get().error, plugins.reload)) : loading(3);
  if (!items.length) return h("div", { class: "all-well card" }, icon("check"), h("div", {}, h("h2", {}, t("attention.none")), h("p", { class: "muted" }, t("attention.none_text"))));
  return card(t("attention.title", { n }), h("ul", { class: "needs" }, items.slice(0, place.get().query.all ? MOST : FEW).map(({ look, title, text, href: target }) => h("li", { class: look }, icon(look === "bad" ? "warning" : "info"), h("div", { class: "grow" }, target ? h("a", { href: target }, title) : h("strong", {}, title), text ? h("p", { class: "muted small" }, block(text, { most: 300 })) : null)))), { bare: true, actions: items.length > FEW && !place.get().query.all ? button(t("attention.all", { n }), () => setQuery({ all: "1" }), { look: "plain small" }) : null });
}

function numbers() {
  const items = plugins.get().data?.items;
  const costs = sources.costs?.get().data;
  const health = sources.health?.get().data;
  if (!items) return null;
  const ready = items.filter(({ state }) => state === "ready").length;
  const inFlight = items.reduce((sum, { callsInFlight }) => sum + callsInFlight, 0);
  const waiting = items.reduce((sum, { callsWaiting }) => sum + callsWaiting, 0);
  const memory = items.reduce((sum, { instances }) => sum + instances.reduce((all, { memoryBytes }) => all + memoryBytes, 0), 0);
  const tile = (label, value, sub, target) => h("a", { class: "tile card", href: target }, h("span", { class: "muted small" }, label), h("span", { class: "big number" }, value), h("span", { class: "faint tiny" }, sub));
  return h("div", { class: "tiles" },
    tile(t("overview.plugins"), t("overview.of", { n: ready, all: items.length }), t("overview.ready"), href(["plugins"])),
    tile(t("overview.calls"), number(inFlight), t("overview.waiting", { n: waiting }), href(["calls"])),
    tile(t("overview.memory"), bytes(memory), t("overview.memory_of"), href(["plugins"], { sort: "memory:desc" })),
    costs ? tile(t("overview.costs"), dollars(costs.today.cost), costs.dayBudget ? t("overview.budget", { budget: dollars(costs.dayBudget) }) : t("overview.answers", { n: costs.today.answers }), href(["costs"])) : null,
    health?.agent ? tile(t("overview.agent"), micros(health.agent.latencyMs * 1000), t("overview.host", { time: micros(health.host.latencyMs * 1000) }), href(["doctor"])) : null);
}

const RANGES = [["hour", 3_600_000], ["day", 86_400_000]];

function plots() {
  const kept = series?.get().data;
  const range = place.get().query.range ?? "hour";
  const data = kept?.at.length > 1 ? reduced(kept, Object.fromEntries(RANGES)[range] ?? RANGES[0][1]) : { times: times(), rate, most: (key) => values({ p99Us: "p99", p50Us: "p50" }[key]) };
  const perSecond = (value) => `${value < 10 ? number(value, 1) : compact(value)}/s`;
  const chart = (label, lines, unit) => card(label, plot({ label, series: lines, times: data.times, unit }));
  return h("section", { class: "stack" },
    h("div", { class: "row apart" }, h("h2", {}, t("plots.title")), kept ? choice(t("plots.range"), range, RANGES.map(([key]) => [key, t(`plots.${key}`)]), (key) => setQuery({ range: key })) : h("span", { class: "faint small" }, t("plots.since"))),
    h("div", { class: "plots" },
      chart(t("plots.calls"), [{ label: t("plots.calls"), values: data.rate("calls") }], perSecond),
      chart(t("plots.latency"), [{ label: "p99", values: data.most("p99Us") }, { label: "p50", values: data.most("p50Us") }], micros),
      chart(t("plots.errors"), [{ label: t("plots.faults"), values: data.rate("faults") }, { label: t("plots.refusals"), values: data.rate("refusals") }, { label: t("plots.tool_errors"), values: data.rate("toolErrors") }], perSecond),
      chart(t("plots.neutralized"), [{ label: t("plots.neutralized"), values: data.rate("tainted") }], perSecond)));
}

// What models cost.

import { hasScope, request } from "../../lib/api.js";
import { h } from "../../lib/dom.js";
import { compact, dollars, number } from "../../lib/format.js";
import { t } from "../../lib/i18n.js";
import { resource } from "../../lib/resource.js";
import { href } from "../../lib/router.js";
import { name } from "../../lib/text.js";
import { badge, card, empty, shown } from "../../ui/parts.js";
import { plot } from "../../ui/plot.js";
import { table } from "../../ui/table.js";
import { head } from "../page.js";

export function open({ redraw }) {
  const costs = resource((signal) => request("GET", "/api/costs", { query: hasScope("operate") ? { by: "day" } : {}, signal }), { every: 10_000 });
  const models = resource((signal) => request("GET", "/api/models", { signal }), { every: 30_000 });
  const sessions = resource((signal) => request("GET", "/api/sessions", { query: { all: true, limit: 200 }, signal }), { every: 30_000 });
  for (const one of [costs, models, sessions]) one.subscribe(redraw);
  const draw = () => [head(t("view.costs"), { text: t("costs.text") }), shown(costs.get(), (data) => h("div", { class: "stack wide" },
    h("div", { class: "tiles" },
      tile(t("costs.today"), dollars(data.today.cost), data.dayBudget ? budget(data.today.cost, data.dayBudget) : t("costs.no_budget")),
      tile(t("costs.answers"), number(data.today.answers), t("costs.failures", { n: data.today.failures })),
      tile(t("costs.prompt"), compact(data.today.promptTokens), t("costs.cached", { n: compact(data.today.cachedPromptTokens) })),
      tile(t("costs.completion"), compact(data.today.completionTokens), data.today.estimated > 0 ? t("costs.estimated", { cost: dollars(data.today.estimated) }) : t("costs.counted")),
      data.sessionBudget ? tile(t("costs.session_budget"), dollars(data.sessionBudget), t("costs.each_session")) : null),
    data.rows ? card(t("costs.by_day"), byDay(data.rows)) : null,
    h("div", { class: "columns even" }, card(t("costs.by_model"), named(data.byModel), { bare: true }), card(t("costs.by_provider"), named(data.byProvider), { bare: true })),
    card(t("costs.by_session"), shown(sessions.get(), ({ items }) => bySession(items), sessions.reload), { bare: true }),
    card(t("costs.models"), shown(models.get(), ({ items }) => modelTable(items), models.reload), { bare: true })), costs.reload)];
  return { draw, end: () => { costs.end(); models.end(); sessions.end(); } };
}

function tile(label, value, sub) {
  return h("div", { class: "tile card" }, h("span", { class: "muted small" }, label), h("span", { class: "big number" }, value), h("span", { class: "faint tiny" }, sub));
}

function budget(spent, most) {
  const share = Math.min(1, spent / most);
  return [h("span", {}, t("overview.budget", { budget: dollars(most) })), h("span", { class: `bar${share >= 1 ? " bad" : share > 0.8 ? " warn" : ""}`, css: { display: "block", "margin-top": "var(--space-1)" }, role: "meter", "aria-label": t("costs.budget"), "aria-valuenow": Math.round(share * 100), "aria-valuemin": 0, "aria-valuemax": 100 }, h("i", { css: { width: `${share * 100}%` } }))];
}

function named(rows) {
  if (!rows.length) return empty(t("costs.none"));
  const most = Math.max(...rows.map(({ cost }) => cost.cost), 1e-12);
  return table({
    label: t("view.costs"), rows: [...rows].sort((a, b) => b.cost.cost - a.cost.cost), keyOf: (row) => row.name, sortable: false,
    columns: [
      { key: "name", label: t("name"), lead: true, cell: (row) => [name(row.name, 80), h("div", { class: "bar", css: { "margin-top": "var(--space-1)", "max-width": "14rem" }, "aria-hidden": "true" }, h("i", { css: { width: `${(row.cost.cost / most) * 100}%` } }))] },
      { key: "answers", label: t("costs.answers"), end: true, cell: (row) => h("span", { class: "number" }, number(row.cost.answers)) },
      { key: "tokens", label: t("costs.tokens"), end: true, cell: (row) => h("span", { class: "number" }, compact(row.cost.promptTokens + row.cost.completionTokens)) },
      { key: "cost", label: t("cost"), end: true, cell: (row) => h("span", { class: "number" }, dollars(row.cost.cost)) },
    ],
  });
}

function byDay(all) {
  const rows = all.filter((row) => Number.isFinite(Date.parse(row.name)));
  return plot({ label: t("costs.by_day"), series: [{ label: t("cost"), values: rows.map(({ cost }) => cost.cost) }], times: rows.map((row) => Date.parse(row.name)), unit: dollars, days: true });
}

function bySession(items) {
  const rows = items.filter(({ cost }) => cost > 0).sort((a, b) => b.cost - a.cost).slice(0, 20);
  if (!rows.length) return empty(t("costs.none"));
  return table({
    label: t("costs.by_session"), rows, keyOf: (row) => row.id, sortable: false,
    columns: [
      { key: "title", label: t("sessions.session"), lead: true, cell: (row) => h("a", { href: href(["sessions", row.id]) }, row.title ? name(row.title, 90) : t("sessions.untitled")) },
      { key: "sender", label: t("sessions.sender"), cell: (row) => h("span", { class: "mono small" }, name(row.senderId, 60)) },
      { key: "cost", label: t("cost"), end: true, cell: (row) => h("span", { class: "number" }, dollars(row.cost)) },
    ],
  });
}

function modelTable(items) {
  if (!items.length) return empty(t("costs.no_models"));
  return table({
    label: t("costs.models"), rows: items, keyOf: (row) => `${row.alias} ${row.id}`,
    columns: [
      { key: "id", label: t("composer.model"), lead: true, sort: (row) => row.id, cell: (row) => [h("span", { class: "mono" }, name(row.id, 80)), row.alias ? h("span", { class: "faint" }, " ", name(row.alias, 40)) : null, row.why ? h("div", { class: "sub" }, name(row.why, 200)) : null] },
      { key: "state", label: t("state"), sort: (row) => row.state, cell: (row) => badge(row.state) },
      { key: "local", label: t("costs.where"), cell: (row) => t(row.local ? "costs.local" : "costs.remote") },
      { key: "context", label: t("costs.context"), end: true, sort: (row) => row.contextWindow, cell: (row) => (row.contextWindow ? h("span", { class: "number" }, compact(row.contextWindow)) : null) },
      { key: "price", label: t("costs.price"), end: true, cell: (row) => (row.inputPrice ? h("span", { class: "number" }, `$${name(row.inputPrice, 12).textContent} / $${name(row.outputPrice, 12).textContent}`) : null) },
    ],
  });
}

// What needs a person now: gathered from several parts of the system, for the overview and for the numbers in the navigation.

import { request, serves } from "../lib/api.js";
import { t } from "../lib/i18n.js";
import { resource } from "../lib/resource.js";
import { href } from "../lib/router.js";
import { store } from "../lib/store.js";
import { plain } from "../lib/text.js";
import { dollars } from "../lib/format.js";
import { plugins } from "./samples.js";

export const attention = store({ items: [], counts: {}, hasMore: false, isComplete: false });

const SOURCES = {
  approvals: ["/api/approvals", { everybody: true }, 4000],
  health: ["/api/health/deep", {}, 15_000],
  costs: ["/api/costs", {}, 30_000],
  extensions: ["/api/extensions", {}, 15_000],
  schedule: ["/api/schedule", {}, 30_000],
  notifications: ["/api/notifications", { state: "given_up", limit: 20 }, 30_000],
  doctor: ["/api/doctor", {}, 300_000],
  ghosts: ["/api/ghosts", { state: "waiting", limit: 50 }, 10_000],
};
/** The most approvals that are listed one by one. */
const MOST_APPROVALS = 50;
/** What not every server has. */
const OPTIONAL = ["doctor", "ghosts"];

/** What was read last, also for the overview. */
export const sources = {};

export function watchAttention() {
  for (const [name, [target, query, every]] of Object.entries(SOURCES)) {
    if (OPTIONAL.includes(name) && !serves("GET", target)) continue;
    sources[name] = resource((signal) => request("GET", target, { query, signal }).catch((error) => (error.body?.status === "unavailable" ? error.body : Promise.reject(error))), { every });
    sources[name].subscribe(gather);
  }
  plugins.subscribe(gather);
}

function gather() {
  const items = [];
  const add = (view, look, title, text, target) => items.push({ view, look, title, text, href: target });
  const read = (name) => sources[name]?.get().data;
  for (const plugin of plugins.get().data?.items ?? []) {
    const target = href(["plugins", plugin.name]);
    const name = plain(plugin.name, 60);
    if (["failed", "refused", "backoff", "unhealthy"].includes(plugin.state)) add("plugins", plugin.state === "unhealthy" || plugin.state === "backoff" ? "warn" : "bad", t(`attention.plugin_${plugin.state}`, { name }), plugin.reason, target);
    else if (plugin.breaker === "open") add("plugins", "bad", t("attention.breaker", { name }), plugin.reason, target);
    if (plugin.quarantined) add("plugins", "warn", t("attention.quarantined", { name }), t("attention.quarantined_text"), target);
    if (plugin.changedActions.length) add("plugins", "warn", t("attention.changed", { name, n: plugin.changedActions.length }), t("attention.changed_text", { list: plain(plugin.changedActions.join(", "), 200), name }), target);
  }
  // Of many, one page is read and so many are listed: it is said that there are more.
  const more = new Set(["approvals", "notifications"].filter((name) => read(name)?.nextCursor));
  const pending = (read("approvals")?.items ?? []).filter(({ state }) => state === "pending");
  if (pending.length > MOST_APPROVALS) more.add("approvals");
  for (const approval of pending.slice(0, MOST_APPROVALS)) {
    add("approvals", "warn", approval.question ? t("attention.question") : approval.tool ? t("attention.approval", { tool: plain(approval.tool, 80) }) : t("attention.plan"), approval.question || approval.senderId, href(["approvals", approval.id]));
  }
  const health = read("health");
  if (health?.status === "unavailable") add("overview", "bad", t("attention.health"), ["host", "agent"].filter((part) => health[part]?.status === "unavailable").map((part) => t(`attention.${part}_down`)).join(" "), null);
  if (health?.configProblem) add("configuration", "bad", t("attention.config"), health.configProblem, href(["configuration"]));
  const costs = read("costs");
  if (costs?.dayBudget > 0 && costs.today.cost >= costs.dayBudget * 0.9) add("costs", costs.today.cost >= costs.dayBudget ? "bad" : "warn", t(costs.today.cost >= costs.dayBudget ? "attention.spent" : "attention.nearly_spent"), t("attention.spent_text", { spent: dollars(costs.today.cost), budget: dollars(costs.dayBudget) }), href(["costs"]));
  for (const extension of (read("extensions")?.items ?? []).filter(({ state }) => state === "failing")) add("extensions", "bad", t("attention.extension", { name: plain(extension.name, 60) }), extension.reason, href(["extensions"]));
  for (const job of (read("schedule")?.items ?? []).filter(({ last }) => ["failed", "missed"].includes(last?.state))) add("schedule", "warn", t(`attention.job_${job.last.state}`, { name: plain(job.id, 60) }), job.last.note, href(["schedule", job.id]));
  for (const notification of read("notifications")?.items ?? []) add("notifications", "warn", t("attention.notification", { entry: plain(notification.entry, 60) }), notification.note || notification.summary, href(["notifications"], { state: "given_up" }));
  for (const finding of (read("doctor")?.items ?? []).filter(({ state }) => state === "failed")) add("doctor", "bad", plain(finding.check, 120), finding.fix || finding.message, href(["doctor"]));
  items.sort((a, b) => (a.look === "bad" ? 0 : 1) - (b.look === "bad" ? 0 : 1));
  const counts = {};
  for (const { view, look } of items) counts[view] = { n: (counts[view]?.n ?? 0) + 1, look: counts[view]?.look ?? look };
  for (const view of more) if (counts[view]) counts[view].n = `${counts[view].n}+`;
  delete counts.overview;
  // A proposal is counted where it is shown; it needs nobody.
  const ghosts = read("ghosts");
  const proposals = ghosts?.items?.length ?? 0;
  // Of many, one page is read: it is said that there are more.
  const n = ghosts?.nextCursor ? `${proposals}+` : proposals;
  if (proposals) counts.shadow = { n, look: "info", title: t("attention.proposals", { n }) };
  const isComplete = plugins.get().status === "ready" && Object.values(sources).every((source) => source.get().status !== "loading");
  attention.set({ items, counts, hasMore: more.size > 0, isComplete });
}

// What a plugin uses, what it may do, and what it runs.

import { h } from "../lib/dom.js";
import { bytes, number } from "../lib/format.js";
import { t } from "../lib/i18n.js";
import { href } from "../lib/router.js";
import { block, name } from "../lib/text.js";
import { word } from "../lib/word.js";
import { badge, card, facts, notice } from "../ui/parts.js";
import { plot } from "../ui/plot.js";
import { table } from "../ui/table.js";
import { cpuOf, memoryOf, times } from "./samples.js";

/** Memory and processor since the page was opened, an hour at most. */
export function usage({ name: plugin, instances }) {
  if (!instances.length) return null;
  const percent = (value) => `${number(value * 100, value < 0.1 ? 1 : 0)} %`;
  const chart = (label, values, unit) => card(label, plot({ label, series: [{ label, values }], times: times(), unit }));
  return h("div", { class: "plots narrow" }, chart(t("plugins.memory"), memoryOf(plugin), bytes), chart(t("plugins.cpu"), cpuOf(plugin), percent));
}

/** What the jail really enforces: as it is configured, without what this machine cannot do. */
export function jail(plugin, settings) {
  const isOff = settings?.sandboxMode === "off";
  return card(t("plugins.jail"), h("div", { class: "stack" },
    isOff ? notice(t("plugins.jail_off"), "bad") : plugin.notEnforced.length ? notice([t("plugins.jail_not"), h("ul", { class: "bullets" }, plugin.notEnforced.map((gap) => h("li", {}, block(gap, { most: 500 }))))], "warn") : notice(t("plugins.jail_whole"), "good"),
    settings && !isOff ? facts([
      [t("plugins.jail_mode"), word("jail", settings.sandboxMode)],
      [t("plugins.jail_network"), word("network", settings.sandboxNetwork)],
      [t("plugins.jail_profile"), settings.sandboxProfile ? h("span", { class: "mono small" }, name(settings.sandboxProfile, 200)) : null],
      [t("plugins.jail_grants"), settings.sandboxGrants.length ? h("ul", { class: "plain-list" }, settings.sandboxGrants.slice(0, 100).map((grant) => h("li", { class: "mono small" }, name(grant, 300)))) : h("span", { class: "muted" }, t("plugins.jail_no_grants"))],
      [t("plugins.changed_tools"), word("changed_tools", settings.changedTools)],
    ]) : null));
}

export function rolesCard(plugin, roles) {
  const works = (role) => ["ready", "waiting", "failing"].filter((state) => role[state]).map((state) => badge(state, { label: `${word("state", state)} ${number(role[state])}` }));
  return card(t("plugins.roles"), table({
    label: t("plugins.roles"), rows: roles, keyOf: (role) => role.role, sortable: false,
    columns: [
      { key: "role", label: t("extensions.role"), lead: true, cell: (role) => h("a", { href: href(["extensions"], { role: role.role, q: plugin.name }) }, word("role", role.role)) },
      { key: "declared", label: t("extensions.declared"), end: true, cell: (role) => h("span", { class: "number" }, number(role.declared)) },
      { key: "granted", label: t("plugins.granted"), end: true, cell: (role) => h("span", { class: "number" }, number(role.granted)) },
      { key: "state", label: t("state"), cell: (role) => h("span", { class: "row tight" }, works(role).length ? works(role) : h("span", { class: "faint" }, t("plugins.not_granted"))) },
    ],
  }), { bare: true });
}

/** Scripts of a plugin that runs scripts, with why a version was refused. */
export function scriptsCard(scripts) {
  return card(t("scripts.title"), table({
    label: t("scripts.title"), rows: scripts, keyOf: (script) => script.name, sortable: false,
    columns: [
      { key: "name", label: t("name"), lead: true, cell: (script) => [h("span", { class: "mono" }, name(script.name, 80)), script.problem ? h("div", { class: "sub plain-text mono" }, block(script.problem, { most: 2000 })) : null] },
      { key: "functions", label: t("scripts.functions"), cell: (script) => h("span", { class: "mono small" }, name(script.functions.join(", "), 200)) },
      { key: "state", label: t("state"), cell: (script) => badge(script.state, { kind: "script", look: { loaded: "good", outdated: "warn", failed: "bad" }[script.state] ?? "" }) },
    ],
  }), { bare: true });
}

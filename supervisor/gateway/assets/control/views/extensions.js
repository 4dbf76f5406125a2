// Actions that play a role, with the errors of those that do not work.

import { request } from "../../lib/api.js";
import { h } from "../../lib/dom.js";
import { t } from "../../lib/i18n.js";
import { resource } from "../../lib/resource.js";
import { href, place, setQuery } from "../../lib/router.js";
import { block, name } from "../../lib/text.js";
import { word } from "../../lib/word.js";
import { badge, choice, empty, searchField, shown } from "../../ui/parts.js";
import { matches, table } from "../../ui/table.js";
import { head } from "../page.js";
import { scriptsCard } from "../plugin.js";
import { plugins } from "../samples.js";

export function open({ redraw }) {
  const list = resource((signal) => request("GET", "/api/extensions", { signal }), { every: 6000 });
  list.subscribe(redraw);
  const draw = () => [head(t("view.extensions"), { text: t("extensions.text") }), shown(list.get(), ({ items }) => {
    const { query } = place.get();
    const roles = [...new Set(items.map(({ role }) => role))].sort();
    const found = items.filter((one) => matches(query.q, one.name, one.action, one.reason) && (!query.role || one.role === query.role));
    return h("div", { class: "stack" },
      h("div", { class: "filters" }, searchField(t("extensions.search"), query.q ?? "", (q) => setQuery({ q })), choice(t("extensions.role"), query.role ?? "", [["", t("extensions.all_roles")], ...roles.map((role) => [role, word("role", role)])], (role) => setQuery({ role }))),
      h("div", { class: "card" }, found.length ? table({
        label: t("view.extensions"), rows: found, keyOf: (one) => `${one.role} ${one.name} ${one.action}`,
        columns: [
          { key: "name", label: t("name"), lead: true, sort: (one) => one.name, cell: (one) => [h("strong", {}, name(one.name || one.action, 80)), one.reason ? h("div", { class: "sub plain-text" }, block(one.reason, { most: 2000 })) : null] },
          { key: "role", label: t("extensions.role"), sort: (one) => one.role, cell: (one) => word("role", one.role) },
          { key: "action", label: t("extensions.action"), sort: (one) => one.action, cell: (one) => h("a", { class: "mono small", href: href(["plugins", one.action.split(".")[0]], { tab: "actions", q: one.action.split(".").slice(1).join(".") }) }, name(one.action, 80)) },
          { key: "state", label: t("state"), sort: (one) => one.state, cell: (one) => badge(one.state) },
          { key: "declared", label: t("extensions.declared"), cell: (one) => (one.declared ? t("yes") : h("span", { class: "faint" }, t("extensions.granted_only"))) },
        ],
      }) : empty(items.length ? t("none_found") : t("extensions.none"), items.length ? null : t("extensions.none_text"))),
      (plugins.get().data?.items ?? []).filter(({ scripts }) => scripts?.length).map(({ scripts }) => scriptsCard(scripts)));
  }, list.reload)];
  return { draw, end: list.end };
}

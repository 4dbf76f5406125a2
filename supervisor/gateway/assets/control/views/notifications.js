// What people were told, or will be.

import { request } from "../../lib/api.js";
import { h } from "../../lib/dom.js";
import { ago, number } from "../../lib/format.js";
import { t } from "../../lib/i18n.js";
import { resource } from "../../lib/resource.js";
import { place, setQuery } from "../../lib/router.js";
import { block, name, plain } from "../../lib/text.js";
import { word } from "../../lib/word.js";
import { badge, button, choice, empty, searchField, shown } from "../../ui/parts.js";
import { matches, table } from "../../ui/table.js";
import { failed, toast } from "../../ui/toast.js";
import { head } from "../page.js";

const STATES = ["waiting", "sending", "delivered", "refused", "given_up"];

export function open({ redraw }) {
  const list = resource((signal) => request("GET", "/api/notifications", { query: { limit: 200 }, signal }), { every: 6000 });
  list.subscribe(redraw);
  const retry = (id) => async () => {
    try {
      const { notifications } = await request("POST", "/api/notifications/retry", { body: id ? { id } : {} });
      toast(t("notifications.retried", { n: notifications }));
    } catch (error) {
      failed(error);
    }
    list.reload();
  };
  const draw = () => {
    const { query } = place.get();
    return [
      head(t("view.notifications"), { text: t("notifications.text"), actions: button(t("notifications.retry_all"), retry(null), { sign: "retry" }) }),
      shown(list.get(), ({ items }) => {
        const found = items.filter((one) => matches(query.q, one.summary, one.entry, one.kind) && (!query.state || one.state === query.state));
        return h("div", { class: "stack" },
          h("div", { class: "filters" }, searchField(t("notifications.search"), query.q ?? "", (q) => setQuery({ q })), choice(t("state"), query.state ?? "", [["", t("all_states")], ...STATES.map((state) => [state, word("state", state)])], (state) => setQuery({ state }))),
          h("div", { class: "card" }, found.length ? table({
            label: t("view.notifications"), rows: found, keyOf: (one) => one.id,
            columns: [
              { key: "summary", label: t("notifications.what"), lead: true, sort: (one) => one.summary, cell: (one) => h("details", {}, h("summary", {}, name(one.summary, 160), one.count > 1 ? h("span", { class: "faint" }, ` ×${number(one.count)}`) : null), h("div", { class: "sub plain-text" }, block(one.details, { most: 4000 }), Object.entries(one.fields).slice(0, 40).map(([key, value]) => h("div", {}, h("span", { class: "mono" }, `${plain(key, 60)}: `), name(value, 300))))) },
              { key: "severity", label: t("notifications.severity"), sort: (one) => one.severity, cell: (one) => badge(one.severity, { kind: "severity" }) },
              { key: "entry", label: t("notifications.to"), sort: (one) => one.entry, cell: (one) => name(one.entry, 60) },
              { key: "state", label: t("state"), sort: (one) => one.state, cell: (one) => h("div", { class: "stack tight" }, h("span", {}, badge(one.state)), one.note && one.state !== "delivered" ? h("span", { class: "sub" }, block(one.note, { most: 200 })) : null) },
              { key: "created", label: t("created"), end: true, sort: (one) => one.createdAt, cell: (one) => ago(one.createdAt) },
              { key: "act", label: t("actions"), end: true, cell: (one) => (["refused", "given_up"].includes(one.state) ? button(t("action.retry"), retry(one.id), { look: "small" }) : null) },
            ],
          }) : empty(items.length ? t("none_found") : t("notifications.none"), items.length ? null : t("notifications.none_text"))));
      }, list.reload),
    ];
  };
  return { draw, end: list.end };
}

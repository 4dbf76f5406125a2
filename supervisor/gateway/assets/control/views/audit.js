// The audit log: searched and verified through the host.

import { request, serves } from "../../lib/api.js";
import { h } from "../../lib/dom.js";
import { dateTime } from "../../lib/format.js";
import { t } from "../../lib/i18n.js";
import { resource } from "../../lib/resource.js";
import { place, setQuery } from "../../lib/router.js";
import { name, plain } from "../../lib/text.js";
import { json } from "../../ui/code.js";
import { badge, button, empty, notice, searchField, shown, unavailable } from "../../ui/parts.js";
import { table } from "../../ui/table.js";
import { failed } from "../../ui/toast.js";
import { who } from "../links.js";
import { head } from "../page.js";

export function open({ redraw }) {
  if (!serves("GET", "/api/audit")) return { draw: () => [head(t("view.audit"), { text: t("audit.text") }), h("div", { class: "card" }, unavailable(t("view.audit")))] };
  let [timer, verdict, isVerifying, more, cursor] = [0, null, false, [], undefined];
  const list = resource((signal) => request("GET", "/api/audit", { query: { q: place.get().query.q, limit: 200 }, signal }));
  list.subscribe(redraw);
  const verify = async () => {
    isVerifying = true;
    redraw();
    try {
      verdict = await request(serves("POST", "/api/audit/verify") ? "POST" : "GET", "/api/audit/verify");
    } catch (error) {
      failed(error);
    }
    isVerifying = false;
    redraw();
  };
  const readMore = async () => {
    try {
      const page = await request("GET", "/api/audit", { query: { q: place.get().query.q, limit: 200, cursor: cursor ?? list.get().data.nextCursor } });
      more = [...more, ...page.items];
      cursor = page.nextCursor ?? null;
    } catch (error) {
      failed(error);
    }
    redraw();
  };
  const search = (q) => {
    setQuery({ q });
    [more, cursor] = [[], undefined];
    clearTimeout(timer);
    timer = setTimeout(list.reload, 300);
  };
  const canVerify = serves("POST", "/api/audit/verify") || serves("GET", "/api/audit/verify");
  const draw = () => [
    head(t("view.audit"), { text: t("audit.text"), actions: canVerify ? button(t("audit.verify"), verify, { sign: "check", disabled: isVerifying }) : null }),
    h("div", { class: "stack" },
      verdict ? notice(verdict.ok ? t("audit.whole", { n: verdict.records ?? 0 }) : `${t("audit.broken")} ${verdict.message ?? ""}`, verdict.ok ? "good" : "bad") : null,
      h("div", { class: "filters" }, searchField(t("audit.search"), place.get().query.q ?? "", search)),
      shown(list.get(), ({ items, nextCursor }) => h("div", { class: "card" }, items.length ? table({
        label: t("view.audit"), rows: [...items, ...more], keyOf: (one) => String(one.sequence), sortable: false, more: (cursor === undefined ? nextCursor : cursor) ? readMore : null,
        columns: [
          { key: "what", label: t("audit.event"), lead: true, cell: (one) => h("details", {}, h("summary", {}, h("span", { class: "mono" }, name(one.event || one.kind, 80)), " ", one.target ? h("span", { class: "muted" }, name(one.target, 120)) : null), json(one.record, plain(`${one.event || one.kind} ${one.sequence}`, 80))) },
          { key: "who", label: t("calls.who"), cell: (one) => who(one.subject) },
          { key: "outcome", label: t("calls.outcome"), cell: (one) => (one.outcome ? badge(one.outcome, { kind: "outcome" }) : null) },
          { key: "at", label: t("calls.at"), end: true, cell: (one) => h("span", { class: "nowrap" }, dateTime(one.at)) },
        ],
      }) : empty(place.get().query.q ? t("none_found") : t("audit.none"))), list.reload)),
  ];
  return { draw, end: () => { clearTimeout(timer); list.end(); } };
}

// What the agent remembers for the viewer: searched on the server, and forgotten one by one.

import { path, request } from "../../lib/api.js";
import { h } from "../../lib/dom.js";
import { ago, number } from "../../lib/format.js";
import { t } from "../../lib/i18n.js";
import { resource } from "../../lib/resource.js";
import { place, setQuery } from "../../lib/router.js";
import { block, plain } from "../../lib/text.js";
import { confirm } from "../../ui/dialog.js";
import { button, empty, searchField, shown } from "../../ui/parts.js";
import { table } from "../../ui/table.js";
import { failed, toast } from "../../ui/toast.js";
import { withSession } from "../links.js";
import { head } from "../page.js";

export function open({ redraw }) {
  let [timer, more, cursor] = [0, [], undefined];
  const asked = () => ({ text: place.get().query.q, tag: place.get().query.tag, limit: 100 });
  const list = resource((signal) => request("GET", "/api/memories", { query: asked(), signal }));
  list.subscribe(redraw);
  const again = () => {
    [more, cursor] = [[], undefined];
    list.reload();
  };
  const search = (change) => {
    setQuery(change);
    clearTimeout(timer);
    timer = setTimeout(again, 250);
  };
  const forget = (memory) => async () => {
    if (!(await confirm(t("memory.forget"), plain(memory.content, 300), t("memory.forget")))) return;
    try {
      await request("DELETE", path`/api/memories/${memory.id}`);
      toast(t("memory.forgotten"));
    } catch (error) {
      failed(error);
    }
    again();
  };
  const readMore = async () => {
    try {
      const page = await request("GET", "/api/memories", { query: { ...asked(), cursor: cursor ?? list.get().data.nextCursor } });
      more = [...more, ...page.items];
      cursor = page.nextCursor ?? null;
      redraw();
    } catch (error) {
      failed(error);
    }
  };
  const draw = () => {
    const { query } = place.get();
    return [
      head(t("view.memory"), { text: t("memory.text") }),
      h("div", { class: "stack" },
        h("div", { class: "filters" }, searchField(t("memory.search"), query.q ?? "", (q) => search({ q })), query.tag ? button(t("memory.tag", { tag: plain(query.tag, 40) }), () => search({ tag: null }), { sign: "close", look: "small" }) : null),
        shown(list.get(), ({ items, nextCursor }) => h("div", { class: "card" }, items.length ? table({
          label: t("view.memory"), rows: [...items, ...more], keyOf: (memory) => memory.id, more: (cursor === undefined ? nextCursor : cursor) ? readMore : null,
          columns: [
            { key: "content", label: t("memory.content"), lead: true, cell: (memory) => [h("div", { class: "plain-text" }, block(memory.content, { most: 600 })), h("div", { class: "row tight", css: { "margin-top": "var(--space-1)" } }, memory.tags.slice(0, 20).map((tag) => button(plain(tag, 40), () => search({ tag }), { look: "small plain" })))] },
            { key: "source", label: t("memory.source"), sort: (memory) => memory.source, cell: (memory) => h("span", { class: "small" }, withSession(memory.source)) },
            { key: "count", label: t("memory.count"), end: true, sort: (memory) => memory.count, cell: (memory) => h("span", { class: "number" }, number(memory.count)) },
            { key: "used", label: t("memory.used"), end: true, sort: (memory) => memory.lastUsedAt, cell: (memory) => ago(memory.lastUsedAt || memory.createdAt) },
            { key: "act", label: t("actions"), end: true, cell: (memory) => button(t("memory.forget"), forget(memory), { look: "small danger" }) },
          ],
        }) : empty(query.q || query.tag ? t("none_found") : t("memory.none"), query.q || query.tag ? null : t("memory.none_text"))), list.reload)),
    ];
  };
  return { draw, end: () => { clearTimeout(timer); list.end(); } };
}

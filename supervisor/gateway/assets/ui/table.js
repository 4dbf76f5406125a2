// A table whose order and filter are in the address. Small screens show each row as a card.

import { h } from "../lib/dom.js";
import { t } from "../lib/i18n.js";
import { place, setQuery } from "../lib/router.js";
import { button } from "./parts.js";

/** Rows that are shown at once; a button shows as many more. */
const PAGE = 100;

/** `columns`: {key, label, cell(row), sort(row)?, end?, lead?}. `rows` are all there are; `more` reads further ones from the server. */
export function table({ label, columns, rows, keyOf, more = null, sortable = true }) {
  const { query } = place.get();
  const [sortKey, direction] = (query.sort ?? "").split(":");
  const column = columns.find(({ key, sort }) => key === sortKey && sort);
  const sorted = column ? [...rows].sort((a, b) => compare(column.sort(a), column.sort(b)) * (direction === "desc" ? -1 : 1)) : rows;
  const most = Number(query.show) || PAGE;
  const head = columns.map(({ key, label: text, sort, end }) => {
    const order = key === sortKey ? (direction === "desc" ? "descending" : "ascending") : "none";
    const turn = () => setQuery({ sort: order === "ascending" ? `${key}:desc` : order === "descending" ? null : key });
    const mark = order === "none" ? "" : order === "ascending" ? " ↑" : " ↓";
    return h("th", { scope: "col", class: end ? "end" : "", "aria-sort": sort && sortable ? order : null }, sort && sortable ? h("button", { type: "button", on: { click: turn } }, text, mark) : text);
  });
  const body = sorted.slice(0, most).map((row) =>
    h("tr", { key: keyOf(row) }, columns.map(({ label: text, cell, end, lead }) => {
      const content = cell(row);
      return h("td", { "data-label": text, class: `${end ? "end " : ""}${lead ? "lead " : ""}${content === null ? "empty" : ""}` }, content === null ? null : h("div", {}, content));
    })),
  );
  const rest = sorted.length > most ? button(t("action.show_more"), () => setQuery({ show: most + PAGE })) : more ? button(t("action.load_more"), more) : null;
  return [
    h("div", { class: "table-wrap" }, h("table", { class: "table cards", "aria-label": label }, h("thead", {}, h("tr", {}, head)), h("tbody", {}, body))),
    rest ? h("div", { class: "row", css: { padding: "var(--space-3) var(--space-4)" } }, rest, h("span", { class: "faint small" }, t("shown_of", { n: Math.min(most, sorted.length), all: sorted.length }))) : null,
  ];
}

function compare(a, b) {
  if (typeof a === "string" || typeof b === "string") return String(a ?? "").localeCompare(String(b ?? ""), undefined, { numeric: true });
  return (a ?? 0) - (b ?? 0);
}

/** Whether one of these texts has all words of a filter. */
export function matches(filter, ...texts) {
  const words = (filter ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  const all = texts.join("\n").toLowerCase();
  return words.every((found) => all.includes(found));
}

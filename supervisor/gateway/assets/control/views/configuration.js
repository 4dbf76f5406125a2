// The effective configuration with the source of each value; what the overlay may hold is changed here, with a check as one types.

import { request, serves } from "../../lib/api.js";
import { h } from "../../lib/dom.js";
import { dateTime } from "../../lib/format.js";
import { t } from "../../lib/i18n.js";
import { resource } from "../../lib/resource.js";
import { place, setQuery } from "../../lib/router.js";
import { name, plain } from "../../lib/text.js";
import { word } from "../../lib/word.js";
import { diff, json } from "../../ui/code.js";
import { confirm, openDialog } from "../../ui/dialog.js";
import { badge, button, card, choice, empty, field, notice, searchField, shown, unavailable } from "../../ui/parts.js";
import { matches, table } from "../../ui/table.js";
import { failed, toast } from "../../ui/toast.js";
import { head } from "../page.js";

export function open({ redraw }) {
  if (serves("GET", "/api/config/sources")) return openSources(redraw);
  if (serves("GET", "/api/config")) return openPlain(redraw);
  return { draw: () => [head(t("view.configuration"), { text: t("configuration.text") }), h("div", { class: "card" }, unavailable(t("view.configuration")))] };
}

function openPlain(redraw) {
  const config = resource((signal) => request("GET", "/api/config", { signal }));
  config.subscribe(redraw);
  return { draw: () => [head(t("view.configuration"), { text: t("configuration.text") }), shown(config.get(), (data) => json(data, "YAML"), config.reload)], end: config.end };
}

function openSources(redraw) {
  const sources = resource((signal) => request("GET", "/api/config/sources", { signal }));
  const history = serves("GET", "/api/config/history") ? resource((signal) => request("GET", "/api/config/history", { signal })) : null;
  sources.subscribe(redraw);
  history?.subscribe(redraw);
  const done = () => { sources.reload(); history?.reload(); };
  const draw = () => [head(t("view.configuration"), { text: t("configuration.text") }), shown(sources.get(), ({ items, revision, overlay }) => {
    const { query } = place.get();
    const layers = [...new Set(items.map(({ source }) => source))].sort();
    const found = items.filter((one) => matches(query.q, one.key, JSON.stringify(one.value)) && (!query.source || one.source === query.source) && (!query.editable || one.editable));
    return h("div", { class: "stack wide" },
      overlay ? null : notice(t("configuration.no_overlay"), "warn"),
      h("div", { class: "filters" }, searchField(t("configuration.search"), query.q ?? "", (q) => setQuery({ q })), choice(t("configuration.source"), query.source ?? "", [["", t("configuration.all_sources")], ...layers.map((layer) => [layer, word("source", layer)])], (source) => setQuery({ source })), h("label", { class: "check" }, h("input", { type: "checkbox", checked: Boolean(query.editable), on: { change: (event) => setQuery({ editable: event.currentTarget.checked ? "1" : null }) } }), t("configuration.only_editable"))),
      h("div", { class: "card" }, found.length ? table({
        label: t("view.configuration"), rows: found, keyOf: (one) => one.key,
        columns: [
          { key: "key", label: t("configuration.key"), lead: true, sort: (one) => one.key, cell: (one) => h("span", { class: "mono" }, name(one.key, 120)) },
          { key: "value", label: t("configuration.value"), cell: (one) => h("span", { class: "mono small" }, name(typeof one.value === "string" ? one.value : JSON.stringify(one.value), 160)) },
          { key: "source", label: t("configuration.source"), sort: (one) => one.source, cell: (one) => [badge(one.source, { kind: "source", look: one.source === "overlay" ? "info" : "" }), one.where !== one.source ? h("div", { class: "sub mono" }, name(one.where, 120)) : null] },
          { key: "act", label: t("actions"), end: true, cell: (one) => (one.editable && serves("PATCH", "/api/config") ? h("div", { class: "row tight end-row" }, one.source === "overlay" ? button(t("configuration.reset"), () => reset(one, revision, done), { look: "small", sign: "retry" }) : null, button(t("action.edit"), () => edit(one, revision, done), { look: "small", sign: "pencil" })) : one.why ? h("details", { class: "why small" }, h("summary", { class: "faint" }, t("configuration.why_not")), h("p", { class: "muted" }, name(one.why, 400))) : h("span", { class: "faint small" }, t("configuration.in_file"))) },
        ],
      }) : empty(t("none_found"))),
      history ? card(t("configuration.history"), shown(history.get(), ({ items: changes }) => (changes.length ? table({
        label: t("configuration.history"), rows: changes, keyOf: (one) => String(one.revision), sortable: false,
        columns: [
          { key: "revision", label: t("configuration.revision"), lead: true, cell: (one) => h("span", { class: "number" }, one.revision) },
          { key: "keys", label: t("configuration.key"), cell: (one) => h("details", {}, h("summary", { class: "mono small" }, name(one.keys.join(", "), 300)), one.changes.map((change) => h("div", { class: "stack tight", key: change.key }, h("h3", { class: "mono" }, name(change.key, 120)), diff(written(change.before), written(change.after), `${one.revision} ${plain(change.key, 120)}`)))) },
          { key: "by", label: t("configuration.by"), cell: (one) => name(one.by, 80) },
          { key: "at", label: t("calls.at"), end: true, cell: (one) => dateTime(one.at) },
        ],
      }) : empty(t("configuration.no_history")))), { bare: true }) : null);
  }, sources.reload)];
  return { draw, end: () => { sources.end(); history?.end(); } };
}

/** A value as the text of an editor; nothing is an empty one. */
function written(value) {
  return value === undefined ? "" : JSON.stringify(value, null, 2);
}

/** A merge patch that sets one key; `null` gives way to the config file. */
function patchOf(steps, value) {
  return steps.reduceRight((inner, step) => ({ [step]: inner }), value);
}

function send(one, value, revision) {
  return request("PATCH", "/api/config", { body: patchOf(one.path, value), headers: { "if-match": `"${revision}"` } });
}

function tell(answer) {
  toast(answer.needsRestart.length ? t("configuration.restart", { keys: answer.needsRestart.join(", ") }) : t("configuration.applied"));
}

async function reset(one, revision, done) {
  if (!(await confirm(t("configuration.reset"), t("configuration.reset_text", { key: plain(one.key, 120) }), t("configuration.reset"), { look: "primary" }))) return;
  try {
    tell(await send(one, null, revision));
  } catch (error) {
    failed(error);
  }
  done();
}

function edit(one, revision, done) {
  let [text, problem, checked, timer, busy] = [JSON.stringify(one.value, null, 2), null, null, 0, false];
  const before = text;
  openDialog(one.key, (close, draw) => {
    const value = () => JSON.parse(text);
    const check = () => {
      clearTimeout(timer);
      checked = null;
      try {
        value();
        problem = null;
      } catch {
        problem = t("form.json");
      }
      draw();
      if (!problem && serves("POST", "/api/config/check")) timer = setTimeout(() => request("POST", "/api/config/check", { body: patchOf(one.path, value()) }).then((answer) => { checked = answer; problem = answer.errors[0]?.message ?? null; draw(); }, (error) => { problem = error.message; draw(); }), 300);
    };
    const save = async (event) => {
      event.preventDefault();
      busy = true;
      draw();
      try {
        tell(await send(one, value(), revision));
        close();
        done();
      } catch (error) {
        failed(error);
        problem = error.message;
        busy = false;
        draw();
      }
    };
    return h("form", { class: "stack", on: { submit: save } },
      field(t("configuration.value"), h("textarea", { class: "input mono", id: "config-value", rows: 6, spellcheck: "false", value: text, "aria-invalid": problem ? "true" : null, on: { input: (event) => { text = event.currentTarget.value; check(); } } }), { id: "config-value", hint: t("configuration.json"), problem }),
      text === before ? null : h("div", { class: "stack tight" }, h("h3", {}, t("diff")), diff(before, text)),
      checked && !problem ? notice(checked.needsRestart.length ? t("configuration.restart", { keys: checked.needsRestart.join(", ") }) : t("configuration.fits"), "good") : null,
      h("div", { class: "actions" }, button(t("action.cancel"), close), button(t("configuration.apply"), null, { look: "primary", type: "submit", disabled: busy || Boolean(problem) || text === before })));
  }, { wide: true });
}

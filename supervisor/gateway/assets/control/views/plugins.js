// Plugins: all of them, and one with its jail, actions and log.

import { hasScope, path, request, serves, stream } from "../../lib/api.js";
import { h } from "../../lib/dom.js";
import { ago, bytes, clock, compact, duration, micros, number } from "../../lib/format.js";
import { t } from "../../lib/i18n.js";
import { resource } from "../../lib/resource.js";
import { href, place, setQuery } from "../../lib/router.js";
import { block, name, plain } from "../../lib/text.js";
import { word } from "../../lib/word.js";
import { codeBlock } from "../../ui/code.js";
import { confirm } from "../../ui/dialog.js";
import { schemaForm, schemaOf } from "../../ui/form.js";
import { badge, button, card, choice, empty, facts, failure, notice, searchField, shown } from "../../ui/parts.js";
import { matches, table } from "../../ui/table.js";
import { failed, toast } from "../../ui/toast.js";
import { head } from "../page.js";
import { jail, rolesCard, scriptsCard, usage } from "../plugin.js";
import { plugins } from "../samples.js";

/** Lines of the log that the page keeps. */
const MOST_LINES = 2000;

export function open({ parts, redraw }) {
  return parts[0] ? openOne(parts[0], redraw) : { draw: list };
}

const memory = (plugin) => plugin.instances.reduce((sum, { memoryBytes }) => sum + memoryBytes, 0);

function list() {
  return [head(t("view.plugins"), { text: t("plugins.text") }), shown(plugins.get(), ({ items }) => {
    const { query } = place.get();
    const states = [...new Set(items.map(({ state }) => state))].sort();
    const found = items.filter((plugin) => matches(query.q, plugin.name, plugin.reason) && (!query.state || plugin.state === query.state));
    return h("div", { class: "stack" },
      h("div", { class: "filters" }, searchField(t("plugins.search"), query.q ?? "", (q) => setQuery({ q })), choice(t("state"), query.state ?? "", [["", t("all_states")], ...states.map((state) => [state, word("state", state)])], (state) => setQuery({ state }))),
      h("div", { class: "card" }, found.length ? table({
        label: t("view.plugins"), rows: found, keyOf: (plugin) => plugin.name,
        columns: [
          { key: "name", label: t("name"), lead: true, sort: (plugin) => plugin.name, cell: (plugin) => [h("a", { href: href(["plugins", plugin.name]) }, name(plugin.name, 60)), plugin.reason && plugin.state !== "ready" ? h("div", { class: "sub" }, block(plugin.reason, { most: 200 })) : null] },
          { key: "state", label: t("state"), sort: (plugin) => plugin.state, cell: (plugin) => h("span", { class: "row tight" }, badge(plugin.state), plugin.quarantined ? badge("quarantined") : null, plugin.notEnforced.length ? badge("warn", { label: t("plugins.jail_gaps", { n: plugin.notEnforced.length }) }) : null) },
          { key: "calls", label: t("plugins.calls"), end: true, sort: (plugin) => plugin.counters?.calls, cell: (plugin) => (plugin.counters ? h("span", { class: "number" }, compact(plugin.counters.calls)) : null) },
          { key: "errors", label: t("plugins.errors"), end: true, sort: (plugin) => plugin.counters?.faults, cell: (plugin) => (plugin.counters ? h("span", { class: `number${plugin.counters.faults ? " bad-text" : ""}` }, number(plugin.counters.faults)) : null) },
          { key: "p99", label: "p99", end: true, sort: (plugin) => plugin.counters?.p99Us, cell: (plugin) => (plugin.counters?.calls ? h("span", { class: "number" }, micros(plugin.counters.p99Us)) : null) },
          { key: "memory", label: t("plugins.memory"), end: true, sort: memory, cell: (plugin) => (memory(plugin) ? h("span", { class: "number" }, bytes(memory(plugin))) : null) },
        ],
      }) : empty(items.length ? t("none_found") : t("plugins.none"), items.length ? null : t("plugins.none_text"))));
  }, plugins.reload)];
}

const OPERATIONS = [["start", "play"], ["stop", "stop"], ["restart", "retry"], ["reload", "retry"]];

function openOne(id, redraw) {
  const one = resource((signal) => request("GET", path`/api/plugins/${id}`, { signal }), { every: 4000 });
  one.subscribe(redraw);
  const log = followLog(id, redraw);
  const forms = new Map();
  let busy = null;
  const operate = async (operation) => {
    if (operation === "stop" && !(await confirm(t("plugins.stop"), t("plugins.stop_text", { name: plain(id, 60) }), t("plugins.stop")))) return;
    busy = operation;
    redraw();
    try {
      const plugin = await request("POST", path`/api/plugins/${id}/${operation}`);
      toast(t("plugins.did", { name: plain(id, 60), state: word("state", plugin.state) }));
    } catch (error) {
      failed(error);
    }
    busy = null;
    one.reload();
  };
  const draw = () => {
    const state = one.get();
    const plugin = state.data?.plugin;
    const tab = place.get().query.tab ?? "state";
    const fits = (operation) => (operation === "start" ? ["stopped", "failed", "discovered", "refused", "backoff"].includes(plugin.state) : !["stopped", "discovered"].includes(plugin.state));
    return [
      head(name(id, 80), {
        up: [t("view.plugins"), ["plugins"]], text: state.data?.description ? name(state.data.description, 300) : null, beside: plugin ? badge(plugin.state) : null,
        actions: plugin ? OPERATIONS.filter(([operation]) => fits(operation)).map(([operation, sign]) => button(t(`plugins.${operation}`), () => operate(operation), { sign, disabled: busy !== null, look: operation === "stop" ? "danger" : "" })) : null,
      }),
      shown(state, (data) => [
        h("nav", { class: "tabs", "aria-label": t("parts") }, ["state", "actions", "log"].map((key) => h("a", { href: href(["plugins", id], { tab: key === "state" ? null : key }), "aria-current": key === tab ? "page" : null }, t(`plugins.tab_${key}`), key === "actions" ? ` ${data.actions.length}` : ""))),
        tab === "actions" ? actions(id, data, forms, redraw) : tab === "log" ? log.view() : overview(data, button(t("plugins.lift-quarantine"), () => operate("lift-quarantine"), { look: "small", disabled: busy !== null })),
      ], one.reload),
    ];
  };
  return { draw, end: () => { one.end(); log.end(); } };
}

function overview({ plugin, settings, roles = [] }, lift) {
  const { counters } = plugin;
  return h("div", { class: "columns" },
    h("div", { class: "stack" },
      plugin.reason ? notice(block(plugin.reason), ["failed", "refused"].includes(plugin.state) ? "bad" : plugin.state === "ready" ? "" : "warn") : null,
      plugin.replacementProblem ? notice([t("plugins.not_replaced"), " ", block(plugin.replacementProblem, { most: 1000 })], "warn") : null,
      plugin.quarantined ? notice(t("plugins.quarantined"), "bad", lift) : null,
      plugin.changedActions.length ? notice([t("plugins.changed"), " ", h("span", { class: "mono" }, name(plugin.changedActions.join(", "), 500)), " ", t("plugins.changed_do"), " ", h("code", {}, `talon approve ${plain(plugin.name, 60)}`)], "warn") : null,
      usage(plugin),
      jail(plugin, settings),
      roles.length ? rolesCard(plugin, roles) : null,
      plugin.scripts?.length ? scriptsCard(plugin.scripts) : null,
      card(t("plugins.instances"), plugin.instances.length ? table({
        label: t("plugins.instances"), rows: plugin.instances, keyOf: (instance) => String(instance.index), sortable: false,
        columns: [
          { key: "index", label: "#", lead: true, cell: (instance) => `${t("plugins.instance")} ${instance.index}` },
          { key: "state", label: t("state"), cell: (instance) => badge(instance.state) },
          { key: "pid", label: "pid", end: true, cell: (instance) => (instance.pid ? h("span", { class: "number mono" }, instance.pid) : null) },
          { key: "since", label: t("plugins.ready_since"), cell: (instance) => (instance.readySince ? ago(instance.readySince) : null) },
          { key: "generation", label: t("plugins.generation"), end: true, cell: (instance) => h("span", { class: "number" }, number(instance.generation)) },
          { key: "calls", label: t("plugins.in_flight"), end: true, cell: (instance) => h("span", { class: "number" }, number(instance.callsInFlight)) },
          { key: "cpu", label: t("plugins.cpu_time"), end: true, cell: (instance) => h("span", { class: "number" }, duration((instance.cpuUs ?? 0) / 1000)) },
          { key: "memory", label: t("plugins.memory"), end: true, cell: (instance) => h("span", { class: "number" }, bytes(instance.memoryBytes)) },
        ],
      }) : h("p", { class: "muted", css: { padding: "0 var(--space-4) var(--space-4)" } }, t("plugins.no_process")), { bare: true })),
    h("div", { class: "stack" },
      card(t("plugins.numbers"), facts([
        [t("plugins.desired"), word("state", plugin.desired)],
        [t("plugins.breaker"), badge(plugin.breaker || "closed")],
        [t("plugins.in_flight"), h("span", { class: "number" }, number(plugin.callsInFlight))],
        [t("plugins.waiting"), h("span", { class: "number" }, number(plugin.callsWaiting))],
        ...(counters ? [["calls", counters.calls], ["tool_errors", counters.toolErrors], ["refusals", counters.refusals], ["faults", counters.faults], ["tainted", counters.tainted], ["truncated", counters.truncated]].map(([key, value]) => [t(`plugins.${key}`), h("span", { class: "number" }, number(value))]) : []),
        ["p50 / p99", counters?.calls ? h("span", { class: "number" }, `${micros(counters.p50Us)} / ${micros(counters.p99Us)}`) : null],
        [t("plugins.deaths"), h("span", { class: "number" }, number(plugin.deaths ?? 0))],
      ])),
      settings ? card(t("plugins.program"), facts([
        [t("plugins.version"), settings.sha256 ? h("span", { class: "mono small", title: plain(settings.sha256, 80) }, name(settings.sha256.slice(0, 12), 12)) : null],
        [t("plugins.command"), settings.command ? h("span", { class: "mono small" }, name(settings.command, 300)) : null],
        [t("plugins.dialect"), name(settings.dialect, 60)],
        [t("plugins.timeout"), settings.timeout ? duration(settings.timeout) : null],
        [t("plugins.context"), settings.context.length ? name(settings.context.join(", "), 300) : null],
        [t("plugins.models"), settings.models.length ? name(settings.models.join(", "), 300) : null],
      ])) : null));
}

function actions(id, { actions: all }, forms, redraw) {
  const { query } = place.get();
  const found = all.filter((action) => matches(query.q, action.name, action.description));
  const canCall = serves("POST", "/api/plugins/{name}/actions/{action}");
  return h("div", { class: "stack" },
    h("div", { class: "filters" }, searchField(t("plugins.search_actions"), query.q ?? "", (q) => setQuery({ q }))),
    canCall ? null : notice(t("plugins.no_calls")),
    found.length ? found.slice(0, Number(query.show) || 100).map((action) => h("details", { class: "card action", key: action.name }, h("summary", { class: "row" }, h("span", { class: "mono" }, name(action.name, 80)), action.userOnly ? badge("info", { label: t("plugins.user_only") }) : null, h("span", { class: "muted small grow clip" }, name(action.description, 160))), h("div", { class: "body stack" }, h("p", { class: "muted" }, block(action.description)), parameters(action), canCall ? caller(id, action, forms, redraw) : null))) : h("div", { class: "card" }, empty(t("none_found"))),
    found.length > (Number(query.show) || 100) ? button(t("action.show_more"), () => setQuery({ show: (Number(query.show) || 100) + 100 })) : null);
}

function parameters({ parameters: all, name: of }) {
  if (!all.length) return h("p", { class: "faint small" }, t("args.none"));
  return table({
    label: t("plugins.parameters_of", { name: plain(of, 60) }), rows: all, keyOf: (parameter) => parameter.name, sortable: false,
    columns: [
      { key: "name", label: t("name"), lead: true, cell: (parameter) => h("span", { class: "mono" }, name(parameter.name, 80)) },
      { key: "type", label: t("type"), cell: (parameter) => h("span", { class: "mono small" }, name(parameter.type, 40)) },
      { key: "required", label: t("required"), cell: (parameter) => (parameter.required ? t("yes") : h("span", { class: "faint" }, t("no"))) },
      { key: "text", label: t("description"), cell: (parameter) => h("span", { class: "muted" }, block(parameter.description, { most: 1000 })) },
    ],
  });
}

/** A form to call an action as oneself; the guarded answer, and beside it the raw one for an administrator. */
function caller(id, action, forms, redraw) {
  if (!forms.has(action.name)) forms.set(action.name, { form: schemaForm(schemaOf(action.parameters), redraw), answer: null, error: null, busy: false });
  const call = forms.get(action.name);
  const run = async (event) => {
    event.preventDefault();
    const args = call.form.result();
    if (args === null) return redraw();
    Object.assign(call, { busy: true, error: null });
    redraw();
    try {
      call.answer = await request("POST", path`/api/plugins/${id}/actions/${action.name}`, { body: { args, raw: hasScope("admin") } });
    } catch (error) {
      call.error = error;
    }
    call.busy = false;
    redraw();
  };
  return h("form", { class: "stack", on: { submit: run } }, h("h2", {}, t("plugins.call")), call.form.view(), h("div", { class: "row" }, button(t("plugins.call_now"), null, { look: "primary", type: "submit", sign: "play", disabled: call.busy })),
    call.error ? failure(call.error) : null,
    call.answer ? h("div", { class: "columns" }, codeBlock(String(call.answer.output ?? JSON.stringify(call.answer, null, 2)), t("plugins.guarded"), { wrap: true }), call.answer.raw !== undefined ? codeBlock(String(call.answer.raw), t("plugins.raw"), { wrap: true }) : null) : null);
}

/** The log, live: over HTTP as events, again when that ends. */
function followLog(id, redraw) {
  let [lines, abort, status, ended] = [[], null, "closed", false];
  const start = async () => {
    abort = new AbortController();
    [lines, status] = [[], "open"];
    try {
      await stream(`${path`/api/plugins/${id}/logs`}?tail=500`, { signal: abort.signal, onEvent: (line) => { lines.push(line); if (lines.length > MOST_LINES) lines.shift(); redraw(); } });
      status = "closed";
    } catch (error) {
      if (error.name === "AbortError") return;
      status = error;
    }
    redraw();
    if (!ended && (status === "closed" || status.kind === "offline" || status.status >= 500)) setTimeout(() => !ended && start(), 2000);
  };
  const LEVELS = ["trace", "debug", "info", "warn", "error"];
  return {
    end() {
      ended = true;
      abort?.abort();
    },
    view() {
      if (!abort) start();
      const { query } = place.get();
      const least = LEVELS.indexOf(query.level ?? "trace");
      const found = lines.filter((line) => matches(query.q, line.text) && LEVELS.indexOf(line.level) >= least);
      return h("div", { class: "stack" },
        h("div", { class: "filters" }, searchField(t("log.search"), query.q ?? "", (q) => setQuery({ q })), choice(t("log.level"), query.level ?? "trace", LEVELS.map((level) => [level, t("log.from", { level })]), (level) => setQuery({ level: level === "trace" ? null : level })), h("span", { class: "faint small" }, status === "open" ? t("log.live") : status === "closed" ? t("log.again") : "")),
        status instanceof Error ? failure(status, start) : null,
        found.length ? h("div", { class: "log", tabindex: "0", role: "log", "aria-label": t("plugins.tab_log"), "aria-live": "off" }, found.slice(-600).map((line) => h("div", { class: `level-${LEVELS.includes(line.level) ? line.level : "info"}` }, h("time", {}, clock(line.timestamp)), h("span", {}, line.level), h("span", {}, block(line.text, { most: 4000 }))))) : h("div", { class: "card" }, empty(t("log.none"))));
    },
  };
}

// Jobs at planned times, and what became of each time.

import { path, request } from "../../lib/api.js";
import { h } from "../../lib/dom.js";
import { ago, dateTime, duration } from "../../lib/format.js";
import { t } from "../../lib/i18n.js";
import { resource } from "../../lib/resource.js";
import { href } from "../../lib/router.js";
import { block, name, plain } from "../../lib/text.js";
import { word } from "../../lib/word.js";
import { json } from "../../ui/code.js";
import { badge, button, card, empty, shown } from "../../ui/parts.js";
import { table } from "../../ui/table.js";
import { failed, toast } from "../../ui/toast.js";
import { head } from "../page.js";

export function open({ parts, redraw }) {
  const jobs = resource((signal) => request("GET", "/api/schedule", { signal }), { every: 6000 });
  const history = resource((signal) => request("GET", "/api/schedule/history", { query: { job: parts[0], limit: 100 }, signal }), { every: 6000 });
  jobs.subscribe(redraw);
  history.subscribe(redraw);
  const act = (run) => async () => {
    try {
      await run();
    } catch (error) {
      failed(error);
    }
    jobs.reload();
    history.reload();
  };
  const runNow = (job) => act(async () => {
    await request("POST", path`/api/schedule/${job.id}/run`);
    toast(t("schedule.started", { name: plain(job.id, 60) }));
  });
  const pause = (job) => act(() => request("PATCH", path`/api/schedule/${job.id}`, { body: { paused: !job.paused } }));
  const draw = () => [
    head(parts[0] ? name(parts[0], 80) : t("view.schedule"), { text: parts[0] ? null : t("schedule.text"), up: parts[0] ? [t("view.schedule"), ["schedule"]] : null }),
    h("div", { class: "stack wide" },
      shown(jobs.get(), ({ items }) => h("div", { class: "card" }, items.length ? table({
        label: t("view.schedule"), rows: parts[0] ? items.filter(({ id }) => id === parts[0]) : items, keyOf: (job) => job.id,
        columns: [
          { key: "id", label: t("schedule.job"), lead: true, sort: (job) => job.id, cell: (job) => [h("a", { href: href(["schedule", job.id]) }, name(job.id, 60)), h("div", { class: "sub" }, name(job.target, 120))] },
          { key: "when", label: t("schedule.when"), cell: (job) => [h("span", { class: "mono small" }, name(job.when, 80)), h("div", { class: "sub" }, name(job.timezone, 40))] },
          { key: "next", label: t("schedule.next"), sort: (job) => job.nextAt ?? Infinity, cell: (job) => (job.paused ? badge("paused") : job.nextAt ? h("span", { title: dateTime(job.nextAt) }, ago(job.nextAt)) : h("span", { class: "faint" }, t("schedule.never"))) },
          { key: "last", label: t("schedule.last"), cell: (job) => (job.last ? h("span", { class: "row tight" }, badge(job.last.state), ago(job.last.plannedAt)) : null) },
          { key: "act", label: t("actions"), end: true, cell: (job) => h("span", { class: "row tight end-row" }, button(t("schedule.run"), runNow(job), { look: "small", sign: "play" }), job.pausedByConfiguration ? h("span", { class: "faint tiny" }, t("schedule.by_configuration")) : button(t(job.paused ? "schedule.resume" : "schedule.pause"), pause(job), { look: "small plain" })) },
        ],
      }) : empty(t("schedule.none"), t("schedule.none_text"))), jobs.reload),
      card(t("schedule.history"), shown(history.get(), ({ items }) => (items.length ? table({
        label: t("schedule.history"), rows: items, keyOf: (one) => `${one.job} ${one.plannedAt} ${one.kind}`, sortable: false,
        columns: [
          { key: "job", label: t("schedule.job"), lead: true, cell: (one) => h("a", { href: href(["schedule", one.job]) }, name(one.job, 60)) },
          { key: "planned", label: t("schedule.planned"), cell: (one) => [h("time", { title: dateTime(one.plannedAt) }, dateTime(one.plannedAt)), one.kind === "planned" ? null : h("span", { class: "faint tiny" }, ` ${word("kind", one.kind)}`)] },
          { key: "state", label: t("state"), cell: (one) => badge(one.state) },
          { key: "took", label: t("schedule.took"), end: true, cell: (one) => (one.startedAt && one.endedAt ? h("span", { class: "number" }, duration(one.endedAt - one.startedAt)) : null) },
          { key: "note", label: t("schedule.result"), cell: (one) => h("div", { class: "stack tight" }, one.note ? h("span", { class: "muted" }, block(one.note, { most: 400 })) : null, one.result ? h("span", { class: "sub" }, block(one.result, { most: 400 })) : null, one.structuredResult !== undefined && one.structuredResult !== null ? h("details", {}, h("summary", { class: "small" }, t("schedule.structured")), json(one.structuredResult)) : null, one.sessionId ? h("a", { class: "small", href: href(["sessions", one.sessionId]) }, t("approval.session")) : null) },
        ],
      }) : empty(t("schedule.no_history")))), { bare: true })),
  ];
  return { draw, end: () => { jobs.end(); history.end(); } };
}

// Plots over time, as SVG. Each has its numbers as text as well.

import { h, s } from "../lib/dom.js";
import { clock, date } from "../lib/format.js";
import { t } from "../lib/i18n.js";

const [WIDTH, HEIGHT] = [600, 100];

/** `series`: {label, values: [number or null]}; `times`: milliseconds, one for each value; `unit(number)` writes a value. */
export function plot({ label, series, times, unit, days = false }) {
  const values = series.flatMap((one) => one.values.filter((value) => value !== null));
  if (values.length < 2 || times.length < 2) return h("div", { class: "plot" }, h("p", { class: "faint small", css: { padding: "var(--space-5) 0" } }, t("plot.collecting")));
  const top = nice(Math.max(...values));
  const [from, to] = [times[0], times.at(-1)];
  const x = (time) => ((time - from) / (to - from || 1)) * WIDTH;
  const y = (value) => HEIGHT - (value / top) * HEIGHT;
  const shapes = series.map(({ values: line }, index) => {
    const runs = [];
    line.forEach((value, at) => {
      if (value === null) return;
      if (at === 0 || line[at - 1] === null) runs.push([]);
      runs.at(-1).push([x(times[at]), y(value)]);
    });
    const path = (run) => run.map(([px, py], at) => `${at ? "L" : "M"}${px.toFixed(1)} ${py.toFixed(1)}`).join("");
    return s("g", { class: `plot-${index + 1}` }, runs.map((run) => [series.length === 1 ? s("path", { class: "area", d: `${path(run)}L${run.at(-1)[0].toFixed(1)} ${HEIGHT}L${run[0][0].toFixed(1)} ${HEIGHT}Z` }) : null, s("path", { class: "line", d: path(run) })]));
  });
  const last = (line) => line.values.findLast((value) => value !== null) ?? 0;
  const summary = series.map((line) => `${line.label}: ${t("plot.summary", { now: unit(last(line)), most: unit(Math.max(...line.values.filter((value) => value !== null), 0)) })}`).join("; ");
  return h(
    "div",
    { class: "plot" },
    h("div", { class: "frame", css: { position: "relative" }, role: "img", "aria-label": `${label}. ${summary}` },
      s("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" }, [0, 0.5, 1].map((part) => s("line", { class: "grid", x1: 0, x2: WIDTH, y1: HEIGHT * part, y2: HEIGHT * part })), shapes),
      [[0, top], [50, top / 2]].map(([at, value]) => h("span", { class: "axis", css: { top: `${at}%` } }, unit(value)))),
    h("div", { class: "times" }, [from, to].map((time) => h("span", {}, days ? date(time) : clock(time, to - from < 600_000)))),
    series.length > 1 ? h("div", { class: "legend" }, series.map((line, index) => h("span", {}, h("i", { class: `plot-${index + 1}` }), line.label, " ", h("span", { class: "number" }, unit(last(line)))))) : null,
  );
}

/** The next of 1, 2, 5 times a power of ten, so that the axis reads well. */
function nice(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value * 0.999) ?? value;
}

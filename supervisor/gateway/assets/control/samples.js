// What plugins counted, over time, as long as the page is open: the plots are made of it. Counters only grow; a smaller one means that the
// supervisor counts anew.

import { request, serves } from "../lib/api.js";
import { resource } from "../lib/resource.js";

/** How often it is asked, and how many samples are kept: an hour. */
const EVERY = 5000;
const MOST = 720;
/** A day of steps of ten seconds, as the server keeps it. */
const MOST_STEPS = 8640;
const COUNTED = ["calls", "toolErrors", "refusals", "faults", "tainted"];

const samples = [];
export let plugins = null;

export function watchSamples(redraw) {
  plugins = resource((signal) => request("GET", "/api/plugins", { signal }), { every: EVERY });
  plugins.subscribe(({ data, error }) => {
    if (data && !error) take(data.items);
    redraw();
  });
}

function take(items) {
  const sums = Object.fromEntries(COUNTED.map((name) => [name, items.reduce((sum, { counters }) => sum + (counters?.[name] ?? 0), 0)]));
  const sumOf = (key) => new Map(items.map(({ name, instances }) => [name, instances.reduce((sum, instance) => sum + (instance[key] ?? 0), 0)]));
  const busiest = items.filter(({ counters }) => counters?.calls > 0);
  const calls = busiest.reduce((sum, { counters }) => sum + counters.calls, 0);
  const p99 = Math.max(0, ...busiest.map(({ counters }) => counters.p99Us));
  const p50 = calls ? busiest.reduce((sum, { counters }) => sum + counters.p50Us * counters.calls, 0) / calls : 0;
  samples.push({ at: Date.now(), sums, memory: sumOf("memoryBytes"), cpu: sumOf("cpuUs"), p99: busiest.length ? p99 : null, p50: busiest.length ? p50 : null });
  if (samples.length > MOST) samples.shift();
}

export function times() {
  return samples.map(({ at }) => at);
}

/** How much of it there was in a second, from one sample to the next. */
export function rate(name) {
  return samples.map(({ at, sums }, index) => {
    if (index === 0) return null;
    const before = samples[index - 1];
    const grown = sums[name] - before.sums[name];
    return grown < 0 ? null : grown / ((at - before.at) / 1000);
  });
}

export function values(name) {
  return samples.map((sample) => sample[name]);
}

export function memoryOf(plugin) {
  return samples.map(({ memory }) => memory.get(plugin) ?? null);
}

/** Which share of a processor a plugin had, from one sample to the next. */
export function cpuOf(plugin) {
  return samples.map(({ at, cpu }, index) => {
    const before = samples[index - 1];
    const grown = before ? (cpu.get(plugin) ?? NaN) - (before.cpu.get(plugin) ?? NaN) : NaN;
    // A process that was started again counts anew.
    return grown >= 0 ? grown / 1000 / (at - before.at) : null;
  });
}

/** The last day in steps of ten seconds, if this server keeps it: read whole at first, and then what came. */
export let series = null;

export function watchSeries(redraw) {
  if (!serves("GET", "/api/series")) return;
  let kept = null;
  series = resource(async (signal) => {
    const more = await request("GET", "/api/series", { query: { after: kept?.at.at(-1) }, signal });
    const from = kept ? Math.max(0, kept.at.length + more.at.length - MOST_STEPS) : 0;
    const lists = Object.entries(more).filter(([, list]) => Array.isArray(list));
    kept = { stepMs: more.stepMs, ...Object.fromEntries(lists.map(([key, list]) => [key, [...(kept?.[key] ?? []), ...list].slice(from)])) };
    return kept;
  }, { every: 10_000 });
  series.subscribe(redraw);
}

/** The last so many milliseconds as at most so many points: sums of counts as a rate in a second, the most of everything else. */
export function reduced({ at, stepMs, ...lists }, span, most = 240) {
  const first = Math.max(0, at.findIndex((time) => time > Date.now() - span));
  const group = Math.max(1, Math.ceil((at.length - first) / most));
  const starts = [];
  for (let start = first; start < at.length; start += group) starts.push(start);
  const groups = (list) => starts.map((start) => list.slice(start, start + group));
  return {
    times: starts.map((start) => at[Math.min(start + group, at.length) - 1]),
    rate: (key) => groups(lists[key]).map((part) => part.reduce((sum, value) => sum + value, 0) / ((part.length * stepMs) / 1000)),
    most: (key) => groups(lists[key]).map((part) => Math.max(...part)),
  };
}

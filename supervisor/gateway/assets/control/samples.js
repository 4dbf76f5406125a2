// What plugins counted, over time, as long as the page is open: the plots are made of it. Counters only grow; a smaller one means that the
// supervisor counts anew.

import { request } from "../lib/api.js";
import { resource } from "../lib/resource.js";

/** How often it is asked, and how many samples are kept: an hour. */
const EVERY = 5000;
const MOST = 720;
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
  const memory = new Map(items.map(({ name, instances }) => [name, instances.reduce((sum, { memoryBytes }) => sum + memoryBytes, 0)]));
  const busiest = items.filter(({ counters }) => counters?.calls > 0);
  const calls = busiest.reduce((sum, { counters }) => sum + counters.calls, 0);
  const p99 = Math.max(0, ...busiest.map(({ counters }) => counters.p99Us));
  const p50 = calls ? busiest.reduce((sum, { counters }) => sum + counters.p50Us * counters.calls, 0) / calls : 0;
  samples.push({ at: Date.now(), sums, memory, p99: busiest.length ? p99 : null, p50: busiest.length ? p50 : null });
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

// Numbers, amounts and times as the viewer reads them, in the viewer's zone. Times come from the server in milliseconds since 1970.

import { h } from "./dom.js";
import { locale, t } from "./i18n.js";

const cache = new Map();
function formatter(kind, options) {
  const key = kind.name + JSON.stringify(options);
  if (!cache.has(key)) cache.set(key, new kind(locale(), options));
  return cache.get(key);
}

export function number(value, digits = 0) {
  return formatter(Intl.NumberFormat, { maximumFractionDigits: digits }).format(value ?? 0);
}

/** 1.2K, 3.4M. */
export function compact(value) {
  return formatter(Intl.NumberFormat, { notation: "compact", maximumFractionDigits: 1 }).format(value ?? 0);
}

/** US dollars; small amounts keep two digits that say something. */
export function dollars(value) {
  const digits = value > 0 && value < 0.1 ? { maximumSignificantDigits: 2 } : { minimumFractionDigits: 2, maximumFractionDigits: 2 };
  return formatter(Intl.NumberFormat, { style: "currency", currency: "USD", currencyDisplay: "narrowSymbol", ...digits }).format(value ?? 0);
}

export function bytes(value) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let [amount, unit] = [value ?? 0, 0];
  while (amount >= 1024 && unit < units.length - 1) {
    amount /= 1024;
    unit += 1;
  }
  return `${number(amount, amount < 10 && unit > 0 ? 1 : 0)} ${units[unit]}`;
}

/** Microseconds. */
export function micros(value) {
  if (value < 1000) return `${number(value, value < 10 ? 1 : 0)} µs`;
  if (value < 1e6) return `${number(value / 1e3, value < 1e4 ? 1 : 0)} ms`;
  return duration(value / 1e3);
}

/** Milliseconds. */
export function duration(ms) {
  if (ms < 1000) return `${number(ms)} ms`;
  const seconds = ms / 1000;
  if (seconds < 60) return `${number(seconds, 1)} s`;
  if (seconds < 3600) return `${number(Math.floor(seconds / 60))} min ${number(Math.round(seconds % 60))} s`;
  return `${number(Math.floor(seconds / 3600))} h ${number(Math.round((seconds % 3600) / 60))} min`;
}

function isTime(ms) {
  return Number.isFinite(ms) && ms > 0 && Math.abs(ms) < 8.64e15;
}

export function dateTime(ms) {
  return isTime(ms) ? formatter(Intl.DateTimeFormat, { dateStyle: "medium", timeStyle: "medium" }).format(ms) : t("time.unknown");
}

export function date(ms) {
  return isTime(ms) ? formatter(Intl.DateTimeFormat, { dateStyle: "medium" }).format(ms) : "";
}

export function clock(ms, seconds = true) {
  const options = seconds ? { hour: "2-digit", minute: "2-digit", second: "2-digit" } : { hour: "2-digit", minute: "2-digit" };
  return isTime(ms) ? formatter(Intl.DateTimeFormat, options).format(ms) : "";
}

const STEPS = [["second", 60], ["minute", 60], ["hour", 24], ["day", 7], ["week", 4.35], ["month", 12], ["year", Infinity]];

/** "3 minutes ago", by the clock of the server as far as it is known. */
export function relative(ms, now = serverNow()) {
  let amount = (ms - now) / 1000;
  if (!isTime(ms)) return t("time.unknown");
  for (const [unit, size] of STEPS) {
    if (Math.abs(amount) < size) return formatter(Intl.RelativeTimeFormat, { numeric: "auto", style: "short" }).format(Math.round(amount), unit);
    amount /= size;
  }
  return dateTime(ms);
}

/** A time, relative, with the whole of it on hovering. */
export function ago(ms) {
  if (!isTime(ms)) return h("span", { class: "faint" }, "–");
  return h("time", { datetime: new Date(ms).toISOString(), title: dateTime(ms), class: "nowrap" }, relative(ms));
}

let skew = 0;
/** The viewer's clock may be wrong: the server's Date header says by how much. */
export function learnServerTime(date) {
  const told = Date.parse(date ?? "");
  if (Number.isFinite(told)) skew = Math.abs(told - Date.now()) > 5000 ? told - Date.now() : 0;
}
export function serverNow() {
  return Date.now() + skew;
}
export function clockSkew() {
  return skew;
}

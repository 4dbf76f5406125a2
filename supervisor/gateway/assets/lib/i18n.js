// Strings by key, in the language of the viewer. Plurals: a string may be an object by the categories of Intl.PluralRules for `n`.

import en from "../i18n/en.js";
import { kept } from "./store.js";

export const LANGUAGES = { en: "English", de: "Deutsch" };

let language = "en";
let strings = en;
let plurals = new Intl.PluralRules("en");

/** The language that was chosen, or the first of the browser's that there is. */
export async function initLanguage() {
  const wanted = [kept.get("language"), ...navigator.languages.map((tag) => tag.split("-")[0])];
  language = wanted.find((tag) => tag && Object.hasOwn(LANGUAGES, tag)) ?? "en";
  if (language !== "en") {
    const more = await import(`../i18n/${language}.js`);
    strings = { ...en, ...more.default };
  }
  plurals = new Intl.PluralRules(language);
  document.documentElement.lang = language;
}

export function currentLanguage() {
  return language;
}

/** For formats of numbers and times: the region of the browser, if it speaks this language. */
export function locale() {
  return navigator.languages.find((tag) => tag.split("-")[0] === language) ?? language;
}

/** Chooses a language; the page is loaded anew. */
export function chooseLanguage(tag) {
  kept.set("language", tag);
  location.reload();
}

/** The string of a key; `{name}` in it stands for what `values` has. */
export function t(key, values = {}) {
  let text = strings[key] ?? key;
  if (typeof text === "object") text = text[plurals.select(values.n ?? 0)] ?? text.other;
  return text.replace(/\{(\w+)\}/g, (whole, found) => (found in values ? shown(values[found]) : whole));
}

function shown(value) {
  return typeof value === "number" ? new Intl.NumberFormat(locale()).format(value) : String(value);
}

/** Whether there is a string of this key. */
export function has(key) {
  return Object.hasOwn(strings, key);
}

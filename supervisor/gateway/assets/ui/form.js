// A form out of a JSON Schema: strings, numbers, booleans and enumerations as fields, everything else as JSON. What is typed is checked as
// one types; the server checks again.

import { h } from "../lib/dom.js";
import { t } from "../lib/i18n.js";
import { plain, visible } from "../lib/text.js";
import { choice, field } from "./parts.js";

/** More properties of an object are entered as one JSON text. */
const MOST_FIELDS = 60;

let count = 0;

/** A form's state: `values` by property; `view()` its fields; `result()` the object, or null with `problems` filled. */
export function schemaForm(schema, changed = () => {}) {
  const id = `form-${(count += 1)}`;
  const properties = Object.entries(schema?.properties ?? {});
  const required = new Set(schema?.required ?? []);
  const whole = schema?.type !== "object" && properties.length === 0 || properties.length > MOST_FIELDS;
  const texts = {};
  const problems = {};
  let touched = false;
  for (const [key, of] of properties) texts[key] = of?.default === undefined ? "" : typeof of.default === "string" ? of.default : JSON.stringify(of.default);
  if (whole) texts[""] = "{}";
  const check = () => {
    for (const key of Object.keys(problems)) delete problems[key];
    if (whole) return parsed("", texts[""]);
    const result = {};
    for (const [key, of] of properties) {
      if (texts[key] === "") {
        if (required.has(key) && kindOf(of) !== "boolean") problems[key] = t("form.required");
        continue;
      }
      const value = read(key, of, texts[key]);
      if (value !== undefined) result[key] = value;
    }
    return result;
  };
  const parsed = (key, text) => {
    try {
      return JSON.parse(text);
    } catch {
      problems[key] = t("form.json");
      return undefined;
    }
  };
  const read = (key, of, text) => {
    switch (kindOf(of)) {
      case "integer":
      case "number": {
        const value = Number(text);
        if (!Number.isFinite(value) || (kindOf(of) === "integer" && !Number.isInteger(value))) problems[key] = t(`form.${kindOf(of)}`);
        else if (value < (of.minimum ?? -Infinity) || value > (of.maximum ?? Infinity)) problems[key] = t("form.range", { from: of.minimum ?? "–∞", to: of.maximum ?? "∞" });
        return value;
      }
      case "boolean":
        return text === "true";
      case "string": {
        if (text.length < (of.minLength ?? 0) || text.length > (of.maxLength ?? Infinity)) problems[key] = t("form.length", { from: of.minLength ?? 0, to: of.maxLength ?? "∞" });
        return text;
      }
      default:
        return parsed(key, text);
    }
  };
  const set = (key, text) => {
    texts[key] = text;
    touched = true;
    check();
    changed();
  };
  const control = (key, of, own) => {
    const wrong = touched && problems[key];
    const common = { id: own, class: "input", "aria-invalid": wrong ? "true" : null, "aria-describedby": [of?.description ? `${own}-hint` : "", wrong ? `${own}-problem` : ""].filter(Boolean).join(" ") || null, on: { input: (event) => set(key, event.currentTarget.value) } };
    if (Array.isArray(of?.enum) && of.enum.length <= 100) {
      return choice(plain(key), texts[key], [["", t("form.none")], ...of.enum.map((value) => [String(value), plain(String(value))])], (value) => set(key, value), { id: own, hidden: false });
    }
    if (kindOf(of) === "boolean") return choice(plain(key), texts[key], [["", t("form.none")], ["true", t("yes")], ["false", t("no")]], (value) => set(key, value), { id: own, hidden: false });
    if (kindOf(of) === "number" || kindOf(of) === "integer") return h("input", { ...common, type: "text", inputmode: "decimal", value: texts[key] });
    if (kindOf(of) === "string") return of?.maxLength > 0 && of.maxLength < 120 ? h("input", { ...common, type: "text", value: texts[key] }) : h("textarea", { ...common, rows: 2, value: texts[key] });
    return h("textarea", { ...common, class: "input mono", rows: 4, spellcheck: "false", placeholder: "{ }", value: texts[key] });
  };
  return {
    problems,
    result() {
      touched = true;
      const result = check();
      return Object.keys(problems).length ? null : result;
    },
    view() {
      if (whole) return field(t("form.whole"), control("", {}, id), { id, problem: touched ? problems[""] : null });
      if (properties.length === 0) return h("p", { class: "muted small" }, t("args.none"));
      return h("div", { class: "stack" }, properties.map(([key, of], index) => {
        const own = `${id}-${index}`;
        const label = [visible(plain(of?.title ?? key, 80)), required.has(key) ? h("span", { class: "faint" }, ` ${t("form.required_mark")}`) : null];
        return field(label, control(key, of, own), { id: own, hint: of?.description ? visible(plain(of.description, 500)) : null, problem: touched ? problems[key] : null });
      }));
    },
  };
}

function kindOf(schema) {
  const type = Array.isArray(schema?.type) ? schema.type.find((one) => one !== "null") : schema?.type;
  return type ?? "string";
}

/** The schema of an action's parameters. */
export function schemaOf(parameters) {
  const kinds = { int: "integer", float: "number", bool: "boolean", list: "array", map: "object" };
  return {
    type: "object",
    required: parameters.filter(({ required }) => required).map(({ name }) => name),
    properties: Object.fromEntries(parameters.map(({ name, description, type }) => [name, { type: kinds[type] ?? (["string", "integer", "number", "boolean", "array", "object"].includes(type) ? type : "string"), description }])),
  };
}

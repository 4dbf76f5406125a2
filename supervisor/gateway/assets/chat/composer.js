// Where one writes: text that grows, files by button, drop and paste, model and thinking level.

import { h } from "../lib/dom.js";
import { bytes } from "../lib/format.js";
import { t } from "../lib/i18n.js";
import { name, plain } from "../lib/text.js";
import { icon } from "../ui/icons.js";
import { button, choice } from "../ui/parts.js";
import { failed, toast } from "../ui/toast.js";
import { drafts } from "./outbox.js";
import { canUndo, chat, configure, link, send, stop, undo } from "./state.js";

/** What the gateway takes in one message: 256 KiB of text, and files that fit its body with their base64. */
const MOST_TEXT = 256 << 10;
const MOST_FILES = 8;
const MOST_BYTES = 6 << 20;

let files = [];
let editing = null;
let input = null;

const draftKey = () => chat.get().open ?? "new";

/** Puts a text into the field, for the viewer to send. */
export function compose(text, edited = null) {
  editing = edited;
  drafts.set(draftKey(), text);
  input.value = text;
  fit();
  chat.set({});
  input.focus();
  input.setSelectionRange(text.length, text.length);
}

export function focusComposer() {
  input?.focus();
}

/** Shows the draft of the session that was opened. */
export function showDraft() {
  editing = null;
  if (!input) return;
  input.value = drafts.get(draftKey());
  fit();
}

function fit() {
  if (!input) return;
  input.style.setProperty("height", "auto");
  input.style.setProperty("height", `${Math.min(input.scrollHeight + 2, innerHeight * 0.4)}px`);
}

async function submit(event) {
  event?.preventDefault();
  const text = input.value.trim();
  if (!text && !files.length) return;
  if (new TextEncoder().encode(text).length > MOST_TEXT) {
    toast(t("composer.too_long", { most: bytes(MOST_TEXT) }), { look: "bad" });
    return;
  }
  const [sentFiles, key, edited] = [files, draftKey(), editing];
  input.value = "";
  files = [];
  editing = null;
  fit();
  chat.set({});
  try {
    if (edited && canUndo()) await undo(edited.turns);
    await send(text, sentFiles.map(({ name: file, data }) => ({ name: file, data })));
    if (drafts.get(key).trim() === text) drafts.set(key, "");
    for (const { preview } of sentFiles) if (preview) URL.revokeObjectURL(preview);
  } catch (error) {
    // It stays where it was typed.
    failed(error);
    files = sentFiles;
    editing = edited;
    input.value = input.value.trim() ? `${text}\n${input.value}` : text;
    drafts.set(key, input.value);
    fit();
    chat.set({});
  }
}

async function attach(list) {
  for (const file of list) {
    const sum = files.reduce((all, { size }) => all + size, 0) + file.size;
    if (files.length >= MOST_FILES) toast(t("composer.too_many", { n: MOST_FILES }), { look: "bad" });
    else if (sum > MOST_BYTES) toast(t("composer.too_large", { name: plain(file.name, 60), most: bytes(MOST_BYTES) }), { look: "bad" });
    else files = [...files, { name: file.name, size: file.size, data: await base64(file), preview: file.type.startsWith("image/") ? URL.createObjectURL(file) : null }];
  }
  chat.set({});
}

function base64(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.addEventListener("load", () => resolve(reader.result.slice(reader.result.indexOf(",") + 1)));
    reader.addEventListener("error", () => reject(reader.error));
    reader.readAsDataURL(file);
  });
}

function detach(file) {
  if (file.preview) URL.revokeObjectURL(file.preview);
  files = files.filter((other) => other !== file);
  chat.set({});
}

/** Files dropped anywhere on the page belong to the message. */
export function acceptDrops(element) {
  element.addEventListener("dragover", (event) => {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    element.classList.add("dropping");
  });
  element.addEventListener("dragleave", (event) => {
    if (!element.contains(event.relatedTarget)) element.classList.remove("dropping");
  });
  element.addEventListener("drop", (event) => {
    if (!event.dataTransfer?.files.length) return;
    event.preventDefault();
    element.classList.remove("dropping");
    attach(event.dataTransfer.files);
  });
}

function onKey(event) {
  if (event.isComposing) return;
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey || (!event.shiftKey && !event.altKey && !matchMedia("(pointer: coarse)").matches))) submit(event);
  if (event.key === "Escape" && editing) {
    compose("");
    event.stopPropagation();
  }
}

const THINKING = ["", "off", "low", "medium", "high"];

export function composer() {
  const { details, models, transcript, newModel, newThinking, creating } = chat.get();
  const model = details?.config.model ?? newModel ?? "";
  const thinking = details?.config.thinkingLevel ?? newThinking ?? "";
  const running = transcript?.running;
  const names = models.map((one) => [one.alias || one.id, `${plain(one.alias || one.id, 60)}${one.state === "ready" ? "" : ` (${t(`model.${one.state}`)})`}`]);
  if (model && !names.some(([value]) => value === model)) names.push([model, plain(model, 60)]);
  const away = link.state.get().status !== "open";
  return h("form", { class: "composer", on: { submit } },
    editing ? h("div", { class: "row apart small muted" }, canUndo() ? t("message.editing") : t("message.editing_kept"), button(t("action.cancel"), () => compose(""), { look: "plain small" })) : null,
    files.length ? h("ul", { class: "row attached" }, files.map((file) => h("li", { key: `${file.name}${file.size}` }, file.preview ? h("img", { src: file.preview, alt: "", width: 32, height: 32 }) : icon("attach"), h("span", { class: "clip" }, name(file.name, 60)), h("span", { class: "faint tiny" }, bytes(file.size)), button(t("composer.remove", { name: plain(file.name, 60) }), () => detach(file), { look: "plain small", sign: "close", iconOnly: true })))) : null,
    h("textarea", {
      id: "message", rows: 1, "aria-label": t("composer.label"), placeholder: away ? t("composer.offline") : t("composer.placeholder"), value: "",
      ref: (element) => {
        const isFirst = input === null;
        if (input === element) return;
        input = element;
        queueMicrotask(() => { showDraft(); if (isFirst) input.focus(); });
      },
      on: {
        input: () => { drafts.set(draftKey(), input.value); fit(); },
        keydown: onKey,
        paste: (event) => { if (event.clipboardData.files.length) { event.preventDefault(); attach(event.clipboardData.files); } },
      },
    }),
    h("div", { class: "row tools" },
      h("label", { class: "button plain icon-only", title: t("composer.attach") }, icon("attach"), h("input", { type: "file", multiple: true, class: "visually-hidden", "aria-label": t("composer.attach"), on: { change: (event) => { attach([...event.currentTarget.files]); event.currentTarget.value = ""; } } })),
      names.length ? choice(t("composer.model"), model, [["", t("composer.model_default")], ...names], (value) => configure({ model: value }), { id: "model" }) : null,
      choice(t("composer.thinking"), thinking, THINKING.map((level) => [level, t(`thinking.${level || "default"}`)]), (value) => configure({ thinkingLevel: value }), { id: "thinking" }),
      h("span", { class: "grow" }),
      running ? button(t("composer.stop"), stop, { sign: "stop", key: "stop" }) : null,
      button(t("composer.send"), null, { look: "primary", sign: "send", iconOnly: true, type: "submit", disabled: creating })));
}

// What both pages begin with: the language, the theme, who is signed in, and what is said when nobody is or nobody answers.

import { connection, OfflineError, refreshSession, signIn } from "../lib/api.js";
import { h, show } from "../lib/dom.js";
import { chooseLanguage, currentLanguage, initLanguage, LANGUAGES, t } from "../lib/i18n.js";
import { kept } from "../lib/store.js";
import { openShortcuts } from "./dialog.js";
import { button, choice, field, state } from "./parts.js";
import { shortcut } from "../lib/keys.js";

/** How long a page that was left may take it that nobody else signed in, in milliseconds. */
const ASK_AGAIN_AFTER = 60_000;

const root = document.getElementById("app");

export function applyTheme() {
  const theme = kept.get("theme", "auto");
  if (theme === "auto") document.documentElement.removeAttribute("data-theme");
  else document.documentElement.dataset.theme = theme;
}

/** Language, theme and shortcuts, as both pages have them at their edge. */
export function preferences() {
  return [
    choice(t("theme"), kept.get("theme", "auto"), [["auto", t("theme.auto")], ["light", t("theme.light")], ["dark", t("theme.dark")]], (value) => { kept.set("theme", value); applyTheme(); }, { id: "theme" }),
    choice(t("language"), currentLanguage(), Object.entries(LANGUAGES), chooseLanguage, { id: "language" }),
    button(t("shortcuts.title"), openShortcuts, { look: "plain", sign: "keyboard", iconOnly: true }),
  ];
}

/** Starts a page: `start` runs once the viewer is signed in. */
export async function boot(start) {
  applyTheme();
  await initLanguage();
  root.replaceChildren();
  let asked = Date.now();
  document.addEventListener("visibilitychange", () => {
    if (document.hidden || Date.now() - asked < ASK_AGAIN_AFTER || connection.get().auth === "out") return;
    asked = Date.now();
    // What is wrong is said where it matters: by the next request of a view.
    refreshSession().catch(() => null);
  });
  shortcut("?", t("shortcuts.title"), openShortcuts);
  show(root, state("info", t("state.loading")));
  for (let wait = 500; ; wait = Math.min(wait * 2, 10_000)) {
    try {
      await signIn();
      break;
    } catch (error) {
      if (error.status === 401) return show(root, signInPage());
      const text = error instanceof OfflineError ? t("offline.text") : error.message;
      show(root, state("offline", error instanceof OfflineError ? t("offline.title") : t("error.title"), text));
      await new Promise((resolve) => setTimeout(resolve, wait));
    }
  }
  show(root);
  start(root);
}

/** A link or its code, as `talon gateway open` prints it. */
export function codeOf(text) {
  const code = text.trim().split("/open/").pop().split(/[?#]/)[0];
  return /^talon_[A-Za-z0-9-]+_[A-Za-z0-9_-]+$/.test(code) ? code : null;
}

function signInPage() {
  let problem = null;
  const draw = () => show(root, page());
  const open = (event) => {
    event.preventDefault();
    const code = codeOf(event.currentTarget.elements.link.value);
    if (code) location.assign(`/open/${code}`);
    else {
      problem = t("signin.wrong");
      draw();
    }
  };
  const page = () =>
    h("main", { class: "signin" },
      h("div", { class: "card" }, h("div", { class: "body stack wide" },
        h("div", { class: "stack tight" }, h("h1", {}, t("signin.title")), h("p", { class: "muted" }, t("signin.text"))),
        h("pre", { class: "code", css: { padding: "var(--space-3)" } }, "talon gateway open"),
        h("form", { class: "stack", on: { submit: open } },
          field(t("signin.link"), h("input", { class: "input mono", id: "link", name: "link", autocomplete: "off", spellcheck: "false", required: true, "aria-invalid": problem ? "true" : null, "aria-describedby": problem ? "link-problem" : null, autofocus: true }), { id: "link", problem }),
          button(t("signin.open"), null, { look: "primary", type: "submit" })),
        h("p", { class: "muted small" }, t("signin.note")))),
      h("div", { class: "row" }, preferences()));
  return page();
}

/** A line above everything while the gateway is away or the credential no longer holds; nothing otherwise. */
export function connectionBar() {
  const { auth, online } = connection.get();
  if (auth === "revoked") return h("div", { class: "bar-notice bad", role: "alert" }, h("strong", {}, t("revoked.title")), " ", t("revoked.text"), " ", button(t("action.reload"), () => location.reload(), { look: "small" }));
  if (!online) return h("div", { class: "bar-notice warn", role: "status" }, h("strong", {}, t("offline.title")), " ", t("offline.retrying"));
  return null;
}

// Words of the API in the viewer's language.

import { has, t } from "./i18n.js";
import { plain } from "./text.js";

/** A state, a role, a reason; one that is unknown is shown as it is, since a plugin may have made it up. */
export function word(kind, value) {
  const key = `${kind}.${value}`;
  return has(key) ? t(key) : plain(String(value ?? "").replaceAll("_", " "), 80);
}

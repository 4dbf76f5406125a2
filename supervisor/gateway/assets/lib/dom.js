// The only place that makes elements. Text always becomes text nodes: there is no way to hand in markup. `h` makes a tree, `morph`
// changes an old tree into a new one, so that focus, selection, scroll positions and what people opened or typed stay.

const SVG = "http://www.w3.org/2000/svg";
/** What an element was made from: `morph` compares that, and not the element, which people change as well. */
const made = new WeakMap();
/** Attributes that hold what people entered or opened: set as properties. */
const PROPERTIES = new Set(["value", "checked", "selected", "indeterminate"]);
/** Attributes through which text could become a program. */
const FORBIDDEN = /^(on|srcdoc$|style$|formaction$|action$|srcset$|innerhtml$|outerhtml$)/i;
/** Elements with a `ref` that were made since something was shown. */
let fresh = [];
const URLS = new Set(["href", "src", "xlink:href"]);

/** An element. `attributes`: names and values; `on` has listeners, `css` properties of the style, `key` its identity among siblings,
 *  `memo` a value that stands for all its children (then `children` is one function), `ref` a function that gets the element once it is shown. */
export function h(tag, attributes, ...children) {
  return make(document.createElement(tag), attributes, children);
}

/** An element of SVG. */
export function s(tag, attributes, ...children) {
  return make(document.createElementNS(SVG, tag), attributes, children);
}

function make(element, attributes, children) {
  const record = { attributes: {}, on: {}, css: {}, key: undefined, memo: undefined, lazy: undefined, ref: undefined };
  made.set(element, record);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name === "on") record.on = value;
    else if (name === "css") record.css = value;
    else if (name === "key" || name === "memo" || name === "ref") record[name] = value;
    else if (value !== undefined && value !== null && value !== false) record.attributes[name] = value;
  }
  for (const [name, value] of Object.entries(record.attributes)) setAttribute(element, name, value);
  for (const [name, value] of Object.entries(record.css)) element.style.setProperty(name, value);
  for (const type of Object.keys(record.on)) element.addEventListener(type, dispatch);
  if (record.memo !== undefined && typeof children[0] === "function") {
    record.lazy = children[0];
    element.setAttribute("data-lazy", "");
  } else {
    append(element, children);
  }
  if (record.ref) fresh.push(element);
  return element;
}

function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false || child === true) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

function setAttribute(element, name, value) {
  if (FORBIDDEN.test(name)) throw new Error(`the attribute ${name} is not for texts`);
  if (URLS.has(name) && !isOwnUrl(value) && safeUrl(value) === null) throw new Error("this address is not followed");
  if (PROPERTIES.has(name)) element[name] = value;
  else element.setAttribute(name, value === true ? "" : String(value));
}

function dispatch(event) {
  made.get(event.currentTarget)?.on[event.type]?.(event);
}

/** Addresses that our own code makes: of this site, and of files in memory. */
function isOwnUrl(url) {
  return /^(#|\/(?!\/)|blob:)/.test(url);
}

/** An address out of a text, if it may be followed: http, https or mailto. */
export function safeUrl(text) {
  try {
    const url = new URL(String(text).trim());
    return ["http:", "https:", "mailto:"].includes(url.protocol) ? url : null;
  } catch {
    return null;
  }
}

/** Makes what is behind `memo` in a tree that is about to be shown. */
function realize(root) {
  if (root.nodeType !== Node.ELEMENT_NODE) return root;
  for (const element of [root, ...root.querySelectorAll("[data-lazy]")]) {
    const record = made.get(element);
    if (!record?.lazy) continue;
    append(element, [record.lazy()]);
    record.lazy = undefined;
    element.removeAttribute("data-lazy");
    realizeBelow(element);
  }
  return root;
}

function realizeBelow(element) {
  for (const child of element.children) realize(child);
}

/** Shows this tree in a container, in place of what is there. */
export function show(container, ...children) {
  const wanted = document.createElement("div");
  append(wanted, children);
  morphChildren(container, wanted);
  const refs = fresh.filter((element) => element.isConnected);
  fresh = [];
  for (const element of refs) made.get(element).ref(element);
}

function canMorph(from, to) {
  if (from.nodeType !== to.nodeType || from.nodeName !== to.nodeName) return false;
  return from.nodeType !== Node.ELEMENT_NODE || made.get(from)?.key === made.get(to)?.key;
}

function morph(from, to) {
  if (from === to) return;
  if (from.nodeType === Node.TEXT_NODE) {
    if (from.data !== to.data) from.data = to.data;
    return;
  }
  const [was, is] = [made.get(from), made.get(to)];
  if (!was || !is) return;
  for (const name of Object.keys(was.attributes)) {
    if (name in is.attributes) continue;
    if (PROPERTIES.has(name)) from[name] = name === "value" ? "" : false;
    else from.removeAttribute(name);
  }
  for (const [name, value] of Object.entries(is.attributes)) {
    if (was.attributes[name] !== value) setAttribute(from, name, value);
  }
  for (const name of Object.keys(was.css)) if (!(name in is.css)) from.style.removeProperty(name);
  for (const [name, value] of Object.entries(is.css)) if (was.css[name] !== value) from.style.setProperty(name, value);
  for (const type of Object.keys(is.on)) if (!(type in was.on)) from.addEventListener(type, dispatch);
  const same = is.memo !== undefined && was.memo === is.memo;
  made.set(from, { ...is, lazy: undefined });
  if (!same) {
    if (is.lazy) {
      append(to, [is.lazy()]);
      realizeBelow(to);
    }
    morphChildren(from, to);
  }
  is.ref?.(from);
}

function morphChildren(parent, wanted) {
  const keyed = new Map();
  for (const child of parent.childNodes) {
    const key = made.get(child)?.key;
    if (key !== undefined) keyed.set(key, child);
  }
  let next = parent.firstChild;
  for (const to of [...wanted.childNodes]) {
    const key = made.get(to)?.key;
    const known = key === undefined ? undefined : keyed.get(key);
    if (known && known.nodeName === to.nodeName) {
      if (known === next) next = next.nextSibling;
      else parent.insertBefore(known, next);
      keyed.delete(key);
      morph(known, to);
    } else if (key === undefined && next && made.get(next)?.key === undefined && canMorph(next, to)) {
      const from = next;
      next = next.nextSibling;
      morph(from, to);
    } else {
      parent.insertBefore(realize(to), next);
    }
  }
  while (next) {
    const gone = next;
    next = next.nextSibling;
    gone.remove();
  }
}

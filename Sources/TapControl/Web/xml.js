// XML of recorded items as a tree. The items are well-formed: xmpptap has checked them before it recorded them, but for
// those that are truncated or inferred.
import { add, el } from "./dom.js";
import { visible } from "./format.js";
import { specification } from "./namespaces.js";

/** @typedef {{ name: string, attributes: [string, string][], children: (XMLNode | string)[], space: string }} XMLNode */

const entities = new Map([["lt", "<"], ["gt", ">"], ["amp", "&"], ["quot", '"'], ["apos", "'"]]);

/**
 * Decodes references.
 * @param {string} text
 */
export function unescaped(text) {
  return text.replace(/&(#x[0-9a-fA-F]+|#\d+|\w+);/g, (whole, name) => {
    if (name.startsWith("#")) {
      const code = name[1] === "x" ? parseInt(name.slice(2), 16) : parseInt(name.slice(1), 10);
      return code <= 0x10ffff ? String.fromCodePoint(code) : whole;
    }
    return entities.get(name) ?? whole;
  });
}

/** Maximum number of elements that are shown as a tree. */
export const maximumElements = 3000;
const maximumDepth = 200;

/**
 * Parses an item.
 * @param {string} text
 * @param {{ elements: number, depth: number }} [limits] the largest tree; what is left out is text
 * @returns {{ roots: (XMLNode | string)[], isCut: boolean, isRestricted: boolean }} whether the tree was cut, and whether the
 *   text has comments or other markup that XMPP does not allow
 */
export function parseXML(text, limits = { elements: maximumElements, depth: maximumDepth }) {
  const roots = /** @type {(XMLNode | string)[]} */ ([]);
  /** @type {XMLNode[]} */
  const open = [];
  /**
   * Prefixes in scope; an element without declarations shares the scope of its parent.
   * @type {Record<string, string>[]}
   */
  const spaces = [Object.assign(Object.create(null), { stream: "http://etherx.jabber.org/streams", xml: "", "": "jabber:client" })];
  let index = 0;
  let elements = 0;
  let isRestricted = false;
  const here = () => (open.length ? open[open.length - 1].children : roots);
  while (index < text.length) {
    if (text[index] !== "<") {
      let end = text.indexOf("<", index);
      if (end < 0) end = text.length;
      here().push(unescaped(text.slice(index, end)));
      index = end;
      continue;
    }
    if (text.startsWith("<![CDATA[", index)) {
      let end = text.indexOf("]]>", index);
      if (end < 0) end = text.length;
      here().push(text.slice(index + 9, end));
      index = end + 3;
      continue;
    }
    if (text[index + 1] === "?" || text[index + 1] === "!") {
      let end = text.indexOf(">", index);
      if (end < 0) end = text.length;
      here().push(text.slice(index, end + 1));
      isRestricted = true;
      index = end + 1;
      continue;
    }
    if (text[index + 1] === "/") {
      let end = text.indexOf(">", index);
      if (end < 0) end = text.length;
      open.pop();
      spaces.length = Math.max(1, open.length + 1);
      index = end + 1;
      continue;
    }
    // A start tag: quotes may contain ">".
    const tag = /^<([^\s/>]+)((?:\s+[^\s=/>]+\s*=\s*(?:"[^"]*"|'[^']*'))*)\s*(\/?)>/.exec(text.slice(index, index + 1100000));
    if (!tag || elements >= limits.elements || open.length >= limits.depth) {
      here().push(text.slice(index));
      return { roots, isCut: true, isRestricted };
    }
    elements += 1;
    const outer = spaces[spaces.length - 1];
    let scope = outer;
    /** @type {[string, string][]} */
    const attributes = [];
    for (const found of tag[2].matchAll(/([^\s=]+)\s*=\s*(?:"([^"]*)"|'([^']*)')/g)) {
      const value = unescaped(found[2] ?? found[3] ?? "");
      attributes.push([found[1], value]);
      if (found[1] !== "xmlns" && !found[1].startsWith("xmlns:")) continue;
      if (scope === outer) scope = Object.create(outer);
      scope[found[1].slice(6)] = value;
    }
    const colon = tag[1].indexOf(":");
    const space = scope[colon < 0 ? "" : tag[1].slice(0, colon)] ?? "";
    const node = { name: tag[1], attributes, children: [], space };
    here().push(node);
    if (!tag[3]) {
      open.push(node);
      spaces.push(scope);
    }
    index += tag[0].length;
  }
  return { roots, isCut: false, isRestricted };
}

/**
 * The local name.
 * @param {XMLNode} node
 */
export function local(node) {
  return node.name.slice(node.name.indexOf(":") + 1);
}

/** @param {XMLNode} node @param {string} name */
export function attribute(node, name) {
  return node.attributes.find((entry) => entry[0] === name)?.[1];
}

/**
 * The child elements.
 * @param {XMLNode} node
 * @returns {XMLNode[]}
 */
export function elements(node) {
  return /** @type {XMLNode[]} */ (node.children.filter((child) => typeof child !== "string"));
}

/**
 * The text of an element.
 * @param {XMLNode} node
 * @returns {string}
 */
export function textOf(node) {
  return node.children.map((child) => (typeof child === "string" ? child : "")).join("");
}

/**
 * A text in which redacted secrets are marked.
 * @param {string} text
 * @param {string} kind
 */
function marked(text, kind) {
  const node = el("span", { class: kind });
  let last = 0;
  for (const found of text.matchAll(/\[redacted:([a-z0-9-]+)(#\d+)?\]/g)) {
    add(node, [visible(text.slice(last, found.index))]);
    add(node, [el("mark", { class: "redacted", title: `xmpptap has replaced a secret: ${found[1]}`, text: found[0] })]);
    last = (found.index ?? 0) + found[0].length;
  }
  add(node, [visible(text.slice(last))]);
  return node;
}

const longText = 2000;

/**
 * Draws a tree of elements, each with the name of its namespace.
 * @param {(XMLNode | string)[]} nodes
 * @param {string} outer the namespace of the parent
 * @returns {any}
 */
export function drawTree(nodes, outer = "jabber:client") {
  const list = el("ul", { class: "tree" });
  for (const node of nodes) {
    if (typeof node === "string") {
      if (!node.trim()) continue;
      list.appendChild(el("li", null, cutText(node)));
      continue;
    }
    const head = el("span", { class: "tag" }, "<", el("b", { text: visible(node.name) }));
    for (const [name, value] of node.attributes) {
      add(head, [" ", el("i", { text: visible(name) }), "=", marked(`"${value}"`, "value")]);
    }
    const inner = node.children.filter((child) => typeof child !== "string" || child.trim());
    const what = node.space !== outer ? specification(node.space) : undefined;
    const note = what ? el("span", { class: "spec", text: `${what[0]} ${what[1]}` }) : null;
    if (inner.length === 0) {
      list.appendChild(el("li", null, add2(head, "/>"), note));
    } else if (inner.length === 1 && typeof inner[0] === "string" && inner[0].length < 120) {
      list.appendChild(el("li", null, add2(head, ">"), marked(inner[0], "text"),
        el("span", { class: "tag" }, "</", el("b", { text: visible(node.name) }), ">"), note));
    } else {
      const details = el("details", { open: true }, el("summary", null, add2(head, ">"), note), drawTree(inner, node.space),
        el("span", { class: "tag close" }, "</", el("b", { text: visible(node.name) }), ">"));
      list.appendChild(el("li", null, details));
    }
  }
  return list;
}

/** @param {Node} node @param {string} text */
function add2(node, text) {
  add(node, [text]);
  return node;
}

/**
 * A text that is cut until the rest is asked for.
 * @param {string} text
 * @param {number} [most]
 */
export function cutText(text, most = longText) {
  if (text.length <= most) return marked(text, "text");
  const node = marked(text.slice(0, most), "text");
  const more = el("button", { class: "small more", text: `show ${text.length - most} more characters` });
  more.addEventListener("click", () => {
    more.remove();
    add(node, [visible(text.slice(most))]);
  });
  add(node, [more]);
  return node;
}

/**
 * The XML as it was sent, with redacted secrets marked.
 * @param {string} text
 */
export function drawRaw(text) {
  const shown = text.length > 200000 ? text.slice(0, 200000) : text;
  const node = el("pre", { class: "raw" }, marked(shown, "text"));
  if (shown.length < text.length) add(node, [`\n… ${text.length - shown.length} more characters; copy the XML to see them`]);
  return node;
}

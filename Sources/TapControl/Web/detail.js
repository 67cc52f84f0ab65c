// One record: what it is, what xmpptap did with it, and its XML.
import { copy, el, fill } from "./dom.js";
import { filterCondition, sessionName, shellCommand, size, span, stamp, visible } from "./format.js";
import { described, splitName } from "./namespaces.js";
import { rowText, what } from "./rows.js";
import { cutText, drawRaw, drawTree, elements, local, maximumElements, parseXML } from "./xml.js";

/** Maximum number of bytes of a picture, and of its pixels, that are shown. */
const maximumPicture = 2 << 20;
const maximumPixels = 4096 * 4096;
/** Number of characters of a value that are shown until the rest is asked for. */
const maximumFact = 300;

/** The pane with the selected record. */
export class Detail {
  /**
   * @param {any} source
   * @param {{ go: (at: number) => void, filter: (text: string, isMore: boolean) => void, say: (text: string) => void,
   *   session: (number: number) => void, test: (number: number) => void, close: () => void, shown: () => void }} events
   */
  constructor(source, events) {
    this.source = source;
    this.events = events;
    this.node = el("section", { class: "detail", "aria-label": "Selected record", tabindex: -1 });
    this.tab = "tree";
    this.at = -1;
    /** The position of the record that is drawn. */
    this.drawn = -1;
    /** @type {any} */
    this.answer = null;
    this.empty();
  }

  /** The session of the record that is shown; undefined while none is. */
  get session() { return this.answer?.row?.session[0]; }

  empty() {
    this.at = -1;
    this.answer = null;
    fill(this.node, el("p", { class: "hint", text: "Select a record to see its XML and what xmpptap knows about it." }));
  }

  /**
   * Fetches and shows a record.
   * @param {number} at
   */
  async show(at) {
    if (at === this.at) return;
    this.at = at;
    // The one that is still drawn is of another record.
    this.answer = null;
    try {
      const answer = await this.source.record(at);
      if (this.at !== at) return;
      this.answer = answer;
      this.draw();
      this.events.shown();
    } catch (error) {
      if (this.at === at) fill(this.node, el("p", { class: "fault", text: `The record cannot be read: ${/** @type {Error} */ (error).message}` }));
    }
  }

  draw() {
    const { record, row } = this.answer;
    if (!row) {
      fill(this.node, el("p", { class: "hint", text: "xmpptap no longer keeps this record; a capture (--capture FILE) has all of them." }));
      return;
    }
    const shown = /** @type {any} */ ({});
    for (const name in row) shown[name] = row[name][0];
    const title = el("header", null,
      el("h2", null, shown.number ? el("span", { class: "number", text: `#${shown.number} ` }) : null,
        shown.direction ? el("span", { class: shown.direction === 1 ? "send" : "recv", text: shown.direction === 1 ? "SEND " : "RECV " }) : null,
        visible(what(shown))),
      el("button", { class: "plain", text: "✕", "aria-label": "Close the details", title: "Close (Esc)", onclick: this.events.close }),
      el("p", { class: "lead", text: rowText(shown) }),
      el("p", { class: "when", text: stamp(shown.time) }));
    const parts = [title, this.links(), this.facts(record ?? {}, shown)];
    if (record?.xml !== undefined || record?.base64 !== undefined) parts.push(this.item(record, shown.session));
    parts.push(...this.pictures(record ?? {}));
    const scrolled = this.node.scrollTop;
    fill(this.node, ...parts);
    this.node.scrollTop = this.drawn === this.at ? scrolled : 0;
    this.drawn = this.at;
  }

  links() {
    const { request, answer } = this.answer;
    const line = el("p", { class: "links" });
    if (request !== undefined) line.appendChild(el("button", { class: "link", text: "↑ its request (a)", onclick: () => this.events.go(request) }));
    if (answer !== undefined) line.appendChild(el("button", { class: "link", text: "↓ its answer (a)", onclick: () => this.events.go(answer) }));
    return line.childNodes.length ? line : null;
  }

  /** Goes to the request of an answer, or to the answer to a request. */
  follow() {
    if (this.at >= 0 && !this.answer) return this.events.say("the record is still being read");
    const target = this.answer?.request ?? this.answer?.answer;
    if (target !== undefined) this.events.go(target);
    else this.events.say(this.answer?.surveyed === false ? "the answers are still being paired" : "this record has no request and no answer");
  }

  /**
   * A fact with the buttons to filter by it.
   * @param {string} name @param {any} value @param {string} [filter] @param {string} [note]
   */
  fact(name, value, filter, note) {
    // What a screen reader says; the value can be an element.
    const said = value instanceof Node ? filter : `${name} ${value}`;
    const buttons = filter ? el("span", { class: "narrow" },
      el("button", { class: "small", text: "only", title: `Show only records with ${filter}`, "aria-label": `Only ${said}`, onclick: () => this.events.filter(filter, true) }),
      el("button", { class: "small", text: "not", title: `Hide records with ${filter}`, "aria-label": `Not ${said}`, onclick: () => this.events.filter(`not ${filter}`, true) })) : null;
    const shown = value instanceof Node ? value : cutText(typeof value === "object" ? JSON.stringify(value) : String(value), maximumFact);
    return el("tr", null, el("th", { scope: "row", text: name }),
      el("td", null, el("span", { class: "value" }, shown), note ? el("span", { class: "spec", text: note }) : null, buttons));
  }

  /** @param {any} record @param {any} row */
  facts(record, row) {
    /** @type {HTMLElement[]} */
    const rows = [];
    const add = (/** @type {string} */ name, /** @type {any} */ value, /** @type {string | undefined} */ filter = undefined, /** @type {string | undefined} */ note = undefined) => {
      if (value !== undefined && value !== null && value !== "") rows.push(this.fact(name, value, filter, note));
    };
    if (row.session) {
      add("session", el("span", null, el("button", { class: "link", text: sessionName(row.session), onclick: () => this.events.session(row.session) }), " ",
        el("button", { class: "small", text: "make a test", title: "Make a regression test of this session", onclick: () => this.events.test(row.session) })), `session:${row.session}`, record.jid ?? record.user ?? record.domain ?? "");
    }
    for (const name of ["from", "to"]) add(name, record[name], filterCondition(name, record[name]));
    add("type", record.type, filterCondition("type", record.type));
    add("id", record.id, filterCondition("id", record.id));
    if (record.payload) {
      const [space, name] = splitName(record.payload);
      add("payload", name, filterCondition("payload", record.payload), described(space) || space);
    }
    add("what", record.message && record.message !== row.text ? record.message : undefined);
    add("condition", record.condition, filterCondition("condition", record.condition));
    add("code", record.code, filterCondition("code", record.code));
    add("action", record.action, filterCondition("action", record.action));
    add("rule", record.rule, filterCondition("rule", record.rule));
    if (record.origin === "tap") add("origin", "xmpptap", "origin:tap");
    if (record.truncated) add("truncated", "the record has only a part of the item");
    if (record.round_trip !== undefined) add(record.answers ? "answered after" : "took", span(record.round_trip * 1e6), record.answers ? `round-trip>${Math.max(1, Math.floor(record.round_trip * 1000))}ms` : undefined);
    if (record.length) {
      const place = record.offset !== undefined ? `bytes ${record.offset} to ${record.offset + record.length - 1} of stream ${record.epoch ?? 0} of the ${record.leg}` : "";
      add("size", size(record.length), `size>${record.length - 1}`, place);
    }
    if (record.chunks?.length) add("reads", `the item arrived in ${record.chunks.length + 1} reads, split after ${record.chunks.slice(0, 20).join(", ")} bytes`);
    add("level", record.level, record.level ? `level:${record.level}` : undefined);
    if (record.part && record.part !== "session") add("part", record.part, `part:${record.part}`);
    const groups = [el("table", { class: "facts" }, el("tbody", null, ...rows))];
    for (const [name, title] of [["sasl", "SASL"], ["tls", "TLS"], ["sm", "Stream management"], ["details", "Details"]]) {
      const entries = Object.entries(record[name] ?? {});
      if (entries.length === 0) continue;
      groups.push(el("h3", { text: title }), el("table", { class: "facts" }, el("tbody", null,
        ...entries.map(([key, value]) => this.fact(key.replaceAll("_", " "), Array.isArray(value) ? value.join(", ") : value)))));
    }
    return el("div", null, ...groups);
  }

  /**
   * The XML in its forms.
   * @param {any} record
   * @param {number} session
   */
  item(record, session) {
    const xml = record.xml ?? "";
    const body = el("div", { class: "xml", role: "tabpanel" });
    const forms = /** @type {[string, string][]} */ ([["tree", "Tree"], ["raw", "Raw"]]);
    if (record.edited !== undefined) forms.push(["diff", "Before and after"]);
    const draw = () => {
      for (const tab of tabs.children) tab.setAttribute("aria-selected", String(tab.id === `xml-${shown}`));
      if (record.xml === undefined) fill(body, el("p", { class: "hint", text: `${size(atob(record.base64).length)} that are not text` }), el("pre", { class: "raw", text: hexadecimal(record.base64) }));
      else if (shown === "raw") fill(body, drawRaw(xml));
      else if (shown === "diff") fill(body, el("h4", { text: "as received" }), drawRaw(xml), el("h4", { text: "as sent on" }), drawRaw(record.edited));
      else {
        const { roots, isCut } = parseXML(xml);
        fill(body, drawTree(roots), isCut ? el("p", { class: "hint", text: `The rest is shown as text: more than ${maximumElements} elements, or a truncated item.` }) : null);
      }
    };
    let shown = forms.some(([name]) => name === this.tab) ? this.tab : "tree";
    const tabs = el("div", { class: "tabs", role: "tablist", "aria-label": "Form of the XML" }, ...forms.map(([name, text]) => el("button", {
      id: `xml-${name}`, role: "tab", text, onclick: () => { shown = this.tab = name; draw(); },
    })));
    const say = this.events.say;
    const to = record.direction === "recv" ? "client" : "server";
    const buttons = record.xml === undefined ? null : el("div", { class: "copies" }, "copy",
      el("button", { class: "small", text: "XML", title: "Copy the XML (y)", onclick: () => copy(xml, say) }),
      el("button", { class: "small", text: "filter", title: "Copy a filter for this item", onclick: () => copy(itemFilter(record, session), say) }),
      el("button", { class: "small", text: "scansion", title: "Copy a step of a scansion script with this stanza", onclick: () => copy(scansionStep(record), say) }),
      el("button", { class: "small", text: "inject command", title: "Copy a command that sends this stanza again", onclick: () => copy(injectCommand(record, to), say) }));
    draw();
    return el("div", null, el("div", { class: "bar" }, tabs, buttons), body);
  }

  /**
   * Pictures in the item: only formats that browsers decode without scripts, and not too large ones.
   * @param {any} record
   */
  pictures(record) {
    if (!record.xml || !/BINVAL|urn:xmpp:avatar:data|urn:xmpp:bob/.test(record.xml)) return [];
    /** @type {HTMLElement[]} */
    const found = [];
    const search = (/** @type {any} */ node) => {
      if (["BINVAL", "data"].includes(local(node))) {
        const text = node.children.map((/** @type {any} */ child) => (typeof child === "string" ? child : "")).join("").replace(/\s/g, "");
        const picture = drawPicture(text);
        if (picture) found.push(picture);
      }
      elements(node).forEach(search);
    };
    for (const root of parseXML(record.xml).roots) if (typeof root !== "string") search(root);
    return found.slice(0, 4);
  }
}

/** @param {string} base64 */
function hexadecimal(base64) {
  const bytes = atob(base64).slice(0, 4096);
  const lines = [];
  for (let start = 0; start < bytes.length; start += 16) {
    const part = [...bytes.slice(start, start + 16)];
    lines.push(`${start.toString(16).padStart(6, "0")}  ${part.map((byte) => byte.charCodeAt(0).toString(16).padStart(2, "0")).join(" ").padEnd(48)} ${part.map((byte) => (byte >= " " && byte <= "~" ? byte : ".")).join("")}`);
  }
  return lines.join("\n");
}

/**
 * A filter for an item.
 * @param {any} record
 * @param {number} session
 */
export function itemFilter(record, session) {
  const kind = ["message", "presence", "iq"].includes(record.name) ? record.name : filterCondition("element", record.name);
  const parts = [session ? `session:${session}` : "", filterCondition("id", record.id) ?? kind];
  return parts.filter(Boolean).join(" and ");
}

/**
 * A step of a scansion script: what a client sends or receives.
 * @param {any} record
 */
export function scansionStep(record) {
  const [, user] = /^([^@/]+)@/.exec(record.jid ?? record.user ?? "") ?? [, record.user ?? "client"];
  // The name of a client is one word.
  const word = user.replace(/[^\p{L}\p{N}_-]/gu, "") || "client";
  const name = word[0].toUpperCase() + word.slice(1);
  return `${name} ${record.direction === "send" ? "sends" : "receives"}:\n${record.xml.split("\n").map((/** @type {string} */ line) => `\t${line}`).join("\n")}\n`;
}

/**
 * A command that injects a stanza.
 * @param {any} record
 * @param {string} to
 */
export function injectCommand(record, to) {
  // printf prints the argument as it is; echo would interpret backslashes in some shells.
  return `${shellCommand(["printf", "%s", record.xml])} | ${shellCommand(["xmpptap", "inject", "--session", record.session, "--to", to, "-"])}`;
}

/**
 * The type of a picture by its first bytes, and its size in pixels.
 * @param {Uint8Array} bytes
 * @returns {[string, number, number] | null}
 */
export function pictureType(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const begins = (/** @type {number[]} */ ...magic) => magic.every((byte, index) => bytes[index] === byte);
  if (bytes.length < 30) return null;
  if (begins(0x89, 0x50, 0x4e, 0x47)) return ["image/png", view.getUint32(16), view.getUint32(20)];
  if (begins(0x47, 0x49, 0x46, 0x38)) return ["image/gif", view.getUint16(6, true), view.getUint16(8, true)];
  if (begins(0x52, 0x49, 0x46, 0x46) && String.fromCharCode(...bytes.subarray(8, 12)) === "WEBP") {
    switch (String.fromCharCode(...bytes.subarray(12, 16))) {
      // Extended: two numbers of 24 bits, each less by one.
      case "VP8X": return ["image/webp", 1 + (view.getUint32(24, true) & 0xffffff), 1 + (view.getUint32(26, true) >>> 8)];
      // Lossless: after a signature, two numbers of 14 bits, each less by one.
      case "VP8L": {
        const bits = view.getUint32(21, true);
        return bytes[20] === 0x2f ? ["image/webp", 1 + (bits & 0x3fff), 1 + ((bits >>> 14) & 0x3fff)] : null;
      }
      // Lossy: a key frame has its size after a start code.
      case "VP8 ": return bytes[23] === 0x9d && bytes[24] === 0x01 && bytes[25] === 0x2a
        ? ["image/webp", view.getUint16(26, true) & 0x3fff, view.getUint16(28, true) & 0x3fff] : null;
      default: return null;
    }
  }
  if (!begins(0xff, 0xd8, 0xff)) return null;
  for (let place = 2; place + 9 < bytes.length && bytes[place] === 0xff;) {
    const marker = bytes[place + 1];
    if (marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc) {
      return ["image/jpeg", view.getUint16(place + 7), view.getUint16(place + 5)];
    }
    place += 2 + view.getUint16(place + 2);
  }
  return null;
}

/**
 * A picture that may be shown, or a sentence why it may not; null if it is not base64.
 * @param {string} base64
 * @param {number} [bytesAllowed]
 * @param {number} [pixelsAllowed]
 * @returns {{ blob: Blob, type: string, width: number, height: number } | string | null}
 */
export function pictureOf(base64, bytesAllowed = maximumPicture, pixelsAllowed = maximumPixels) {
  if (base64.length > bytesAllowed * 1.4) return `a picture of ${size(base64.length * 0.75)}, too large to show`;
  let bytes;
  try { bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0)); } catch { return null; }
  const found = pictureType(bytes);
  if (!found) return "binary data that is no PNG, JPEG, GIF or WebP picture; not shown";
  const [type, width, height] = found;
  if (width * height > pixelsAllowed || !width || !height) return `a picture of ${width} × ${height} pixels, too large to show`;
  return { blob: new Blob([bytes], { type }), type, width, height };
}

/** @param {string} base64 */
export function drawPicture(base64) {
  const picture = pictureOf(base64);
  if (picture === null) return null;
  if (typeof picture === "string") return el("p", { class: "hint", text: picture });
  const { blob, type, width, height } = picture;
  const url = URL.createObjectURL(blob);
  return el("figure", null, el("img", { src: url, alt: `picture of ${width} × ${height} pixels`, onload: () => URL.revokeObjectURL(url) }),
    el("figcaption", { text: `${type}, ${width} × ${height}, ${size(blob.size)}` }));
}


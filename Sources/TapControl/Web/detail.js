// One record: what it is, what xmpptap did with it, and its XML.
import { copy, el, fill } from "./dom.js";
import { filterCondition, sessionName, shellCommand, shellQuoted, size, span, stamp, visible } from "./format.js";
import { described, splitName } from "./namespaces.js";
import { rowText, what } from "./rows.js";
import { cutText, drawRaw, drawTree, elements, local, maximumElements, parseXML } from "./xml.js";

/** Maximum number of bytes of a picture, and of its pixels, that are shown. */
const maximumPicture = 2 << 20;
const maximumPixels = 4096 * 4096;
/** Number of characters of a value that are shown until the rest is asked for. */
const maximumFact = 300;
/** The kinds of records of which the boundaries of reads are recorded. */
const boundedKinds = new Set(["declaration", "stream-open", "stanza", "element", "whitespace", "stream-close"]);
/** Maximum number of borders that are listed, and of bytes that are shown with them. */
const maximumBorders = 20;
const maximumDump = 4096;

/** The pane with the selected record. */
export class Detail {
  /**
   * @param {any} source
   * @param {{ go: (at: number) => void, filter: (text: string, isMore: boolean) => void, say: (text: string) => void,
   *   session: (number: number) => void, test: (number: number) => void, close: () => void, shown: () => void,
   *   find?: (number: number) => any, state?: () => any }} events the last two return a session of the list, and the state of the source
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
    for (const [name, text] of this.borders(record)) add(name, text);
    add("level", record.level, record.level ? `level:${record.level}` : undefined);
    if (record.part && record.part !== "session") add("part", record.part, `part:${record.part}`);
    const groups = [el("table", { class: "facts" }, el("tbody", null, ...rows))];
    for (const [name, title] of [["sasl", "SASL"], ["tls", "TLS"], ["sm", "Stream management"], ["details", "Details"]]) {
      const entries = [...(name === "sm" ? managementFacts(record) : []), ...Object.entries(record[name] ?? {})];
      if (entries.length === 0) continue;
      groups.push(el("h3", { text: title }), el("table", { class: "facts" }, el("tbody", null,
        ...entries.map(([key, value]) => this.fact(key.replaceAll("_", " "), Array.isArray(value) ? value.join(", ") : value, factFilter(record, key, value))))));
    }
    return el("div", null, ...groups);
  }

  /**
   * Which borders of bytes the records of a session have; undefined if the session is not listed.
   * @param {any} record
   */
  knownBorders(record) {
    const known = this.events.find?.(this.session)?.borders;
    return known === "partial" && this.events.state?.().live ? "reads" : known;
  }

  /**
   * Where reads from the socket and TLS records have split an item, in words. Nothing is inferred: what is not recorded is not known.
   * @param {any} record
   * @returns {[string, string][]}
   */
  borders(record) {
    if (!record.direction || !record.length || record.truncated || record.origin === "tap" || !boundedKinds.has(record.kind)) return [];
    const known = this.knownBorders(record);
    if (known === "missing" || !known && !record.chunks) return known ? [["borders", "the borders of reads and TLS records are not recorded"]] : [];
    const say = (/** @type {number[]} */ offsets, /** @type {string} */ word) => (offsets.length
      ? `the item arrived in ${offsets.length + 1} ${word}s, split after ${offsets.slice(0, maximumBorders).join(", ")}${offsets.length > maximumBorders ? " …" : ""} bytes` : `the item arrived inside one ${word}`);
    const lines = /** @type {[string, string][]} */ ([]);
    const records = record.tls_records;
    // Of packets with TLS, segments have ciphertext only.
    if (known !== "segments" || !records) {
      const word = known === "segments" ? "TCP segment" : "read";
      lines.push([`${word}s`, record.chunks || known !== "partial" ? say(record.chunks ?? [], word) : "their borders are not recorded"]);
    }
    const session = this.events.find?.(this.session);
    if (records) lines.push(["TLS records", say(records, "TLS record")]);
    else if (record.jid && (record.direction === "send" ? session?.client_tls : session?.server_tls)) lines.push(["TLS records", "their borders are not recorded"]);
    return lines;
  }

  /**
   * The bytes of an item, with a line at each border that is known.
   * @param {any} record
   */
  drawBytes(record) {
    const bytes = record.xml === undefined ? binary(record.base64) : new TextEncoder().encode(record.xml);
    /** @type {Map<number, string[]>} */
    const marks = new Map();
    const isWhole = bytes.length === record.length;
    const isInTLS = record.tls_records && this.knownBorders(record) === "segments";
    for (const [offsets, text] of [[isInTLS ? [] : record.chunks, "a read ends"], [record.tls_records, "a TLS record ends"]]) {
      for (const offset of isWhole ? offsets ?? [] : []) marks.set(offset, [...marks.get(offset) ?? [], text]);
    }
    return [el("pre", { class: "raw dump", tabindex: 0, "aria-label": "Bytes", text: hexadecimal(bytes, marks) }),
      isWhole || record.length === undefined ? null : el("p", { class: "hint", text: `The record has ${size(bytes.length)} of an item of ${size(record.length)}, because secrets are replaced or a part is missing: the borders cannot be shown in them.` })];
  }

  /**
   * The XML in its forms.
   * @param {any} record
   * @param {number} session
   */
  item(record, session) {
    const xml = record.xml ?? "";
    const body = el("div", { class: "xml", role: "tabpanel" });
    const forms = /** @type {[string, string][]} */ ([["tree", "Tree"], ["raw", "Raw"], ["bytes", "Bytes"]]);
    if (record.edited !== undefined) forms.push(["diff", "Before and after"]);
    const draw = () => {
      for (const tab of tabs.children) tab.setAttribute("aria-selected", String(tab.id === `xml-${shown}`));
      if (record.xml === undefined) fill(body, el("p", { class: "hint", text: `${size(atob(record.base64).length)} that are not text` }), ...this.drawBytes(record));
      else if (shown === "bytes") fill(body, ...this.drawBytes(record));
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
    const curl = curlCommand({ ...record, session }, to, this.events.state?.());
    const buttons = record.xml === undefined ? null : el("div", { class: "copies" }, "copy",
      el("button", { class: "small", text: "XML", title: "Copy the XML (y)", onclick: () => copy(xml, say) }),
      el("button", { class: "small", text: "filter", title: "Copy a filter for this item", onclick: () => copy(itemFilter(record, session), say) }),
      el("button", { class: "small", text: "scansion", title: "Copy a step of a scansion script with this stanza", onclick: () => copy(scansionStep(record), say) }),
      el("button", { class: "small", text: "inject command", title: "Copy a command that sends this stanza again", onclick: () => copy(injectCommand(record, to), say) }),
      curl ? el("button", { class: "small", text: "curl", title: "Copy a request to the control API that sends this stanza again", onclick: () => this.copyCurl(curl) }) : null);
    draw();
    return el("div", null, el("div", { class: "bar" }, tabs, buttons), body);
  }

  /** @param {string} command */
  async copyCurl(command) {
    await copy(command, this.events.say);
    if (command.includes("$XMPPTAP_TOKEN")) this.events.say("copied; XMPPTAP_TOKEN must be the token in the address that xmpptap has printed");
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
function binary(base64) { return Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0)); }

/**
 * Bytes as lines of hexadecimal numbers and text. A line ends at each mark, which follows it.
 * @param {Uint8Array} bytes
 * @param {Map<number, string[]>} marks texts by their offsets
 */
export function hexadecimal(bytes, marks) {
  const end = Math.min(bytes.length, maximumDump);
  const stops = [...marks.keys()].filter((offset) => offset > 0 && offset < end).sort((one, other) => one - other);
  const lines = [];
  for (let start = 0; start < end;) {
    const stop = Math.min(start + 16, stops[0] ?? end, end);
    const part = [...bytes.subarray(start, stop)];
    lines.push(`${start.toString(16).padStart(4, "0")} ${part.map((byte) => byte.toString(16).padStart(2, "0")).join(" ").padEnd(47)} ${part.map((byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : ".")).join("")}`);
    if (stop === stops[0]) lines.push(`──── after ${stops.shift()} bytes: ${marks.get(stop)?.join(", ")} ────`);
    start = stop;
  }
  if (end < bytes.length) lines.push(`… ${bytes.length - end} bytes more`);
  return lines.join("\n");
}

/**
 * The element of an item.
 * @param {any} record
 * @returns {import("./xml.js").XMLNode | undefined}
 */
function rootOf(record) {
  const root = record.xml === undefined ? undefined : parseXML(record.xml, { elements: 1, depth: 1 }).roots.find((one) => typeof one !== "string");
  return typeof root === "object" ? root : undefined;
}

/**
 * The attributes of an element of stream management.
 * @param {any} record
 * @returns {[string, any][]}
 */
function managementFacts(record) {
  const root = rootOf(record);
  return root?.space.startsWith("urn:xmpp:sm:") ? root.attributes.filter(([name]) => !name.startsWith("xmlns")) : [];
}

/**
 * A filter for a decoded fact. The language has no condition on what is encoded in an item, or known otherwise, so only facts that
 * its element shows have one.
 * @param {any} record
 * @param {string} name
 * @param {any} value
 * @returns {string | undefined}
 */
export function factFilter(record, name, value) {
  const root = rootOf(record);
  if (!root || typeof value === "object") return undefined;
  if (name === "step" && local(root) === value) return filterCondition("element", `{${root.space}}${value}`);
  // An expression of rules, and a placeholder, mean something else.
  return root.attributes.some(([key, text]) => key === name && text === String(value) && !text.startsWith("[redacted")) ? filterCondition("inspect", `@${name}=${value}`) : undefined;
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
 * A request to the control API of the running proxy that injects a stanza; undefined if the page has no proxy, or it has no control
 * API. The control socket belongs to its user and needs no token. The token of a page that acts is never part of the command.
 * @param {any} record
 * @param {string} to
 * @param {any} state
 * @returns {string | undefined}
 */
export function curlCommand(record, to, state) {
  if (!state?.live || record.xml === undefined || !["stanza", "element"].includes(record.kind)) return undefined;
  const data = JSON.stringify({ to, stanza: record.xml });
  const path = `/sessions/${record.session}/inject`;
  // One argument of a program has at most 128 KiB on Linux; printf is a part of the shell.
  const input = `${shellCommand(["printf", "%s", data])} | `;
  if (state.control) return input + shellCommand(["curl", "-sS", "--unix-socket", state.control, "--data-binary", "@-", `http://tap${path}`]);
  if (!state.acts) return undefined;
  return `${input}curl -sS -H "Authorization: Bearer $XMPPTAP_TOKEN" -H 'Content-Type: application/json' --data-binary @- ${shellQuoted(`${location.origin}${path}`)}`;
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


// The conditions of a page's filter.
import { addressBytes, FilteredItem, isSameAccount, prepared, writtenAddress } from "./filteritem.js";
import { FilterValue, nearestWord } from "./filtervalue.js";
import { PatternFault, regularExpression } from "./pattern.js";
import { attribute, elements, local } from "./xml.js";

/**
 * @typedef {import("./xml.js").XMLNode} XMLNode
 * @typedef {import("./filteritem.js").AddressParts} AddressParts
 * @typedef {(item: FilteredItem) => boolean} Test
 * @typedef {(text: string) => boolean} TextTest
 * @typedef {{ name: string | null, space: string | null }} PathStep
 * @typedef {{ steps: PathStep[], end: "element" | "text" | "attribute", attribute: string }} FilterPath
 */

const viewHint = "use xmpptap view for all of the filter language";
/** An example of each condition with a value. */
export const usages = /** @type {Record<string, string>} */ ({
  kind: "kind:message,presence", type: "type:chat", payload: "payload:{urn:xmpp:ping}ping", inspect: "inspect:{urn:xmpp:receipts}request",
  element: "element:{urn:xmpp:sm:3}r", id: "id:abc1", with: "with:juliet@example.org", from: "from:juliet@example.org",
  to: "to:juliet@example.org", jid: "jid:juliet@example.org", session: "session:3", "from-exactly": "from-exactly:juliet@example.org",
  "to-exactly": "to-exactly:juliet@example.org", "from-ip": "from-ip:192.0.2.7", "from-subnet": "from-subnet:192.0.2.0/24",
  body: 'body:"text", body="text" or body~"pattern"', subject: 'subject:"text", subject="text" or subject~"pattern"',
  thread: 'thread:"text", thread="text" or thread~"pattern"', status: 'status:"text", status="text" or status~"pattern"',
  xml: 'xml:"text" or xml~"pattern"', direction: "direction:send", phase: "phase:handshake", origin: "origin:tap", size: "size>10kB",
  "round-trip": "round-trip>2s", level: "level:warn", part: "part:sasl", code: "code:login-failed", condition: "condition:item-not-found", action: "action:dropped",
  rule: "rule:no-typing.pfw",
});
const levelWords = ["off", "error", "warn", "info", "verbose", "trace"];
const recordParts = ["session", "sasl", "tls", "rules", "inject", "net", "capture", "replay", "control"];
const itemKinds = ["message", "presence", "iq", "nonza", "stanza"];
const recordKinds = ["session", "declaration", "stream-open", "whitespace", "stream-close", "tls", "bytes", "note", "error", "chunk", "frame"];
const stanzaTypes = ["get", "set", "result", "error", "available", "unavailable", "probe", "subscribe", "subscribed", "unsubscribe",
  "unsubscribed", "normal", "chat", "groupchat", "headline"];
/**
 * Conditions without a value.
 * @type {Record<string, Test>}
 */
export const plainWords = {
  message: (item) => item.itemKind === "message",
  presence: (item) => item.itemKind === "presence",
  iq: (item) => item.itemKind === "iq",
  nonza: (item) => item.itemKind === "nonza",
  stanza: (item) => item.isStanza,
  send: (item) => item.direction === 1,
  recv: (item) => item.direction === 2,
  "from-full-jid": (item) => item.isStanza && !!item.address("from")?.resource,
  "to-full-jid": (item) => item.isStanza && !!item.address("to")?.resource,
  "to-self": (item) => item.isStanza && item.isToSelf,
};

/** A condition with a value. */
export class FilterCondition {
  /** @param {string} name @param {string} sign @param {FilterValue} value */
  constructor(name, sign, value) {
    this.name = name;
    this.sign = sign;
    this.value = value;
  }

  /** @returns {Test} */
  test() {
    const { value } = this;
    const { text } = value;
    switch (this.name) {
      case "kind": {
        const kinds = new Set(value.words("a kind", [...itemKinds, ...recordKinds]));
        return (item) => kinds.has(item.kind) && !itemKinds.includes(item.kind) || kinds.has(item.itemKind) || item.isStanza && kinds.has("stanza");
      }
      case "level": {
        const level = levelWords.indexOf(value.choice("level", levelWords.slice(1)));
        return (item) => item.rows.level[item.index] <= level;
      }
      case "part": return this.oneOf(value.words("a part", recordParts), (item) => item.record.part);
      case "code": {
        const codes = new Set(value.list().map((entry) => entry.text));
        // A failed login has the code of its cause, too.
        return ({ record }) => record.code !== undefined && (codes.has(record.code) || record.code === "login-failed" && codes.has(record.details?.cause));
      }
      case "condition": case "action": {
        const { name } = this;
        return this.oneOf(value.list().map((entry) => entry.text), (item) => item.record[name]);
      }
      case "rule": return (item) => {
        const rule = item.record.rule ?? item.record.details?.rule;
        if (rule === undefined) return false;
        // The line of a rule is at the end: ":4" is not the beginning of ":40".
        return /:.*\d$/s.test(text) ? String(rule).endsWith(text) : String(rule).includes(text);
      };
      case "phase": {
        const isWanted = value.choice("phase of a filter", ["handshake", "open"]) === "handshake";
        // The answer to resource binding has an address already, but is a part of the login.
        return (item) => item.rows.session[item.index] > 0 && isWanted === (item.record.jid === undefined || item.record.part === "sasl"
          || /^\{urn:ietf:params:xml:ns:xmpp-bind\}/.test(item.record.payload ?? ""));
      }
      case "direction": return plainWords[value.choice("direction", ["send", "recv"])];
      case "origin": {
        const isTap = value.choice("origin", ["peer", "tap"]) === "tap" ? 1 : 0;
        return (item) => item.direction !== 0 && item.rows.tap[item.index] === isTap;
      }
      case "id": return (item) => item.record.id === text;
      case "type": return this.types();
      case "session": return /^[\p{N}, ]*$/u.test(text) ? this.sessions() : this.owner();
      case "jid": return this.owner();
      case "with": {
        const matches = this.address();
        return (item) => item.isStanza && (matches(item.address("from")) || matches(item.address("to")));
      }
      case "from": case "to": {
        const side = this.name;
        const matches = this.address();
        return (item) => item.isStanza && matches(item.address(side));
      }
      case "from-exactly": case "to-exactly": {
        if (/\$[<(]/.test(text)) throw value.mistake("this page does not know expressions", viewHint);
        const side = this.name === "from-exactly" ? "from" : "to";
        // Addresses are compared in their prepared form, which an address in ASCII is written in.
        const exact = /[^\x00-\x7f]/.test(text) ? writtenAddress(prepared(text)) : text;
        return (item) => {
          const found = item.isStanza ? item.address(side) : null;
          return found !== null && writtenAddress(found) === exact;
        };
      }
      case "from-ip": case "from-subnet": return this.network();
      case "size": {
        const holds = value.comparison("size");
        return (item) => item.direction !== 0 && holds(item.rows.size[item.index]);
      }
      case "round-trip": {
        const holds = value.comparison("duration");
        return (item) => item.record.round_trip !== undefined && holds(Math.round(item.record.round_trip * 1e9));
      }
      case "payload": return this.payload();
      case "element": {
        const step = this.elementName();
        return (item) => item.isElement && (step.name === null || item.record.name === step.name) && (step.space === null || item.tree?.space === step.space);
      }
      case "inspect": return this.inspection();
      case "xml": {
        const matches = this.search();
        return (item) => typeof item.record.xml === "string" && matches(item.record.xml);
      }
      default: {
        const matches = this.search();
        const path = this.path(`${this.name}#`, value);
        return (item) => {
          const found = item.isElement && item.tree ? textAt(path, item.tree) : null;
          return found !== null && matches(found);
        };
      }
    }
  }

  /** @param {string[]} words @param {(item: FilteredItem) => any} field @returns {Test} */
  oneOf(words, field) {
    const wanted = new Set(words);
    return (item) => wanted.has(field(item));
  }

  /** @returns {Test} */
  types() {
    const types = new Set(this.value.list(true).map((entry) => {
      const nearest = stanzaTypes.includes(entry.text) ? undefined : nearestWord(entry.text, stanzaTypes);
      // Peers may send other types; one that is nearly a known type is a mistake.
      if (nearest) throw entry.mistake(`"${entry.text}" is not a type of a stanza`, undefined, nearest);
      return entry.text;
    }));
    const missing = /** @type {Record<string, string>} */ ({ message: "normal", presence: "available" });
    return (item) => item.isStanza && item.direction !== 0 && types.has(item.record.type ?? missing[item.itemKind]);
  }

  /** @returns {Test} */
  sessions() {
    const numbers = new Set(this.value.list().map((entry) => {
      if (!/^[0-9]+$/.test(entry.text) || Number(entry.text) < 1) throw entry.mistake(`"${entry.text}" is not a number of a session`, "expected a whole number from 1");
      return Number(entry.text);
    }));
    return (item) => numbers.has(item.rows.session[item.index]);
  }

  /** @returns {Test} */
  owner() {
    const matches = this.address();
    return (item) => item.owner !== undefined && matches(prepared(item.owner));
  }

  /**
   * A test of addresses. A part in angle brackets is a pattern.
   * @returns {(address: AddressParts | null) => boolean}
   */
  address() {
    const { value } = this;
    const text = value.text.trim();
    if (!text) throw value.mistake("missing address", "expected a JID, as in romeo@example.net");
    if (!text.includes("<")) {
      const wanted = prepared(text);
      if (!wanted.domain || wanted.local === "" || wanted.resource === "" || /[\s@\x00-\x20\x7f]/u.test(wanted.domain) || /[\s"&'/:<>@\x00-\x20\x7f]/u.test(wanted.local ?? "")) {
        throw value.mistake(`"${text}" is not a JID`, "expected a JID, as in romeo@example.net");
      }
      return (found) => found !== null && isSameAccount(found, wanted) && (wanted.resource === null || found.resource === wanted.resource);
    }
    let depth = 0;
    let at = -1;
    let slash = -1;
    for (let index = 0; index < text.length && slash < 0; index++) {
      if (text[index] === "<") depth += 1;
      else if (text[index] === ">") depth -= 1;
      else if (text[index] === "@" && depth === 0 && at < 0) at = index;
      else if (text[index] === "/" && depth === 0) slash = index;
    }
    const end = slash < 0 ? text.length : slash;
    const localTest = this.addressPart(at < 0 ? "" : text.slice(0, at));
    const domainTest = this.addressPart(text.slice(at + 1, end));
    const resourceTest = this.addressPart(slash < 0 ? "" : text.slice(slash + 1));
    if (!domainTest) throw value.mistake(`"${text}" has no domain`, "expected a JID, as in <*>@example.net");
    return (found) => found !== null && (localTest ? found.local !== null && localTest(found.local) : found.local === null)
      && domainTest(found.domain) && (!resourceTest || found.resource !== null && resourceTest(found.resource));
  }

  /** @param {string} text @returns {TextTest | null} */
  addressPart(text) {
    if (!text) return null;
    if (!text.startsWith("<") || !text.endsWith(">")) {
      if (text.includes("<")) throw this.value.mistake(`"${text}" mixes text and < >`, "expected <…> around the whole part");
      return (found) => found === text;
    }
    const inner = text.slice(1, -1);
    if (inner.startsWith("<") && inner.endsWith(">") && inner.length > 1) throw this.value.mistake("this page does not know Lua patterns", viewHint);
    // "?" stands for a byte, as in rules.
    const bytes = (/** @type {string} */ some) => Array.from(new TextEncoder().encode(some), (byte) => String.fromCharCode(byte)).join("");
    const glob = new RegExp(`^${[...bytes(inner)].map((letter) => (letter === "*" ? "[^]*" : letter === "?" ? "[^]" : letter.replace(/[\\^$.*+?()[\]{}|/-]/, "\\$&"))).join("")}$`);
    return (found) => glob.test(bytes(found));
  }

  /** @returns {Test} */
  network() {
    const isNetwork = this.name === "from-subnet";
    const networks = this.value.list(true).map((entry) => {
      const [address, bits, more] = entry.text.split("/");
      const bytes = addressBytes(address);
      const width = bits === undefined ? (bytes?.length ?? 0) * 8 : /^\d+$/.test(bits) ? Number(bits) : -1;
      if (!bytes || more !== undefined || width < 0 || width > bytes.length * 8 || !isNetwork && bits !== undefined) {
        throw entry.mistake(`"${entry.text}" is not an ${isNetwork ? "IP network" : "IP address"}`,
          isNetwork ? "expected one as in 192.0.2.0/24" : "expected one as in 192.0.2.7; FROM SUBNET takes networks");
      }
      return { bytes, width };
    });
    return (item) => {
      if (!item.isStanza || item.direction !== 1 || typeof item.record.remote !== "string") return false;
      const { remote } = item.record;
      const colon = remote.lastIndexOf(":");
      const found = addressBytes(colon < 0 ? remote : remote.slice(0, colon).replace(/[[\]]/g, ""));
      return found !== null && networks.some(({ bytes, width }) => bytes.length === found.length
        && bytes.every((byte, index) => { const kept = Math.min(8, Math.max(0, width - index * 8)); return (byte ^ found[index]) >> (8 - kept) === 0; }));
    };
  }

  /** @returns {Test} */
  payload() {
    const { text } = this.value;
    const step = text.startsWith("{") ? this.elementName() : { name: null, space: text };
    return (item) => {
      if (!item.isElement || !item.record.payload) return false;
      const [, space, name] = /^\{([^]*)\}([^]*)$/.exec(item.record.payload) ?? ["", "", item.record.payload];
      if ((step.name === null || name === step.name) && (step.space === null || space === step.space)) return true;
      return item.tree !== null && elements(item.tree).some((child) => (step.name === null || local(child) === step.name) && (step.space === null || child.space === step.space));
    };
  }

  /**
   * An element name: `{namespace}name`, `{namespace}*` or `name`.
   * @returns {PathStep}
   */
  elementName() {
    const { value } = this;
    const source = value.text.trim();
    const path = this.path(source, value);
    const [step] = path.steps;
    if (path.steps.length !== 1 || path.end !== "element" || step.name?.includes(":")) {
      throw value.mistake(`"${source}" is not an element name`, "expected {namespace}name, {namespace}* or name");
    }
    return { name: step.name === "*" ? null : step.name, space: step.space };
  }

  /** @returns {Test} */
  inspection() {
    const { value } = this;
    let depth = 0;
    let end = 0;
    for (; end < value.text.length; end++) {
      const letter = value.text[end];
      if (letter === "{") depth += 1;
      if (letter === "}") depth -= 1;
      if (depth <= 0 && letter === "=") break;
    }
    if (end === value.text.length) {
      const path = this.path(value.text.trim(), value);
      return (item) => item.isElement && item.direction !== 0 && item.tree !== null && isAt(path, item.tree);
    }
    const [, source, sign] = /^([^]*?)([~/$]*)$/.exec(value.text.slice(0, end)) ?? ["", "", ""];
    const path = this.path(source, value);
    if (path.end === "element") throw value.mistake(`"${source}" is an element, not a text`, "append # for the text of the element, or @name for an attribute");
    const wanted = value.text.slice(end + 1);
    const column = value.column + [...value.text.slice(0, end + 1)].length;
    const place = value.column + [...source].length;
    if (sign.includes("$")) throw value.mistake("this page does not know expressions", viewHint, undefined, place);
    if (sign === "~") throw value.mistake("this page does not know Lua patterns", `write ~~= for a regular expression, or ${viewHint}`, undefined, place);
    if (!["", "/", "~~"].includes(sign)) throw value.mistake(`unknown comparison "${sign}="`, "expected =, /= or ~~=", undefined, place);
    const pattern = sign === "~~" ? this.pattern(wanted, column) : null;
    return (item) => {
      if (!item.isElement || !item.direction || !item.tree) return false;
      const found = textAt(path, item.tree);
      // As in rules, a missing text contains nothing, and is compared with a pattern as an empty one.
      if (pattern) return pattern.test(found ?? "");
      return sign === "/" ? (found ?? "").includes(wanted) : found === wanted;
    };
  }

  /** @param {string} source @param {number} column */
  pattern(source, column) {
    try {
      return regularExpression(source);
    } catch (error) {
      const offset = error instanceof PatternFault ? error.offset : 0;
      throw this.value.mistake(`the regular expression is wrong: ${/** @type {Error} */ (error).message}`, undefined, undefined, column + offset);
    }
  }

  /**
   * A search in a text.
   * @returns {TextTest}
   */
  search() {
    const { text, column } = this.value;
    if (!text) throw this.value.mistake("the text is empty");
    if (this.sign === "=") return (/** @type {string} */ found) => found === text;
    if (this.sign === ":") return (/** @type {string} */ found) => found.includes(text);
    const pattern = this.pattern(text, column);
    return (/** @type {string} */ found) => pattern.test(found);
  }

  /**
   * A path into an element: `{namespace}name/name`, then `#` for a text or `@name` for an attribute.
   * @param {string} source
   * @param {FilterValue} value
   * @returns {FilterPath}
   */
  path(source, value) {
    const wrong = (/** @type {string} */ why) => value.mistake(`"${source}" is not a path: ${why}`, "expected a path, as in {urn:xmpp:ping}ping or body#");
    if (!source) throw wrong("the path is empty");
    /** @type {FilterPath} */
    const path = { steps: [], end: "element", attribute: "" };
    for (let rest = source; ;) {
      if (rest.startsWith("@")) {
        path.end = "attribute";
        path.attribute = rest.slice(1);
        if (path.attribute.startsWith("{")) throw value.mistake("this page does not know attributes in namespaces", viewHint);
        const name = path.attribute.replace(/^xml:/, "");
        if (!name || /[\s{}<>='"&/#@:]/u.test(name)) throw wrong(`"${rest}" is not an attribute`);
        return path;
      }
      /** @type {PathStep} */
      const step = { name: null, space: null };
      if (rest.startsWith("{")) {
        const close = rest.indexOf("}");
        if (close < 0) throw wrong('"{" without "}"');
        step.space = rest.slice(1, close);
        rest = rest.slice(close + 1);
      }
      const name = /^[^@/#]*/.exec(rest)?.[0] ?? "";
      rest = rest.slice(name.length);
      if (name) {
        if (/[\s{}<>='"&]/u.test(name)) throw wrong(`"${name}" is not an element name`);
        step.name = name;
      }
      path.steps.push(step);
      if (!rest) return path;
      if (rest.startsWith("#")) {
        if (rest.length > 1) throw wrong('"#" must be the end of a path');
        path.end = "text";
        return path;
      }
      if (rest.startsWith("/")) rest = rest.slice(1);
      if (!rest) throw wrong('"/" at the end');
    }
  }
}

/**
 * The element at a path; null if there is none. A name without a namespace is in that of the parent.
 * @param {FilterPath} path
 * @param {XMLNode} root
 * @returns {XMLNode | null}
 */
function elementAt(path, root) {
  let node = root;
  for (const step of path.steps) {
    const { space } = node;
    const found = elements(node).find((child) => (step.name === null || local(child) === step.name) && child.space === (step.space ?? space));
    if (!found) return null;
    node = found;
  }
  return node;
}

/**
 * The text or the attribute at a path; null if there is none. An element with children has no text.
 * @param {FilterPath} path
 * @param {XMLNode} root
 */
function textAt(path, root) {
  const node = elementAt(path, root);
  if (!node || path.end === "element") return null;
  if (path.end === "attribute") return attribute(node, path.attribute) ?? null;
  return node.children.every((child) => typeof child === "string") ? node.children.join("") : null;
}

/** @param {FilterPath} path @param {XMLNode} root */
function isAt(path, root) { return path.end === "element" ? elementAt(path, root) !== null : textAt(path, root) !== null; }

// The filter of a page that is a file. It has the words of --filter, and refuses with its place what it does not know: an
// answer that differs from that of xmpptap would be worse than none.
import { visible } from "./format.js";
import { PatternFault, regularExpression } from "./pattern.js";
import { attribute, elements, local, parseXML } from "./xml.js";

/**
 * @typedef {import("./source.js").Columns} Columns
 * @typedef {import("./xml.js").XMLNode} XMLNode
 * @typedef {(item: FilteredItem) => boolean} Test
 * @typedef {(text: string) => boolean} TextTest
 * @typedef {{ name: string | null, space: string | null }} PathStep
 * @typedef {{ steps: PathStep[], end: "element" | "text" | "attribute", attribute: string }} FilterPath
 */

/** A mistake in a filter. */
export class FilterMistake extends Error {
  /**
   * @param {number} column in characters, from 1
   * @param {string} found
   * @param {string} [expected]
   * @param {string} [nearest]
   */
  constructor(column, found, expected, nearest) {
    super(visible(`column ${column}: ${found}${expected ? `; ${expected}` : ""}${nearest ? `; did you mean "${nearest}"?` : ""}`));
    this.column = column;
  }
}

const maximumFilterDepth = 100;
const viewHint = "use xmpptap view for all of the filter language";
const usages = /** @type {Record<string, string>} */ ({
  kind: "kind:message,presence", type: "type:chat", payload: "payload:{urn:xmpp:ping}ping", inspect: "inspect:{urn:xmpp:receipts}request",
  element: "element:{urn:xmpp:sm:3}r", id: "id:abc1", with: "with:juliet@example.org", from: "from:juliet@example.org",
  to: "to:juliet@example.org", jid: "jid:juliet@example.org", session: "session:3", "from-exactly": "from-exactly:juliet@example.org",
  "to-exactly": "to-exactly:juliet@example.org", "from-ip": "from-ip:192.0.2.7", "from-subnet": "from-subnet:192.0.2.0/24",
  body: 'body:"text", body="text" or body~"pattern"', subject: 'subject:"text", subject="text" or subject~"pattern"',
  thread: 'thread:"text", thread="text" or thread~"pattern"', status: 'status:"text", status="text" or status~"pattern"',
  xml: 'xml:"text" or xml~"pattern"', direction: "direction:send", phase: "phase:handshake", origin: "origin:tap", size: "size>10kB",
  "round-trip": "round-trip>2s", level: "level:warn", part: "part:sasl", code: "code:login-failed", action: "action:dropped",
  rule: "rule:no-typing.pfw",
});
const levelWords = ["off", "error", "warn", "info", "verbose", "trace"];
const recordParts = ["session", "sasl", "tls", "rules", "inject", "net", "capture", "replay", "control"];
const itemKinds = ["message", "presence", "iq", "nonza", "stanza"];
const recordKinds = ["session", "declaration", "stream-open", "whitespace", "stream-close", "tls", "bytes", "note", "error", "chunk", "frame"];
const stanzaTypes = ["get", "set", "result", "error", "available", "unavailable", "probe", "subscribe", "subscribed", "unsubscribe",
  "unsubscribed", "normal", "chat", "groupchat", "headline"];
const sizeUnits = new Map([["", 1], ["b", 1], ["kb", 1000], ["mb", 1e6], ["kib", 1 << 10], ["mib", 1 << 20]]);
/** Nanoseconds. */
const timeUnits = new Map([["ms", 1e6], ["s", 1e9], ["min", 6e10], ["m", 6e10], ["h", 3.6e12]]);
/** @type {Record<string, Test>} */
const plainWords = {
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

/** A record that a filter is applied to. Its line is parsed only for conditions that need it. */
class FilteredItem {
  /**
   * @param {Columns} rows
   * @param {number} index
   * @param {string[]} lines
   */
  constructor(rows, index, lines) {
    this.rows = rows;
    this.index = index;
    this.lines = lines;
  }

  /** @returns {string} */
  get kind() { return this.rows.kind[this.index]; }
  /** 1 for SEND, 2 for RECV, 0 for neither. @returns {number} */
  get direction() { return this.rows.direction[this.index]; }
  get isStanza() { return this.kind === "stanza"; }
  get isElement() { return this.kind === "stanza" || this.kind === "element"; }

  get itemKind() {
    if (this.kind === "element") return "nonza";
    if (!this.isStanza) return "";
    const name = this.rows.name[this.index];
    return name === "message" || name === "presence" ? name : "iq";
  }

  /** The record; without fields if the line is not one. @returns {any} */
  get record() {
    if (this.parsed === undefined) {
      try { this.parsed = JSON.parse(this.lines[this.index]) ?? {}; } catch { this.parsed = {}; }
    }
    return this.parsed;
  }

  /** The element; null if the record has none, or only a part of it. @returns {XMLNode | null} */
  get tree() {
    if (this.root === undefined) {
      const { xml, truncated } = this.record;
      this.root = null;
      if (typeof xml === "string" && !truncated) {
        const { roots, isCut } = parseXML(xml, { elements: 1_000_000, depth: 10_000 });
        if (!isCut && roots.length === 1 && typeof roots[0] !== "string") this.root = roots[0];
      }
    }
    return this.root;
  }

  /**
   * The sender or the receiver (RFC 6120 §8.1). A missing address is that of the session or of its account.
   * @param {"from" | "to"} side
   */
  address(side) {
    const { record } = this;
    const isOwnResource = (side === "from") === (this.direction === 1);
    const own = record.jid === undefined ? null : prepared(record.jid);
    if (!this.direction || record[side] === undefined && !own) return null;
    const found = record[side] !== undefined ? prepared(record[side]) : isOwnResource ? own : own && withoutResource(own);
    // The server replaces a bare `from` by the full address (RFC 6120 §8.1.2.1).
    if (side === "from" && this.direction === 1 && own && found && found.resource === null && isSameAccount(found, own)) return own;
    return found;
  }

  get isToSelf() {
    if (!this.direction) return false;
    if (this.record.to === undefined) return true;
    const to = this.address("to");
    const from = this.address("from");
    if (!to || !from || to.resource !== null || this.record.jid === undefined) return false;
    return isSameAccount(to, prepared(this.record.jid)) && isSameAccount(to, from);
  }

  /** The address of the session; before resource binding, what is known of it. */
  get owner() {
    const { jid, user, domain } = this.record;
    if (jid !== undefined) return jid;
    return user !== undefined && !user.includes("@") && domain !== undefined ? `${user}@${domain}` : user ?? domain;
  }
}

/** @typedef {{ local: string | null, domain: string, resource: string | null }} AddressParts */

/**
 * Splits an address, and prepares its parts for comparison (RFC 7622).
 * @param {string} text
 * @returns {AddressParts}
 */
export function prepared(text) {
  const slash = text.indexOf("/");
  const account = slash < 0 ? text : text.slice(0, slash);
  const at = account.indexOf("@");
  return {
    local: at < 0 ? null : account.slice(0, at).toLowerCase().normalize("NFC"),
    domain: preparedDomain(account.slice(at + 1)),
    resource: slash < 0 ? null : text.slice(slash + 1).normalize("NFC"),
  };
}

/** @param {string} text */
function preparedDomain(text) {
  const domain = text.toLowerCase().replace(/\.$/, "");
  if (/^[\x00-\x7f]*$/.test(domain) && !domain.includes("xn--")) return domain;
  // Names in other scripts and their form in ASCII are the same.
  try { return new URL(`http://${domain}`).hostname; } catch { return domain; }
}

/** @param {AddressParts} parts @returns {AddressParts} */
function withoutResource(parts) { return { ...parts, resource: null }; }

/** @param {AddressParts} parts */
function writtenAddress(parts) { return `${parts.local === null ? "" : `${parts.local}@`}${parts.domain}${parts.resource === null ? "" : `/${parts.resource}`}`; }

/** @param {AddressParts} one @param {AddressParts} other */
function isSameAccount(one, other) { return one.local === other.local && one.domain === other.domain; }

/**
 * The bytes of an IP address; null if it is none. An IPv4 address that is mapped into IPv6 has four bytes.
 * @param {string} text
 * @returns {number[] | null}
 */
function addressBytes(text) {
  const four = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(text)?.slice(1).map(Number);
  if (four) return four.every((byte) => byte < 256) ? four : null;
  if (!text.includes(":") || !/^[0-9a-fA-F:.]+$/.test(text)) return null;
  let host;
  try { host = new URL(`http://[${text}]`).hostname.slice(1, -1); } catch { return null; }
  const [head, tail] = host.split("::").map((part) => (part ? part.split(":") : []));
  const groups = tail ? [...head, ...Array(8 - head.length - tail.length).fill("0"), ...tail] : head;
  const bytes = groups.flatMap((group) => { const value = parseInt(group, 16); return [value >> 8, value & 255]; });
  const isMapped = bytes.slice(0, 10).every((byte) => byte === 0) && bytes[10] === 255 && bytes[11] === 255;
  return isMapped ? bytes.slice(12) : bytes;
}

/**
 * The word nearest to a mistyped one; undefined if none is near.
 * @param {string} word
 * @param {string[]} known
 */
function nearestWord(word, known) {
  if (word.length > 32) return undefined;
  const distance = (/** @type {string} */ one, /** @type {string} */ other) => {
    let before = /** @type {number[]} */ ([]);
    let row = Array.from({ length: other.length + 1 }, (_, place) => place);
    for (let index = 0; index < one.length; index++) {
      const next = [index + 1];
      for (let column = 0; column < other.length; column++) {
        let best = Math.min(row[column] + (one[index] === other[column] ? 0 : 1), next[column] + 1, row[column + 1] + 1);
        if (index > 0 && column > 0 && one[index] === other[column - 1] && one[index - 1] === other[column]) best = Math.min(best, before[column - 1] + 1);
        next.push(best);
      }
      before = row;
      row = next;
    }
    return row[other.length];
  };
  let found;
  let least = 3;
  for (const other of known) {
    const far = distance(word.toLowerCase(), other);
    if (far < least) [found, least] = [other, far];
  }
  return found && least < found.length - 1 ? found : undefined;
}

/**
 * Parses a filter.
 * @param {string} text
 * @returns {(rows: Columns, index: number, lines: string[]) => boolean}
 */
export function pageFilter(text) {
  const test = new PageFilterParser(text).parse();
  return (rows, index, lines) => {
    // Headers and damaged lines are not records.
    if (["header", "damage", "gap"].includes(rows.kind[index])) return false;
    return test(new FilteredItem(rows, index, lines));
  };
}

const isOfFilterName = (/** @type {string | undefined} */ letter) => letter !== undefined && /^[A-Za-z0-9_-]$/.test(letter);
const isSpace = (/** @type {string | undefined} */ letter) => letter !== undefined && /^\s$/u.test(letter);

/** A value of a condition, with the column of its beginning. */
class FilterValue {
  /**
   * @param {string} text
   * @param {number} column
   */
  constructor(text, column) {
    this.text = text;
    this.column = column;
  }

  /**
   * @param {string} found @param {string} [expected] @param {string} [nearest] @param {number} [column]
   */
  mistake(found, expected, nearest, column = this.column) { return new FilterMistake(column, found, expected, nearest); }

  /**
   * The items of a list that is separated by commas, and also by spaces and `|` if it is spaced.
   * @param {boolean} [isSpaced]
   * @returns {FilterValue[]}
   */
  list(isSpaced = false) {
    const found = [];
    for (const { 0: item, index } of this.text.matchAll(isSpaced ? /[^,\s|]+/gu : /[^,]+/gu)) {
      const before = [...this.text.slice(0, index)].length + (item.length - item.trimStart().length);
      if (item.trim()) found.push(new FilterValue(item.trim(), this.column + before));
    }
    if (found.length === 0) throw this.mistake("the list is empty");
    return found;
  }

  /**
   * One of several words.
   * @param {string} what
   * @param {string[]} words
   */
  choice(what, words) {
    const word = /^\s*([^\s,]*)/u.exec(this.text)?.[1] ?? "";
    const rest = this.text.trimStart().slice(word.length);
    if (!words.includes(word.toLowerCase())) {
      throw this.mistake(word ? `"${word}" is not a valid ${what}` : `missing ${what}`, `expected ${words.join(", ")}`, nearestWord(word, words));
    }
    if (rest.trim()) throw this.mistake(`unexpected "${rest.trim()}"`, "expected the end of the value", undefined, this.column + [...this.text].length - [...rest].length);
    return word.toLowerCase();
  }

  /**
   * Words of a list.
   * @param {string} what
   * @param {string[]} words
   */
  words(what, words) {
    return this.list().map((item) => {
      if (!words.includes(item.text)) throw item.mistake(`"${item.text}" is not ${what}`, `expected ${words.join(", ")}`, nearestWord(item.text, words));
      return item.text;
    });
  }

  /**
   * A comparison with a number that has a unit.
   * @param {"size" | "duration"} what
   * @returns {(value: number) => boolean}
   */
  comparison(what) {
    const sign = /^\s*([<>=]*)\s*/.exec(this.text) ?? ["", ""];
    const compare = new Map(/** @type {[string, (a: number, b: number) => boolean][]} */ ([
      ["<", (a, b) => a < b], ["<=", (a, b) => a <= b], ["=", (a, b) => a === b], ["==", (a, b) => a === b], [">=", (a, b) => a >= b], [">", (a, b) => a > b],
    ])).get(sign[1]);
    if (!compare) throw this.mistake(sign[1] ? `"${sign[1]}" is not a comparison` : "missing comparison", "expected >, <, >=, <= or =");
    const rest = this.text.slice(sign[0].length);
    const at = this.column + sign[0].length;
    const digits = (what === "size" ? /^[0-9]+/ : /^[0-9.]+/).exec(rest)?.[0] ?? "";
    if (!digits || !Number.isFinite(Number(digits))) throw this.mistake(digits ? `"${digits}" is not a valid ${what}` : `missing ${what}`, "expected a number", undefined, at);
    const unit = rest.slice(digits.length).trim();
    const scale = what === "size" ? sizeUnits.get(unit.toLowerCase()) : timeUnits.get(unit);
    if (scale === undefined && what === "size") throw this.mistake(`"${unit}" is not a unit of size`, "expected B, kB, MB, KiB or MiB", undefined, at);
    if (scale === undefined) throw this.mistake(unit ? `"${unit}" is not a unit of time` : "a duration without a unit", "expected ms, s, min or h, as in 500ms", undefined, at);
    return (found) => compare(found, Math.floor(Number(digits) * scale));
  }
}

/** Parses a filter as xmpptap does: `or` of `and` of conditions, `not`, and parentheses. */
class PageFilterParser {
  /** @param {string} text */
  constructor(text) {
    this.text = [...text];
    this.index = 0;
  }

  get isAtEnd() { return this.index >= this.text.length; }
  get next() { return this.text[this.index]; }
  get rest() { return this.text.slice(this.index).join(""); }

  /**
   * @param {string} found @param {string} [expected] @param {string} [nearest] @param {number} [index]
   */
  mistake(found, expected, nearest, index = this.index) { return new FilterMistake(index + 1, found, expected, nearest); }

  /** @param {string} letter */
  sees(letter) { return this.text[this.index] === letter; }

  skipSpaces() { while (isSpace(this.next)) this.index += 1; }

  /** @param {(letter: string) => boolean} isTaken */
  take(isTaken) {
    const start = this.index;
    while (!this.isAtEnd && isTaken(this.next)) this.index += 1;
    return this.text.slice(start, this.index).join("");
  }

  /** @returns {Test} */
  parse() {
    this.skipSpaces();
    if (this.isAtEnd) throw this.mistake("the filter is empty", "expected a condition such as message");
    const found = this.either(0);
    if (!this.isAtEnd) throw this.next === ")" ? this.mistake('")" without "("') : this.unexpected();
    return found;
  }

  /** @param {number} depth @returns {Test} */
  either(depth) {
    const tests = [this.both(depth)];
    while (this.takeWord("or")) tests.push(this.both(depth));
    return tests.length === 1 ? tests[0] : (item) => tests.some((test) => test(item));
  }

  /** @param {number} depth @returns {Test} */
  both(depth) {
    const tests = [this.factor(depth)];
    while (this.takeWord("and")) tests.push(this.factor(depth));
    return tests.length === 1 ? tests[0] : (item) => tests.every((test) => test(item));
  }

  /** @param {number} depth @returns {Test} */
  factor(depth) {
    this.skipSpaces();
    if (depth >= maximumFilterDepth) throw this.mistake(`nested deeper than ${maximumFilterDepth} levels`, "expected a simpler filter");
    if (this.takeWord("not")) {
      const inner = this.factor(depth + 1);
      return (item) => !inner(item);
    }
    if (!this.sees("(")) return this.condition();
    const start = this.index;
    this.index += 1;
    const inner = this.either(depth + 1);
    this.skipSpaces();
    if (!this.sees(")")) {
      if (!this.isAtEnd) throw this.unexpected();
      throw this.mistake('"(" without ")"', undefined, undefined, start);
    }
    this.index += 1;
    this.skipSpaces();
    return inner;
  }

  /** @param {string} word */
  takeWord(word) {
    this.skipSpaces();
    const start = this.index;
    if (this.take(isOfFilterName).toLowerCase() === word && !(":=~<>".includes(this.next ?? " "))) return true;
    this.index = start;
    return false;
  }

  unexpected() {
    const word = this.text.slice(this.index).join("").split(/\s/u)[0];
    const signs = new Map([["&&", "and"], ["&", "and"], ["||", "or"], ["|", "or"]]);
    return this.mistake(`unexpected "${word}"`, 'expected and, or, ")" or the end', signs.get(word) ?? nearestWord(word, ["and", "or"]));
  }

  /** @returns {Test} */
  condition() {
    const start = this.index;
    const typed = this.take(isOfFilterName);
    const name = typed.toLowerCase().replaceAll("_", "-");
    if (!name) {
      if (this.isAtEnd) throw this.mistake("the filter ends here", "expected a condition such as message");
      throw this.mistake(`"${this.next}" instead of a condition`, "expected a condition such as message or type:chat", this.next === "!" ? "not" : undefined);
    }
    const afterName = this.index;
    this.skipSpaces();
    const isAlone = !":=~<>".includes(this.next ?? " ");
    if (isAlone && Object.hasOwn(plainWords, name)) {
      this.index = afterName;
      return plainWords[name];
    }
    if (!Object.hasOwn(usages, name)) throw this.unknown(name, typed, start, afterName);
    if (isAlone) throw this.mistake(`${name} without a value`, `expected ${usages[name]}`);
    const isCompared = name === "size" || name === "round-trip";
    const sign = this.next;
    const signs = isCompared ? ":=<>" : ["body", "subject", "thread", "status"].includes(name) ? ":=~" : name === "xml" ? ":~" : ":";
    if (!signs.includes(sign)) throw this.mistake(`"${sign}" after ${name}`, `expected ${usages[name]}`);
    if (!(isCompared && sign !== ":")) this.index += 1;
    this.skipSpaces();
    return new FilterCondition(name, sign, this.value(name, isCompared)).test();
  }

  /**
   * @param {string} name @param {string} typed @param {number} start @param {number} afterName
   */
  unknown(name, typed, start, afterName) {
    if (Object.hasOwn(plainWords, name)) return this.mistake(`${name} takes no value`, `expected ${name} alone`, undefined, afterName);
    return this.mistake(`unknown condition "${typed}"`, 'expected a condition such as message, type:chat or body~"hello"',
      nearestWord(name, [...Object.keys(plainWords).sort(), ...Object.keys(usages)]), start);
  }

  /**
   * The value: a quoted text, or everything up to a space or a closing parenthesis that was not opened.
   * @param {string} name
   * @param {boolean} isCompared
   */
  value(name, isCompared) {
    const start = this.index;
    if (this.next === '"' || this.next === "'") {
      const quote = this.next;
      this.index += 1;
      const inner = this.take((letter) => letter !== quote);
      if (this.isAtEnd) throw this.mistake(`${quote} is not closed`, undefined, undefined, start);
      this.index += 1;
      return new FilterValue(inner, start + 2);
    }
    if (isCompared) {
      this.take((letter) => "<>=".includes(letter));
      this.skipSpaces();
    }
    let depth = 0;
    this.take((letter) => {
      if (letter === "(") depth += 1;
      if (letter === ")") depth -= 1;
      return depth >= 0 && !isSpace(letter);
    });
    if (this.index === start) throw this.mistake(`${name} without a value`, `expected ${usages[name]}`);
    return new FilterValue(this.text.slice(start, this.index).join(""), start + 1);
  }
}

/** A condition with a value. */
class FilterCondition {
  /**
   * @param {string} name
   * @param {string} sign
   * @param {FilterValue} value
   */
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
      case "code": case "action": {
        const { name } = this;
        return this.oneOf(value.list().map((entry) => entry.text), (item) => item.record[name]);
      }
      case "rule": return (item) => String(item.record.rule ?? item.record.details?.rule ?? "").includes(text) && (item.record.rule ?? item.record.details?.rule) !== undefined;
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

  /** An element name: `{namespace}name`, `{namespace}*` or `name`. @returns {PathStep} */
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

  /** A search in a text. @returns {TextTest} */
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

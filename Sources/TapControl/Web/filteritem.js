// What the filter of a page that is a file asks about a record.
import { parseXML } from "./xml.js";

/**
 * @typedef {import("./source.js").Columns} Columns
 * @typedef {import("./xml.js").XMLNode} XMLNode
 * @typedef {{ local: string | null, domain: string, resource: string | null }} AddressParts
 */

/** A record that a filter is applied to. Its line is parsed only for conditions that need it. */
export class FilteredItem {
  /** @param {Columns} rows @param {number} index @param {string[]} lines */
  constructor(rows, index, lines) {
    this.rows = rows;
    this.index = index;
    this.lines = lines;
  }

  /** @returns {string} */
  get kind() { return this.rows.kind[this.index]; }
  /**
   * 1 for SEND, 2 for RECV, 0 for neither.
   * @returns {number}
   */
  get direction() { return this.rows.direction[this.index]; }
  get isStanza() { return this.kind === "stanza"; }
  get isElement() { return this.kind === "stanza" || this.kind === "element"; }

  get itemKind() {
    if (this.kind === "element") return "nonza";
    if (!this.isStanza) return "";
    const name = this.rows.name[this.index];
    return name === "message" || name === "presence" ? name : "iq";
  }

  /**
   * The record; without fields if the line is not one.
   * @returns {any}
   */
  get record() {
    if (this.parsed === undefined) {
      try { this.parsed = JSON.parse(this.lines[this.index]) ?? {}; } catch { this.parsed = {}; }
    }
    return this.parsed;
  }

  /**
   * The element; null if the record has none, only a part of it, or one that XMPP does not allow.
   * @returns {XMLNode | null}
   */
  get tree() {
    if (this.root === undefined) {
      const { xml, truncated } = this.record;
      this.root = null;
      if (typeof xml === "string" && !truncated) {
        const { roots, isCut, isRestricted } = parseXML(xml, { elements: 1_000_000, depth: 10_000 });
        if (!isCut && !isRestricted && roots.length === 1 && typeof roots[0] !== "string") this.root = roots[0];
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
export function writtenAddress(parts) { return `${parts.local === null ? "" : `${parts.local}@`}${parts.domain}${parts.resource === null ? "" : `/${parts.resource}`}`; }

/** @param {AddressParts} one @param {AddressParts} other */
export function isSameAccount(one, other) { return one.local === other.local && one.domain === other.domain; }

/**
 * The bytes of an IP address; null if it is none. An IPv4 address that is mapped into IPv6 has four bytes.
 * @param {string} text
 * @returns {number[] | null}
 */
export function addressBytes(text) {
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

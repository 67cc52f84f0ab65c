// Pictures of people: the avatars (XEP-0084) and the photos of vCards (XEP-0054) among the records.
import { pictureOf } from "./detail.js";
import { bare } from "./format.js";
import { elements, local, parseXML } from "./xml.js";

/** Finds the items with pictures, of which the newest are read. */
const pictureFilter = 'xml:"urn:xmpp:avatar:data" or xml:"BINVAL"';
const maximumAvatars = 200;
/** They are decoded without being asked for, so they may be smaller than the picture of a record that was selected. */
const maximumBytes = 256 << 10;
const maximumSide = 1024 * 1024;

/** The pictures of people and of occupants of rooms, as far as they are among the records. */
export class Avatars {
  /** @param {any} source */
  constructor(source) {
    this.source = source;
    /** @type {Map<string, string>} */
    this.urls = new Map();
    this.run = "";
    /** Records up to this position were read. */
    this.end = 0;
    this.isReading = false;
  }

  /**
   * The address of the picture of a contact; undefined if there is none.
   * @param {string} jid
   */
  urlOf(jid) { return this.urls.get(jid); }

  /** Reads the pictures in new records; returns whether there were any, and whether records are still to be searched. */
  async refresh() {
    if (this.isReading) return { isChanged: false, isBehind: false };
    this.isReading = true;
    try { return await this.read(); } finally { this.isReading = false; }
  }

  async read() {
    const answer = await this.source.rows({ filter: pictureFilter, from: -maximumAvatars, count: maximumAvatars });
    if (answer.run !== this.run) {
      for (const url of this.urls.values()) URL.revokeObjectURL(url);
      this.urls.clear();
      this.end = 0;
    }
    this.run = answer.run;
    const before = this.end;
    for (const at of answer.at) {
      if (at < before) continue;
      this.end = at + 1;
      const { record } = await this.source.record(at);
      if (record?.xml && record.type !== "error") this.add(record);
    }
    return { isChanged: this.end > before, isBehind: answer.scanned < answer.total };
  }

  /** @param {any} record */
  add(record) {
    const own = bare(record.jid ?? "");
    const sends = record.direction === "send";
    // What is sent to others is theirs, such as the picture of a room (XEP-0486).
    if (sends && record.to && bare(record.to) !== own) return;
    // An occupant of a room is known by the full address only.
    const contact = sends ? own : record.from ?? own;
    for (const root of parseXML(record.xml).roots) if (typeof root !== "string") this.search(root, "", contact);
  }

  /**
   * @param {any} node @param {string} parent the name of the element around it @param {string} contact
   */
  search(node, parent, contact) {
    const name = local(node);
    // A forwarded stanza is of somebody else.
    if (name === "forwarded") return;
    if (name === "data" && node.space === "urn:xmpp:avatar:data" || name === "BINVAL" && parent === "PHOTO" && node.space === "vcard-temp") {
      const text = node.children.filter((/** @type {any} */ child) => typeof child === "string").join("").replace(/\s/g, "");
      const picture = pictureOf(text, maximumBytes, maximumSide);
      if (picture && typeof picture === "object") this.store(contact, URL.createObjectURL(picture.blob));
    }
    for (const child of elements(node)) this.search(child, name, contact);
  }

  /**
   * @param {string} contact
   * @param {string} url
   */
  store(contact, url) {
    const old = this.urls.get(contact);
    if (old) URL.revokeObjectURL(old);
    this.urls.delete(contact);
    this.urls.set(contact, url);
    const [first] = this.urls;
    if (this.urls.size <= maximumAvatars || !first) return;
    URL.revokeObjectURL(first[1]);
    this.urls.delete(first[0]);
  }
}

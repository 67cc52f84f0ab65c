// What stanzas contribute to a chat: messages, and what later stanzas say about earlier ones. A stanza can name any message by
// its id, so each is only applied if its sender may do so.
import { bare } from "./format.js";
import { attribute, elements, local, parseXML, textOf } from "./xml.js";

/** Maximum number of stanzas of a conversation that are kept; earlier ones are asked for again. */
const maximumStanzas = 4000;

/** The stanzas of a conversation that were fetched: those from an index on, without a hole. */
export class Stanzas {
  constructor() {
    /** @type {{ at: number, record: any }[]} */
    this.list = [];
    /** Number of all stanzas, and the index of the first one in the list. */
    this.items = 0;
    this.from = 0;
    /** Those before this index are no longer kept by xmpptap. */
    this.first = 0;
    this.leftOff = 0;
  }

  /**
   * Takes the newest stanzas. Earlier ones stay if they continue at them.
   * @param {any} answer
   */
  takeNewest(answer) {
    const isContinued = this.list.length > 0 && answer.from >= this.from && answer.from <= this.items;
    // The answer may have fewer messages than indices, because xmpptap has removed some of them since it counted them.
    const oldest = answer.messages[0]?.at ?? Infinity;
    const earlier = isContinued ? this.list.filter((entry) => entry.at < oldest) : [];
    const kept = earlier.slice(-maximumStanzas);
    this.list = [...kept, ...answer.messages];
    this.items = answer.items;
    this.from = isContinued ? this.from + earlier.length - kept.length : answer.from;
    this.first = answer.first ?? 0;
    this.leftOff = answer.left_off ?? 0;
  }

  /**
   * Takes stanzas before those in the list.
   * @param {any} answer
   * @param {number} before the index that was asked for
   */
  takeEarlier(answer, before) {
    // Another answer was faster.
    if (before !== this.from) return;
    this.list = [...answer.messages, ...this.list];
    this.from = answer.from;
    this.first = answer.first ?? 0;
  }
}

const retraction = /^urn:xmpp:message-retract:[01]$/;

/**
 * The full JID without its account, or the address as it is if it has none: the nickname of an occupant.
 * @param {string} jid
 */
export function nickname(jid) {
  const slash = jid.indexOf("/");
  return slash < 0 ? jid : jid.slice(slash + 1);
}

/**
 * What a stanza contributes to a chat.
 * @param {any} record
 */
export function messageOf(record) {
  const root = parseXML(record.xml ?? "").roots.find((node) => typeof node !== "string");
  const own = bare(record.jid ?? "");
  const sends = record.direction === "send";
  // A client can write any address, which its server replaces or refuses. Components and servers, which have no resource, send
  // for several addresses.
  const isBound = sends && (record.jid ?? "").includes("/");
  const from = isBound ? record.jid : record.from ?? (sends ? record.jid ?? "" : "");
  /** @type {any} */
  const message = { from, to: record.to ?? own, id: record.id ?? "", type: record.type ?? "normal", isSent: sends, ids: record.id ? [record.id] : [] };
  if (!root || typeof root === "string") return message;
  for (const child of elements(root)) {
    const name = local(child);
    const { space } = child;
    if (name === "body" && message.body === undefined) message.body = textOf(child);
    else if (name === "subject") message.subject = textOf(child);
    else if (name === "replace" && space === "urn:xmpp:message-correct:0") message.replaces = attribute(child, "id");
    else if (name === "received" && space === "urn:xmpp:receipts") message.received = attribute(child, "id");
    else if (name === "displayed" && space === "urn:xmpp:chat-markers:0") message.displayed = attribute(child, "id");
    else if (name === "reactions" && space === "urn:xmpp:reactions:0") { message.reactsTo = attribute(child, "id"); message.reactions = elements(child).filter((entry) => local(entry) === "reaction").map(textOf); }
    else if (name === "retract" && retraction.test(space)) { message.retracts = attribute(child, "id"); message.isModerated = elements(child).some((entry) => local(entry) === "moderated"); }
    // The first version of retractions is fastened to the message (XEP-0422).
    else if (name === "apply-to" && elements(child).some((entry) => local(entry) === "retract" && retraction.test(entry.space))) message.retracts = attribute(child, "id");
    else if (name === "origin-id" && space === "urn:xmpp:sid:0") message.ids.push(attribute(child, "id") ?? "");
    // Only the id that the room has given identifies the message to the others in it.
    else if (name === "stanza-id" && space === "urn:xmpp:sid:0" && attribute(child, "by") === bare(from)) message.ids.push(attribute(child, "id") ?? "");
    else if (name === "encrypted" || space === "urn:xmpp:eme:0") message.isEncrypted = true;
    else if (name === "error") message.error = elements(child).map(local)[0] ?? "error";
    else if (name === "delay") message.delayed = attribute(child, "stamp");
    else if (name === "x" && space === "http://jabber.org/protocol/muc#user") message.isOfOccupant = true;
    else if (name === "x" && space === "jabber:x:oob") message.link = elements(child).filter((entry) => local(entry) === "url").map(textOf)[0];
  }
  return message;
}

/**
 * Who sent a message: an account, or an occupant of a room. In a room, an own message has the address of the account.
 * @param {any} message
 */
function senderOf(message) {
  const isOccupant = !message.isSent && (message.type === "groupchat" || message.isOfOccupant);
  return isOccupant ? message.from : bare(message.from);
}

/**
 * What became of a message on its way: what xmpptap did to it, and the text that was sent on.
 * @param {any} record
 * @param {any[]} others the records of its copies
 * @returns {{ changes: string[], sent?: string, body?: string }}
 */
function delivered(record, others) {
  const changes = new Set();
  const original = messageOf(record).body;
  let body = original;
  for (const copy of [record, ...others]) {
    // In the session of a receiver, the action is only about that one.
    const place = copy !== record && copy.direction === "recv" ? ` on the way to ${copy.jid ?? copy.to ?? "its receiver"}` : "";
    if (copy.edited !== undefined) body = messageOf({ ...copy, xml: copy.edited }).body;
    const action = copy.action ?? (copy.edited === undefined ? undefined : "edited");
    if (action) changes.add(`${action} by xmpptap${place}`);
  }
  return body === original ? { changes: [...changes] } : { changes: [...changes], sent: original, body };
}

/**
 * Puts the stanzas of a conversation together.
 * @param {{ at: number, record: any, others?: any[] }[]} stanzas as they were recorded. Sessions are recorded side by side: of two stanzas of different
 *   sessions, the later one can be the first
 * @returns {any[]} the messages to show
 */
export function chatOf(stanzas) {
  /** @type {any[]} */
  const shown = [];
  /**
   * Messages by their ids; different senders may use the same one.
   * @type {Map<string, any[]>}
   */
  const byId = new Map();
  /**
   * The newest message with an id that a sender may say something about.
   * @param {string | undefined} id
   * @param {(message: any) => boolean} isAllowed
   */
  const find = (id, isAllowed) => (id ? (byId.get(id) ?? []).filter(isAllowed).at(-1) : undefined);
  const inTime = [...stanzas].sort(({ record: one }, { record: other }) => (one.time < other.time ? -1 : Number(one.time > other.time)));
  for (const { at, record, others } of inTime) {
    const message = messageOf(record);
    Object.assign(message, { at, time: Date.parse(record.time) * 1000, session: record.session, action: record.action }, delivered(record, others ?? []));
    const sender = message.sender = senderOf(message);
    const isOwn = (/** @type {any} */ other) => other.sender === sender;
    // In a chat with oneself, the other side is another client.
    const isOther = (/** @type {any} */ other) => other.sender !== sender || [message, other].every((one) => bare(one.to) === sender) && other.from !== message.from;
    const isPassed = message.type !== "error" && !["dropped", "refused"].includes(message.action) && (message.type === "groupchat" || !message.changes.some((/** @type {string} */ text) => text.startsWith("dropped")));
    if (isPassed && applies(message, find, isOwn, isOther)) {
      // Later stanzas may name the correction instead of the message.
      if (message.target) for (const id of message.ids) addMessage(byId, id, message.target);
      continue;
    }
    if (message.body === undefined && !message.isEncrypted) continue;
    for (const id of new Set(message.ids)) if (id) addMessage(byId, id, message);
    shown.push(message);
  }
  return shown;
}

/** @param {Map<string, any[]>} byId @param {string} id @param {any} message */
function addMessage(byId, id, message) {
  const list = byId.get(id);
  if (list) list.push(message); else byId.set(id, [message]);
}

/**
 * Applies what a stanza says about an earlier message.
 * @param {any} message
 * @param {(id: string | undefined, isAllowed: (message: any) => boolean) => any} find
 * @param {(message: any) => boolean} isOwn
 * @param {(message: any) => boolean} isOther
 * @returns {boolean} whether the stanza is no message to show
 */
function applies(message, find, isOwn, isOther) {
  const anyone = () => true;
  if (message.received && message.body === undefined) {
    const target = find(message.received, isOther);
    if (target) target.isReceived = true;
    return true;
  }
  if (message.displayed && message.body === undefined) {
    const target = find(message.displayed, isOther);
    if (target) target.isDisplayed = true;
    return true;
  }
  if (message.reactsTo !== undefined) {
    // Each stanza replaces all reactions of its sender (XEP-0444).
    const target = find(message.reactsTo, isOther) ?? find(message.reactsTo, anyone);
    if (target) {
      target.reactions ??= new Map();
      if (message.reactions.length) target.reactions.set(message.sender, message.reactions); else target.reactions.delete(message.sender);
    }
    // The text of a reaction is for clients that do not know them.
    return true;
  }
  if (message.retracts) {
    // A moderator's retraction comes from the room itself.
    const isOfRoom = message.isModerated && message.type === "groupchat" && !message.isSent && !message.from.includes("/");
    const target = find(message.retracts, isOfRoom ? anyone : isOwn);
    if (target) target.isRetracted = true;
    else if (find(message.retracts, anyone)) message.remark = "a retraction of another's message, not applied";
    return target !== undefined;
  }
  if (message.replaces && message.body !== undefined) {
    const target = find(message.replaces, isOwn);
    if (target) {
      target.versions = [...(target.versions ?? [target.body ?? "(encrypted)"]), message.body];
      target.body = message.body;
      message.target = target;
      return true;
    }
    message.remark = find(message.replaces, anyone) ? "a correction of another's message, not applied" : "a correction of a message that is not shown";
  }
  return false;
}

// Conversations as chats: the messages of two accounts, or of a room, over all sessions.
import { el, fill } from "./dom.js";
import { bare, clock, count, day, plural, visible } from "./format.js";
import { attribute, elements, local, parseXML, textOf } from "./xml.js";

/**
 * A hue for an address, the same each time.
 * @param {string} text
 */
function hue(text) {
  let hash = 2166136261;
  for (const letter of text) hash = Math.imul(hash ^ (letter.codePointAt(0) ?? 0), 16777619);
  return (hash >>> 0) % 360;
}

/**
 * A circle with the first letter of an address.
 * @param {string} jid
 */
export function avatar(jid) {
  const node = el("span", { class: "avatar", "aria-hidden": "true", text: ([...jid.replace(/[^\p{L}\p{N}]/gu, "")][0] ?? "?").toUpperCase() });
  node.style.setProperty("--hue", String(hue(jid)));
  return node;
}

/**
 * What a stanza contributes to a chat.
 * @param {any} record
 */
export function messageOf(record) {
  const root = parseXML(record.xml ?? "").roots.find((node) => typeof node !== "string");
  const own = bare(record.jid ?? "");
  const sends = record.direction === "send";
  const from = record.from ?? (sends ? record.jid ?? "" : "");
  /** @type {any} */
  const message = { from, to: record.to ?? own, id: record.id ?? "", type: record.type ?? "normal", texts: [], marks: [] };
  if (!root || typeof root === "string") return message;
  for (const child of elements(root)) {
    const name = local(child);
    if (name === "body" && message.body === undefined) message.body = textOf(child);
    else if (name === "subject") message.subject = textOf(child);
    else if (name === "replace") message.replaces = attribute(child, "id");
    else if (name === "received" && child.space === "urn:xmpp:receipts") message.received = attribute(child, "id");
    else if (name === "displayed") message.displayed = attribute(child, "id");
    else if (name === "reactions") { message.reactsTo = attribute(child, "id"); message.reactions = elements(child).filter((entry) => local(entry) === "reaction").map(textOf); }
    else if (name === "retract") message.retracts = attribute(child, "id");
    else if (name === "encrypted" || child.space === "urn:xmpp:eme:0") message.isEncrypted = true;
    else if (name === "error") message.error = elements(child).map(local)[0] ?? "error";
    else if (name === "delay") message.delayed = attribute(child, "stamp");
    else if (name === "x" && child.space === "jabber:x:oob") message.link = elements(child).filter((entry) => local(entry) === "url").map(textOf)[0];
  }
  return message;
}

/** The view with conversations. */
export class ConversationsView {
  /**
   * @param {any} source
   * @param {{ select: (at: number) => void, filter: (text: string) => void, fault: (error: Error | null) => void }} events
   */
  constructor(source, events) {
    this.source = source;
    this.events = events;
    this.chosen = -1;
    /** @type {any[]} */
    this.messages = [];
    this.items = 0;
    this.from = 0;
    this.first = 0;
    this.isBehind = false;
    this.isOn = false;
    /** @type {any[]} */
    this.all = [];
    this.search = el("input", { type: "search", "aria-label": "Find conversations", placeholder: "Find a person, room or text", oninput: () => this.drawList() });
    this.list = el("ul", { class: "talks", role: "listbox", "aria-label": "Conversations", tabindex: 0 });
    this.chat = el("div", { class: "chat", tabindex: 0, role: "log", "aria-live": "off", "aria-label": "Messages" });
    this.title = el("header", { class: "chathead" });
    this.node = el("section", { class: "view two", "aria-label": "Conversations" },
      el("div", { class: "talkside" }, this.search, this.list), el("div", { class: "chatside" }, this.title, this.chat));
    fill(this.chat, el("p", { class: "hint", text: "Choose a conversation." }));
  }

  start() { this.isOn = true; this.refresh(); }
  stop() { this.isOn = false; clearTimeout(this.timer); }

  async refresh() {
    clearTimeout(this.timer);
    try {
      const answer = await this.source.conversations();
      this.all = answer.conversations;
      this.isBehind = answer.surveyed < answer.end;
      this.drawList();
      const talk = this.all.find((entry) => entry.conversation === this.chosen);
      if (talk && talk.items !== this.items) await this.load();
      else if (this.chosen < 0 && this.all.length) this.choose(this.all[0].conversation);
      this.events.fault(null);
    } catch (error) { this.events.fault(/** @type {Error} */ (error)); }
    if (this.isOn && !this.source.isFile && !document.hidden) this.timer = setTimeout(() => this.refresh(), this.isBehind ? 300 : 2000);
    else if (document.hidden) document.addEventListener("visibilitychange", () => this.isOn && this.refresh(), { once: true });
  }

  /** @param {any} talk */
  name(talk) { return talk.second ? `${talk.first} and ${talk.second}` : `room ${talk.first}`; }

  drawList() {
    const text = this.search.value.trim().toLowerCase();
    const shown = this.all.filter((talk) => !text || `${talk.first} ${talk.second} ${talk.text}`.toLowerCase().includes(text)).slice(0, 500);
    fill(this.list, ...shown.map((talk) => el("li", { role: "option", id: `talk-${talk.conversation}`, "aria-selected": talk.conversation === this.chosen ? "true" : "false", onclick: () => this.choose(talk.conversation) },
      avatar(talk.second || talk.first),
      el("span", { class: "names", text: visible(talk.second ? `${talk.first.split("@")[0]}, ${talk.second.split("@")[0]}` : talk.first) }),
      el("time", { text: clock(talk.time).slice(0, 5) }),
      el("span", { class: "last", text: visible(talk.text) }),
      el("span", { class: "count", text: count(talk.messages) }))));
    if (!shown.length) fill(this.list, el("li", { class: "hint", text: this.all.length ? "No conversation matches." : this.isBehind ? "Reading …" : "No messages have passed yet." }));
  }

  /** @param {number} conversation */
  async choose(conversation) {
    this.chosen = conversation;
    this.messages = [];
    this.list.setAttribute("aria-activedescendant", `talk-${conversation}`);
    for (const entry of this.list.children) entry.setAttribute("aria-selected", String(entry.id === `talk-${conversation}`));
    await this.load();
    this.chat.scrollTop = this.chat.scrollHeight;
  }

  async load() {
    const answer = await this.source.messages(this.chosen, undefined);
    this.items = answer.items;
    this.from = answer.from;
    this.first = answer.first ?? 0;
    const isAtEnd = this.chat.scrollTop + this.chat.clientHeight >= this.chat.scrollHeight - 20;
    this.messages = answer.messages;
    this.drawChat();
    if (isAtEnd) this.chat.scrollTop = this.chat.scrollHeight;
  }

  async earlier() {
    const answer = await this.source.messages(this.chosen, this.from);
    this.from = answer.from;
    this.first = answer.first ?? 0;
    this.messages = [...answer.messages, ...this.messages];
    const below = this.chat.scrollHeight - this.chat.scrollTop;
    this.drawChat();
    this.chat.scrollTop = this.chat.scrollHeight - below;
  }

  drawChat() {
    const talk = this.all.find((entry) => entry.conversation === this.chosen);
    if (!talk) return;
    const filter = talk.second ? `message and with:${talk.first} and with:${talk.second}` : `message and with:${talk.first}`;
    fill(this.title, el("h2", { text: visible(this.name(talk)) }), el("span", { class: "summary", text: plural(talk.messages, "message") }),
      el("button", { text: "as records", onclick: () => this.events.filter(filter) }));
    /** @type {any[]} */
    const shown = [];
    /** @type {Map<string, any>} */
    const byId = new Map();
    for (const { at, record } of this.messages) {
      const message = messageOf(record);
      Object.assign(message, { at, time: Date.parse(record.time) * 1000, session: record.session, action: record.action });
      const target = byId.get(message.replaces ?? message.received ?? message.displayed ?? message.reactsTo ?? message.retracts ?? "");
      if (message.received && target) { target.isReceived = true; continue; }
      if (message.displayed && target) { target.isDisplayed = true; continue; }
      if (message.reactsTo !== undefined) { if (target) target.reactions = [...(target.reactions ?? []), ...message.reactions.map((/** @type {string} */ text) => [text, message.from])]; continue; }
      if (message.retracts && target) { target.isRetracted = true; continue; }
      if (message.replaces && target && message.body !== undefined) { target.versions = [...(target.versions ?? [target.body]), message.body]; target.body = message.body; continue; }
      if (message.body === undefined && !message.isEncrypted) continue;
      if (message.id) byId.set(message.id, message);
      shown.push(message);
    }
    const nodes = [];
    // Messages before the first one are no longer kept.
    if (this.from > this.first) nodes.push(el("button", { class: "earlier", text: `show earlier messages (${count(this.from - this.first)})`, onclick: () => this.earlier() }));
    let last = /** @type {any} */ (null);
    for (const message of shown) {
      if (!last || day(last.time) !== day(message.time)) nodes.push(el("p", { class: "day", text: day(message.time) }));
      const isRoom = message.type === "groupchat";
      const who = isRoom ? message.from.split("/")[1] ?? message.from : bare(message.from);
      const isSame = last && last.who === who && message.time - last.time < 300e6 && day(last.time) === day(message.time);
      message.who = who;
      // The second account of the pair is on the right, so that sides do not change with the session.
      const isRight = !isRoom && who === talk.second;
      const state = [message.isDisplayed ? "read" : message.isReceived ? "delivered" : "", message.versions ? `edited ${message.versions.length - 1}×` : "", message.action ?? "", message.error ? `error: ${message.error}` : "", message.delayed ? "delayed" : ""].filter(Boolean).join(" · ");
      nodes.push(el("div", { class: `message ${isRight ? "right" : "left"} ${isSame ? "same" : ""} ${message.error || message.action === "dropped" ? "bad" : ""}` },
        isSame ? el("span", { class: "avatar none" }) : avatar(who),
        el("div", { class: "bubble" },
          isSame ? null : el("b", { class: "who", text: visible(who) }),
          el("button", { class: "text", title: "Show the stanza", onclick: () => this.events.select(message.at) },
            message.isRetracted ? el("s", { text: visible(message.body ?? "") }) : visible(message.body ?? "(encrypted)")),
          message.versions ? el("details", { class: "versions" }, el("summary", { text: "earlier versions" }), ...message.versions.slice(0, -1).map((/** @type {string} */ text) => el("p", { text: visible(text) }))) : null,
          message.reactions ? el("span", { class: "reactions" }, ...message.reactions.map((/** @type {[string, string]} */ [text, from]) => el("span", { title: visible(from), text: visible(text) }))) : null,
          el("span", { class: "meta", text: `${clock(message.time).slice(0, 8)} · session ${message.session}${state ? ` · ${state}` : ""}` }))));
      last = message;
    }
    fill(this.chat, ...nodes);
  }

  /**
   * @param {KeyboardEvent} event
   * @returns {boolean}
   */
  key(event) {
    const place = this.all.findIndex((talk) => talk.conversation === this.chosen);
    switch (event.key) {
      case "ArrowDown": case "j": if (this.all[place + 1]) this.choose(this.all[place + 1].conversation); return true;
      case "ArrowUp": case "k": if (this.all[place - 1]) this.choose(this.all[place - 1].conversation); return true;
      case "/": this.search.focus(); return true;
      default: return false;
    }
  }
}

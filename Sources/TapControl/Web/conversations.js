// Conversations as chats: the messages of two accounts, or of a room, over all sessions.
import { Avatars } from "./avatars.js";
import { chatOf, nickname, Stanzas } from "./chat.js";
import { callLater, el, fill } from "./dom.js";
import { bare, clock, count, day, filterCondition, plural, sessionName, visible } from "./format.js";

/** Maximum number of conversations in the list; the others are found by a word. */
const maximumTalks = 500;

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
 * A circle with a picture, or with the first letter of an address.
 * @param {string} jid
 * @param {string | undefined} picture
 */
export function avatar(jid, picture) {
  // Only the beginning was checked: the rest may be damaged.
  if (picture) return el("img", { class: "avatar", src: picture, alt: "", onerror: (/** @type {any} */ event) => event.target.replaceWith(avatar(jid, undefined)) });
  const node = el("span", { class: "avatar", "aria-hidden": "true", text: ([...jid.replace(/[^\p{L}\p{N}]/gu, "")][0] ?? "?").toUpperCase() });
  node.style.setProperty("--hue", String(hue(jid)));
  return node;
}

/**
 * The filter that finds a text in messages, in upper or lower case; empty if the text is too short.
 * @param {string} text
 */
export function textFilter(text) {
  if ([...text].length < 2) return "";
  // In a class, a character means itself. Those that would end the class or the quotes match any character.
  const pattern = [...text].map((letter) => (/[\p{L}\p{N} ]/u.test(letter) || letter > "\u007f" ? letter : /[\u0000-\u001f\u007f"\\^[\]]/.test(letter) ? "." : `[${letter}]`)).join("");
  return `body~"(?i)${pattern}"`;
}

/**
 * A text with its occurrences of another one marked.
 * @param {string} text
 * @param {string} word
 */
function markedText(text, word) {
  const [whole, part] = [text.toLowerCase(), word.toLowerCase()];
  // Some letters have another length in lower case.
  if (!part || whole.length !== text.length) return [text];
  const nodes = [];
  let end = 0;
  for (let at = whole.indexOf(part); at >= 0; at = whole.indexOf(part, end)) {
    nodes.push(text.slice(end, at), el("mark", { text: text.slice(at, at + part.length) }));
    end = at + part.length;
  }
  nodes.push(text.slice(end));
  return nodes;
}

/** The view with conversations. */
export class ConversationsView {
  /** @param {any} source @param {{ select: (at: number) => void, filter: (text: string) => void, fault: (error: Error | null) => void }} events */
  constructor(source, events) {
    this.source = source;
    this.events = events;
    this.chosen = -1;
    this.run = "";
    this.stanzas = new Stanzas();
    this.avatars = new Avatars(source);
    this.omitted = 0;
    this.isBehind = false;
    this.isOn = false;
    /** The filter that was searched with, its text, and the filter of the messages in the chat; empty for all messages. */
    this.filter = "";
    this.words = "";
    this.chatFilter = "";
    /** How often copies have changed what is known of the messages in the chat. */
    this.changes = 0;
    /** @type {any[]} */
    this.all = [];
    this.search = el("input", { type: "search", "aria-label": "Find conversations", placeholder: "Find a person, room or text", oninput: () => this.searched() });
    this.list = el("ul", { class: "talks", role: "listbox", "aria-label": "Conversations", tabindex: 0 });
    this.chat = el("div", { class: "chat", tabindex: 0, role: "log", "aria-live": "off", "aria-label": "Messages" });
    this.title = el("header", { class: "chathead" });
    this.node = el("section", { class: "view two", "aria-label": "Conversations" },
      el("div", { class: "talkside" }, this.search, this.list), el("div", { class: "chatside" }, this.title, this.chat));
    fill(this.chat, el("p", { class: "hint", text: "Choose a conversation." }));
  }

  start() { this.isOn = true; this.refresh(); }
  stop() { this.isOn = false; this.giveUp?.(); }

  /** The text to search for. */
  get text() { return this.search.value.trim(); }

  searched() {
    this.drawList();
    this.giveUp?.();
    // A search for every letter would be too much.
    this.giveUp = callLater(250, () => this.refresh());
  }

  /**
   * The filter for the messages of a conversation: if its name was found, but none of its messages, all are shown.
   * @param {any} talk
   */
  filterOf(talk) { return talk?.found > 0 ? this.filter : ""; }

  async refresh() {
    this.giveUp?.();
    try {
      const words = this.text;
      const filter = textFilter(words);
      const answer = await this.source.conversations(filter);
      // Another text was typed meanwhile, whose answer follows.
      if (words !== this.text) return;
      // Another run counts its conversations anew.
      if (this.run && answer.run !== this.run) this.chosen = -1;
      this.run = answer.run;
      this.all = answer.conversations;
      this.omitted = answer.omitted ?? 0;
      this.isBehind = answer.surveyed < answer.end || answer.scanned < answer.end;
      this.filter = filter;
      this.words = words;
      const shown = this.drawList();
      const talk = this.all.find((entry) => entry.conversation === this.chosen);
      if (talk && (shown.includes(talk) || !shown.length)) {
        if (this.filterOf(talk) !== this.chatFilter || (this.filterOf(talk) ? talk.found : talk.items) !== this.stanzas.items || talk.changes !== this.changes) await this.load();
      } else if (shown.length) {
        this.choose(shown[0].conversation);
      }
      const { isChanged, isBehind } = await this.avatars.refresh();
      this.isBehind ||= isBehind;
      if (isChanged) {
        this.drawList();
        this.drawChat();
      }
      this.events.fault(null);
    } catch (error) { this.events.fault(/** @type {Error} */ (error)); }
    this.giveUp?.();
    if (this.isOn && (this.isBehind || !this.source.isFile)) this.giveUp = callLater(this.isBehind ? 300 : 2000, () => this.refresh());
  }

  /** @param {any} talk */
  name(talk) { return talk.second ? `${talk.first} and ${talk.second}` : `room ${talk.first}`; }

  /** Draws the conversations that were found, and returns them. */
  drawList() {
    const text = this.text.toLowerCase();
    const found = this.all.filter((talk) => !text || talk.found > 0 || `${talk.first} ${talk.second}`.toLowerCase().includes(text));
    const shown = found.slice(0, maximumTalks);
    fill(this.list, ...shown.map((talk) => el("li", { role: "option", id: `talk-${talk.conversation}`, "aria-selected": talk.conversation === this.chosen ? "true" : "false", onclick: () => this.choose(talk.conversation) },
      avatar(talk.second || talk.first, this.avatars.urlOf(talk.second || talk.first)),
      el("span", { class: "names", text: visible(talk.second ? `${talk.first.split("@")[0]}, ${talk.second.split("@")[0]}` : talk.first) }),
      el("time", { text: clock(talk.time).slice(0, 5) }),
      el("span", { class: "last", text: visible(talk.text) }),
      el("span", { class: "count", text: talk.found > 0 ? `${count(talk.found)} of ${count(talk.messages)}` : count(talk.messages) }))));
    const more = [found.length > shown.length ? `${plural(found.length - shown.length, "more conversation")}: type a word to find them` : "", this.omitted ? `${plural(this.omitted, "older conversation")} no longer kept` : ""].filter(Boolean);
    for (const line of more) this.list.appendChild(el("li", { class: "hint", text: line }));
    if (!shown.length) fill(this.list, el("li", { class: "hint", text: this.isBehind ? "Searching …" : this.all.length ? "No conversation matches." : "No messages have passed yet." }));
    return shown;
  }

  /** Shows the times in another zone. */
  redraw() {
    if (!this.run) return;
    this.drawList();
    this.drawChat();
  }

  /** @param {number} conversation */
  async choose(conversation) {
    this.chosen = conversation;
    this.stanzas = new Stanzas();
    this.list.setAttribute("aria-activedescendant", `talk-${conversation}`);
    for (const entry of this.list.children) entry.setAttribute("aria-selected", String(entry.id === `talk-${conversation}`));
    try {
      await this.load();
      this.chat.scrollTop = this.chat.scrollHeight;
    } catch (error) { this.events.fault(/** @type {Error} */ (error)); }
  }

  async load() {
    const { chosen } = this;
    const talk = this.all.find((entry) => entry.conversation === chosen);
    const filter = this.filterOf(talk);
    const changes = talk?.changes;
    const answer = await this.source.messages(chosen, undefined, filter);
    // Another conversation was chosen meanwhile.
    if (chosen !== this.chosen) return;
    this.changes = changes;
    const isAtEnd = filter !== this.chatFilter || this.chat.scrollTop + this.chat.clientHeight >= this.chat.scrollHeight - 20;
    // The indices of found messages change when others are found, or are no longer kept.
    if (filter || this.chatFilter) this.stanzas = new Stanzas();
    this.chatFilter = filter;
    this.stanzas.takeNewest(answer);
    this.drawChat();
    if (isAtEnd) this.chat.scrollTop = this.chat.scrollHeight;
  }

  async earlier() {
    const { stanzas } = this;
    const { from } = stanzas;
    let answer;
    try { answer = await this.source.messages(this.chosen, from, this.chatFilter); } catch (error) { return this.events.fault(/** @type {Error} */ (error)); }
    if (stanzas !== this.stanzas) return;
    stanzas.takeEarlier(answer, from);
    const below = this.chat.scrollHeight - this.chat.scrollTop;
    this.drawChat();
    this.chat.scrollTop = this.chat.scrollHeight - below;
  }

  drawChat() {
    const talk = this.all.find((entry) => entry.conversation === this.chosen);
    if (!talk) return;
    const conditions = [talk.first, talk.second].filter(Boolean).map((jid) => filterCondition("with", jid));
    const filter = conditions.includes(undefined) ? "" : ["message", ...conditions, ...(this.chatFilter ? [this.chatFilter] : [])].join(" and ");
    const word = this.chatFilter ? visible(this.words) : "";
    const shown = chatOf(this.stanzas.list);
    const isCorrected = this.stanzas.list.length === this.stanzas.items && shown.length < this.stanzas.items;
    fill(this.title, el("h2", { text: visible(this.name(talk)) }),
      el("span", { class: "summary", text: word ? `${count(this.stanzas.items)} of ${plural(talk.messages, "message")} with “${word}”, as they were sent${isCorrected ? `; ${count(shown.length)} with corrections applied` : ""}` : plural(talk.messages, "message") }),
      word && el("button", { text: "show all", onclick: () => { this.search.value = ""; this.refresh(); } }),
      filter && el("button", { text: "as records", onclick: () => this.events.filter(filter) }));
    const nodes = [];
    const { from, first, leftOff } = this.stanzas;
    if (leftOff > 0) nodes.push(el("p", { class: "hint", text: `${plural(leftOff, "message")} of this conversation are left off here; the records have them.` }));
    if (first > 0 && from <= first) nodes.push(el("p", { class: "hint", text: `${plural(first, "earlier message")} no longer kept` }));
    if (from > first) nodes.push(el("button", { class: "earlier", text: `show earlier messages (${count(from - first)})`, onclick: () => this.earlier() }));
    let last = /** @type {any} */ (null);
    for (const message of shown) {
      if (!last || day(last.time) !== day(message.time)) nodes.push(el("p", { class: "day", text: day(message.time) }));
      const isRoom = message.type === "groupchat";
      const who = isRoom && !message.isSent ? nickname(message.from) : message.isOfOccupant && !message.isSent ? message.from : bare(message.from);
      const isSame = last && last.who === who && message.time - last.time < 300e6 && day(last.time) === day(message.time);
      message.who = who;
      // The second account of the pair is on the right, so that sides do not change with the session.
      const isRight = !isRoom && who === talk.second;
      const state = [message.isDisplayed ? "read" : message.isReceived ? "delivered" : "", message.versions ? `edited ${message.versions.length - 1}×` : "", ...message.changes, message.error ? `error: ${message.error}` : "", message.remark ?? "", message.delayed ? "delayed" : ""].filter(Boolean).join(" · ");
      nodes.push(el("div", { class: `message ${isRight ? "right" : "left"} ${isSame ? "same" : ""} ${message.error || message.changes.some((/** @type {string} */ text) => text.startsWith("dropped")) ? "bad" : ""}` },
        isSame ? el("span", { class: "avatar none" }) : avatar(who, this.avatars.urlOf(isRoom && !message.isSent ? message.from : who)),
        el("div", { class: "bubble" },
          isSame ? null : el("b", { class: "who", text: visible(who) }),
          el("button", { class: "text", title: "Show the stanza", onclick: () => this.events.select(message.at) },
            message.isRetracted ? el("s", { text: visible(message.body ?? "") }) : el("span", null, ...markedText(visible(message.body ?? "(encrypted)"), word))),
          message.versions ? el("details", { class: "versions" }, el("summary", { text: "earlier versions" }), ...message.versions.slice(0, -1).map((/** @type {string} */ text) => el("p", { text: visible(text) }))) : null,
          message.sent !== undefined ? el("details", { class: "versions" }, el("summary", { text: "as it was received" }), el("p", { text: visible(message.sent) })) : null,
          message.reactions?.size ? el("span", { class: "reactions" }, ...[...message.reactions].flatMap(([from, texts]) => texts.map((/** @type {string} */ text) => el("span", { title: visible(from), text: visible(text) })))) : null,
          el("span", { class: "meta", text: `${clock(message.time).slice(0, 8)} · session ${sessionName(message.session)}${state ? ` · ${state}` : ""}` }))));
      last = message;
    }
    fill(this.chat, ...nodes);
  }

  /** @param {KeyboardEvent} event @returns {boolean} */
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

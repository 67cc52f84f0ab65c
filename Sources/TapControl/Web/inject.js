// The form for stanzas to inject: templates, a check while they are written, and what came of those that were sent.
import { injectCommand } from "./detail.js";
import { choice, copy, el, fill, panel, setText, stanzaField } from "./dom.js";
import { clock, sessionName, span, visible } from "./format.js";
import { drawTree, parseXML } from "./xml.js";

/** @typedef {{ session: number, jid: string | null, domain: string | null, phase: string, level: string | null }} OpenSession */

/** Number of stanzas that the history keeps. */
const maximumHistory = 50;

/** @param {string} text */
const attributeText = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll("'", "&apos;");

/** @type {[string, (blanks: Record<string, string>) => string][]} */
const stanzaTemplates = [
  ["chat message", ({ peer, id }) => `<message${peer} type='chat' id='${id}'>\n  <body>Hello</body>\n</message>`],
  ["presence", ({ peer }) => `<presence${peer}>\n  <show>away</show>\n</presence>`],
  ["ping", ({ server, id }) => `<iq${server} type='get' id='${id}'>\n  <ping xmlns='urn:xmpp:ping'/>\n</iq>`],
  ["disco#info", ({ server, id }) => `<iq${server} type='get' id='${id}'>\n  <query xmlns='http://jabber.org/protocol/disco#info'/>\n</iq>`],
  ["version", ({ server, id }) => `<iq${server} type='get' id='${id}'>\n  <query xmlns='jabber:iq:version'/>\n</iq>`],
  ["roster", ({ id }) => `<iq type='get' id='${id}'>\n  <query xmlns='jabber:iq:roster'/>\n</iq>`],
  ["iq", ({ server, id }) => `<iq${server} type='get' id='${id}'>\n  \n</iq>`],
];

/**
 * The attributes and the id for templates.
 * @param {OpenSession | undefined} session
 * @param {string} to
 */
function blanksFor(session, to) {
  const domain = attributeText(session?.domain ?? "example.org");
  const own = attributeText(session?.jid ?? `user@${session?.domain ?? "example.org"}`);
  const id = `page-${Math.random().toString(36).slice(2, 10)}`;
  // The client gets what another sends to it.
  return to === "client" ? { peer: ` from='romeo@${domain}' to='${own}'`, server: ` from='${domain}' to='${own}'`, id }
    : { peer: ` to='romeo@${domain}'`, server: ` to='${domain}'`, id };
}

/** The form, and the history of this page. */
export class InjectForm {
  /** @param {any} source @param {{ session: () => OpenSession | undefined, missing: () => string, say: (text: string) => void }} events */
  constructor(source, events) {
    this.source = source;
    this.events = events;
    /** @type {string[]} */
    this.texts = [];
    /** The place in the history that is shown; its length for the text that is being written. */
    this.place = 0;
    this.draft = "";
    this.to = choice("Inject to", [["server", "to the server"], ["client", "to the client"]], () => this.check());
    this.template = choice("Template", [["", "template …"], ...stanzaTemplates.map(([name]) => /** @type {[string, string]} */ ([name, name]))], () => this.useTemplate());
    this.input = stanzaField({ rows: 6, "aria-label": "Stanza to inject", "aria-describedby": "inject-mistake", placeholder: "<message to='romeo@example.org'><body>Hello</body></message>",
      oninput: () => this.typed(), onkeydown: (/** @type {KeyboardEvent} */ event) => this.key(event) });
    this.mistake = el("p", { class: "fault", id: "inject-mistake" });
    this.mistake.hidden = true;
    this.outcome = el("p", { class: "outcome", role: "status" });
    this.list = el("ol", { class: "history", "aria-label": "Injected stanzas" });
    this.button = el("button", { text: "Send", title: "Send the stanza (Ctrl Enter)", onclick: () => this.send() });
    this.node = panel("Inject", el("div", { class: "formline" }, this.to, this.template), this.input, this.mistake,
      el("div", { class: "formline" }, this.button,
        el("button", { text: "copy as command", title: "Copy a command for a shell that sends this stanza", onclick: () => this.copyCommand() }), this.outcome),
      this.list);
  }

  get text() { return this.input.value.trim(); }

  /** @param {boolean} isOpen whether the chosen session is open */
  enable(isOpen) { this.button.disabled = !isOpen; }

  useTemplate() {
    const chosen = stanzaTemplates.find(([name]) => name === this.template.value);
    this.template.value = "";
    if (!chosen) return;
    this.show(chosen[1](blanksFor(this.events.session(), this.to.value)));
    this.input.focus();
  }

  /** @param {string} text */
  show(text) {
    this.input.value = text;
    this.check();
  }

  typed() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.check(), 250);
  }

  /** Has xmpptap check the stanza as before an injection, and marks its mistake. */
  async check() {
    clearTimeout(this.timer);
    const session = this.events.session();
    const text = this.input.value;
    /** @type {any} */
    let result = { valid: true };
    if (session && text.trim()) {
      try {
        result = await this.source.request("POST", `/sessions/${session.session}/check`, { to: this.to.value, stanza: text });
      } catch (error) { result = { detail: /** @type {Error} */ (error).message }; }
    }
    // What was typed since then is checked later.
    if (text !== this.input.value) return;
    this.mistake.hidden = result.valid;
    this.input.classList.toggle("wrong", !result.valid);
    this.input.setAttribute("aria-invalid", String(!result.valid));
    if (result.valid) return;
    fill(this.mistake, el("span", { text: visible(result.detail) }));
    if (result.offset === undefined) return;
    // The place is in bytes.
    const at = new TextDecoder().decode(new TextEncoder().encode(text).slice(0, result.offset)).length;
    const lines = text.slice(0, at).split("\n");
    fill(this.mistake, el("code", null, visible(text.slice(Math.max(0, at - 24), at)), el("mark", { class: "place", text: visible(text[at] ?? " ") }), visible(text.slice(at + 1, at + 24))),
      el("span", { text: `line ${lines.length}, column ${[...lines[lines.length - 1]].length + 1}: ${visible(result.detail)}` }));
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (!event.ctrlKey && !event.metaKey) return;
    if (event.key === "Enter") this.send();
    else if (event.key === "ArrowUp") this.browse(-1);
    else if (event.key === "ArrowDown") this.browse(1);
    else return;
    event.preventDefault();
  }

  /**
   * Shows the stanza before or after in the history.
   * @param {number} step
   */
  browse(step) {
    const place = this.place + step;
    if (place < 0 || place > this.texts.length) return;
    if (this.place === this.texts.length) this.draft = this.input.value;
    this.place = place;
    this.show(this.texts[place] ?? this.draft);
  }

  copyCommand() {
    const session = this.events.session();
    if (!session) return this.events.say(this.events.missing());
    if (this.text) copy(injectCommand({ xml: this.text, session: session.session }, this.to.value), this.events.say);
  }

  async send() {
    const session = this.events.session();
    const { text } = this;
    const to = this.to.value;
    if (!session) return this.events.say(this.events.missing());
    if (!text) return this.events.say("write a stanza first");
    this.check();
    this.texts = [...this.texts.filter((other) => other !== text), text].slice(-maximumHistory);
    this.place = this.texts.length;
    this.draft = "";
    setText(this.outcome, "sending …");
    const state = el("span", { class: "state", text: "waiting" });
    const answer = el("div", { class: "xml" });
    const entry = el("li", null, el("p", null, `${clock(Date.now() * 1000).slice(0, 8)} to the ${to} of session ${sessionName(session.session)}: `, state, " ",
      el("button", { class: "small", text: "again", title: "Show this stanza in the form", onclick: () => { this.to.value = to; this.show(text); this.input.focus(); } })),
    el("code", { class: "sent", text: visible(text.length > 160 ? `${text.slice(0, 160)} …` : text) }), answer);
    this.list.prepend(entry);
    while (this.list.children.length > maximumHistory) this.list.lastChild.remove();
    let words;
    try {
      const result = await this.source.request("POST", `/sessions/${session.session}/inject`, { to, stanza: text });
      if (result.outcome === "answered") {
        words = `answered${result.type ? ` by ${result.type === "error" ? "an error" : `a ${result.type}`}` : ""} after ${span(result.round_trip_ns / 1000)}`;
        entry.classList.toggle("bad", result.type === "error");
        fill(answer, drawTree(parseXML(result.answer).roots));
      } else {
        words = `sent after ${span(result.delay_ns / 1000)}${result.id ? `, id ${result.id}` : ""}`;
      }
    } catch (error) {
      words = /** @type {Error} */ (error).message;
      entry.classList.add("bad");
    }
    setText(state, visible(words));
    setText(this.outcome, visible(words));
    this.outcome.classList.toggle("bad", entry.classList.contains("bad"));
  }
}

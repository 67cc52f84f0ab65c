// The tray: stanzas that are held until someone decides. What arrives never changes a text that is being edited, nor moves the
// focus or what is in view.
import { el, fill, setText, stanzaField } from "./dom.js";
import { plural, sessionName, visible } from "./format.js";

/**
 * @typedef {{ session: number, number: number, direction: string, rule?: string, filter?: string, paused_by_page: boolean,
 *   remaining_ns: number, stanza?: string, base64?: string }} HeldStanza
 * @typedef {{ session: number, direction?: string, filter: string, left: number }} SetPause
 */

/** Time between two requests, for a page in view and for a hidden one that has set a pause, in milliseconds. */
const trayInterval = 1000;
const hiddenInterval = 15_000;

/** Maximum number of released stanzas that are remembered. */
const maximumReleased = 1000;
/** The outcome of a stanza that someone else has released, or that has passed after its time. */
const gone = "no longer held";

/** A held stanza in the tray. */
class TrayItem {
  /** @param {HeldStanza} held @param {Tray} tray */
  constructor(held, tray) {
    this.held = held;
    this.tray = tray;
    this.text = held.stanza ?? "";
    this.isHeld = true;
    this.isBusy = false;
    /** Whether it stays in the tray although it is not held. */
    this.isKept = false;
    /** When it passes, by the clock of this page. */
    this.deadline = 0;
    this.time = el("span", { class: "remaining" });
    const name = /^<(\w+)/.exec(this.text)?.[1] ?? "element";
    const cause = held.rule ? `by the rule ${held.rule}` : held.filter ? `by the filter ${held.filter}` : "by a pause";
    this.input = stanzaField({ rows: Math.min(14, Math.max(3, Math.ceil(this.text.length / 70) + this.text.split("\n").length - 1)),
      "aria-label": `Held ${name} ${held.number} of session ${sessionName(held.session)}`, oninput: () => this.typed(), onkeydown: (/** @type {KeyboardEvent} */ event) => this.key(event) });
    this.input.value = this.text;
    /** The text as the browser keeps it: with the line ends of a field. */
    this.kept = this.input.value;
    this.input.readOnly = held.stanza === undefined;
    this.fault = el("p", { class: "fault", role: "alert" });
    this.fault.hidden = true;
    this.pass = el("button", { text: "Pass", title: "Relay it as it is", onclick: () => this.release("pass") });
    this.edit = el("button", { text: "Pass edited", title: "Relay the edited text instead (Ctrl Enter)", disabled: true, onclick: () => this.release("edit") });
    this.drop = el("button", { text: "Drop", title: "Relay nothing", onclick: () => this.release("drop") });
    const note = held.stanza === undefined ? "It is not text, so it cannot be edited here." : /\\u\{/.test(visible(this.text)) ? "It has characters that are not seen." : "";
    this.node = el("article", { class: "held", "aria-label": `Held stanza ${held.number}` },
      el("header", null, el("b", { class: held.direction, text: held.direction.toUpperCase() }), ` ${name} of session ${sessionName(held.session)} `,
        el("span", { class: "cause", text: visible(cause) }), this.time),
      this.input, this.fault,
      note ? el("p", { class: "note", text: note }) : null,
      el("div", { class: "formline" }, this.pass, this.edit, this.drop));
  }

  /** Whether the user has changed the text. */
  get isTouched() { return this.input.value !== this.kept; }

  /** Whether the user works on it, so that nothing may move. */
  get isInUse() { return this.isHeld && (this.isTouched || this.input === document.activeElement); }

  /** @param {HeldStanza} held */
  update(held) { this.deadline = Date.now() + held.remaining_ns / 1e6; }

  drawTime() {
    if (this.isHeld) setText(this.time, `passes in ${Math.max(0, Math.ceil((this.deadline - Date.now()) / 1000))} s`);
  }

  typed() {
    this.edit.disabled = !this.isTouched || !this.isHeld;
    setText(this.pass, this.isTouched ? "Pass unedited" : "Pass");
    this.fault.hidden = true;
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    this.release(this.isTouched ? "edit" : "pass");
  }

  /** @param {string} action */
  async release(action) {
    if (!this.isHeld || this.isBusy) return;
    this.isBusy = true;
    const hadFocus = this.node.contains(document.activeElement);
    const body = action === "edit" ? { action, stanza: this.input.value } : { action };
    try {
      await this.tray.source.request("POST", `/sessions/${this.held.session}/held/${this.held.number}`, body);
      this.end(action === "drop" ? "dropped" : action === "edit" ? "passed, edited" : "passed");
      // A button that is disabled loses the focus to the page.
      const active = document.activeElement;
      if (hadFocus && (active === document.body || this.node.contains(active))) this.tray.node.focus({ preventScroll: true });
      this.tray.sweep();
      this.tray.soon();
    } catch (error) {
      this.fault.hidden = false;
      setText(this.fault, visible(/** @type {Error} */ (error).message));
    }
    this.isBusy = false;
  }

  /**
   * Shows that it is no longer held.
   * @param {string} outcome
   */
  end(outcome) {
    this.isHeld = false;
    this.node.classList.add("done");
    this.pass.disabled = this.edit.disabled = this.drop.disabled = this.input.readOnly = true;
    setText(this.time, outcome);
    this.tray.forget(this.held);
    // A text that was edited in vain is not thrown away.
    this.isKept = this.isTouched && outcome === gone;
    if (this.isKept) this.node.appendChild(el("button", { text: "Close", onclick: () => { this.isKept = false; this.tray.sweep(); this.tray.draw(); } }));
  }
}

/** The held stanzas of all sessions, and the pauses of pages. It is asked for whatever view is open. */
export class Tray {
  /** @param {any} source @param {{ changed: () => void, say: (text: string) => void, fault: (error: Error | null) => void }} events */
  constructor(source, events) {
    this.source = source;
    this.events = events;
    /** @type {Map<string, TrayItem>} */
    this.items = new Map();
    /** @type {SetPause[]} */
    this.pauses = [];
    this.omitted = 0;
    /** @type {Set<string>} stanzas that are no longer held: an earlier answer can still have them */
    this.released = new Set();
    this.page = newPage();
    this.asked = 0;
    this.isOn = false;
    this.empty = el("p", { class: "hint", text: "No stanza is held. A pause, or the rule action PAUSE, holds stanzas; each passes after a minute." });
    this.list = el("div", { class: "trayitems" });
    this.passAll = el("button", { text: "Pass all", title: "Pass all held stanzas (P)", onclick: () => this.passEach() });
    this.summary = el("p", { class: "summary" });
    this.node = el("section", { class: "tray", "aria-label": "Held stanzas", tabindex: -1 },
      el("div", { class: "bar" }, el("h2", { text: "Held" }), this.summary, this.passAll), el("div", { class: "trayscroll" }, this.list, this.empty));
    document.addEventListener("visibilitychange", () => { if (!document.hidden) this.soon(); });
    window.addEventListener("pagehide", () => this.close());
    window.addEventListener("pageshow", (event) => { if (event.persisted) this.page = newPage(); });
    this.draw();
  }

  /** The stanzas that are still held. */
  get held() { return [...this.items.values()].filter((item) => item.isHeld); }

  /** What the status line says. */
  get words() {
    const { held } = this;
    if (!held.length) return this.pauses.length ? `holding in ${plural(this.pauses.length, "session")}` : "nothing held";
    const next = Math.max(0, Math.ceil((Math.min(...held.map((item) => item.deadline)) - Date.now()) / 1000));
    // Stanzas that are too large together are shown when others are released.
    return `${held.length + this.omitted} held${this.omitted ? ` (${this.omitted} not shown)` : ""}, next passes in ${next} s`;
  }

  start() {
    if (this.isOn) return;
    this.isOn = true;
    this.refresh();
    setInterval(() => { if (!document.hidden) this.drawTimes(); }, 500);
  }

  /** Tells xmpptap that this page is gone: if it was the last one, its pauses end. */
  close() {
    if (this.isOn) this.source.request("POST", "/page/closed", { page: this.page }, undefined, true).catch(() => { /* The page is gone. */ });
  }

  /** Asks again without waiting. */
  soon() {
    this.asked = 0;
    this.next(0);
  }

  /** @param {number} wait */
  next(wait) {
    clearTimeout(this.timer);
    if (this.isOn) this.timer = setTimeout(() => this.tick(), wait);
  }

  tick() {
    // A hidden page asks only if it would otherwise count as closed, and end what it has set.
    const isQuiet = this.pauses.length === 0 && this.held.length === 0;
    if (document.hidden && (isQuiet || Date.now() - this.asked < hiddenInterval)) this.next(isQuiet ? 60_000 : trayInterval);
    else this.refresh();
  }

  async refresh() {
    if (this.isAsking) return;
    this.isAsking = true;
    this.asked = Date.now();
    try {
      const answer = await this.source.ask("held", { page: this.page });
      this.omitted = answer.omitted;
      this.pauses = answer.pauses;
      this.arrange(answer.held);
      this.events.fault(null);
    } catch (error) { this.events.fault(/** @type {Error} */ (error)); }
    this.isAsking = false;
    this.next(trayInterval);
  }

  /** @param {HeldStanza[]} held */
  arrange(held) {
    const keys = new Set();
    let added;
    for (const entry of held) {
      const key = trayKey(entry);
      keys.add(key);
      if (this.released.has(key)) continue;
      let item = this.items.get(key);
      if (!item) {
        item = added = new TrayItem(entry, this);
        this.items.set(key, item);
        // New ones come last, below whatever is edited.
        this.list.appendChild(item.node);
      }
      item.update(entry);
    }
    for (const [key, item] of this.items) if (item.isHeld && !keys.has(key) && !item.isBusy) item.end(gone);
    this.sweep();
    if (added) this.events.say(`a stanza of session ${sessionName(added.held.session)} is held`);
    this.draw();
  }

  /** Removes those that are no longer held, unless that would move a text that is being edited. */
  sweep() {
    const items = [...this.items.values()];
    if (items.some((item) => item.isInUse)) return;
    for (const [key, item] of this.items) {
      if (item.isHeld || item.isKept || item.node.contains(document.activeElement)) continue;
      item.node.remove();
      this.items.delete(key);
    }
  }

  /** @param {HeldStanza} held */
  forget(held) {
    this.released.add(trayKey(held));
    for (const key of this.released) if (this.released.size > maximumReleased) this.released.delete(key);
  }

  draw() {
    const count = this.held.length;
    this.empty.hidden = this.items.size > 0;
    this.passAll.disabled = count === 0;
    this.drawTimes();
  }

  drawTimes() {
    for (const item of this.items.values()) item.drawTime();
    setText(this.summary, this.words);
    this.events.changed();
  }

  /** Passes all held stanzas as they are. */
  async passEach() {
    const { held } = this;
    if (!held.length) return this.events.say("no stanza is held");
    await Promise.all(held.map((item) => item.release("pass")));
    this.events.say(`passed ${plural(held.filter((item) => !item.isHeld).length, "stanza")}`);
  }

  /**
   * Draws the pauses, each with a button that ends it.
   * @param {HTMLElement} list
   */
  drawPauses(list) {
    const key = JSON.stringify(this.pauses);
    if (list.dataset.drawn === key) return;
    list.dataset.drawn = key;
    fill(list, ...this.pauses.map((pause) => el("li", null, `session ${sessionName(pause.session)}: ${visible(pause.filter) || "every stanza"}${pause.direction ? `, ${pause.direction}` : ""}, ${plural(pause.left, "stanza")} left `,
      el("button", { class: "small", text: "end", "aria-label": `End the pause of session ${sessionName(pause.session)}`, onclick: () => this.endPause(pause.session) }))));
  }

  /** @param {number} session */
  async endPause(session) {
    try { await this.source.request("DELETE", `/sessions/${session}/pause`); } catch (error) { this.events.say(/** @type {Error} */ (error).message); }
    this.soon();
  }
}

/** @param {HeldStanza} held */
function trayKey(held) { return `${held.session} ${held.number}`; }

/** A name of this page that no other has. */
function newPage() {
  return [...crypto.getRandomValues(new Uint8Array(12))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

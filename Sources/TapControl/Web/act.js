// The view that acts on sessions: it injects and holds stanzas, pings, switches rules, and changes levels.
import { el, fill, Poll, setText } from "./dom.js";
import { sessionName, visible } from "./format.js";
import { HoldForm } from "./hold.js";
import { InjectForm } from "./inject.js";
import { PingChart } from "./ping.js";
import { LevelsPanel, RulesPanel } from "./rules.js";

/** Maximum number of sessions in the choice. */
const maximumOpen = 5000;

/** The view. */
export class ActView {
  /**
   * @param {any} source
   * @param {import("./tray.js").Tray} tray
   * @param {{ say: (text: string) => void, filter: (text: string) => void, fault: (error: Error | null) => void }} events
   */
  constructor(source, tray, events) {
    this.source = source;
    this.tray = tray;
    this.events = events;
    /** @type {import("./inject.js").OpenSession[]} */
    this.sessions = [];
    /** The number of the chosen session; it stays when the session ends, because what was written for it must not go to another one. */
    this.number = 0;
    /** The account of the chosen session. */
    this.jid = "";
    this.listed = "";
    this.poll = new Poll(() => 2000, () => this.refresh());
    this.choice = el("select", { "aria-label": "Session to act on", onchange: () => this.choose(Number(this.choice.value)) });
    this.summary = el("p", { class: "summary", role: "status" });
    const session = () => this.session;
    const missing = () => this.missing;
    this.inject = new InjectForm(source, { session, missing, say: events.say });
    this.pings = new PingChart(source, { session, missing });
    this.hold = new HoldForm(source, tray, { session, missing, sessions: () => this.sessions.filter((entry) => entry.phase === "ready"), say: events.say });
    this.rules = new RulesPanel(source, events);
    this.levels = new LevelsPanel(source, { session, say: events.say });
    this.parts = [this.poll, this.pings, this.rules.poll, this.levels.poll];
    // The tray is beside the forms and scrolls by itself, so that nothing in them moves a text that is edited there.
    this.node = el("section", { class: "view act", "aria-label": "Act", tabindex: -1 },
      el("div", { class: "bar" }, el("label", null, "session ", this.choice), this.summary),
      el("div", { class: "acts" }, el("div", { class: "panels" }, this.hold.node, this.inject.node, this.pings.node, this.rules.node, this.levels.node), tray.node));
  }

  /** The chosen session while it is open. */
  get session() { return this.sessions.find((session) => session.session === this.number); }

  /** Why nothing can be done to the chosen session; empty if it is open. */
  get missing() { return this.session ? "" : this.number ? `session ${sessionName(this.number)} has ended: choose another one` : "choose a session first"; }

  start() { for (const part of this.parts) part.start(); }
  stop() { for (const part of this.parts) part.stop(); }

  async refresh() {
    try {
      this.setSessions((await this.source.request("GET", "/sessions")).sessions);
      this.events.fault(null);
    } catch (error) { this.events.fault(/** @type {Error} */ (error)); }
  }

  /** @param {import("./inject.js").OpenSession[]} sessions */
  setSessions(sessions) {
    this.sessions = sessions;
    if (!this.number) this.choose(sessions.find((session) => session.phase === "ready")?.session ?? 0);
    this.jid = this.session?.jid ?? this.jid;
    const hasEnded = this.number > 0 && !this.session;
    // The choice stays as it is while it has all that it lists, because a list that is open would close.
    const key = JSON.stringify([hasEnded && this.number, ...sessions.map(({ session, jid, phase }) => [session, jid, phase])]);
    if (key !== this.listed) {
      this.listed = key;
      fill(this.choice, hasEnded && el("option", { value: this.number, text: `${sessionName(this.number)} ${visible(this.jid)}, ended` }), ...sessions.slice(0, maximumOpen).map((session) => el("option", { value: session.session, text: `${sessionName(session.session)} ${visible(session.jid ?? "not logged in")}${session.phase === "ready" ? "" : `, ${session.phase}`}` })));
      this.choice.value = String(this.number);
    }
    this.choice.disabled = sessions.length === 0;
    const open = sessions.length ? "" : "No session is open. Connect a client to the address that xmpptap has printed.";
    setText(this.summary, hasEnded ? `Session ${sessionName(this.number)} has ended. ${open || "Choose another one to act on."}` : open);
    this.enable();
  }

  /** Enables what acts on the chosen session, while that is open. */
  enable() { for (const part of [this.inject, this.pings, this.hold, this.levels]) part.enable(this.session !== undefined); }

  /**
   * Chooses the session that is acted on.
   * @param {number} number
   */
  choose(number) {
    this.number = number;
    this.jid = this.session?.jid ?? "not logged in";
    this.choice.value = String(number);
    this.enable();
    this.pings.restart();
    if (this.poll.isOn) this.levels.poll.now();
  }

  /** The keys of the page work in the view, but not in a field. */
  focus() { this.node.focus({ preventScroll: true }); }

  /** @param {KeyboardEvent} event @returns {boolean} */
  key(event) {
    switch (event.key) {
      case "/": this.hold.filter.input.focus(); return true;
      case "i": this.inject.input.focus(); return true;
      default: return false;
    }
  }
}

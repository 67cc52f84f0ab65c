// The form that holds stanzas by a filter, and the list of the pauses that pages have set.
import { choice, el, panel, setText } from "./dom.js";
import { FilterBox } from "./filter.js";
import { plural } from "./format.js";
import { Refusal } from "./source.js";

/** Maximum number of stanzas that a pause holds. */
const maximumCount = 1000;

/** The form. */
export class HoldForm {
  /**
   * @param {any} source
   * @param {import("./tray.js").Tray} tray
   * @param {{ session: () => { session: number } | undefined, missing: () => string, sessions: () => { session: number, phase: string }[], say: (text: string) => void }} events
   */
  constructor(source, tray, events) {
    this.source = source;
    this.tray = tray;
    this.events = events;
    this.filter = new FilterBox({ label: "Hold stanzas that match", hint: "", onChange: () => this.filter.fault("", 0), onEnter: () => this.hold() });
    this.where = choice("Sessions to hold in", [["one", "in this session"], ["all", "in all open sessions"]], () => this.enable(this.events.session() !== undefined));
    this.direction = choice("Direction to hold", [["", "both directions"], ["send", "from the client"], ["recv", "from the server"]]);
    this.count = el("input", { type: "number", min: 1, max: maximumCount, value: 1, "aria-label": "Number of stanzas to hold" });
    this.outcome = el("p", { class: "outcome", role: "status" });
    this.isPausing = false;
    this.pauses = el("ul", { class: "pauses", "aria-label": "Pauses" });
    this.button = el("button", { text: "Hold", title: "Hold the next stanzas that match; without a filter, every stanza (Enter)", onclick: () => this.hold() });
    this.node = panel("Hold", this.filter.node,
      el("div", { class: "formline" }, el("label", null, "the next ", this.count, " that match"), this.where, this.direction),
      el("div", { class: "formline" }, this.button, this.outcome),
      el("p", { class: "note", text: "In a session, a pause replaces the one before it. Pauses end with the last page: what they hold passes then." }), this.pauses);
  }

  /** @param {boolean} isOpen whether the chosen session is open */
  enable(isOpen) { this.button.disabled = !isOpen && this.where.value === "one"; }

  async hold() {
    const chosen = this.events.session();
    const numbers = this.where.value === "all" ? this.events.sessions().map((session) => session.session) : chosen ? [chosen.session] : [];
    if (!numbers.length) return this.events.say(this.where.value === "all" ? "there is no session to hold stanzas in" : this.events.missing());
    const count = Math.min(Math.max(1, Math.floor(Number(this.count.value)) || 1), maximumCount);
    this.count.value = String(count);
    /** @type {any} */
    const body = { count };
    const text = this.filter.text.trim();
    if (text) body.filter = text;
    if (this.direction.value) body.direction = this.direction.value;
    // What was typed last must not remove the mark of its mistake.
    clearTimeout(this.filter.timer);
    this.filter.fault("", 0);
    let held = 0;
    /** @type {string[]} */
    const refused = [];
    for (const number of numbers) {
      try {
        await this.source.request("POST", `/sessions/${number}/pause`, body);
        held += 1;
      } catch (error) {
        const { message } = /** @type {Error} */ (error);
        // The filter is the same in all sessions.
        if (error instanceof Refusal && error.code === "invalid-filter") {
          this.filter.fault(message, error.column);
          return setText(this.outcome, "");
        }
        refused.push(message);
      }
    }
    const words = held ? `the next ${count === 1 ? "stanza is" : `${count} stanzas are`} held in ${plural(held, "session")}` : "";
    setText(this.outcome, [words, refused.length ? `${refused.length > 1 ? `${plural(refused.length, "session")}: ` : ""}${refused[0]}` : ""].filter(Boolean).join("; "));
    this.isPausing = held > 0;
    this.tray.soon();
  }

  draw() {
    this.tray.drawPauses(this.pauses);
    // Clear the outcome when the last pause has ended.
    if (this.isPausing && !this.tray.pauses.length) {
      setText(this.outcome, "");
      this.isPausing = false;
    }
  }
}

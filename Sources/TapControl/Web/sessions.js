// The list of sessions.
import { bars, callLater, el, fill, setText } from "./dom.js";
import { clock, count, day, plural, sessionName, span, visible } from "./format.js";
import { VirtualList } from "./virtual.js";

/** @typedef {any} Session */

/** Height of a row with one line, and of one with two: narrower lists have all columns in two lines. */
const lineHeight = 28;
const twoLinesHeight = 46;
/** The width below which rows have two lines, in pixels. */
const narrowWidth = 1340;

/**
 * The words for the state of a session.
 * @param {Session} session
 */
export function stateOf(session) {
  if (session.failure) return `login failed: ${session.failure.finding}`;
  if (session.state === "ended") return session.close_reason === "closed" ? "ended" : `ended: ${session.close_reason.replaceAll("-", " ")}`;
  return session.state;
}

/**
 * A session as one of a choice.
 * @param {any} session
 */
export function choiceOf(session) { return `${sessionName(session.session)} ${visible(whoOf(session))}${session.failure ? " ✗" : ""}`; }

/**
 * The owner of a session.
 * @param {Session} session
 */
export function whoOf(session) {
  return session.jid || "not logged in";
}

const columns = /** @type {[string, string, (a: Session, b: Session) => number][]} */ ([
  ["session", "#", (a, b) => a.session - b.session],
  ["who", "account", (a, b) => a.jid.localeCompare(b.jid)],
  ["state", "state", (a, b) => rank(a) - rank(b) || stateOf(a).localeCompare(stateOf(b))],
  ["began", "since", (a, b) => a.began - b.began],
  ["lasted", "lasted", (a, b) => a.duration - b.duration],
  ["tls", "TLS", (a, b) => a.client_tls.localeCompare(b.client_tls)],
  ["sent", "sent", (a, b) => a.sent - b.sent],
  ["received", "received", (a, b) => a.received - b.received],
  ["errors", "errors", (a, b) => a.errors - b.errors],
  ["slowest", "slowest", (a, b) => a.slowest - b.slowest],
  ["peers", "peers", (a, b) => a.peers - b.peers],
  ["line", "traffic", (a, b) => a.records - b.records],
  ["client", "client", (a, b) => a.software.localeCompare(b.software)],
]);

const figures = ["lasted", "sent", "received", "errors", "slowest", "peers", "line"];

/** @param {Session} session */
function rank(session) {
  return session.failure ? 0 : session.errors ? 1 : session.state === "open" ? 2 : 3;
}

/** The view with all sessions. */
export class SessionsView {
  /**
   * @param {any} source
   * @param {{ records: (session: Session) => void, diagram: (session: Session) => void, test: (session: Session | undefined) => void, changed: (answer: any) => void }} events
   */
  constructor(source, events) {
    this.source = source;
    this.events = events;
    /** @type {Session[]} */
    this.all = [];
    /** @type {Session[]} */
    this.shown = [];
    this.sort = 0;
    this.isReversed = false;
    /** The number of the selected session, which stays selected wherever the order puts it; 0 for none. */
    this.chosen = 0;
    this.run = "";
    this.summary = el("p", { class: "summary", role: "status" });
    this.search = el("input", { type: "search", "aria-label": "Find sessions", placeholder: "Find an account, address or cause", oninput: () => this.arrange() });
    this.header = el("div", { class: "head", role: "row", "aria-rowindex": 1 }, ...columns.map(([name, text], index) => el("span", { class: name, role: "columnheader" },
      el("button", { class: "plain", text, onclick: () => this.sortBy(index) }))));
    this.list = new VirtualList({
      rowHeight: lineHeight, label: "Sessions", columns: columns.length, header: this.header, onResize: () => this.fit(),
      make: () => {
        const cells = columns.map(([name]) => el("span", { class: name, role: "gridcell" }));
        const node = el("div", { role: "row" }, ...cells);
        /** @type {any} */ (node).cells = cells;
        return node;
      },
      draw: (node, index) => this.draw(node, this.shown[index]),
    });
    this.list.node.classList.add("sessions");
    this.list.node.addEventListener("click", (/** @type {Event} */ event) => {
      // The order can have changed since the row was drawn.
      const row = /** @type {any} */ (/** @type {HTMLElement} */ (event.target).closest(".row"));
      if (!row?.session) return;
      this.select(row.session);
      this.open(row.session);
    });
    this.empty = el("p", { class: "hint", text: "Loading …" });
    this.node = el("section", { class: "view", "aria-label": "Sessions" }, el("div", { class: "bar" }, this.summary, this.search,
      el("button", { text: "make a test", title: "Make a regression test of the selected session (m)", onclick: () => events.test(this.selected) })), this.empty, this.list.node);
  }

  /**
   * Shows the sessions with a text.
   * @param {string} text
   */
  find(text) {
    this.search.value = text;
    this.arrange();
  }

  /**
   * Sorts by a column; a second time in the other order.
   * @param {number} index
   */
  sortBy(index) {
    const [name] = columns[index];
    // Of figures, the largest are wanted first.
    this.isReversed = this.sort === index ? !this.isReversed : figures.includes(name);
    this.sort = index;
    this.arrange();
  }

  /** Gives the rows as many lines as their columns need. */
  fit() {
    const { list } = this;
    const isNarrow = list.node.clientWidth < narrowWidth;
    const height = isNarrow ? twoLinesHeight : lineHeight;
    if (list.options.rowHeight === height) return;
    list.options.rowHeight = height;
    list.node.classList.toggle("twolines", isNarrow);
    list.layout();
    list.draw();
  }

  /** @param {Session} session */
  select(session) {
    this.chosen = session.session;
    this.list.selected = this.shown.indexOf(session);
    this.list.draw();
  }

  /** @param {Session | undefined} session */
  open(session) {
    if (!session) return;
    // A failed login is best seen as a diagram with its diagnosis.
    if (session.failure) this.events.diagram(session); else this.events.records(session);
  }

  /** The selected session; undefined while the search hides it. */
  get selected() { return this.shown[this.list.selected]; }

  start() { this.isOn = true; this.refresh(); }
  stop() { this.isOn = false; this.giveUp?.(); }

  async refresh() {
    this.giveUp?.();
    try {
      this.answer = await this.source.sessions();
      this.all = this.answer.sessions;
      // Another run counts its sessions anew.
      if (this.run && this.answer.run !== this.run) this.chosen = 0;
      this.run = this.answer.run;
      this.arrange();
      this.events.changed(this.answer);
    } catch { /* The state line reports the error. */ }
    if (!this.isOn) return;
    const isBehind = this.answer && this.answer.surveyed < this.answer.end;
    this.giveUp?.();
    if (!this.source.isFile) this.giveUp = callLater(isBehind ? 250 : this.all.length > 500 ? 5000 : 1500, () => this.refresh());
  }

  arrange() {
    const text = this.search.value.trim().toLowerCase();
    const compare = columns[this.sort][2];
    this.shown = this.all.filter((session) => !text || `${sessionName(session.session)} ${session.session} ${session.jid} ${session.remote} ${stateOf(session)} ${session.failure?.cause ?? ""} ${session.software} ${session.server}`.toLowerCase().includes(text));
    this.shown.sort((a, b) => (this.isReversed ? compare(b, a) : compare(a, b)) || a.first - b.first);
    const failed = this.all.filter((session) => session.failure).length;
    const open = this.all.filter((session) => session.state === "open").length;
    const parts = [text ? `${count(this.shown.length)} of ${plural(this.all.length, "session")}` : plural(this.all.length, "session")];
    if (open) parts.push(`${count(open)} open`);
    if (failed) parts.push(`${plural(failed, "failed login")}`);
    if (this.answer?.omitted) parts.push(`${count(this.answer.omitted)} more are not listed`);
    if (this.answer && this.answer.surveyed < this.answer.end) parts.push(`reading, ${Math.floor((this.answer.surveyed / this.answer.end) * 100)} %`);
    setText(this.summary, parts.join(" · "));
    this.header.querySelectorAll("[role=columnheader]").forEach((/** @type {Element} */ cell, /** @type {number} */ index) => {
      cell.setAttribute("aria-sort", index !== this.sort ? "none" : this.isReversed ? "descending" : "ascending");
    });
    this.empty.hidden = this.shown.length > 0;
    setText(this.empty, !this.answer ? "Loading …" : this.all.length ? "No session matches." : this.source.isFile || this.answer?.surveyed ? "There are no sessions in these records." : "No client has connected yet. Connect one to the address that xmpptap has printed.");
    this.list.selected = this.chosen ? this.shown.findIndex((session) => session.session === this.chosen) : -1;
    this.list.resize(0, this.shown.length);
  }

  /** @param {any} node @param {Session | undefined} session */
  draw(node, session) {
    node.session = session;
    if (!session) return;
    const { cells } = node;
    node.className = `row ${session.failure ? "bad" : session.state === "ended" ? "faint" : ""}`;
    const texts = [
      sessionName(session.session), visible(whoOf(session)), visible(stateOf(session)), `${day(session.began).slice(5)} ${clock(session.began).slice(0, 8)}`,
      span(session.duration), session.client_tls === session.server_tls ? session.client_tls || "none" : `${session.client_tls || "none"} | ${session.server_tls || "none"}`,
      count(session.sent), count(session.received), session.errors ? count(session.errors) : "", session.slowest ? span(session.slowest) : "",
      session.peers ? String(session.peers) : "", null, visible(session.software || session.remote),
    ];
    texts.forEach((text, index) => { if (text !== null) setText(cells[index], text); });
    cells[1].title = texts[1] ?? "";
    cells[2].title = texts[2] ?? "";
    cells[12].title = [session.software, session.remote, session.server && `to ${session.server}`].filter(Boolean).map(visible).join(", ");
    const line = session.line.join();
    if (cells[11].drawn !== line) {
      cells[11].drawn = line;
      fill(cells[11], bars(session.line, 64, 18, plural(session.records, "record")));
    }
  }

  /** @param {KeyboardEvent} event @returns {boolean} */
  key(event) {
    const { list } = this;
    const move = (/** @type {number} */ index) => {
      const session = this.shown[Math.min(Math.max(0, index), this.shown.length - 1)];
      if (!session) return true;
      this.select(session);
      list.reveal(list.selected);
      return true;
    };
    switch (event.key) {
      case "ArrowDown": case "j": return move(list.selected + 1);
      case "ArrowUp": case "k": return move(list.selected - 1);
      case "PageDown": return move(list.selected + list.page);
      case "PageUp": return move(list.selected - list.page);
      case "Home": case "g": return move(0);
      case "End": case "G": return move(this.shown.length - 1);
      case "Enter": this.open(this.selected); return true;
      case "d": if (this.selected) this.events.diagram(this.selected); return true;
      case "m": this.events.test(this.selected); return true;
      case "/": this.search.focus(); return true;
      default: return false;
    }
  }
}

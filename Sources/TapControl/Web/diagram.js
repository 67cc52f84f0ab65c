// One session as a diagram: client, xmpptap and server as lanes. An arrow ends at the next lane, so that none crosses one.
import { Cursor } from "./cursor.js";
import { el, fill, setText } from "./dom.js";
import { clock, count, day, plural, sessionName, stamp, visible } from "./format.js";
import { drawGap, RowStore, rowText, what } from "./rows.js";
import { choiceOf, stateOf, whoOf } from "./sessions.js";
import { VirtualList } from "./virtual.js";
import { cutText } from "./xml.js";

/** Maximum number of sessions in the choice. */
const maximumChoices = 5000;
/** Number of characters of an address, and of a sentence, that are shown until the rest is asked for. */
const maximumName = 120;
const maximumFinding = 400;

/**
 * Cuts a text to a number of words.
 * @param {string} text
 * @param {number} most
 */
function words(text, most) {
  const list = text.split(/\s+/);
  return list.length <= most ? text : `${list.slice(0, most).join(" ")} …`;
}

/**
 * A text with a full stop, which a server's text can have already.
 * @param {string} text
 */
function sentence(text) { return /[.!?…]$/.test(text) ? text : `${text}.`; }

/** The counts of an element of stream management. A file of another program may have others, or none. */
const countNames = ["from_client", "to_server", "from_server", "to_client"];

/**
 * The stanzas that xmpptap has counted on both legs since stream management was enabled (XEP-0198), in words.
 * @param {Record<string, number>} counts
 */
function countsText(counts) {
  return `stanzas counted by xmpptap: ${count(counts.from_client)} from and ${count(counts.to_client)} to the client, ${count(counts.to_server)} to and ${count(counts.from_server)} from the server`;
}

/**
 * What a row is about, and its text. A text that begins with the last of these words repeats it: session ready, ready as juliet.
 * @param {any} row
 */
function labelOf(row) {
  const words = visible(what(row));
  const text = rowText(row);
  const last = words.slice(words.lastIndexOf(" ") + 1);
  return (`${text} `.startsWith(`${last} `) ? words.slice(0, -last.length) + text : `${words} ${text}`).trim();
}

/**
 * The names of a record that make the margin: login steps.
 * @param {any} row
 */
function isStep(row) { return row.code === "step" || row.kind === "session" && row.name === "" && row.code === "step"; }

/** The view with the diagram of a session. */
export class DiagramView {
  /**
   * @param {any} source
   * @param {{ select: (at: number) => void, session: (number: number) => void, records: (session: any) => void, test: (session: any) => void, fault: (error: Error | null, isOfRows?: boolean) => void }} events
   */
  constructor(source, events) {
    this.source = source;
    this.events = events;
    this.number = 0;
    this.isOn = false;
    /** What the choice of sessions and the diagnosis show. */
    this.listed = "";
    this.drawnFailure = "";
    /** @type {any[]} */
    this.sessions = [];
    this.choice = el("select", { "aria-label": "Session", onchange: () => events.session(Number(this.choice.value)) });
    this.scope = el("select", { "aria-label": "What is drawn", onchange: () => this.show(this.number, true) },
      el("option", { value: "", text: "everything" }),
      el("option", { value: "phase:handshake", text: "login" }),
      el("option", { value: "(stanza or level:warn)", text: "stanzas" }),
      el("option", { value: "level:warn", text: "errors and warnings" }));
    this.toRecords = el("button", { text: "as a list", onclick: () => events.records(this.session) });
    this.toTest = el("button", { text: "make a test", title: "Make a regression test of this session (m)", onclick: () => events.test(this.session) });
    this.zoom = el("button", { text: "−", title: "Smaller rows (−)", "aria-label": "Smaller rows", onclick: () => this.setZoom(-1) });
    this.zoomIn = el("button", { text: "+", title: "Larger rows (+)", "aria-label": "Larger rows", onclick: () => this.setZoom(1) });
    this.names = el("span");
    this.figures = el("span");
    this.facts = el("p", { class: "summary" }, this.names, this.figures);
    this.drawnNames = "";
    this.diagnosis = el("div", { class: "diagnosis" });
    this.store = new RowStore(source, { onChange: () => this.cursor.update(false), onFault: events.fault, onForget: () => this.cursor.remember() });
    this.header = el("div", { class: "head lanes", role: "row", "aria-rowindex": 1 },
      el("span", { class: "time", role: "columnheader", text: "time" }), el("span", { class: "margin", role: "columnheader", text: "login" }),
      el("span", { class: "paper" }, el("b", { class: "lane client", role: "columnheader", text: "client" }),
        el("b", { class: "lane tap", role: "columnheader", text: "xmpptap" }), el("b", { class: "lane server", role: "columnheader", text: "server" })));
    this.rowHeight = 24;
    this.list = new VirtualList({
      rowHeight: this.rowHeight, label: "Diagram of a session", columns: 3, header: this.header,
      make: () => {
        const node = /** @type {any} */ (el("div", { role: "row" }));
        node.time = el("span", { class: "time", role: "gridcell" });
        node.margin = el("span", { class: "margin", role: "gridcell" });
        node.leftLabel = el("span", { class: "label" });
        node.rightLabel = el("span", { class: "label" });
        // The counts of stream management, of each leg beside the lane of xmpptap.
        node.leftCounts = el("span", { class: "tally" });
        node.rightCounts = el("span", { class: "tally" });
        node.left = el("span", { class: "half left" }, node.leftLabel, node.leftCounts);
        node.right = el("span", { class: "half right" }, node.rightLabel, node.rightCounts);
        node.words = el("span");
        // A link to another session, on the rows where one resumes the other.
        node.link = el("button", { class: "link", onclick: (/** @type {Event} */ event) => { event.stopPropagation(); events.session(node.target); } });
        node.across = el("span", { class: "across" }, node.words, node.link);
        node.paper = el("span", { class: "paper", role: "gridcell" }, node.left, node.right, node.across);
        node.append(node.time, node.margin, node.paper);
        return node;
      },
      draw: (node, index) => this.draw(node, index),
      gap: (index) => this.store.gap(index),
      onScroll: () => this.cursor.scrolled(),
    });
    /** @type {Cursor} */
    this.cursor = new Cursor(this.list, this.store, (row) => events.select(row.at));
    this.store.isFollowing = () => this.list.isFollowing;
    this.list.node.classList.add("diagram");
    this.list.node.addEventListener("click", (/** @type {Event} */ event) => {
      const index = this.list.indexOf(event);
      if (index >= 0) this.cursor.select(index);
    });
    this.node = el("section", { class: "view", "aria-label": "Diagram" },
      el("div", { class: "bar" }, el("label", null, "session ", this.choice), el("label", null, "draw ", this.scope), this.toRecords, this.toTest, el("span", { class: "pair" }, this.zoom, " ", this.zoomIn), this.facts),
      this.diagnosis, this.list.node);
  }

  /** The session that resumes this one; undefined if there is none. */
  get later() { return this.number ? this.sessions.find((session) => session.resumes === this.number) : undefined; }

  get session() { return this.sessions.find((session) => session.session === this.number); }

  /** @param {any[]} sessions */
  setSessions(sessions) {
    this.sessions = sessions;
    const key = sessions.map((session) => `${session.session}${session.jid}${session.state}`).join();
    if (key !== this.listed) {
      this.listed = key;
      fill(this.choice, ...sessions.slice(0, maximumChoices).map((session) => el("option", { value: session.session, text: choiceOf(session) })),
        sessions.length > maximumChoices ? el("option", { disabled: true, text: `${count(sessions.length - maximumChoices)} more: choose them in the list of sessions` }) : null);
      this.choice.value = String(this.number);
    }
    if (this.isOn && !this.number && sessions.length) this.events.session((sessions.find((session) => session.failure) ?? sessions[0]).session);
    this.drawFacts();
  }

  /** @param {number} number @param {boolean} [isForced] */
  show(number, isForced = false) {
    if (number === this.number && !isForced) return;
    this.number = number;
    this.choice.value = String(number);
    this.cursor.clear();
    this.list.isFollowing = false;
    this.list.top = 0;
    const scope = this.scope.value;
    this.store.setFilter(number ? `session:${number}${scope ? ` and ${scope}` : ""}` : "");
    this.drawFacts();
  }

  start() {
    this.isOn = true;
    if (this.number) this.store.start();
    this.setSessions(this.sessions);
  }

  stop() { this.isOn = false; this.store.stop(); }

  drawFacts() {
    const session = this.session;
    if (!session) {
      this.drawnNames = this.drawnFailure = "";
      fill(this.names);
      setText(this.figures, this.sessions.length ? "" : "no sessions yet");
      fill(this.diagnosis);
      return;
    }
    const { later } = this;
    const names = [whoOf(session), session.server && `to ${session.server}`, session.failure ? "" : stateOf(session)].filter(Boolean);
    const links = /** @type {[string, number][]} */ ([["resumes", session.resumes], ["resumed by", later?.session]].filter(([, number]) => number));
    const drawn = JSON.stringify([names, links]);
    if (drawn !== this.drawnNames) {
      this.drawnNames = drawn;
      fill(this.names, ...names.flatMap((text) => [cutText(text, maximumName), " · "]),
        ...links.flatMap(([words, number]) => [`${words} `, el("button", { class: "link", text: `session ${sessionName(number)}`, onclick: () => this.events.session(number) }), " · "]));
    }
    setText(this.figures, [`since ${day(session.began)} ${clock(session.began).slice(0, 8)}`, plural(session.records, "record")].join(" · "));
    const key = JSON.stringify(session.failure ?? "");
    if (key === this.drawnFailure) return;
    this.drawnFailure = key;
    if (!session.failure) {
      fill(this.diagnosis);
      return;
    }
    const { finding, side, rule, proxy, advice, step, at } = session.failure;
    // At most 60 words in all: what failed, who is at fault, what to try.
    const first = words(sentence(`The login failed${step ? ` at ${step}` : ""}: ${finding}`), 28);
    // An audit store has the cause only.
    const second = !side ? "" : side === "unknown" ? "The records do not show who is at fault." : `${side === "xmpptap" ? side : `The ${side}`} is at fault${rule ? ` (${rule})` : ""}${proxy === false ? "; xmpptap is not the cause" : ""}.`;
    fill(this.diagnosis, el("p", null, el("b", null, cutText(first, maximumFinding))), el("p", null, cutText(second, maximumFinding)),
      advice ? el("p", null, el("b", { text: "Try: " }), cutText(words(advice, 22), maximumFinding)) : null,
      el("button", { class: "link", text: "where it failed", onclick: () => this.reveal(at) }));
  }

  /** @param {number} at */
  async reveal(at) {
    try {
      if (await this.cursor.selectAt(at) === false) this.events.select(at);
    } catch (error) { this.events.fault(/** @type {Error} */ (error)); }
  }

  /** @param {number} step */
  setZoom(step) {
    const heights = [16, 20, 24, 30, 38];
    const place = Math.min(Math.max(0, heights.indexOf(this.list.options.rowHeight) + step), heights.length - 1);
    this.list.options.rowHeight = heights[place];
    this.list.node.dataset.zoom = String(place);
    this.list.layout();
    this.list.draw();
    this.cursor.need();
  }

  /** @param {any} node @param {number} index */
  draw(node, index) {
    const row = this.store.row(index);
    if (!row) {
      node.className = "row pending";
      for (const part of [node.time, node.margin, node.leftLabel, node.rightLabel, node.leftCounts, node.rightCounts]) setText(part, "");
      node.left.classList.remove("arrow");
      node.right.classList.remove("arrow");
      setText(node.words, "…");
      node.across.hidden = false;
      node.link.hidden = true;
      return;
    }
    const before = index > this.store.first ? this.store.row(index - 1) : null;
    const isOtherDay = before && day(before.time) !== day(row.time);
    const isItem = row.direction > 0 && row.kind !== "session" && row.kind !== "note" && row.kind !== "tls" && row.kind !== "chunk";
    const isBad = row.level === 1 || row.type === "error" || row.code === "login-failed";
    const isStopped = ["dropped", "refused", "cut", "reset"].includes(row.action);
    const hasTap = !this.session?.source;
    const isOwn = row.tap === 1 && row.code !== "inferred";
    const label = labelOf(row);
    const mark = row.action ? ` [${visible(row.action)}]` : row.code === "inferred" ? " [inferred]" : isOwn ? " [xmpptap]" : "";
    // Which halves have an arrow: from the client to xmpptap, and from xmpptap to the server, or back.
    const sends = row.direction === 1;
    let left = isItem;
    let right = isItem;
    if (isItem && isOwn) { left = row.leg === 1; right = row.leg === 2; if (!row.leg) { left = !sends; right = sends; } }
    if (isItem && (isStopped || row.action === "answered")) { left = sends; right = !sends; }
    const gap = drawGap(node, this.store.idle(index), this.scope.value ? "records that are drawn" : "records of this session");
    node.className = `row ${isBad ? "bad" : row.level === 2 ? "warn" : row.level >= 4 ? "faint" : ""} ${isOwn ? "own" : ""} ${sends ? "sends" : "receives"} ${isStopped ? "stopped" : ""} ${hasTap ? "" : "two"}${gap}`;
    setText(node.time, clock(row.time));
    node.time.title = stamp(row.time);
    const step = isStep(row);
    const hasFailed = step && (isBad || /failed|refused/.test(row.text));
    setText(node.margin, step ? `${hasFailed ? "✗" : "✓"} ${visible(row.text)}` : isOtherDay ? day(row.time) : "");
    node.margin.classList.toggle("later", !step);
    node.margin.classList.toggle("failed", hasFailed);
    node.left.classList.toggle("arrow", left);
    node.right.classList.toggle("arrow", right);
    // The label is on the side of the sender.
    const onLeft = isItem && (left && (sends || !right));
    setText(node.leftLabel, onLeft ? label + mark : "");
    setText(node.rightLabel, isItem && !onLeft ? label + mark : "");
    const counts = hasTap && isItem && countNames.every((name) => Number.isSafeInteger(row.sm?.[name])) ? row.sm : null;
    setText(node.leftCounts, counts ? `→${count(counts.from_client)} ←${count(counts.to_client)}` : "");
    setText(node.rightCounts, counts ? `→${count(counts.to_server)} ←${count(counts.from_server)}` : "");
    node.paper.classList.toggle("counted", Boolean(counts));
    const other = row.code === "session-ready" ? this.session?.resumes : row.code === "session-ended" ? this.later?.session : 0;
    node.target = other;
    node.link.hidden = !other;
    setText(node.link, other ? `${row.code === "session-ready" ? "go to" : "resumed by"} session ${sessionName(other)}` : "");
    setText(node.words, isItem || step ? "" : label);
    node.across.hidden = isItem || step;
    node.left.title = node.right.title = node.across.title = label + mark + (counts ? `\n${countsText(counts)}` : "");
  }

  /** @param {KeyboardEvent} event @returns {boolean} */
  key(event) {
    switch (event.key) {
      case "f": this.list.follow(); return true;
      case "m": this.events.test(this.session); return true;
      case "+": this.setZoom(1); return true;
      case "-": this.setZoom(-1); return true;
      case "l": this.scope.value = this.scope.value ? "" : "phase:handshake"; this.show(this.number, true); return true;
      case "[": case "]": {
        const place = this.sessions.findIndex((session) => session.session === this.number) + (event.key === "]" ? 1 : -1);
        if (this.sessions[place]) this.events.session(this.sessions[place].session);
        return true;
      }
      default: return this.cursor.move(event.key);
    }
  }
}

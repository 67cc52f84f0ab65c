// The page: its head, its views, and what connects them.
import { ActView } from "./act.js";
import { ConversationsView } from "./conversations.js";
import { Detail } from "./detail.js";
import { DiagramView } from "./diagram.js";
import { copy, el, fill, setText } from "./dom.js";
import { FilterBox } from "./filter.js";
import { FindingsView } from "./findings.js";
import { applyTheme, clock, count, day, plural, sessionName, toggleTheme, toggleZone, visible, zone } from "./format.js";
import { showKeys, showPalette } from "./keys.js";
import { showTest } from "./maketest.js";
import { MeasuresView } from "./measures.js";
import { listStatus, RecordsList } from "./records.js";
import { ReportView } from "./report.js";
import { RowStore } from "./rows.js";
import { SessionsView, whoOf } from "./sessions.js";
import { openSource, OtherRun, Refusal, Unreachable } from "./source.js";
import { Tray } from "./tray.js";

/** @type {[string, string][]} */
const viewNames = [["sessions", "Sessions"], ["records", "Records"], ["diagram", "Diagram"], ["conversations", "Conversations"],
  ["findings", "Errors"], ["measures", "Measures"]];
const troubles = "level:warn or type:error";

class Page {
  /** @param {any} source */
  constructor(source) {
    this.source = source;
    this.view = "";
    /** @type {any} */
    this.state = {};
    /**
     * What does not work at present, by what needs it: the state, or a view.
     * @type {Map<string, Error>}
     */
    this.faults = new Map();
    /** What the banner says if everything works. */
    this.notice = "";
    this.sayLine = el("span", { class: "said", role: "status", "aria-live": "polite" });
    this.statusLine = el("span", { class: "counts" });
    /**
     * The held stanzas, of a page that can act.
     * @type {Tray | null}
     */
    this.tray = null;
    this.heldLine = el("button", { class: "plain heldline", title: "Held stanzas (7); P passes all", onclick: () => this.open("act") });
    this.heldLine.hidden = true;
    this.banner = el("p", { class: "banner", role: "alert" });
    this.banner.hidden = true;
    this.store = new RowStore(source, {
      onChange: () => this.recordsChanged(),
      onFault: (error, isOfRows) => this.fault(error, isOfRows ? "records rows" : "records"),
      onNewRun: () => this.newRun(),
      onForget: () => this.records.cursor.remember(),
    });
    this.detail = new Detail(source, {
      go: (at) => this.go(at),
      filter: (text, isMore) => this.narrow(text, isMore),
      say: (text) => this.say(text),
      session: (number) => { this.setFilter(`session:${number}`); },
      test: (number) => this.makeTest(this.sessions.all.find((session) => session.session === number) ?? { session: number }),
      close: () => this.closeDetail(),
      find: (number) => this.sessions.all.find((session) => session.session === number),
      state: () => this.state,
      // The diagram may have been opened while the record was read.
      shown: () => { if (this.view === "diagram") this.closeOther(this.diagram.number); },
    });
    this.records = new RecordsList(this.store, {
      onSelect: (row) => { if (row) { this.openDetail(row.at); } else this.closeDetail(); },
      onOpen: (row) => { this.openDetail(row.at); this.detail.node.focus(); },
      onScroll: () => this.drawStatus(),
    });
    this.filter = new FilterBox({ onChange: (text) => this.filtered(text), hint: "The last result stays on screen." });
    const recordsNode = el("section", { class: "view", "aria-label": "Records" }, el("div", { class: "bar" }, this.filter.node), this.records.node);
    this.sessions = new SessionsView(source, {
      records: (session) => { this.setFilter(`session:${session.session}`); },
      diagram: (session) => this.openSession(session.session),
      test: (session) => this.makeTest(session),
      changed: (answer) => this.sessionsChanged(answer),
    });
    this.diagram = new DiagramView(source, {
      select: (at) => this.openDetail(at),
      session: (number) => this.openSession(number),
      records: (session) => { if (session) this.setFilter(`session:${session.session}`); },
      test: (session) => this.makeTest(session),
      fault: (error, isOfRows) => this.fault(error, isOfRows ? "diagram rows" : "diagram"),
    });
    const fault = (/** @type {string} */ view) => (/** @type {Error | null} */ error) => this.fault(error, view);
    this.conversations = new ConversationsView(source, { select: (at) => this.openDetail(at), filter: (text) => this.setFilter(text), fault: fault("conversations") });
    this.findings = new FindingsView(source, {
      filter: (text) => this.setFilter(text), go: (at) => this.go(at), session: (number) => this.openSession(number),
      logins: (cause) => { this.open("sessions"); this.sessions.find(cause); }, fault: fault("findings"),
    });
    this.measures = new MeasuresView(source, { filter: (text) => this.setFilter(text), go: (at) => this.go(at), fault: fault("measures") });
    /** @type {Record<string, { node: HTMLElement, start: () => void, stop: () => void, key: (event: KeyboardEvent) => boolean, focus?: () => void }>} */
    this.views = {
      sessions: { node: this.sessions.node, start: () => this.sessions.start(), stop: () => this.sessions.stop(), key: (event) => this.sessions.key(event), focus: () => this.sessions.list.node.focus({ preventScroll: true }) },
      records: { node: recordsNode, start: () => this.store.start(), stop: () => this.store.stop(), key: (event) => this.recordsKey(event), focus: () => this.records.node.focus({ preventScroll: true }) },
      diagram: { node: this.diagram.node, start: () => this.diagram.start(), stop: () => this.diagram.stop(), key: (event) => this.diagram.key(event), focus: () => this.diagram.list.node.focus({ preventScroll: true }) },
      conversations: this.conversations, findings: this.findings, measures: this.measures,
    };
    /** The views, in the order of their keys. */
    this.names = [...viewNames];
    if (source.report) {
      this.views.report = new ReportView(source, { go: (at) => this.go(at) });
      this.names.push(["report", "Report"]);
    }
    this.tabs = el("div", { class: "views", role: "tablist", "aria-label": "Views" }, ...this.names.map((entry) => this.tab(entry)));
    this.title = el("h1", { text: "xmpptap" });
    this.subject = el("p", { class: "subject" });
    this.clock = el("p", { class: "zone" });
    this.main = el("main", { id: "main", tabindex: -1 });
    this.split = el("div", { class: "split" }, this.main, this.detail.node);
    this.detail.node.hidden = true;
    document.body.replaceChildren(
      el("header", { class: "page" }, this.title, this.subject, this.clock, this.tabs,
        el("div", { class: "tools" }, el("button", { class: "plain", text: "Commands", title: "Commands (Ctrl K)", onclick: () => this.palette() }),
          el("button", { class: "plain", text: "Keys", title: "Keys (?)", onclick: () => showKeys(this.tray !== null) }))),
      this.banner, this.split,
      el("footer", { class: "status" }, this.statusLine, this.heldLine, this.sayLine, el("span", { class: "keys" }, "? keys")));
    document.addEventListener("keydown", (event) => this.key(event));
    window.addEventListener("hashchange", (event) => {
      // A view may have written its own address since then.
      const { hash } = new URL(event.newURL);
      // The address of another run: the records on screen stay until the user wants those of that run.
      const isOther = this.source.takeToken?.();
      if (isOther) this.refreshState();
      if (!isOther || /(^#|&)view=/.test(hash)) this.readAddress(hash);
    });
  }

  /** @param {[string, string]} entry */
  tab([name, text]) {
    const number = this.names.findIndex((entry) => entry[0] === name) + 1;
    return el("button", { role: "tab", id: `tab-${name}`, "aria-controls": "main", title: `${text} (${number})`, onclick: () => this.open(name) }, text);
  }

  /** Adds the view that acts on sessions, and the tray. */
  enableActing() {
    const tray = this.tray = new Tray(this.source, { changed: () => this.drawHeld(), say: (text) => this.say(text), fault: (error) => this.fault(error, "held") });
    const act = this.views.act = new ActView(this.source, tray, { say: (text) => this.say(text), filter: (text) => this.setFilter(text), fault: (error) => this.fault(error, "act") });
    this.names.push(["act", "Act"]);
    this.tabs.appendChild(this.tab(["act", "Act"]));
    this.heldLine.hidden = false;
    this.act = act;
    tray.start();
  }

  /** Shows in every view how many stanzas are held. */
  drawHeld() {
    if (!this.tray) return;
    setText(this.heldLine, this.tray.words);
    this.heldLine.classList.toggle("some", this.tray.held.length > 0);
    this.act?.hold.draw();
  }

  /** @param {any} chosen the session; without one, the dialog begins with a failed login */
  makeTest(chosen) {
    const { all } = this.sessions;
    const session = chosen ?? all.find((one) => one.failure) ?? all[0];
    if (session) showTest(this.state, all, session, (text) => this.say(text));
    else this.say("there is no session yet");
  }

  async start() {
    applyTheme();
    await this.refreshState();
    this.readAddress();
    this.everySecond();
  }

  async everySecond() {
    for (;;) {
      await new Promise((done) => setTimeout(done, this.isReading ? 300 : 3000));
      if (document.hidden || this.source.isFile) continue;
      await this.refreshState();
    }
  }

  async refreshState() {
    let state;
    try { state = await this.source.state(); } catch (error) { return this.fault(/** @type {Error} */ (error), "state"); }
    this.notice = this.state.build && state.build !== this.state.build
      ? "This page belongs to another version of xmpptap than the one that answers: reload it." : state.trouble ?? "";
    this.fault(null, "state");
    this.isReading = !state.live && state.read < state.size;
    this.state = state;
    this.records.isLive = state.live;
    if (state.acts && !this.tray) this.enableActing();
    const kind = this.source.isFile ? "report" : state.live ? "live" : "read-only";
    document.body.dataset.kind = kind;
    fill(this.subject, el("b", { text: state.title }), state.server ? ` to ${state.server}` : "", el("span", { class: "servers", text: serversText(state) }), el("span", { class: "badge", text: kind }),
      el("span", { class: "tool" }, state.tool, el("span", { class: "redaction", text: `, redaction: ${state.redaction}` })),
      state.redaction.includes("none") ? el("span", { class: "badge", text: "secrets are shown" }) : null);
    this.subject.title = [...state.files, serversText(state, Infinity).slice(3), `redaction: ${state.redaction}`].filter(Boolean).join(", ");
    this.drawClock();
    this.drawTitle();
    this.drawStatus();
  }

  drawClock() {
    const now = Date.now() * 1000;
    const began = this.firstTime ?? now;
    setText(this.clock, `${day(began)}${day(began) !== day(this.lastTime ?? began) ? ` to ${day(this.lastTime)}` : ""}, ${zone(began)}`);
  }

  drawTitle() {
    const session = this.view === "diagram" ? this.diagram.session : undefined;
    document.title = session ? `${sessionName(session.session)} ${whoOf(session)} – xmpptap` : `${this.state.title ?? ""} – xmpptap`;
  }

  /**
   * Says something for some seconds.
   * @param {string} text
   */
  say(text) {
    setText(this.sayLine, text);
    clearTimeout(this.saying);
    this.saying = setTimeout(() => setText(this.sayLine, ""), 5000);
  }

  /**
   * Notes that something does not work, or works again. A mistake in the filter stays marked until another filter is applied.
   * @param {Error | null} error
   * @param {string} from
   */
  fault(error, from) {
    if (from === "records" && !error) this.filter.fault("", 0);
    this.faults.delete(from);
    if (error instanceof Refusal && error.code === "invalid-filter") {
      if (from === "records") this.filter.fault(error.message, error.column);
      else this.say(error.message);
    } else if (error) {
      this.faults.set(from, error);
    }
    this.drawBanner();
  }

  drawBanner() {
    const errors = [...this.faults.values()];
    const isRefused = errors.some((error) => error instanceof Refusal && error.status === 403);
    const isOther = errors.some((error) => error instanceof OtherRun);
    const text = isOther ? "xmpptap was started again. This page still shows the records of the earlier run, as far as it has read them. "
      : isRefused && this.state.run ? "xmpptap was started again and has a new token, so this page gets no new records; those on screen stay readable. Open the address that xmpptap has printed: in this tab to go on, in another one to compare."
      : isRefused ? "xmpptap does not accept the token of this page: open the address that it has printed. Each run has a new one."
      : errors.length ? faultText(errors[0]) : this.notice;
    this.banner.hidden = text === "";
    // The button keeps the focus while the banner is drawn again.
    if (this.banner.dataset.text === text) return;
    this.banner.dataset.text = text;
    fill(this.banner, text, isOther ? el("button", { text: "Show the new run", onclick: () => this.showNewRun() }) : null);
  }

  /** Shows the records of the run that has begun since the page was opened. */
  async showNewRun() {
    this.source.acceptRun();
    this.faults.clear();
    await this.refreshState();
    const { view } = this;
    this.views[view].stop();
    this.views[view].start();
    this.sessions.refresh();
  }

  newRun() {
    this.closeDetail();
    this.records.cursor.clear();
  }

  // Views

  /** @param {string} name */
  open(name) {
    if (name === this.view || !this.views[name]) return;
    this.views[this.view]?.stop();
    this.faults.delete(this.view);
    this.faults.delete(`${this.view} rows`);
    this.drawBanner();
    this.view = name;
    for (const tab of this.tabs.children) tab.setAttribute("aria-selected", String(tab.id === `tab-${name}`));
    this.main.replaceChildren(this.views[name].node);
    this.main.setAttribute("aria-labelledby", `tab-${name}`);
    this.views[name].start();
    this.views[name].focus?.();
    if (name === "diagram") this.closeOther(this.diagram.number);
    else if (name !== "records") this.closeDetail();
    // The list of sessions is needed by other views, too.
    if (name !== "sessions") this.sessions.refresh();
    this.writeAddress();
    this.drawTitle();
    this.drawStatus();
  }

  /** @param {number} number */
  openSession(number) {
    this.diagram.show(number);
    if (this.view === "diagram") {
      this.closeOther(number);
      this.diagram.start();
    } else this.open("diagram");
    this.writeAddress();
    this.drawTitle();
  }

  /** @param {any} answer */
  sessionsChanged(answer) {
    const first = answer.sessions[0];
    const last = answer.sessions[answer.sessions.length - 1];
    if (first) {
      this.firstTime = first.began;
      this.lastTime = last.began + last.duration;
      this.drawClock();
    }
    const tab = this.tabs.querySelector("#tab-findings");
    if (tab) {
      setText(tab, answer.errors ? `Errors ${count(answer.errors)}` : "Errors");
      tab.title = "Errors of stanzas, streams and logins, and records of level error; with the warnings and what rules did (5)";
    }
    const sessionsTab = this.tabs.querySelector("#tab-sessions");
    if (sessionsTab) setText(sessionsTab, answer.sessions.length ? `Sessions ${count(answer.sessions.length)}` : "Sessions");
    this.diagram.setSessions(answer.sessions);
    this.drawTitle();
  }

  // Records

  /** @param {string} text */
  filtered(text) {
    this.store.setFilter(text);
    this.writeAddress();
  }

  /** @param {string} text */
  setFilter(text) {
    this.open("records");
    this.filter.set(text);
    this.records.node.focus({ preventScroll: true });
  }

  /**
   * Adds a condition to the filter.
   * @param {string} text
   * @param {boolean} isMore
   */
  narrow(text, isMore) {
    const old = this.filter.text.trim();
    const isOr = / or /.test(old);
    this.setFilter(isMore && old ? `${isOr ? `(${old})` : old} and ${text}` : text);
  }

  /**
   * Shows a record in the list, without a filter if that hides it.
   * @param {number} at
   */
  async go(at) {
    this.open("records");
    this.openDetail(at);
    const { cursor } = this.records;
    try {
      // The filter must not be removed before its search has passed the record.
      if (await cursor.selectAt(at) !== false || !this.store.filter) return;
      this.filter.set("");
      this.say("the filter hides this record, so it was removed");
      await cursor.selectAt(at);
    } catch (error) { this.say(faultText(/** @type {Error} */ (error))); }
  }

  recordsChanged() {
    this.records.update();
    this.drawStatus();
  }

  drawStatus() {
    // A proxy records only while a page is open; what passed before is not among the records.
    const since = this.state.live && this.state.since ? ` · recording since ${clock(this.state.since).slice(0, 8)}` : "";
    const reading = this.isReading ? ` · reading the file, ${Math.floor((this.state.read / this.state.size) * 100)} %` : "";
    if (this.view === "records") setText(this.statusLine, listStatus(this.store, this.records.list) + since + reading);
    else setText(this.statusLine, `${plural((this.state.end ?? 0) - (this.state.first ?? 0), "record")}${this.state.first ? ` · ${count(this.state.first)} older ones are no longer kept` : ""}${since}${reading}`);
  }

  /** @param {number} at */
  openDetail(at) {
    this.detail.node.hidden = false;
    this.split.classList.add("open");
    this.detail.show(at);
    this.at = at;
    this.writeAddress();
  }

  /**
   * Closes the details of a record that the diagram of a session does not have.
   * @param {number} number
   */
  closeOther(number) {
    const { session } = this.detail;
    if (session !== undefined && session !== number) this.closeDetail();
  }

  closeDetail() {
    if (this.detail.node.hidden) return;
    const hadFocus = this.detail.node.contains(document.activeElement);
    this.detail.node.hidden = true;
    this.split.classList.remove("open");
    this.detail.empty();
    this.at = undefined;
    this.writeAddress();
    if (hadFocus) this.views[this.view]?.focus?.();
  }

  /** @param {boolean} back */
  async nextTrouble(back) {
    const end = Math.max(this.store.total, this.state.end ?? 0);
    const chosen = this.at ?? this.records.cursor.at;
    const from = chosen >= 0 ? Math.min(chosen, end) : back ? end : -1;
    this.seeking?.abort();
    const abort = this.seeking = new AbortController();
    let at = -1;
    try {
      at = await this.source.seek(from, troubles, back, abort.signal, () => this.say("searching …"));
    } catch (error) {
      if (!abort.signal.aborted) this.say(faultText(/** @type {Error} */ (error)));
      return;
    }
    if (abort.signal.aborted) return;
    if (at < 0) this.say(back ? "no earlier error or warning" : "no later error or warning");
    else {
      this.say("");
      this.go(at);
    }
  }

  /** @param {KeyboardEvent} event @returns {boolean} */
  recordsKey(event) {
    const row = this.records.selected;
    switch (event.key) {
      case "/": this.filter.input.focus(); this.filter.input.select(); return true;
      case "a": this.detail.follow(); return true;
      case "e": this.nextTrouble(false); return true;
      case "E": this.nextTrouble(true); return true;
      case "s": if (row?.session) this.narrow(`session:${row.session}`, true); return true;
      case "d": if (row?.session) this.openSession(row.session); return true;
      case "c": this.filter.set(""); return true;
      default: return this.records.key(event);
    }
  }

  // Keys

  /** @param {KeyboardEvent} event */
  key(event) {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      return this.palette();
    }
    const target = /** @type {HTMLElement} */ (event.target);
    if (event.ctrlKey || event.altKey || event.metaKey || document.querySelector("dialog[open]")) return;
    const isField = ["INPUT", "SELECT", "TEXTAREA"].includes(target.tagName);
    if (event.key === "Escape") {
      if (isField) target.blur();
      else if (!this.detail.node.hidden) this.closeDetail();
      else if (this.view === "records" && this.filter.text) this.filter.set("");
      else if (this.view !== "sessions") this.open("sessions");
      if (isField) this.views[this.view].focus?.();
      return;
    }
    if (isField) return;
    // Enter and space press the button that has the focus.
    if (["BUTTON", "SUMMARY"].includes(target.tagName) && (event.key === "Enter" || event.key === " ")) return;
    if (this.detail.node.contains(target) && ["ArrowDown", "ArrowUp", "PageDown", "PageUp", "Home", "End", " "].includes(event.key)) return;
    const number = Number(event.key);
    if (number >= 1 && number <= this.names.length) this.open(this.names[number - 1][0]);
    else if (event.key === "P" && this.tray) this.tray.passEach();
    else if (event.key === "?") showKeys(this.tray !== null);
    else if (event.key === "z") { toggleZone(); this.redraw(); }
    else if (event.key === "t") toggleTheme();
    else if (event.key === "y") { if (this.detail.answer?.record?.xml) copy(this.detail.answer.record.xml, (text) => this.say(text)); }
    else if (!this.views[this.view].key(event)) return;
    event.preventDefault();
  }

  palette() {
    /** @type {[string, () => void][]} */
    const commands = [
      ...this.names.map(([name, text]) => /** @type {[string, () => void]} */ ([`Show ${text.toLowerCase()}`, () => this.open(name)])),
      ["Next error or warning", () => this.nextTrouble(false)], ["Previous error or warning", () => this.nextTrouble(true)],
      ["Follow new records", () => { this.open("records"); this.records.list.follow(); }],
      ["Remove the filter", () => this.filter.set("")],
      ["Only logins", () => this.setFilter("phase:handshake")], ["Only messages", () => this.setFilter("message")],
      ["Only errors and warnings", () => this.setFilter(troubles)], ["Only what xmpptap has sent", () => this.setFilter("origin:tap")],
      ["Only what was dropped, edited or refused", () => this.setFilter("action:dropped,edited,refused")],
      ["Without pings", () => this.narrow("not payload:urn:xmpp:ping", true)],
      ["Without acknowledgements of stream management", () => this.narrow("not (element:r or element:a)", true)],
      ["Times in UTC or local", () => { toggleZone(); this.redraw(); }], ["Light or dark", () => toggleTheme()], ["Keys", () => showKeys(this.tray !== null)],
      ...(this.tray ? [/** @type {[string, () => void]} */ (["Pass all held stanzas", () => this.tray?.passEach()])] : []),
      ["Make a test of the selected session", () => this.makeTest(this.view === "diagram" ? this.diagram.session : this.sessions.selected)],
      ...this.sessions.all.map((session) => /** @type {[string, () => void]} */ ([`Diagram of session ${sessionName(session.session)} ${whoOf(session)}`, () => this.openSession(session.session)])),
    ];
    showPalette(commands);
  }

  redraw() {
    this.drawClock();
    this.records.list.draw();
    this.sessions.list.draw();
    this.diagram.list.draw();
    if (this.detail.answer) this.detail.draw();
    this.conversations.redraw();
    this.measures.redraw();
    this.diagram.drawFacts();
    this.drawStatus();
  }

  // The address contains the view, so that it can be kept as a bookmark and passed on.

  writeAddress() {
    if (this.isReadingAddress) return;
    const parts = new URLSearchParams({ view: this.view });
    if (this.view === "records" && this.filter.text.trim()) parts.set("filter", this.filter.text.trim());
    if (this.view === "diagram" && this.diagram.number) parts.set("session", String(this.diagram.number));
    if (this.at !== undefined && (this.view === "records" || this.view === "diagram")) parts.set("at", String(this.at));
    history.replaceState(null, "", `#${parts}`);
  }

  /** @param {string} [address] the fragment */
  readAddress(address = location.hash) {
    const parts = new URLSearchParams(address.slice(1));
    this.isReadingAddress = true;
    const view = parts.get("view") ?? this.state.first_view ?? "sessions";
    const filter = parts.get("filter");
    if (filter !== null || view === "records") this.filter.set(filter ?? "");
    const at = parts.get("at");
    this.open(Object.hasOwn(this.views, view) ? view : "sessions");
    if (view === "diagram" && parts.get("session")) this.openSession(Number(parts.get("session")));
    if (at !== null && /^\d+$/.test(at)) {
      this.openDetail(Number(at));
      if (view === "records") this.records.cursor.selectAt(Number(at)).catch((error) => this.say(faultText(error)));
    }
    this.isReadingAddress = false;
    this.writeAddress();
  }
}

/**
 * The servers of the sessions: their domains, and their software if it is known.
 * @param {any} state
 * @param {number} [most]
 */
function serversText(state, most = 2) {
  const servers = state.servers ?? [];
  const names = servers.slice(0, most).map((/** @type {any} */ server) => visible(server.software ? `${server.domain} (${server.software})` : server.domain));
  const more = servers.length > most ? ` and ${servers.length - most} more` : "";
  return names.length ? ` · ${servers.length > 1 ? "servers" : "server"} ${names.join(", ")}${more}` : "";
}

/**
 * What an error means.
 * @param {Error} error
 */
function faultText(error) {
  if (error instanceof Unreachable) return "xmpptap does not answer: it has ended, or is not reachable. The records on screen stay readable; this page tries again.";
  if (error instanceof OtherRun) return error.message;
  return error instanceof Refusal ? `xmpptap answered: ${error.message}` : `this page has failed: ${error.message}`;
}

const source = await openSource();
if (!source.isReady) {
  document.body.replaceChildren(el("main", { class: "refused" }, el("h1", { text: "xmpptap" }),
    el("p", { text: "Open the whole address that xmpptap has printed: it ends with a token, which only this run accepts." })));
} else {
  const page = new Page(source);
  await page.start();
}

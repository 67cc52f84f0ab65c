// The rules of the proxy with their hits, and the levels of its log.
import { choice, el, fill, panel, Poll, setText } from "./dom.js";
import { count, filterCondition, plural, visible } from "./format.js";
import { Refusal } from "./source.js";

/** @type {[string, string][]} */
const logLevels = ["off", "error", "warn", "info", "verbose", "trace"].map((name) => [name, name]);

/** The list of rules. */
export class RulesPanel {
  /** @param {any} source @param {{ filter: (text: string) => void, fault: (error: Error | null) => void }} events */
  constructor(source, events) {
    this.source = source;
    this.events = events;
    this.poll = new Poll(() => 2000, () => this.refresh());
    /** The rules that the table has, so that it is only made anew if they change. */
    this.drawn = "";
    /** @type {{ hits: HTMLElement, toggle: HTMLInputElement }[]} */
    this.rows = [];
    this.body = el("tbody");
    this.table = el("table", { class: "plain-table" }, el("thead", null, el("tr", null, ...["on", "hits", "rule"].map((text) => el("th", { scope: "col", text })))), this.body);
    this.reload = el("button", { text: "Reload the files", title: "Read the rule files again; all rules are on then", onclick: () => this.reloadFiles() });
    this.outcome = el("p", { class: "outcome", role: "status" });
    this.errors = el("ul", { class: "faults", role: "alert" });
    this.empty = el("p", { class: "note", text: "The proxy has no rule files; start it with --rules FILE." });
    this.node = panel("Rules", el("div", { class: "formline" }, this.reload, this.outcome), this.errors, this.table, this.empty);
  }

  async refresh() {
    try {
      this.draw(await this.source.request("GET", "/rules"));
      this.events.fault(null);
    } catch (error) { this.events.fault(/** @type {Error} */ (error)); }
  }

  /** @param {any} answer */
  draw(answer) {
    const { rules, files } = answer;
    this.empty.hidden = files.length > 0;
    this.reload.hidden = files.length === 0;
    this.table.hidden = rules.length === 0;
    const key = JSON.stringify(rules.map((/** @type {any} */ rule) => [rule.file, rule.line]));
    if (key !== this.drawn) {
      this.drawn = key;
      this.rows = [];
      fill(this.body, ...rules.map((/** @type {any} */ rule) => {
        const place = `${rule.file}:${rule.line}`;
        const toggle = el("input", { type: "checkbox", "aria-label": `Rule ${place}`, onchange: () => this.switch(rule, toggle) });
        const condition = filterCondition("rule", place);
        const hits = condition ? el("button", { class: "link", title: "Show the records of this rule", onclick: () => this.events.filter(condition) }) : el("span");
        this.rows.push({ hits, toggle });
        return el("tr", null, el("td", null, toggle), el("td", { class: "figure" }, hits), el("td", { text: visible(place) }));
      }));
    }
    rules.forEach((/** @type {any} */ rule, /** @type {number} */ index) => {
      setText(this.rows[index].hits, count(rule.hits));
      this.rows[index].toggle.checked = rule.on;
    });
  }

  /** @param {any} rule @param {HTMLInputElement} toggle */
  async switch(rule, toggle) {
    const on = toggle.checked;
    try {
      this.draw(await this.source.request("PUT", "/rules/state", { file: rule.file, line: rule.line, on }));
      setText(this.outcome, `${visible(`${rule.file}:${rule.line}`)} is ${on ? "on" : "off"}`);
    } catch (error) {
      toggle.checked = !on;
      setText(this.outcome, /** @type {Error} */ (error).message);
    }
  }

  async reloadFiles() {
    fill(this.errors);
    try {
      const answer = await this.source.request("POST", "/rules/reload");
      this.draw(answer);
      setText(this.outcome, `${plural(answer.rules.length, "rule")} in ${plural(answer.files.length, "file")}${answer.switched_on ? `; on again: ${answer.switched_on}` : ""}`);
    } catch (error) {
      const faults = error instanceof Refusal ? error.problem?.faults ?? [] : [];
      setText(this.outcome, /** @type {Error} */ (error).message);
      // Each message begins with its file, line and column.
      fill(this.errors, ...faults.map((/** @type {any} */ fault) => el("li", { text: visible(fault.message) })));
    }
  }
}

/** The level of the log, and that of one session. */
export class LevelsPanel {
  /** @param {any} source @param {{ session: () => { session: number } | undefined, say: (text: string) => void }} events */
  constructor(source, events) {
    this.source = source;
    this.events = events;
    /** Whether the proxy has a log; it stays so. */
    this.hasLog = true;
    this.isOpen = false;
    this.poll = new Poll(() => (this.hasLog ? 3000 : 0), () => this.refresh());
    this.log = choice("Level of the log", logLevels, () => this.change({ level: this.log.value }));
    this.one = choice("Level of this session", [["", "as the log"], ...logLevels], () => {
      const session = this.events.session();
      if (session) this.change({ level: this.one.value || null, session: session.session });
    });
    this.outcome = el("p", { class: "outcome", role: "status" });
    this.node = panel("Levels", el("div", { class: "formline" }, el("label", null, "log ", this.log), el("label", null, "this session ", this.one), this.outcome));
  }

  /** @param {boolean} isOpen whether the chosen session is open */
  enable(isOpen) {
    this.isOpen = isOpen;
    this.one.disabled = !isOpen || !this.hasLog;
  }

  async refresh() {
    if (!this.hasLog) return;
    try { this.draw(await this.source.request("GET", "/level")); } catch (error) { this.fail(/** @type {Error} */ (error)); }
  }

  /** @param {any} levels */
  draw(levels) {
    this.log.disabled = false;
    this.one.disabled = !this.isOpen;
    // A choice that is open is not changed.
    if (document.activeElement !== this.log) this.log.value = levels.level;
    const session = this.events.session();
    if (document.activeElement !== this.one) this.one.value = levels.sessions[String(session?.session)] ?? "";
  }

  /** @param {Error} error */
  fail(error) {
    if (error instanceof Refusal && error.code === "no-log") {
      this.hasLog = false;
      this.log.disabled = this.one.disabled = true;
    }
    setText(this.outcome, error.message);
  }

  /** @param {any} body */
  async change(body) {
    try {
      this.draw(await this.source.request("PUT", "/level", body));
      setText(this.outcome, "changed");
    } catch (error) { this.fail(/** @type {Error} */ (error)); }
  }
}

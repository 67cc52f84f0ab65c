// Errors, warnings and what rules did, grouped by their cause.
import { el, fill, Poll } from "./dom.js";
import { count, plural, sessionName, visible } from "./format.js";
import { described, splitName } from "./namespaces.js";

const levels = ["", "error", "warning", "action", "action", "action"];

/** The view with findings. */
export class FindingsView {
  /** @param {any} source @param {{ filter: (text: string) => void, go: (at: number) => void, session: (number: number) => void, logins: (cause: string) => void, fault: (error: Error | null) => void }} events */
  constructor(source, events) {
    this.source = source;
    this.events = events;
    this.poll = new Poll(() => (source.isFile ? 0 : this.isBehind ? 300 : 2000), () => this.refresh());
    this.isBehind = false;
    this.drawn = "";
    this.summary = el("p", { class: "summary", role: "status" });
    this.body = el("tbody");
    this.table = el("table", { class: "plain-table findings" }, el("thead", null, el("tr", null,
      ...["severity", "count", "sessions", "cause", "about", "example", ""].map((text) => el("th", { scope: "col", text })))), this.body);
    this.node = el("section", { class: "view scrolls", "aria-label": "Errors", tabindex: 0 }, el("div", { class: "bar" }, this.summary), this.table);
  }

  start() { this.poll.start(); }
  stop() { this.poll.stop(); }

  async refresh() {
    try {
      const answer = await this.source.findings();
      this.draw(answer);
      this.isBehind = answer.surveyed < answer.end;
      this.events.fault(null);
    } catch (error) { this.events.fault(/** @type {Error} */ (error)); }
  }

  /** @param {any} answer */
  draw(answer) {
    const key = JSON.stringify(answer.findings);
    const missed = answer.missed ? ` · ${plural(answer.missed, "record")} went by unread` : "";
    const sums = ["error", "warning", "action"].map((name, place) => {
      const sum = answer.findings.filter((/** @type {any} */ finding) => Math.min(finding.level, 3) === place + 1).reduce((/** @type {number} */ all, /** @type {any} */ finding) => all + finding.count, 0);
      return sum ? plural(sum, name) : "";
    }).filter(Boolean).join(", ");
    fill(this.summary, answer.findings.length ? `${plural(answer.findings.length, "cause")}: ${sums}${missed}` : answer.surveyed < answer.end ? "Reading …" : `No errors, no warnings, and no rule has acted.${missed}`);
    if (key === this.drawn) return;
    this.drawn = key;
    this.table.hidden = answer.findings.length === 0;
    fill(this.body, ...answer.findings.map((/** @type {any} */ finding) => {
      const [space, name] = splitName(finding.subject);
      return el("tr", { class: finding.level === 1 ? "bad" : finding.level === 2 ? "warn" : "" },
        el("td", { text: levels[finding.level] }), el("td", { class: "figure", text: count(finding.count) }), el("td", null, ...this.sessions(finding)),
        el("td", { text: finding.cause ? `login failed: ${visible(finding.cause)}` : visible(finding.code) }), el("td", { title: visible(finding.subject) }, visible(name), el("span", { class: "spec", text: described(space) })),
        el("td", { text: visible(finding.example) }),
        el("td", { class: "actions" }, el("button", { class: "small", text: "records", title: finding.filter, onclick: () => this.events.filter(finding.filter) }),
          el("button", { class: "small", text: "first", onclick: () => this.events.go(finding.first) }),
          el("button", { class: "small", text: "last", onclick: () => this.events.go(finding.last) })));
    }));
    if (answer.others) this.body.appendChild(el("tr", null, el("td", { colspan: 7, text: `${plural(answer.others, "record")} with further causes` })));
  }

  /**
   * Links to the sessions of a group.
   * @param {any} finding
   */
  sessions(finding) {
    const links = finding.listed.flatMap((/** @type {number} */ number, /** @type {number} */ index) => [index ? ", " : "",
      el("button", { class: "link", text: sessionName(number), title: `Diagram of session ${sessionName(number)}`, onclick: () => this.events.session(number) })]);
    const more = finding.sessions - finding.listed.length;
    if (!more) return links;
    const text = `${count(more)} more`;
    return [...links, ", ", finding.cause ? el("button", { class: "link", text, title: "All sessions with this cause", onclick: () => this.events.logins(finding.cause) }) : text];
  }

  key() { return false; }
}

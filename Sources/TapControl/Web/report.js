// The report of a comparison: in what a recording differs from what was compared with it.
import { add, el, fill } from "./dom.js";
import { plural, visible } from "./format.js";

/** The view with a report. Only pages that are files have one. */
export class ReportView {
  /**
   * @param {any} source
   * @param {{ go: (at: number) => void }} events
   */
  constructor(source, events) {
    this.source = source;
    this.events = events;
    this.body = el("div", { class: "report" });
    this.node = el("section", { class: "view scrolls", "aria-label": "Report", tabindex: 0 }, this.body);
  }

  start() { if (!this.body.childNodes.length) this.draw(this.source.report); }
  stop() {}
  key() { return false; }

  /** @param {any} report */
  draw(report) {
    fill(this.body,
      el("p", { class: report.failed ? "verdict bad" : "verdict", role: "status" }, el("b", { text: report.failed ? "Failed" : "Passed" }), ` ${visible(report.summary)}`),
      el("p", { class: "hint", text: `${visible(report.recorded)} is compared with ${visible(report.live)}` }),
      ...report.errors.map((/** @type {string} */ text) => el("p", { class: "fault", text: visible(text) })));
    const { causes } = report;
    if (causes.length > 1) this.body.appendChild(el("nav", { "aria-label": "Causes" }, el("ol", null, ...causes.map((/** @type {any} */ cause, /** @type {number} */ index) => el("li", { class: cause.counts ? "bad" : "" },
      el("button", { class: "link", text: visible(cause.title), onclick: () => this.body.querySelector(`#cause-${index}`)?.scrollIntoView() }))))));
    add(this.body, causes.map((/** @type {any} */ cause, /** @type {number} */ index) => this.cause(cause, index)));
    if (report.notes.length) this.body.appendChild(el("section", null, el("h2", { text: "Notes" }), el("ul", null, ...report.notes.map((/** @type {string} */ text) => el("li", { text: visible(text) })))));
    if (report.figures.length) this.body.appendChild(el("section", null, el("h2", { text: "Times" }), el("pre", { text: report.figures.map(visible).join("\n") })));
  }

  /**
   * @param {any} cause
   * @param {number} index
   */
  cause(cause, index) {
    const value = (/** @type {string | undefined} */ text) => el("code", { text: text === undefined ? "absent" : visible(text) });
    const differences = cause.differences.map((/** @type {any} */ entry) => el("tr", null, el("th", { scope: "row" }, el("code", { text: visible(entry.path) })), el("td", null, value(entry.recorded)), el("td", null, value(entry.live))));
    return el("section", { id: `cause-${index}`, class: cause.counts ? "cause bad" : "cause" }, el("h2", { text: visible(cause.title) }), el("p", { class: "hint", text: visible(cause.head) }),
      differences.length ? el("table", { class: "plain-table" }, el("thead", null, el("tr", null, ...["place", "expected", "received"].map((text) => el("th", { scope: "col", text })))), el("tbody", null, ...differences)) : null,
      el("div", { class: "sides" }, this.item(cause.recorded, false), this.item(cause.live, true)),
      cause.followed.length ? el("details", null, el("summary", { text: `${plural(cause.followed.length, "difference")} that follow from it` }), el("ul", null, ...cause.followed.map((/** @type {string} */ text) => el("li", null, el("code", { text: visible(text) }))))) : null);
  }

  /**
   * @param {any} item
   * @param {boolean} isLive
   */
  item(item, isLive) {
    if (!item) return el("div", { class: "side" }, el("p", { class: "hint", text: "nothing" }));
    const at = this.source.find(item.session, item.sequence, isLive);
    return el("div", { class: "side" },
      el("p", { class: "hint" }, visible(item.label), at >= 0 ? el("button", { class: "small", text: "record", onclick: () => this.events.go(at) }) : null),
      el("pre", { class: "raw" }, ...item.pieces.map((/** @type {string} */ text, /** @type {number} */ index) => (index % 2 ? el("mark", { text: visible(text) }) : visible(text)))));
  }
}

// Figures: round trips, items over time, sizes, and who sends most.
import { bars, el, fill, Poll } from "./dom.js";
import { clock, count, day, filterCondition, size, span, visible } from "./format.js";
import { described, splitName } from "./namespaces.js";

/** @param {string} title @param {string[]} heads @param {any[][]} rows @param {string} [note] */
function table(title, heads, rows, note) {
  if (rows.length === 0) return el("section", null, el("h2", { text: title }), el("p", { class: "hint", text: "none" }));
  return el("section", null, el("h2", { text: title }), note ? el("p", { class: "hint", text: note }) : null, el("table", { class: "plain-table" },
    el("thead", null, el("tr", null, ...heads.map((text, index) => el("th", { scope: "col", class: index && text ? "figure" : "", text })))),
    el("tbody", null, ...rows.map((row) => el("tr", null, ...row.map((cell, index) => el("td", { class: index && typeof cell !== "object" ? "figure" : "" }, cell)))))));
}

/** The view with figures. */
export class MeasuresView {
  /** @param {any} source @param {{ filter: (text: string) => void, go: (at: number) => void, fault: (error: Error | null) => void }} events */
  constructor(source, events) {
    this.source = source;
    this.events = events;
    this.poll = new Poll(() => (source.isFile ? 0 : this.isBehind ? 500 : 3000), () => this.refresh());
    this.isBehind = false;
    this.drawn = "";
    this.body = el("div", { class: "measures" });
    this.node = el("section", { class: "view scrolls", "aria-label": "Measures", tabindex: 0 }, this.body);
  }

  start() { this.poll.start(); }
  stop() { this.poll.stop(); }

  async refresh() {
    try {
      const answer = this.answer = await this.source.measures();
      this.draw(answer);
      this.isBehind = answer.surveyed < answer.end;
      this.events.fault(null);
    } catch (error) { this.events.fault(/** @type {Error} */ (error)); }
  }

  /** Shows the times in another zone. */
  redraw() {
    this.drawn = "";
    if (this.answer) this.draw(this.answer);
  }

  /** @param {any} answer */
  draw(answer) {
    const key = JSON.stringify([answer.kinds, answer.trips, answer.rate, answer.trips_left_off, answer.namespaces_left_off, answer.talkers_left_off]);
    if (key === this.drawn) return;
    this.drawn = key;
    const payload = (/** @type {string} */ text) => {
      const [space, name] = splitName(text);
      return el("span", { title: visible(text), text: `${visible(name) || "(empty)"} ${described(space) || space}` });
    };
    const records = (/** @type {string | undefined} */ filter) => filter && el("button", { class: "small", text: "records", title: filter, onclick: () => this.events.filter(filter) });
    const { rate } = answer;
    const end = rate.start + rate.width * rate.counts.length;
    const most = Math.max(0, ...rate.counts);
    const chart = el("section", { class: "wide" }, el("h2", { text: "Items over time" }), rate.counts.length ? bars(rate.counts, 960, 90, `items in intervals of ${span(rate.width)}, at most ${most}`) : null,
      el("p", { class: "axis" }, el("span", { text: `${day(rate.start)} ${clock(rate.start).slice(0, 8)}` }), el("span", { text: `bars of ${span(rate.width)}, the tallest ${count(most)} items (${(most / (rate.width / 1e6)).toFixed(1)} a second)` }), el("span", { text: `${day(end)} ${clock(end).slice(0, 8)}` })));
    const trips = answer.trips.map((/** @type {any} */ trip) => [payload(trip.payload), count(trip.requests), count(Math.max(0, trip.requests - trip.answers)), trip.answers ? span(trip.p50) : "", trip.answers ? span(trip.p99) : "", trip.answers ? span(trip.longest) : "",
      el("span", null, trip.answers ? el("button", { class: "small", text: "slowest", onclick: () => this.events.go(trip.slowest) }) : null, records(filterCondition("payload", trip.payload)))]);
    const more = (/** @type {number | undefined} */ number) => (number ? `the largest; ${count(number)} more are not listed` : undefined);
    fill(this.body, chart,
      table("Round trips of requests", ["payload", "requests", "unanswered", "p50", "p99", "slowest", ""], trips, more(answer.trips_left_off)),
      table("Items", ["kind", "sent", "received", "bytes", "largest"], answer.kinds.map((/** @type {any} */ kind) => [kind.kind, count(kind.sent), count(kind.received), size(kind.bytes), size(kind.largest)])),
      table("Size by namespace", ["namespace of the first child", "items", "bytes"], answer.namespaces.map((/** @type {any} */ entry) => [el("span", { title: visible(entry.name), text: `${visible(entry.name)} ${described(entry.name)}` }), count(entry.items), size(entry.bytes)]), more(answer.namespaces_left_off)),
      table("Top talkers", ["sender", "stanzas", "bytes"], answer.talkers.map((/** @type {any} */ entry) => [visible(entry.name), count(entry.items), size(entry.bytes)]), more(answer.talkers_left_off)));
  }

  key() { return false; }
}

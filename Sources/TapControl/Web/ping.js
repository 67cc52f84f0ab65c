// Pings to one end of a session, and their round trips as bars.
import { bars, callLater, choice, el, fill, panel, setText, svg } from "./dom.js";
import { span } from "./format.js";

/** Time between two pings, and the time that an answer may take. */
const pingInterval = 2000;
const pingPatience = 10_000;
/** Number of round trips that are shown. */
const maximumPings = 60;

/** The chart of round trips. */
export class PingChart {
  /** @param {any} source @param {{ session: () => { session: number } | undefined, missing: () => string }} events */
  constructor(source, events) {
    this.source = source;
    this.events = events;
    /**
     * Round trips in microseconds; null for a ping that failed.
     * @type {(number | null)[]}
     */
    this.trips = [];
    /** What is pinged; another target begins another chart. */
    this.target = "";
    this.isOn = false;
    this.isShown = false;
    this.reason = "";
    /** Changes when the pings begin again, so that the answer to an earlier one is left out. */
    this.turn = 0;
    this.to = choice("Ping", [["client", "the client"], ["server", "the server"]], () => this.restart());
    this.button = el("button", { text: "Ping every 2 s", "aria-pressed": "false", onclick: () => this.toggle() });
    this.chart = el("div", { class: "pings" });
    this.summary = el("p", { class: "summary" });
    this.node = panel("Pings", el("div", { class: "formline" }, this.to, this.button), this.chart, this.summary);
  }

  toggle() {
    this.isOn = !this.isOn;
    this.button.setAttribute("aria-pressed", String(this.isOn));
    setText(this.button, this.isOn ? "Stop" : "Ping every 2 s");
    this.enable(this.events.session() !== undefined);
    this.restart();
  }

  /** @param {boolean} isOpen whether the chosen session is open; pings that are on continue when another one is chosen */
  enable(isOpen) { this.button.disabled = !isOpen && !this.isOn; }

  start() { this.isShown = true; this.restart(); }
  stop() { this.isShown = false; this.restart(); }

  restart() {
    this.giveUp?.();
    this.turn += 1;
    if (this.isOn && this.isShown) this.ping();
  }

  async ping() {
    const { turn } = this;
    const session = this.events.session();
    const to = this.to.value;
    const target = `${session?.session} ${to}`;
    if (target !== this.target) {
      this.target = target;
      this.trips = [];
      this.reason = "";
    }
    if (!session) {
      setText(this.summary, `Nothing is pinged: ${this.events.missing()}.`);
    } else {
      const began = Date.now();
      let trip = null;
      try {
        const answer = await this.source.request("POST", `/sessions/${session.session}/ping`, { to, timeout_ns: pingPatience * 1e6 });
        trip = answer.round_trip_ns / 1000;
      } catch (error) { this.reason = /** @type {Error} */ (error).message; }
      if (turn !== this.turn) return;
      this.trips = [...this.trips, trip].slice(-maximumPings);
      this.draw();
      this.wait = Math.max(0, pingInterval - (Date.now() - began));
    }
    if (turn === this.turn) this.giveUp = callLater(this.wait ?? pingInterval, () => this.ping());
  }

  draw() {
    const answered = /** @type {number[]} */ (this.trips.filter((trip) => trip !== null)).sort((a, b) => a - b);
    const failed = this.trips.length - answered.length;
    const longest = answered[answered.length - 1] ?? 0;
    const words = answered.length ? `p50 ${span(answered[Math.floor((answered.length - 1) / 2)])} · longest ${span(longest)}` : "no answer yet";
    const step = 480 / maximumPings;
    const chart = bars(Array.from({ length: maximumPings }, (_, index) => this.trips[index] ?? 0), 480, 60, `the last ${this.trips.length} pings: ${words}, ${failed} failed`);
    chart.appendChild(svg("path", { class: "lost", d: this.trips.map((trip, index) => (trip === null ? `M${index * step} 0h${step - 1}v60h${1 - step}z` : "")).join("") }));
    fill(this.chart, chart);
    setText(this.summary, `${words} · ${this.trips.length} of the last ${maximumPings}${failed ? ` · ${failed} failed (full red bars): ${this.reason}` : ""}`);
  }
}

// The rows of a filter: they are fetched when they come into view, and kept while they may be needed again.
import { plural, span, visible } from "./format.js";
import { splitName } from "./namespaces.js";
import { Refusal } from "./source.js";

/** @typedef {Record<string, any>} Row */
/** @typedef {{ index: number, row: Row | null, isFound: boolean, isKnown: boolean }} Place */

const blockRows = 200;
/** Idle time that a list shows as a gap above a row, in microseconds, and the height of the gap. */
const longIdle = 30_000_000;
export const gapHeight = 18;
/** Maximum number of blocks that are kept: 24,000 rows. */
const maximumBlocks = 120;
/** Number of failed requests in a row after which rows are no longer asked for, until the user scrolls. */
const maximumFailures = 6;

/**
 * The rows of one filter.
 *
 * Only polling decides which list the rows belong to: a filter, a run, and the number of the server's list, whose indices
 * begin again when the server has given it up and searches anew. An answer about another list is dropped.
 */
export class RowStore {
  /**
   * @param {any} source
   * @param {{ onChange: () => void, onFault: (error: Error | null, isOfRows?: boolean) => void, onNewRun?: () => void, onForget?: () => void }} events
   */
  constructor(source, events) {
    this.source = source;
    this.events = events;
    /** The filter of the rows; `wanted` is the one that was asked for last. */
    this.filter = "";
    /** @type {string | undefined} */
    this.wanted = undefined;
    this.run = "";
    /** @type {number | undefined} */
    this.list = undefined;
    this.first = 0;
    this.end = 0;
    /** The first row that the server still has, if another answer than that of polling has said so. */
    this.dropped = 0;
    this.scanned = 0;
    this.total = 0;
    this.begin = 0;
    /** Number of rows that are not records, but say that some are missing. */
    this.gaps = 0;
    this.isOn = false;
    /** Whether the rows are those of another list than before. */
    this.isFresh = false;
    /** @type {(() => boolean) | undefined} */
    this.isFollowing = undefined;
    /** @type {Map<number, any>} */
    this.blocks = new Map();
    /** @type {Map<number, AbortController>} */
    this.asked = new Map();
    /** Changes when polling starts again. */
    this.generation = 0;
    /** Changes when all rows are forgotten. */
    this.epoch = 0;
    this.failures = 0;
    this.failedFrom = -1;
    this.retryAt = 0;
    /** @type {(() => void)[]} */
    this.waiters = [];
    document.addEventListener("visibilitychange", () => { if (document.hidden) this.abort(); });
  }

  /**
   * Shows the rows of another filter.
   * @param {string} filter
   */
  setFilter(filter) {
    if (filter === this.wanted && this.run) return;
    this.wanted = filter;
    this.restart();
  }

  /** Fetches rows while the view is open. */
  start() {
    if (this.isOn) return;
    this.isOn = true;
    this.wanted ??= this.filter;
    this.poll(this.generation);
  }

  stop() {
    this.isOn = false;
    this.restart();
  }

  restart() {
    this.generation += 1;
    this.recovered();
    this.abort();
    if (this.isOn) this.poll(this.generation);
    this.wake();
  }

  abort() {
    this.pollAbort?.abort();
    for (const controller of this.asked.values()) controller.abort();
    this.asked.clear();
  }

  /** Whether the rows are those of the filter that was asked for last. */
  get isSettled() { return this.run !== "" && this.wanted === this.filter; }

  /** Returns when the rows have changed, or another filter is wanted. */
  changed() { return new Promise((/** @type {(value?: any) => void} */ done) => this.waiters.push(done)); }

  wake() {
    const { waiters } = this;
    this.waiters = [];
    for (const done of waiters) done();
  }

  /**
   * Asks for the number of rows, and waits for more, until something else is wanted.
   * @param {number} generation
   */
  async poll(generation) {
    let wait = 500;
    // The first question, and one after an error, is answered at once.
    let isPrompt = true;
    while (this.isOn && generation === this.generation) {
      // A hidden page has no connection.
      if (document.hidden) {
        await new Promise((done) => document.addEventListener("visibilitychange", done, { once: true }));
        continue;
      }
      const filter = this.wanted ?? "";
      const abort = this.pollAbort = new AbortController();
      const query = isPrompt ? { from: -blockRows, count: blockRows, filter }
        : { from: -blockRows, count: this.isTailNeeded ? blockRows : 0, known: this.end, wait: 20, list: this.list, filter };
      try {
        const rows = await this.source.rows(query, abort.signal);
        if (generation !== this.generation) return;
        if (wait > 500) this.recovered();
        isPrompt = false;
        wait = 500;
        this.events.onFault(null);
        const isFlood = query.known !== undefined && rows.end - query.known > blockRows;
        this.take(rows, filter);
        const isSearching = this.scanned < this.total;
        // The records of a file do not change.
        if (this.source.isFile && !isSearching) return;
        // Ten answers a second are enough for eyes, and leave time to draw. If not even one row of an answer stays in the next one,
        // fewer do, which cost the proxy less.
        await new Promise((done) => setTimeout(done, isSearching ? 20 : isFlood ? 250 : 100));
      } catch (error) {
        if (generation !== this.generation) return;
        isPrompt = true;
        if (abort.signal.aborted) continue;
        this.events.onFault(/** @type {Error} */ (error));
        if (error instanceof Refusal && error.status === 422) return;
        await new Promise((done) => setTimeout(done, wait));
        wait = Math.min(wait * 2, 10_000);
      }
    }
  }

  /** Whether rows are no longer asked for, after some errors. */
  get isStuck() { return this.failures >= maximumFailures; }

  /** Whether the newest rows are in view. */
  get isTailNeeded() { return this.isFollowing?.() ?? true; }

  /**
   * Takes the answer of polling.
   * @param {any} rows
   * @param {string} filter
   */
  take(rows, filter) {
    const isOtherRun = this.run !== "" && rows.run !== this.run;
    const isOtherFilter = this.run === "" || filter !== this.filter;
    // A list that became shorter has begun again, even if it has no number.
    const isOtherList = rows.list !== this.list || rows.end < this.end || rows.first < this.first;
    if (isOtherRun || isOtherFilter || isOtherList) {
      if (isOtherRun) this.events.onNewRun?.();
      else if (!isOtherFilter) this.events.onForget?.();
      this.forget();
      this.isFresh = true;
    }
    this.filter = filter;
    this.run = rows.run;
    this.list = rows.list;
    this.first = rows.first;
    this.end = rows.end;
    this.scanned = rows.scanned ?? rows.end;
    this.total = rows.total ?? rows.end;
    this.begin = rows.begin ?? rows.first;
    this.gaps = rows.gaps ?? 0;
    this.keep(rows);
    this.events.onChange();
    this.isFresh = false;
    this.wake();
  }

  forget() {
    this.epoch += 1;
    this.dropped = 0;
    this.blocks.clear();
    for (const controller of this.asked.values()) controller.abort();
    this.asked.clear();
  }

  /**
   * Whether an answer is about the rows that are kept. If the list has begun again, polling is to find that out.
   * @param {any} rows
   * @param {number} epoch the value at the time of the request
   */
  isCurrent(rows, epoch) {
    if (epoch !== this.epoch) return false;
    if (rows.run === this.run && rows.list === this.list) return true;
    this.restart();
    return false;
  }

  /**
   * Keeps rows in their blocks.
   * @param {any} rows
   */
  keep(rows) {
    const count = rows.at.length;
    for (let start = rows.start; start < rows.start + count;) {
      const number = Math.floor(start / blockRows);
      const end = Math.min((number + 1) * blockRows, rows.start + count);
      const old = this.blocks.get(number);
      const oldEnd = old ? old.start + old.at.length : 0;
      if (old && start >= old.start && start <= oldEnd) {
        // Rows do not change: only those after the kept ones are new.
        if (end > oldEnd) {
          for (const [name, column] of Object.entries(rows)) {
            if (Array.isArray(column)) old[name].push(...column.slice(oldEnd - rows.start, end - rows.start));
          }
        }
      } else {
        /** @type {any} */
        const block = { start };
        for (const [name, column] of Object.entries(rows)) {
          if (Array.isArray(column)) block[name] = column.slice(start - rows.start, end - rows.start);
        }
        this.blocks.delete(number);
        this.blocks.set(number, block);
      }
      start = end;
    }
    for (const number of this.blocks.keys()) {
      if (this.blocks.size <= maximumBlocks) break;
      this.blocks.delete(number);
    }
  }

  /**
   * The row at an index; null if it is not there yet.
   * @param {number} index
   * @returns {Row | null}
   */
  row(index) {
    const block = this.blocks.get(Math.floor(index / blockRows));
    const place = block ? index - block.start : -1;
    if (!block || place < 0 || place >= block.at.length) return null;
    /** @type {Row} */
    const row = { index };
    for (const name in block) if (name !== "start") row[name] = block[name][place];
    return row;
  }

  /**
   * The time without records before a row, in microseconds; 0 if it is short, or not known.
   * @param {number} index
   */
  idle(index) {
    // Views ask for the rows around those in view, too, so no row is made of the columns.
    const [before, time] = [index - 1, index].map((place) => {
      const block = this.blocks.get(Math.floor(place / blockRows));
      return block?.time?.[place - block.start] ?? 0;
    });
    return before && time - before >= longIdle ? time - before : 0;
  }

  /**
   * The height of the gap above a row.
   * @param {number} index
   */
  gap(index) { return this.idle(index) ? gapHeight : 0; }

  /**
   * Fetches the rows in view.
   * @param {number} start
   * @param {number} end
   */
  need(start, end) {
    if (!this.isOn || document.hidden) return;
    const from = Math.max(this.first, this.dropped, start);
    const to = Math.min(this.end, end);
    // Other rows are a reason to try once more.
    if (from !== this.failedFrom && this.isStuck) {
      this.failures = maximumFailures - 1;
      this.retryAt = 0;
    }
    for (let number = Math.floor(from / blockRows); number * blockRows < to; number++) {
      const block = this.blocks.get(number);
      const low = Math.max(from, number * blockRows);
      const high = Math.min(to, (number + 1) * blockRows);
      if (block && block.start <= low && block.start + block.at.length >= high) {
        this.blocks.delete(number);
        this.blocks.set(number, block);
        continue;
      }
      if (!this.asked.has(number) && Date.now() >= this.retryAt) this.fetch(number, from);
    }
    // Blocks that scrolled out of view before their request was answered.
    for (const [number, controller] of this.asked) {
      if (this.asked.size > 3 && ((number + 1) * blockRows < from || number * blockRows > to)) {
        controller.abort();
        this.asked.delete(number);
      }
    }
  }

  /** @param {number} number @param {number} view the first row in view */
  async fetch(number, view) {
    const controller = new AbortController();
    const { epoch } = this;
    this.asked.set(number, controller);
    let from = Math.max(this.first, this.dropped, number * blockRows);
    const block = this.blocks.get(number);
    if (block && block.start <= from) from = Math.max(from, block.start + block.at.length);
    const query = { from, count: (number + 1) * blockRows - from, list: this.list, filter: this.filter };
    try {
      const rows = await this.source.rows(query, controller.signal);
      if (controller.signal.aborted || !this.isCurrent(rows, epoch)) return;
      this.dropped = Math.max(this.dropped, rows.first);
      const isAnswered = rows.start <= from && rows.start + rows.at.length > from;
      if (!isAnswered && rows.first <= from) throw new Error("rows are missing in the answer");
      this.asked.delete(number);
      this.recovered();
      this.keep(rows);
      this.events.onChange();
      this.wake();
    } catch (error) {
      if (!controller.signal.aborted) this.failed(/** @type {Error} */ (error), view);
    } finally {
      if (this.asked.get(number) === controller) this.asked.delete(number);
    }
  }

  recovered() {
    if (this.failures) this.events.onFault(null, true);
    this.failures = 0;
    this.retryAt = 0;
  }

  /**
   * Waits longer after each error, and stops with a message after some.
   * @param {Error} error
   * @param {number} view
   */
  failed(error, view) {
    this.failures += 1;
    this.failedFrom = view;
    if (this.isStuck) {
      this.retryAt = Infinity;
      this.events.onFault(error, true);
      this.events.onChange();
      return;
    }
    const wait = 250 * 2 ** this.failures;
    this.retryAt = Date.now() + wait;
    setTimeout(() => { if (this.isOn) this.events.onChange(); }, wait + 1);
  }

  /**
   * The first row at or after a record. `isFound` says whether it is that of the record, `isKnown` whether the search has
   * passed the record. Null if the rows were replaced meanwhile.
   * @param {number} at
   * @returns {Promise<Place | null>}
   */
  async find(at) {
    const { epoch } = this;
    const rows = await this.source.rows({ around: at, count: 2, list: this.list, filter: this.filter });
    if (!this.isCurrent(rows, epoch)) return null;
    this.keep(rows);
    const place = rows.at.findIndex((/** @type {number} */ found) => found >= at);
    const index = place < 0 ? rows.end - 1 : rows.start + place;
    const row = this.row(index);
    return { index, row, isFound: row?.at === at, isKnown: row?.at === at || (rows.scanned ?? rows.end) > at };
  }
}

/**
 * Shows the idle time above a row.
 * @param {HTMLElement} node
 * @param {number} idle
 * @param {string} what the records that the list has
 * @param {number} [gone] number of records before the row that are no longer kept
 * @returns {string} the class of the row
 */
export function drawGap(node, idle, what, gone = 0) {
  const text = gone ? `${plural(gone, "older record")} no longer kept` : idle ? `${span(idle)} without ${what}` : "";
  if ((node.dataset.gap ?? "") !== text) node.dataset.gap = text;
  return text ? " pause" : "";
}

/**
 * The words for what a row is about.
 * @param {Row} row
 */
export function what(row) {
  if (row.kind === "stanza" || row.kind === "element") return row.type ? `${row.name} ${row.type}` : row.name;
  if (row.kind === "stream-open") return "stream";
  if (row.kind === "stream-close") return "end of stream";
  if (row.code === "step") return "login step";
  if (row.code && ["session", "tls", "note", "error"].includes(row.kind)) return row.code.replaceAll("-", " ");
  return row.kind;
}

/**
 * The words for what a row contains.
 * @param {Row} row
 */
export function rowText(row) {
  if (row.body) return `“${visible(row.text)}”`;
  if (row.text) return visible(row.text);
  const [, name] = splitName(row.payload);
  return name ? `<${visible(name)}/>` : "";
}

/**
 * The classes of a row.
 * @param {Row} row
 */
export function classOf(row) {
  const isError = row.level === 1 || row.type === "error" || row.code === "login-failed";
  return [
    row.direction === 1 ? "send" : row.direction === 2 ? "recv" : "event",
    isError ? "bad" : row.level === 2 ? "warn" : row.level >= 4 ? "faint" : "",
    row.tap ? "tap" : "",
    row.action === "dropped" || row.action === "refused" ? "dropped" : "",
    row.kind === "header" || row.kind === "damage" || row.kind === "gap" ? "remark" : "",
  ].filter(Boolean).join(" ");
}

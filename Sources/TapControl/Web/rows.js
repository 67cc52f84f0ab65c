// The rows of a filter: they are fetched when they come into view, and kept while they may be needed again.
import { visible } from "./format.js";
import { splitName } from "./namespaces.js";
import { Refusal } from "./source.js";

/** @typedef {Record<string, any>} Row */

const blockRows = 200;
/** Maximum number of blocks that are kept: 24,000 rows. */
const maximumBlocks = 120;

/** The rows of one filter. */
export class RowStore {
  /**
   * @param {any} source
   * @param {{ onChange: () => void, onFault: (error: Error | null) => void, onNewRun?: () => void }} events
   */
  constructor(source, events) {
    this.source = source;
    this.events = events;
    this.filter = "";
    /** @type {string | undefined} */
    this.wanted = undefined;
    this.run = "";
    this.first = 0;
    this.end = 0;
    this.scanned = 0;
    this.total = 0;
    this.isOn = false;
    /** @type {(() => boolean) | undefined} */
    this.isFollowing = undefined;
    /** @type {Map<number, any>} */
    this.blocks = new Map();
    /** @type {Map<number, AbortController>} */
    this.asked = new Map();
    this.generation = 0;
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
    this.restart(false);
  }

  restart(isOn = this.isOn) {
    this.generation += 1;
    this.pollAbort?.abort();
    for (const controller of this.asked.values()) controller.abort();
    this.asked.clear();
    if (isOn) this.poll(this.generation);
  }

  /**
   * Asks for the number of rows, and waits for more, until something else is wanted.
   * @param {number} generation
   */
  async poll(generation) {
    let isFirst = true;
    let wait = 500;
    while (this.isOn && generation === this.generation) {
      // A hidden page has no connection.
      if (document.hidden) {
        await new Promise((done) => document.addEventListener("visibilitychange", done, { once: true }));
        continue;
      }
      const filter = this.wanted ?? "";
      this.pollAbort = new AbortController();
      const query = isFirst ? { from: -blockRows, count: blockRows, filter }
        : { from: -blockRows, count: this.isTailNeeded ? blockRows : 0, known: this.end, wait: 20, filter };
      try {
        const rows = await this.source.rows(query, this.pollAbort.signal);
        if (generation !== this.generation) return;
        this.take(rows, filter, isFirst);
        isFirst = false;
        wait = 500;
        this.events.onFault(null);
        // Ten answers a second are enough for eyes, and leave time to draw.
        await new Promise((done) => setTimeout(done, rows.scanned !== undefined && rows.scanned < rows.total ? 20 : 100));
      } catch (error) {
        if (generation !== this.generation || /** @type {any} */ (error).name === "AbortError") return;
        this.events.onFault(/** @type {Error} */ (error));
        if (error instanceof Refusal && error.status === 422) return;
        await new Promise((done) => setTimeout(done, wait));
        wait = Math.min(wait * 2, 10_000);
        isFirst = false;
      }
    }
  }

  /** Whether the newest rows are in view. */
  get isTailNeeded() { return this.isFollowing?.() ?? true; }

  /**
   * @param {any} rows
   * @param {string} filter
   * @param {boolean} isFirst
   */
  take(rows, filter, isFirst) {
    if (this.run && rows.run !== this.run) {
      this.events.onNewRun?.();
      this.blocks.clear();
    }
    if (isFirst && (filter !== this.filter || rows.run !== this.run)) {
      this.blocks.clear();
      this.filter = filter;
      this.isFresh = true;
    }
    this.run = rows.run;
    this.first = rows.first;
    this.end = rows.end;
    this.scanned = rows.scanned ?? rows.end;
    this.total = rows.total ?? rows.end;
    this.begin = rows.begin ?? rows.first;
    this.keep(rows);
    this.events.onChange();
    this.isFresh = false;
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
      // The part of a block that is at hand already may be larger.
      const isLarger = !old || start <= old.start && end >= old.start + old.at.length;
      if (isLarger) {
        /** @type {any} */
        const block = { start };
        for (const [name, column] of Object.entries(rows)) {
          if (Array.isArray(column)) block[name] = column.slice(start - rows.start, end - rows.start);
        }
        this.blocks.delete(number);
        this.blocks.set(number, block);
      } else if (start <= old.start + old.at.length && end > old.start + old.at.length) {
        const skip = old.start + old.at.length - rows.start;
        for (const [name, column] of Object.entries(rows)) {
          if (Array.isArray(column)) old[name].push(...column.slice(skip, end - rows.start));
        }
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
   * Fetches the rows in view.
   * @param {number} start
   * @param {number} end
   */
  need(start, end) {
    if (!this.isOn) return;
    const from = Math.max(this.first, start);
    const to = Math.min(this.end, end);
    for (let number = Math.floor(from / blockRows); number * blockRows < to; number++) {
      const block = this.blocks.get(number);
      const low = Math.max(from, number * blockRows);
      const high = Math.min(to, (number + 1) * blockRows);
      if (block && block.start <= low && block.start + block.at.length >= high) {
        this.blocks.delete(number);
        this.blocks.set(number, block);
        continue;
      }
      if (!this.asked.has(number)) this.fetch(number);
    }
    // Blocks that scrolled out of view before their request was answered.
    for (const [number, controller] of this.asked) {
      if (this.asked.size > 3 && ((number + 1) * blockRows < from || number * blockRows > to)) {
        controller.abort();
        this.asked.delete(number);
      }
    }
  }

  /** @param {number} number */
  async fetch(number) {
    const controller = new AbortController();
    this.asked.set(number, controller);
    try {
      const rows = await this.source.rows(
        { from: Math.max(this.first, number * blockRows), count: blockRows, filter: this.filter }, controller.signal);
      if (rows.run !== this.run || controller.signal.aborted) return;
      this.keep(rows);
      this.first = rows.first;
      this.events.onChange();
    } catch { /* Polling reports the error. */ } finally {
      if (this.asked.get(number) === controller) this.asked.delete(number);
    }
  }

  /**
   * The index of the first row at or after a record.
   * @param {number} at
   */
  async indexOf(at) {
    const rows = await this.source.rows({ around: at, count: 2, filter: this.filter });
    this.keep(rows);
    const place = rows.at.findIndex((/** @type {number} */ found) => found >= at);
    return place < 0 ? rows.end - 1 : rows.start + place;
  }
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

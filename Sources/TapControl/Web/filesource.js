// The records of a page that is a file: there is no server, so the page searches itself.
import { FilterMistake } from "./filtervalue.js";
import { sessionsOfRun } from "./format.js";
import { pageFilter } from "./pagefilter.js";
import { fileSources, Refusal } from "./source.js";

/** @typedef {import("./source.js").Columns} Columns */

/**
 * Decompresses the data of a page that is a file.
 * @param {string} base64
 */
async function unpacked(base64) {
  const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new (/** @type {any} */ (globalThis)).DecompressionStream("gzip"));
  return await new Response(stream).text();
}

/** Filters of a page that is a file whose results are kept. */
const maximumLists = 4;
/** How long a search goes on before the page is drawn, in milliseconds. */
const patience = 60;

/** The records that match a filter, found step by step. */
class FileList {
  /** @param {(rows: Columns, index: number, lines: string[]) => boolean} test */
  constructor(test) {
    this.test = test;
    /** @type {number[]} */
    this.matches = [];
    /** Rows that say that records are missing: those between two matches, and those after the last one. */
    this.gaps = new Set();
    /** @type {number[]} */
    this.pendingGaps = [];
    this.scanned = 0;
  }

  /** @param {Columns} rows @param {string[]} lines */
  extend(rows, lines) {
    const end = Date.now() + patience;
    const total = rows.at.length;
    while (this.scanned < total) {
      if (rows.kind[this.scanned] === "gap" && this.matches.length) this.pendingGaps.push(this.scanned);
      if (this.test(rows, this.scanned, lines)) {
        for (const gap of this.pendingGaps) this.gaps.add(gap);
        this.matches.push(...this.pendingGaps.splice(0), this.scanned);
      }
      this.scanned += 1;
      if (this.scanned % 64 === 0 && Date.now() >= end) break;
    }
  }

  /**
   * The index of the first match at or after a position.
   * @param {number} at
   */
  index(at) {
    let low = 0;
    let high = this.matches.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.matches[middle] < at) low = middle + 1; else high = middle;
    }
    return low;
  }
}

/** Data that is a part of this page. There is no server, so the page evaluates filters. */
export class FileSource {
  /** @param {string} base64 */
  constructor(base64) {
    this.base64 = base64;
    this.isFile = true;
    this.isReady = true;
    /** @type {any} */
    this.data = null;
    /** @type {string[]} */
    this.lines = [];
    /** @type {Map<string, FileList>} */
    this.lists = new Map();
    this.total = 0;
  }

  async load() {
    const text = await unpacked(this.base64);
    // The first line is what the server would answer, the others are the records.
    const end = text.indexOf("\n");
    this.data = JSON.parse(text.slice(0, end));
    this.lines = text.slice(end + 1).split("\n");
    this.total = this.data.rows.at.length;
  }

  async state() { return this.data.state; }

  /** The report of a comparison; undefined if the page has none. */
  get report() { return this.data.report; }

  /**
   * The position of a record of the first run, or of the last one; -1 if the page does not have it.
   * @param {number} session @param {number} sequence @param {boolean} isLast
   */
  find(session, sequence, isLast) {
    const { number, session: sessions } = this.data.rows;
    const isIt = (/** @type {number} */ at) => number[at] === sequence && sessions[at] % sessionsOfRun === session;
    if (!sequence || isLast && !this.report.both) return -1;
    for (let at = isLast ? number.length - 1 : 0; at >= 0 && at < number.length; at += isLast ? -1 : 1) if (isIt(at)) return at;
    return -1;
  }

  /**
   * The records that match a filter, as far as they have been found; null if there is no filter.
   * @param {string} text
   */
  list(text) {
    if (!text.trim()) return null;
    let list = this.lists.get(text);
    if (!list) {
      try {
        list = new FileList(pageFilter(text));
      } catch (error) {
        if (!(error instanceof FilterMistake)) throw error;
        throw new Refusal({ detail: error.message, code: "invalid-filter", column: error.column }, 422);
      }
    }
    this.lists.delete(text);
    this.lists.set(text, list);
    for (const other of this.lists.keys()) if (this.lists.size > maximumLists) this.lists.delete(other);
    list.extend(this.data.rows, this.lines);
    return list;
  }

  /** @param {Record<string, any>} query */
  async rows(query) {
    const list = this.list(query.filter ?? "");
    const end = list ? list.matches.length : this.total;
    let from = query.from ?? 0;
    const count = Math.min(query.count ?? 200, 2000);
    if (query.around !== undefined) from = (list ? list.index(query.around) : query.around) - Math.floor(count / 2);
    else if (from < 0) from += end;
    from = Math.min(Math.max(0, from), end);
    const chosen = list ? list.matches.slice(from, from + count) : null;
    /** @type {any} */
    const answer = { run: this.data.state.run, first: 0, end, start: from };
    if (list) Object.assign(answer, { scanned: list.scanned, total: this.total, begin: 0, gaps: list.gaps.size });
    for (const [name, column] of Object.entries(this.data.rows)) {
      answer[name] = chosen ? chosen.map((at) => column[at]) : column.slice(from, from + count);
    }
    return answer;
  }

  /** @param {number} at */
  async record(at) {
    /** @type {any} */
    const row = {};
    for (const [name, column] of Object.entries(this.data.rows)) row[name] = [column[at]];
    const [request, answer] = this.data.pairs[at] ?? [];
    let record;
    try { record = JSON.parse(this.lines[at]); } catch { /* A damaged line. */ }
    return { run: this.data.state.run, at, row, record, request: request ?? undefined, answer: answer ?? undefined, first: 0, surveyed: true };
  }

  /** @param {number} at @param {string} filter @param {boolean} back @param {AbortSignal} [signal] @param {() => void} [onStep] */
  async seek(at, filter, back, signal, onStep) {
    for (;;) {
      const list = this.list(filter);
      let index = list ? list.index(back ? at : at + 1) - (back ? 1 : 0) : -1;
      while (list?.gaps.has(list.matches[index])) index += back ? -1 : 1;
      if (!list || list.scanned >= this.total || list.scanned > at && (back || index < list.matches.length)) return list?.matches[index] ?? -1;
      // The page is drawn between two steps.
      onStep?.();
      await new Promise((done) => setTimeout(done));
      if (signal?.aborted) return -1;
    }
  }

  async sessions() { return this.data.sessions; }
  async findings() { return this.data.findings; }
  async measures() { return this.data.measures; }
  /** @param {string} filter */
  async conversations(filter) {
    const list = this.list(filter);
    if (!list) return this.data.conversations;
    const matches = new Set(list.matches);
    const conversations = this.data.conversations.conversations.map((/** @type {any} */ talk) => (
      { ...talk, found: this.positions(talk.conversation).filter((at) => this.isFound(at, matches)).length }));
    return { ...this.data.conversations, scanned: list.scanned, conversations };
  }

  /**
   * The messages of a conversation.
   * @param {number} conversation
   * @returns {number[]}
   */
  positions(conversation) { return this.data.messages[conversation] ?? []; }

  /**
   * The other records of a message that say what became of it.
   * @param {number} at
   * @returns {number[]}
   */
  others(at) { return this.data.others[at] ?? []; }

  /** @param {number} at the position of a message @param {Set<number>} matches */
  isFound(at, matches) { return matches.has(at) || this.others(at).some((other) => matches.has(other)); }

  /** @param {number} conversation @param {number | undefined} before @param {string} filter */
  async messages(conversation, before, filter) {
    const list = this.list(filter);
    const matches = list && new Set(list.matches);
    const positions = this.positions(conversation).filter((at) => !matches || this.isFound(at, matches));
    const end = Math.min(before ?? positions.length, positions.length);
    const from = Math.max(0, end - 200);
    const messages = [];
    for (const at of positions.slice(from, end)) {
      // A damaged line is no message.
      try { messages.push({ at, record: JSON.parse(this.lines[at]), others: this.others(at).map((other) => JSON.parse(this.lines[other])) }); } catch { continue; }
    }
    return { conversation, items: positions.length, from, messages };
  }
}

fileSources.open = async (base64) => {
  const source = new FileSource(base64);
  await source.load();
  return source;
};

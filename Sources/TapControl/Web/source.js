// Where records come from: a server, which is asked for rows, or the page itself, if it is a file.

/**
 * @typedef {Record<string, any[]>} Columns
 * @typedef {{ run: string, first: number, end: number, start: number, scanned?: number, begin?: number, total?: number } & Columns} Rows
 */

/** An error answer. */
export class Refusal extends Error {
  /**
   * @param {any} problem
   * @param {number} status
   */
  constructor(problem, status) {
    super(problem.detail ?? `status ${status}`);
    this.code = problem.code ?? "";
    this.column = problem.column ?? 0;
    this.status = status;
  }
}

/** No answer, or none that can be read: xmpptap has ended, or the connection is lost. */
export class Unreachable extends Error {}

/** The token of the run: from the fragment of the address, which is cleared, or from an earlier load of this page. */
function takeToken() {
  const found = /(?:^#|&)token=([0-9a-zA-Z_-]+)/.exec(location.hash);
  if (found) {
    sessionStorage.setItem("xmpptap.token", found[1]);
    const rest = location.hash.slice(1).split("&").filter((part) => !part.startsWith("token=")).join("&");
    history.replaceState(null, "", location.pathname + (rest ? `#${rest}` : ""));
    return found[1];
  }
  return sessionStorage.getItem("xmpptap.token") ?? "";
}

/** Data from the program that serves this page. */
export class ServerSource {
  constructor() {
    this.token = takeToken();
    this.isFile = false;
  }

  get isReady() { return this.token !== ""; }

  /**
   * @param {string} path
   * @param {Record<string, any>} [query]
   * @param {AbortSignal} [signal]
   */
  async ask(path, query = {}, signal) {
    // URLSearchParams writes a space as "+", which is a plus sign in the server's reading.
    const text = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "")
      .map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`).join("&");
    let answer;
    let body;
    try {
      answer = await fetch(`/page/${path}${text ? `?${text}` : ""}`, {
        headers: { Authorization: `Bearer ${this.token}` },
        cache: "no-store",
        credentials: "omit",
        signal,
      });
      body = await answer.json();
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new Unreachable(String(error));
    }
    if (!answer.ok) throw new Refusal(body, answer.status);
    return body;
  }

  state() { return this.ask("state"); }

  /**
   * @param {Record<string, any>} query
   * @param {AbortSignal} [signal]
   * @returns {Promise<any>}
   */
  rows(query, signal) { return this.ask("rows", query, signal); }

  /** @param {number} at */
  record(at) { return this.ask("record", { at }); }

  /**
   * The next match of a filter after a record, or before it; -1 if there is none.
   * @param {number} at @param {string} filter @param {boolean} back @param {AbortSignal} [signal]
   */
  async seek(at, filter, back, signal) {
    for (;;) {
      const found = await this.ask("seek", { at, filter, back: back ? 1 : 0 }, signal);
      if (found.at >= 0 || found.done) return found.at;
    }
  }

  sessions() { return this.ask("sessions"); }
  findings() { return this.ask("findings"); }
  measures() { return this.ask("measures"); }
  conversations() { return this.ask("conversations"); }

  /**
   * @param {number} conversation
   * @param {number | undefined} before
   */
  messages(conversation, before) { return this.ask("messages", { conversation, before, count: 200 }); }
}

/**
 * Decompresses the data of a page that is a file.
 * @param {string} base64
 */
async function unpacked(base64) {
  const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new (/** @type {any} */ (globalThis)).DecompressionStream("gzip"));
  return await new Response(stream).text();
}

/** Data that is a part of this page. There is no server, so filters are reduced to a few conditions. */
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
    this.filtered = { text: "", list: /** @type {number[]} */ ([]) };
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

  /**
   * The records that match a reduced filter.
   * @param {string} text
   */
  matches(text) {
    if (!text.trim()) return null;
    if (this.filtered.text === text) return this.filtered.list;
    const test = reducedFilter(text);
    const list = [];
    for (let index = 0; index < this.total; index++) if (test(this.data.rows, index, this.lines)) list.push(index);
    this.filtered = { text, list };
    return list;
  }

  /** @param {Record<string, any>} query */
  async rows(query) {
    const list = this.matches(query.filter ?? "");
    const end = list ? list.length : this.total;
    if (query.known !== undefined && query.known >= end && query.wait) await new Promise((done) => setTimeout(done, 20000));
    let from = query.from ?? 0;
    const count = Math.min(query.count ?? 200, 2000);
    if (query.around !== undefined) {
      const index = list ? list.findIndex((at) => at >= query.around) : query.around;
      from = (index < 0 ? end : index) - Math.floor(count / 2);
    } else if (from < 0) {
      from += end;
    }
    from = Math.min(Math.max(0, from), end);
    const chosen = list ? list.slice(from, from + count) : null;
    /** @type {any} */
    const answer = { run: this.data.state.run, first: 0, end, start: from };
    if (list) Object.assign(answer, { scanned: this.total, total: this.total, begin: 0 });
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

  /**
   * @param {number} at
   * @param {string} filter
   * @param {boolean} back
   */
  async seek(at, filter, back) {
    const list = this.matches(filter) ?? [];
    if (back) return list[list.findIndex((found) => found >= at) - 1] ?? (list.length && list[list.length - 1] < at ? list[list.length - 1] : -1);
    return list.find((found) => found > at) ?? -1;
  }

  async sessions() { return this.data.sessions; }
  async findings() { return this.data.findings; }
  async measures() { return this.data.measures; }
  async conversations() { return this.data.conversations; }

  /**
   * @param {number} conversation
   * @param {number | undefined} before
   */
  async messages(conversation, before) {
    const positions = this.data.messages[conversation] ?? [];
    const end = Math.min(before ?? positions.length, positions.length);
    const from = Math.max(0, end - 200);
    const messages = positions.slice(from, end).map((/** @type {number} */ at) => ({ at, record: JSON.parse(this.lines[at]) }));
    return { conversation, items: positions.length, from, messages };
  }
}

/**
 * The filter of a page that is a file: all words must match. `session:3`, `send`, `recv`, `message`, `presence`, `iq`,
 * `error`, `code:NAME`, `type:NAME`, and any text; `not` before a word excludes it.
 * @param {string} text
 */
export function reducedFilter(text) {
  const words = [...text.matchAll(/(\w+:)?(?:"([^"]*)"|'([^']*)')|(\S+)/g)].map((found) => ({
    text: ((found[1] ?? "") + (found[2] ?? found[3] ?? found[4] ?? "")).toLowerCase(),
    isQuoted: found[4] === undefined && found[1] === undefined,
  }));
  /** @type {((rows: Columns, index: number, lines: string[]) => boolean)[]} */
  const tests = [];
  let isNot = false;
  for (const word of words) {
    if (!word.isQuoted && word.text === "and") continue;
    if (!word.isQuoted && word.text === "not") {
      isNot = !isNot;
      continue;
    }
    const test = reducedTest(word.text, word.isQuoted);
    const isNegated = isNot;
    isNot = false;
    tests.push((rows, index, lines) => test(rows, index, lines) !== isNegated);
  }
  return (/** @type {Columns} */ rows, /** @type {number} */ index, /** @type {string[]} */ lines) =>
    tests.every((test) => test(rows, index, lines));
}

/**
 * @param {string} word
 * @param {boolean} isQuoted
 * @returns {(rows: Columns, index: number, lines: string[]) => boolean}
 */
function reducedTest(word, isQuoted) {
  if (!isQuoted) {
    const [, name, value] = /^(session|type|code|level|payload|jid|with|body|xml):(.+)$/.exec(word) ?? [];
    if (name === "session") return (rows, index) => String(rows.session[index]) === value;
    if (name === "type") return (rows, index) => rows.type[index] === value;
    if (name === "code") return (rows, index) => rows.code[index] === value;
    if (name === "payload") return (rows, index) => rows.payload[index].toLowerCase().includes(value);
    if (name === "level") {
      const level = ["off", "error", "warn", "info", "verbose", "trace"].indexOf(value);
      return (rows, index) => rows.level[index] <= level;
    }
    if (name === "body") return (rows, index, lines) => rows.body[index] === 1 && lines[index].toLowerCase().includes(value);
    if (name === "xml") return (_, index, lines) => lines[index].toLowerCase().includes(value);
    if (name) return (rows, index) => rows.from[index].includes(value) || rows.to[index].includes(value);
    if (word === "send") return (rows, index) => rows.direction[index] === 1;
    if (word === "recv") return (rows, index) => rows.direction[index] === 2;
    if (word === "error") return (rows, index) => rows.level[index] <= 1 || rows.type[index] === "error";
    if (["message", "presence", "iq"].includes(word)) {
      return (rows, index) => rows.kind[index] === "stanza" && rows.name[index] === word;
    }
  }
  return (_, index, lines) => lines[index].toLowerCase().includes(word);
}

/**
 * The source of this page.
 * @returns {Promise<ServerSource | FileSource>}
 */
export async function openSource() {
  const data = document.getElementById("data");
  if (!data) return new ServerSource();
  const source = new FileSource(data.textContent ?? "");
  await source.load();
  return source;
}

// Where records come from: a server, which is asked for rows, or the page itself, if it is a file.

/**
 * @typedef {Record<string, any[]>} Columns
 * @typedef {{ run: string, first: number, end: number, start: number, scanned?: number, begin?: number, total?: number } & Columns} Rows
 */

/** An error answer. */
export class Refusal extends Error {
  /** @param {any} problem @param {number} status */
  constructor(problem, status) {
    super(problem.detail ?? `status ${status}`);
    /** All fields of the answer. */
    this.problem = problem;
    this.code = problem.code ?? "";
    this.column = problem.column ?? 0;
    this.status = status;
  }
}

/** No answer, or none that can be read: xmpptap has ended, or the connection is lost. */
export class Unreachable extends Error {}

/** The answer is that of another run than the one that the page shows. */
export class OtherRun extends Error {
  constructor() { super("xmpptap was started again; choose “Show the new run” first"); }
}

/** The token of the run: from the fragment of the address, which is cleared, or from an earlier load of this page. */
function readToken() {
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
    this.token = readToken();
    this.isFile = false;
    /** The run whose records the page shows; empty until the first answer. */
    this.run = "";
    /** The run that answers. */
    this.answering = "";
  }

  /** Takes the token of the address, if it has one that is new; returns whether it has. */
  takeToken() {
    if (!/(^#|&)token=/.test(location.hash)) return false;
    const before = this.token;
    this.token = readToken();
    // Until the first answer it is unknown which run it is.
    if (this.token !== before) this.answering = "";
    return true;
  }

  /** Accepts the answers of the run that answers now. */
  acceptRun() { this.run = this.answering; }

  get isReady() { return this.token !== ""; }

  /** @param {string} path @param {Record<string, any>} [query] @param {AbortSignal} [signal] */
  async ask(path, query = {}, signal) {
    // URLSearchParams writes a space as "+", which is a plus sign in the server's reading.
    const text = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "")
      .map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`).join("&");
    return this.request("GET", `/page/${path}${text ? `?${text}` : ""}`, undefined, signal);
  }

  /**
   * Sends a request and returns its answer; null if that has no content.
   * @param {string} method
   * @param {string} address
   * @param {any} [body] is sent as JSON
   * @param {AbortSignal} [signal]
   * @param {boolean} [outlivesPage] whether the request is sent even if the page is being closed
   */
  async request(method, address, body, signal, outlivesPage = false) {
    // Sessions of another run have the same numbers: nothing that was meant for one may act on the other.
    if (method !== "GET" && this.run !== this.answering && !outlivesPage) throw new OtherRun();
    let answer;
    let result = null;
    try {
      answer = await fetch(address, {
        method,
        headers: { Authorization: `Bearer ${this.token}`, ...(method === "GET" ? {} : { "Content-Type": "application/json" }) },
        body: body === undefined ? undefined : JSON.stringify(body),
        cache: "no-store",
        credentials: "omit",
        keepalive: outlivesPage,
        signal,
      });
      if (answer.status !== 204) result = await answer.json();
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new Unreachable(String(error));
    }
    if (!answer.ok) throw new Refusal(result, answer.status);
    if (typeof result?.run !== "string") return result;
    this.answering = result.run;
    this.run ||= result.run;
    if (result.run !== this.run) throw new OtherRun();
    return result;
  }

  state() { return this.ask("state"); }

  /** @param {Record<string, any>} query @param {AbortSignal} [signal] @returns {Promise<any>} */
  rows(query, signal) { return this.ask("rows", query, signal); }

  /** @param {number} at */
  record(at) { return this.ask("record", { at }); }

  /**
   * The next match of a filter after a record, or before it; -1 if there is none.
   * @param {number} at @param {string} filter @param {boolean} back @param {AbortSignal} [signal]
   * @param {() => void} [onStep] is called when the search takes more than one answer
   */
  async seek(at, filter, back, signal, onStep) {
    for (;;) {
      const found = await this.ask("seek", { at, filter, back: back ? 1 : 0 }, signal);
      if (found.at >= 0 || found.done) return found.at;
      onStep?.();
    }
  }

  sessions() { return this.ask("sessions"); }
  findings() { return this.ask("findings"); }
  measures() { return this.ask("measures"); }
  /** @param {string} filter the messages to count in each conversation; empty for none */
  conversations(filter) { return this.ask("conversations", { filter }); }

  /** @param {number} conversation @param {number | undefined} before @param {string} filter the messages to return; empty for all */
  messages(conversation, before, filter) { return this.ask("messages", { conversation, before, count: 200, filter }); }
}

/**
 * Makes the source of a page that is a file. Only such a page has the script that sets it.
 * @type {{ open: ((base64: string) => Promise<any>) | null }}
 */
export const fileSources = { open: null };

/**
 * The source of this page.
 * @returns {Promise<any>}
 */
export async function openSource() {
  const data = document.getElementById("data");
  return data && fileSources.open ? await fileSources.open(data.textContent ?? "") : new ServerSource();
}

// Stand-ins for the browser and the server, so that tests of scripts decide when an answer arrives and what the time is.

/** The part of a document that scripts without elements need. */
export class FakeDocument {
  hidden = false;
  listeners = [];

  addEventListener(type, listener, options) { this.listeners.push({ type, listener, once: options?.once }); }

  /** Hides the page, or shows it again. */
  hide(isHidden) {
    this.hidden = isHidden;
    const called = this.listeners.filter((entry) => entry.type === "visibilitychange");
    this.listeners = this.listeners.filter((entry) => !(entry.type === "visibilitychange" && entry.once));
    for (const { listener } of called) listener();
  }
}

/** A clock that stands still until a test advances it. */
export class FakeClock {
  now = 1_000_000;
  timers = [];

  install() {
    Date.now = () => this.now;
    globalThis.setTimeout = (done, wait = 0) => {
      const timer = { done, at: this.now + wait };
      this.timers.push(timer);
      return timer;
    };
    globalThis.clearTimeout = (timer) => { this.timers = this.timers.filter((other) => other !== timer); };
  }

  /** Lets the scripts run, and then the timers that are due within a time. */
  async advance(milliseconds = 0) {
    const end = this.now + milliseconds;
    for (;;) {
      await settle();
      const next = this.timers.filter((timer) => timer.at <= end).sort((a, b) => a.at - b.at)[0];
      if (!next) break;
      this.timers = this.timers.filter((timer) => timer !== next);
      this.now = Math.max(this.now, next.at);
      next.done();
    }
    this.now = end;
  }
}

/** Lets all promises that are resolved call their functions. */
export async function settle() {
  for (let turn = 0; turn < 5; turn++) await new Promise((done) => setImmediate(done));
}

/** A source whose answers the test gives. */
export class FakeSource {
  isFile = false;
  /** Requests without an answer. */
  waiting = [];
  count = 0;

  rows(query, signal) {
    this.count += 1;
    return new Promise((answer, fail) => {
      const request = { query, signal, isAborted: false };
      request.answer = (rows) => { this.#end(request); answer(rows); };
      request.fail = (error) => { this.#end(request); fail(error); };
      // An answer can arrive after its request was aborted, so the request stays answerable.
      signal?.addEventListener("abort", () => {
        request.isAborted = true;
        this.#end(request);
        if (!this.answersAborted) fail(new DOMException("aborted", "AbortError"));
      });
      this.waiting.push(request);
    });
  }

  #end(request) { this.waiting = this.waiting.filter((other) => other !== request); }

  /** The only request of polling. */
  get poll() {
    const polls = this.waiting.filter((request) => request.query.from < 0);
    if (polls.length !== 1) throw new Error(`${polls.length} requests of polling`);
    return polls[0];
  }

  /** The other requests. */
  get fetches() { return this.waiting.filter((request) => !(request.query.from < 0)); }
}

/** An answer with the rows `start..<start + count` of a list; `at` gives the position of a row. */
export function answer(fields, start, count, at = (index) => index) {
  const indices = Array.from({ length: count }, (_, place) => start + place);
  return { run: "r1", first: 0, ...fields, start, at: indices.map(at), name: indices.map((index) => `${fields.name ?? "n"}${index}`) };
}

// Tests of the rows that the page keeps, and of its selection: answers arrive late, lists begin again, requests fail.
import assert from "node:assert/strict";
import { FakeClock, FakeDocument, FakeSource, answer, settle } from "./support.mjs";

export async function test(load) {
  const page = globalThis.document = new FakeDocument();
  const clock = new FakeClock();
  const real = { setTimeout: globalThis.setTimeout, clearTimeout: globalThis.clearTimeout, now: Date.now };
  clock.install();
  const { drawGap, RowStore } = await load("rows.js");
  const { placesOf, topBefore } = await load("virtual.js");
  const { Cursor } = await load("cursor.js");
  const { Refusal } = await load("source.js");

  /** A store with a list of 1,000 rows, the last 200 of which are there. */
  async function opened(fields = {}) {
    const source = new FakeSource();
    const log = [];
    const store = new RowStore(source, {
      onChange: () => log.push(store.isFresh ? "fresh" : "change"),
      onFault: (error, isOfRows) => { if (error || isOfRows) log.push(error ? `${isOfRows ? "rows" : "list"}: ${error.message}` : "rows again"); },
      onNewRun: () => log.push("new run"), onForget: () => log.push("forget"),
    });
    store.start();
    source.poll.answer(answer({ end: 1000, ...fields }, 800, 200));
    await clock.advance(100);
    assert.equal(store.row(999).name, "n999");
    return { store, source, log };
  }

  const tests = {
    async "an answer for an old filter is dropped"() {
      const { store, source } = await opened();
      store.need(0, 20);
      const [early] = source.fetches;
      source.answersAborted = true;
      store.setFilter("message");
      assert.ok(early.isAborted);
      // The rows of the old filter are still on screen, and more of them are needed.
      store.need(200, 220);
      const [late] = source.fetches;
      assert.deepEqual(late.query, { from: 200, count: 200, list: undefined, filter: "" });
      const finding = store.find(300);
      const [found] = source.fetches.filter((request) => request.query.around !== undefined);
      source.poll.answer(answer({ end: 500, scanned: 1000, total: 1000, name: "message" }, 300, 200));
      await settle();
      assert.equal(store.filter, "message");
      for (const request of [early, late]) request.answer(answer({ end: 1000, name: "old" }, request.query.from, 200));
      found.answer(answer({ end: 1000, name: "old" }, 299, 2));
      assert.equal(await finding, null);
      await settle();
      assert.deepEqual([store.row(0), store.row(210), store.row(299), store.row(300).name, store.end], [null, null, null, "message300", 500]);
    },

    async "a list that grows by more rows than an answer has is asked for less often"() {
      const { source } = await opened();
      source.poll.answer(answer({ end: 1200 }, 1000, 200));
      await clock.advance(100);
      assert.equal(source.poll.query.known, 1200);
      source.poll.answer(answer({ end: 1401 }, 1201, 200));
      await clock.advance(100);
      assert.throws(() => source.poll, /^Error: 0 requests/);
      await clock.advance(150);
      assert.equal(source.poll.query.known, 1401);
    },

    async "rows that the server has dropped are not asked for again"() {
      const { store, source } = await opened();
      store.need(0, 60);
      source.fetches[0].answer(answer({ first: 50, end: 1010 }, 50, 150));
      await settle();
      assert.deepEqual([store.row(49), store.row(50).name], [null, "n50"]);
      store.need(0, 60);
      assert.equal(source.fetches.length, 0);
      // Rows stay readable after the server has dropped them.
      source.poll.answer(answer({ first: 400, end: 1400 }, 1200, 200));
      await settle();
      assert.deepEqual([store.first, store.row(60).name, store.row(1399).name], [400, "n60", "n1399"]);
      store.need(0, 450);
      assert.deepEqual(source.fetches.map((request) => request.query.from), [400]);
    },

    async "an answer with a part of a block is completed, not asked for again"() {
      const { store, source } = await opened();
      store.need(0, 100);
      source.fetches[0].answer(answer({ end: 1000 }, 0, 30));
      await settle();
      store.need(0, 100);
      assert.deepEqual([source.fetches[0].query.from, source.fetches[0].query.count], [30, 170]);
      source.fetches[0].answer(answer({ end: 1000 }, 30, 170));
      await settle();
      assert.deepEqual([store.row(29).at, store.row(30).at, store.row(199).at], [29, 30, 199]);
      store.need(0, 100);
      assert.equal(source.fetches.length, 0);
    },

    async "rows of a list that has begun again are forgotten"() {
      const { store, source, log } = await opened({ list: 7 });
      assert.equal(source.poll.query.list, 7);
      log.length = 0;
      source.poll.answer(answer({ list: 8, end: 300, name: "new" }, 100, 200));
      await settle();
      assert.deepEqual(log, ["forget", "fresh"]);
      assert.deepEqual([store.row(999), store.row(299).name, store.end, store.list], [null, "new299", 300, 8]);
      await clock.advance(100);
      // Another answer reports it first: it is dropped, and the list is asked for at once.
      store.need(0, 20);
      assert.equal(source.fetches[0].query.list, 8);
      source.fetches[0].answer(answer({ list: 9, end: 300, name: "newer" }, 0, 100));
      await settle();
      assert.equal(store.row(0), null);
      assert.equal(source.poll.query.known, undefined);
      source.poll.answer(answer({ list: 9, end: 310, name: "newer" }, 110, 200));
      await settle();
      assert.deepEqual([store.row(309).name, store.row(250).name, store.row(105)], ["newer309", "newer250", null]);
    },

    async "a list without a number that becomes shorter has begun again"() {
      const { store, source, log } = await opened();
      log.length = 0;
      source.poll.answer(answer({ end: 40, name: "new" }, 0, 40));
      await settle();
      assert.deepEqual(log, ["forget", "fresh"]);
      assert.deepEqual([store.row(999), store.row(39).name, store.row(40), store.end], [null, "new39", null, 40]);
    },

    async "a new run replaces all rows and keeps the filter"() {
      const { store, source, log } = await opened();
      store.setFilter("iq");
      source.poll.answer(answer({ end: 900, name: "iq" }, 700, 200));
      await clock.advance(100);
      log.length = 0;
      store.need(0, 20);
      const [late] = source.fetches;
      source.answersAborted = true;
      source.poll.answer(answer({ run: "r2", end: 1200, name: "second" }, 1000, 200));
      await settle();
      late.answer(answer({ end: 900 }, 0, 200));
      await settle();
      assert.deepEqual(log, ["new run", "fresh"]);
      assert.deepEqual([store.run, store.filter, store.row(0), store.row(850), store.row(1199).name], ["r2", "iq", null, null, "second1199"]);
    },

    async "a filter is applied although its first request fails"() {
      const { store, source, log } = await opened();
      log.length = 0;
      store.setFilter("presence");
      source.poll.fail(new Error("no connection"));
      await clock.advance(500);
      assert.equal(source.poll.query.known, undefined);
      source.poll.answer(answer({ end: 20, name: "presence" }, 0, 20));
      await settle();
      assert.deepEqual(log, ["list: no connection", "fresh"]);
      assert.deepEqual([store.filter, store.row(999), store.row(19).name], ["presence", null, "presence19"]);
    },

    async "a wrong filter ends polling and keeps the rows"() {
      const { store, source } = await opened();
      store.setFilter("mesage");
      source.poll.fail(new Refusal({ detail: "unknown", code: "invalid-filter", column: 1 }, 422));
      await clock.advance(60_000);
      assert.deepEqual([source.waiting.length, store.isSettled, store.row(999).name], [0, false, "n999"]);
    },

    async "requests that fail are repeated later and later, and not for ever"() {
      const { store, source, log } = await opened();
      source.poll.answer(answer({ end: 1000 }, 1000, 0));
      await clock.advance(100);
      log.length = 0;
      const before = source.count;
      const times = [];
      const view = () => store.need(0, 20);
      store.events.onChange = view;
      view();
      for (let turn = 0; turn < 3000; turn++) {
        for (const request of source.fetches) { times.push(clock.now); request.fail(new Error("status 500")); }
        await clock.advance(10);
      }
      assert.equal(times.length, 6);
      assert.ok(times.every((time, index) => index < 2 || time - times[index - 1] > times[index - 1] - times[index - 2]), `${times}`);
      assert.deepEqual([source.count - before, log, store.isStuck], [6, ["rows: status 500"], true]);
      // The user scrolls: one more attempt, which succeeds.
      store.need(200, 220);
      assert.equal(source.fetches.length, 1);
      source.fetches[0].answer(answer({ end: 1000 }, 200, 200));
      await settle();
      assert.deepEqual([store.isStuck, store.row(200).name, log.at(-1)], [false, "n200", "rows again"]);
    },

    async "a hidden page has no request"() {
      const { store, source } = await opened();
      store.need(0, 20);
      assert.equal(source.waiting.length, 2);
      page.hide(true);
      await clock.advance(60_000);
      store.need(0, 20);
      assert.equal(source.waiting.length, 0);
      page.hide(false);
      await settle();
      // The first answer does not wait for new rows.
      assert.equal(source.poll.query.known, undefined);
      source.poll.answer(answer({ end: 1001 }, 801, 200));
      await settle();
      assert.deepEqual([store.row(900).name, store.row(1000).name], ["n900", "n1000"]);
      store.stop();
      assert.equal(source.waiting.length, 0);
    },

    async "views ask again after a time, but not while the page is hidden"() {
      const { callLater } = await load("dom.js");
      const calls = [];
      callLater(100, () => calls.push("one"));
      const giveUp = callLater(100, () => calls.push("two"));
      callLater(300, () => calls.push("three"));
      await clock.advance(99);
      giveUp();
      await clock.advance(1);
      assert.deepEqual(calls, ["one"]);
      page.hide(true);
      const late = callLater(100, () => calls.push("four"));
      await clock.advance(1000);
      late();
      assert.deepEqual(calls, ["one"]);
      page.hide(false);
      assert.deepEqual(calls, ["one", "three"]);
      page.hide(true);
      page.hide(false);
      assert.deepEqual(calls, ["one", "three"]);
    },

    async "a page that is a file is asked until its search has ended"() {
      const source = Object.assign(new FakeSource(), { isFile: true });
      const store = new RowStore(source, { onChange() {}, onFault() {} });
      store.start();
      source.poll.answer(answer({ end: 100, scanned: 500, total: 1000 }, 0, 100));
      await clock.advance(20);
      source.poll.answer(answer({ end: 150, scanned: 1000, total: 1000 }, 0, 150));
      await clock.advance(60_000);
      assert.deepEqual([source.waiting.length, store.end], [0, 150]);
    },

    async "a long idle time before a row is known as soon as both rows are there"() {
      const source = new FakeSource();
      const store = new RowStore(source, { onChange() {}, onFault() {} });
      store.start();
      // Rows 390 to 399 come 4 min 12 s late; a time that goes back, or is missing, is no idle time.
      const times = (start, count) => Array.from({ length: count }, (_, place) => start + place).map((index) => (index === 395 ? 0 : index === 398 ? 1e6 : 1e12 + index * 1e6 + (index >= 390 ? 252e6 : 0)));
      source.poll.answer({ ...answer({ end: 400 }, 390, 10), time: times(390, 10) });
      await settle();
      assert.deepEqual([390, 391, 395, 396, 397, 398].map((index) => store.idle(index)), [0, 0, 0, 0, 0, 0]);
      store.need(380, 400);
      source.fetches[0].answer({ ...answer({ end: 400 }, 200, 200), time: times(200, 200) });
      await settle();
      assert.deepEqual([389, 390, 391].map((index) => [store.idle(index), store.gap(index) > 0]), [[0, false], [253e6, true], [0, false]]);
      const node = { dataset: {} };
      assert.deepEqual([drawGap(node, store.idle(390), "records"), node.dataset.gap], [" pause", "4 min 13 s without records"]);
      assert.deepEqual([drawGap(node, store.idle(391), "records"), node.dataset.gap], ["", ""]);
    },

    async "rows have their places with gaps above some of them"() {
      const heightOf = (index) => (index % 10 === 0 ? 40 : 22);
      // Whichever row is at the lower edge, it ends there, and a row is moved by what was scrolled.
      for (const end of [57, 60, 61, 62, 100]) {
        for (const height of [300, 301, 17.5]) {
          const top = topBefore(0, end, height, heightOf);
          const places = placesOf(top, end, height, heightOf);
          assert.ok(Math.abs(places.at(-1) - height) < 1e-6, `${end} ${height}: ${places.at(-1)}`);
          assert.equal(places.length - 1, end - Math.floor(top));
        }
      }
      assert.deepEqual([topBefore(0, 5, 300, heightOf), topBefore(3, 5, 300, heightOf), topBefore(0, 0, 300, heightOf)], [0, 3, 0]);
      assert.deepEqual(placesOf(19, 100, 60, heightOf), [0, 22, 62]);
      assert.deepEqual(placesOf(20.5, 100, 60, heightOf), [-20, 20, 42, 64]);
      assert.deepEqual(placesOf(98.5, 100, 60, heightOf), [-11, 11, 33]);
      assert.deepEqual(placesOf(100, 100, 60, heightOf), [0]);
    },

    // The selection.

    async "a record is not called hidden before the search has passed it"() {
      const { store, source, cursor, chosen } = await withCursor(opened);
      store.setFilter("message");
      const result = cursor.selectAt(700);
      assert.equal(source.fetches.length, 0);
      source.poll.answer(answer({ end: 10, scanned: 500, total: 1000 }, 0, 10, (index) => index * 10));
      await settle();
      source.fetches[0].answer(answer({ end: 10, scanned: 500, total: 1000 }, 9, 1, (index) => index * 10));
      await clock.advance(20);
      assert.deepEqual(chosen, []);
      source.poll.answer(answer({ end: 80, scanned: 1000, total: 1000 }, 0, 80, (index) => index * 10));
      await settle();
      // One request is for the record, one for the place that stays in view.
      for (const request of source.fetches) request.answer(answer({ end: 80, scanned: 1000, total: 1000 }, 69, 2, (index) => index * 10));
      await settle();
      assert.equal(await result, true);
      assert.deepEqual(chosen, [700]);
      assert.equal(cursor.list.selected, 70);
      // 705 is hidden by the filter.
      const other = cursor.selectAt(705);
      await settle();
      source.fetches[0].answer(answer({ end: 80, scanned: 1000, total: 1000 }, 70, 2, (index) => index * 10));
      assert.equal(await other, false);
    },

    async "a later selection ends the search for an earlier one"() {
      const { store, source, cursor, chosen } = await withCursor(opened);
      const result = cursor.selectAt(5);
      await settle();
      cursor.select(990);
      source.fetches[0].answer(answer({ end: 1000 }, 4, 2));
      assert.equal(await result, null);
      assert.deepEqual([chosen, cursor.list.selected], [[990], 990]);
      const second = cursor.selectAt(6);
      await settle();
      store.stop();
      source.fetches[0].fail(new DOMException("aborted", "AbortError"));
      await assert.rejects(second);
    },

    async "the place in view is kept when the list begins again"() {
      const { store, source, cursor } = await withCursor(opened, { list: 1 });
      const { list } = cursor;
      list.isFollowing = false;
      list.top = 850.5;
      cursor.scrolled();
      cursor.list.selected = 855;
      cursor.at = 855;
      source.poll.answer(answer({ list: 2, end: 500, scanned: 600, total: 1000 }, 300, 200, (index) => index + 100));
      await clock.advance(20);
      // The search has not passed the record: asking for its place would find another one.
      assert.equal(source.fetches.length, 0);
      source.poll.answer(answer({ list: 2, end: 900, scanned: 1000, total: 1000 }, 700, 200, (index) => index + 100));
      await settle();
      source.fetches[0].answer(answer({ list: 2, end: 900, scanned: 1000, total: 1000 }, 754, 2, (index) => index + 100));
      await settle();
      assert.deepEqual([list.top, list.selected], [750.5, 755]);
    },

    async "a row that is not there yet is selected when it arrives"() {
      const { source, cursor, chosen } = await withCursor(opened);
      cursor.select(3);
      assert.deepEqual(chosen, []);
      source.fetches[0].answer(answer({ end: 1000 }, 0, 200));
      await settle();
      assert.deepEqual(chosen, [3]);
      // No timer looks for the row.
      assert.equal(clock.timers.length, 0);
    },
  };

  async function withCursor(open, fields) {
    const found = await open(fields);
    const list = {
      first: 0, end: 1000, top: 800, height: 200, rowHeight: 10, selected: -1, isFollowing: true, page: 20,
      resize(first, end) { Object.assign(this, { first, end }); },
      reveal(index) { this.top = Math.max(0, index - 10); cursor.scrolled(); },
      show(top) { this.top = top; cursor.scrolled(); },
    };
    const chosen = [];
    const cursor = new Cursor(list, found.store, (row) => chosen.push(row.at));
    found.store.events.onChange = () => cursor.update(false);
    found.store.events.onForget = () => cursor.remember();
    return { ...found, cursor, chosen };
  }

  for (const [name, run] of Object.entries(tests)) {
    clock.timers = [];
    page.listeners = [];
    page.hidden = false;
    try { await run(); } catch (error) { error.message = `${name}: ${error.message}`; throw error; }
  }
  Object.assign(globalThis, { setTimeout: real.setTimeout, clearTimeout: real.clearTimeout });
  Date.now = real.now;
}

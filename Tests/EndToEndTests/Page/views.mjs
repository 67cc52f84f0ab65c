// Tests of views without a browser: which session they are about, and what they say.
import assert from "node:assert/strict";
import { installDocument } from "./elements.mjs";
import { settle } from "./support.mjs";

export async function test(load) {
  const document = installDocument();
  const { ActView } = await load("act.js");
  const { SessionsView } = await load("sessions.js");

  /** A session as the list of sessions has it. */
  const listed = (number, fields = {}) => ({
    session: number, jid: `user${number}@example.net/a`, state: "open", close_reason: "", began: number * 1e6, duration: 1, client_tls: "", server_tls: "", sent: 0,
    received: 0, errors: 0, slowest: 0, peers: 0, records: 1, line: [1], software: "", remote: "", server: "", first: number, ...fields,
  });

  /** The view that acts, and the requests that it has sent. */
  function acting() {
    const requests = [];
    const said = [];
    const source = { request: async (method, address, body) => { requests.push([method, address, body]); return { levels: {}, sessions: {}, level: "info", valid: true }; } };
    const view = new ActView(source, { node: document.createElement("section"), pauses: [], drawPauses() {}, soon() {} }, { say: (text) => said.push(text), filter() {}, fault() {} });
    return { view, requests, said };
  }
  const open = (number, phase = "ready") => ({ session: number, jid: `user${number}@example.net/a`, domain: "example.net", phase, level: null });

  const tests = {
    async "a chosen session that ends stays chosen, and nothing is sent to another one"() {
      const { view, requests, said } = acting();
      view.setSessions([open(1), open(2)]);
      assert.equal(view.number, 1);
      view.choose(2);
      view.inject.input.value = "<presence/>";
      const buttons = () => [view.inject.button, view.pings.button, view.hold.button, view.levels.one].map((node) => node.disabled);
      assert.deepEqual(buttons(), [false, false, false, false]);
      view.setSessions([open(1), open(3)]);
      assert.deepEqual([view.number, view.choice.value, view.session], [2, "2", undefined]);
      assert.equal(view.choice.children[0].textContent, "2 user2@example.net/a, ended");
      assert.equal(view.summary.textContent, "Session 2 has ended. Choose another one to act on.");
      assert.deepEqual(buttons(), [true, true, true, true]);
      // The key sends, too.
      await view.inject.send();
      await view.hold.hold();
      view.inject.copyCommand();
      assert.deepEqual(said, Array(3).fill("session 2 has ended: choose another one"));
      assert.deepEqual(requests, []);
      // All open sessions can still be held.
      view.hold.where.value = "all";
      view.hold.where.dispatch("change");
      assert.equal(view.hold.button.disabled, false);
      view.setSessions([]);
      assert.match(view.summary.textContent, /^Session 2 has ended\. No session is open/);
      view.setSessions([open(1), open(3)]);
      assert.equal(view.number, 2);
      view.choice.value = "3";
      view.choice.dispatch("change");
      assert.deepEqual([view.number, buttons()[0], view.session.session], [3, false, 3]);
      await view.inject.send();
      assert.deepEqual(requests.filter(([, address]) => address.endsWith("inject")), [["POST", "/sessions/3/inject", { to: "server", stanza: "<presence/>" }]]);
    },

    "only a session that is ready is chosen without the user"() {
      const { view } = acting();
      view.setSessions([open(4, "login")]);
      assert.deepEqual([view.number, view.inject.button.disabled], [0, true]);
      view.setSessions([open(4), open(5)]);
      assert.deepEqual([view.number, view.choice.value, view.inject.button.disabled], [4, "4", false]);
    },

    async "pings stop when their session ends, and begin again when another one is chosen"() {
      const { view, requests } = acting();
      view.setSessions([open(1), open(2)]);
      view.pings.isShown = true;
      view.pings.toggle();
      await settle();
      view.setSessions([open(2)]);
      clearTimeout(view.pings.giveUp?.());
      await view.pings.ping();
      view.pings.giveUp();
      assert.equal(view.pings.summary.textContent, "Nothing is pinged: session 1 has ended: choose another one.");
      assert.deepEqual([view.pings.button.textContent, view.pings.button.disabled], ["Stop", false]);
      assert.deepEqual(requests.map(([, address]) => address), ["/sessions/1/ping"]);
      view.choose(2);
      await settle();
      view.pings.toggle();
      assert.deepEqual(requests.map(([, address]) => address), ["/sessions/1/ping", "/sessions/2/ping"]);
    },

    async "the selected session stays selected when the list is sorted, searched, and gets new sessions"() {
      const opened = [];
      const answer = { run: "a", sessions: [listed(1), listed(2), listed(3)], surveyed: 3, end: 3, omitted: 0 };
      const view = new SessionsView({ isFile: true, sessions: async () => answer }, {
        records: (session) => opened.push(["records", session.session]), diagram: (session) => opened.push(["diagram", session.session]), test: (session) => opened.push(["test", session?.session]), changed() {},
      });
      view.list.height = 280;
      const key = (name) => view.key({ key: name });
      await view.refresh();
      key("Home");
      key("ArrowDown");
      assert.equal(view.selected.session, 2);
      // The newest first, and then a new session.
      view.sortBy(0);
      view.sortBy(0);
      view.sortBy(0);
      answer.sessions = [...answer.sessions, listed(4)];
      await view.refresh();
      assert.deepEqual([view.shown.map((session) => session.session), view.list.selected, view.selected.session], [[4, 3, 2, 1], 2, 2]);
      for (const name of ["d", "m", "Enter"]) key(name);
      assert.deepEqual(opened.splice(0), [["diagram", 2], ["test", 2], ["records", 2]]);
      // A search that hides it selects no other one.
      view.search.value = "user3";
      view.arrange();
      assert.deepEqual([view.shown.length, view.list.selected, view.selected], [1, -1, undefined]);
      key("d");
      key("Enter");
      assert.deepEqual(opened, []);
      view.search.value = "";
      view.arrange();
      assert.equal(view.selected.session, 2);
      key("ArrowDown");
      assert.equal(view.selected.session, 1);
      // A click acts on the session of the row that is seen, even if the order has changed since then.
      document.frame();
      const row = view.list.window.children.find((node) => node.session?.session === 4);
      view.isReversed = false;
      view.arrange();
      view.list.node.dispatch("click", { target: row });
      assert.deepEqual([opened.splice(0), view.selected.session, view.list.selected], [[["records", 4]], 4, 3]);
      // Another run counts its sessions anew.
      answer.run = "b";
      await view.refresh();
      assert.equal(view.selected, undefined);
    },
  };
  for (const [name, check] of Object.entries(tests)) {
    try { await check(); } catch (error) { error.message = `${name}: ${error.message}`; throw error; }
  }
}

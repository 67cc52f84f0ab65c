// Tests of views without a browser: which session they are about, and what they say.
import assert from "node:assert/strict";
import { installDocument } from "./elements.mjs";
import { settle } from "./support.mjs";

export async function test(load) {
  const document = installDocument();
  const { ActView } = await load("act.js");
  const { SessionsView } = await load("sessions.js");
  const { ConversationsView } = await load("conversations.js");
  const { curlCommand, Detail, factFilter, hexadecimal } = await load("detail.js");
  const { DiagramView } = await load("diagram.js");
  const { MeasuresView } = await load("measures.js");
  const { described, specification } = await load("namespaces.js");
  const { FileSource } = await load("filesource.js");
  const { FindingsView } = await load("findings.js");
  const { listStatus, RecordsList } = await load("records.js");
  const { clock, day, toggleZone } = await load("format.js");

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
  /** A store whose rows are all there. */
  const storeOf = (first, end, fields = {}) => ({
    first, end, total: end, begin: first, scanned: end, dropped: 0, gaps: 0, filter: "", isFresh: false, isOn: true, need() {}, gap: () => 0, idle: () => 0,
    row: (index) => (index >= first && index < end ? { index, at: index, number: index + 1, time: 1, session: 1, direction: 1, kind: "stanza", name: "iq", payload: "", trip: null, level: 3 } : null), ...fields,
  });

  Object.assign(tests, {
    "the status counts the rows below only when the height of the list is known"() {
      const statuses = [];
      const store = storeOf(0, 1281);
      const list = new RecordsList(store, { onSelect() {}, onOpen() {}, onScroll: () => statuses.push(listStatus(store, list.list)) });
      list.list.isFollowing = false;
      list.update();
      assert.equal(listStatus(store, list.list), "1\u202f281 records");
      Object.defineProperty(list.list.window, "clientHeight", { value: 440 });
      document.observers.at(-1)();
      assert.deepEqual(statuses, ["1\u202f281 records · 1\u202f261 below"]);
    },

    "the first kept row follows a line with the number of records that are no longer kept, and Home goes to it"() {
      const chosen = [];
      const store = storeOf(0, 1000);
      const list = new RecordsList(store, { onSelect: (row) => chosen.push(row.at), onOpen() {}, onScroll() {} });
      list.list.height = 440;
      list.list.isFollowing = false;
      list.update();
      // The list keeps the rows in view when the ring has dropped them.
      Object.assign(store, { first: 600, end: 1600, total: 1600 });
      list.update();
      assert.equal(list.list.first, 0);
      list.key({ key: "Home" });
      assert.deepEqual(chosen, [600]);
      Object.assign(store, { first: 700, dropped: 750 });
      list.update();
      list.key({ key: "g" });
      assert.deepEqual(chosen, [600, 750]);
      list.list.show(store.first);
      store.first = list.list.first = 750;
      list.list.show(750);
      list.list.drawNow();
      const [row] = list.list.window.children.filter((node) => !node.hidden && node.dataset.gap);
      assert.deepEqual([row.dataset.gap, row.className.includes("pause"), row.style.height], ["750 older records no longer kept", true, "40px"]);
      assert.deepEqual([list.gone(751), list.list.heightOf(751)], [0, 22]);
      // Of those, it is not known how many match a filter.
      Object.assign(store, { filter: "iq", first: 0, end: 3, total: 1600, scanned: 1600, begin: 750, gaps: 1 });
      list.list.first = 0;
      assert.deepEqual([list.gone(0), list.gone(1), listStatus(store, list.list).split(" · ").slice(0, 2)], [750, 0, ["2 of 850 records", "750 older ones are no longer kept"]]);
    },

    async "a page that is a file shows between matching records that some are missing"() {
      const source = new FileSource("");
      const kind = ["gap", "stanza", "gap", "gap", "stanza", "stanza", "gap"];
      const lines = kind.map((one, at) => JSON.stringify({ kind: one, name: at === 5 ? "iq" : "message" }));
      const rows = { at: kind.map((_, at) => at), kind, name: kind.map((one, at) => (at === 5 ? "iq" : "message")), level: kind.map((one) => (one === "gap" ? 2 : 3)) };
      Object.assign(source, { lines, total: kind.length, data: { rows, state: {} } });
      const answer = await source.rows({ filter: "message" });
      assert.deepEqual([answer.at, answer.gaps, answer.scanned], [[1, 2, 3, 4], 2, 7]);
      // They are no matches.
      assert.deepEqual([await source.seek(1, "message", false), await source.seek(4, "message", true)], [4, 1]);
    },

    "the causes of failed logins lead to their sessions"() {
      const opened = [];
      const view = new FindingsView({ isFile: true }, { filter() {}, go() {}, session: (number) => opened.push(number), logins: (cause) => opened.push(cause), fault() {} });
      const group = { level: 1, code: "login-failed", subject: "", cause: "wrong-password", filter: "", example: "", count: 9, sessions: 7, listed: [1, 3, 20_000_004], first: 0, last: 9 };
      view.draw({ findings: [group, { ...group, cause: undefined, code: "forbidden", sessions: 3 }], surveyed: 1, end: 1 });
      const cells = view.body.children.map((row) => row.children[2].textContent);
      assert.deepEqual(cells, ["1, 3, 2·4, 4 more", "1, 3, 2·4"]);
      assert.equal(view.body.children[0].children[3].textContent, "login failed: wrong-password");
      for (const text of ["3", "2·4", "4 more"]) view.body.children[0].button(text).dispatch("click");
      assert.deepEqual(opened, [3, 20_000_004, "wrong-password"]);
    },

    async "nothing of another run replaces what is shown, and nothing acts on it, before the user accepts it"() {
      const { OtherRun, ServerSource } = await load("source.js");
      const real = globalThis.fetch;
      let run = "a";
      const asked = [];
      globalThis.fetch = async (address, { method, headers }) => {
        asked.push(`${method} ${address} ${headers.Authorization}`);
        return { ok: true, status: 200, json: async () => (method === "GET" ? { run } : {}) };
      };
      Object.assign(globalThis, { location: { hash: "#token=one", pathname: "/" }, sessionStorage: { setItem() {}, getItem: () => null }, history: { replaceState() {} } });
      try {
        const source = new ServerSource();
        await source.state();
        await source.request("POST", "/sessions/1/inject", {});
        run = "b";
        await assert.rejects(source.state(), OtherRun);
        const count = asked.length;
        await assert.rejects(source.request("POST", "/sessions/1/inject", {}), OtherRun);
        assert.equal(asked.length, count);
        await assert.rejects(source.sessions(), OtherRun);
        // A page that is closed says so to whoever answers.
        await source.request("POST", "/page/closed", {}, undefined, true);
        globalThis.location.hash = "#view=records";
        assert.equal(source.takeToken(), false);
        globalThis.location.hash = "#token=two";
        assert.equal(source.takeToken(), true);
        source.acceptRun();
        await source.request("POST", "/sessions/1/inject", {});
        assert.equal((await source.sessions()).run, "b");
        assert.ok(asked.at(-1).endsWith("Bearer two"), asked.at(-1));
      } finally { globalThis.fetch = real; }
    },

    "the diagnosis names xmpptap, the other sides and nobody, and ends a sentence once"() {
      const view = new DiagramView({}, { select() {}, session() {}, records() {}, test() {}, fault() {} });
      const sentences = (failure) => {
        view.number = 1;
        view.setSessions([listed(1, { failure: { finding: "no mechanism", step: "sasl", at: 1, ...failure } })]);
        return view.diagnosis.all((node) => node.tagName === "P").map((node) => node.textContent);
      };
      assert.deepEqual(sentences({ side: "xmpptap", proxy: true }), ["The login failed at sasl: no mechanism.", "xmpptap is at fault."]);
      assert.deepEqual(sentences({ side: "server", rule: "RFC 6120 §6", proxy: false, finding: "encryption is required." }), ["The login failed at sasl: encryption is required.", "The server is at fault (RFC 6120 §6); xmpptap is not the cause."]);
      assert.equal(sentences({ side: "unknown" })[1], "The records do not show who is at fault.");
    },

    "all buttons of the details have a name that can be read out"() {
      const detail = new Detail({}, { go() {}, filter() {}, say() {}, session() {}, test() {}, close() {}, shown() {} });
      const row = { session: 20_000_003, text: "", time: 1 };
      detail.answer = { row: Object.fromEntries(Object.entries({ ...row, direction: 1, kind: "stanza", name: "iq", number: 1, payload: "" }).map(([name, value]) => [name, [value]])), record: { id: "a", payload: "{constructor}query" } };
      detail.draw();
      const labels = detail.node.all((node) => node.tagName === "BUTTON").map((node) => node.getAttribute("aria-label")).filter(Boolean);
      assert.deepEqual(labels.slice(1), ["Only session:20000003", "Not session:20000003", "Only id a", "Not id a", "Only payload query", "Not payload query"]);
      assert.ok(!detail.node.textContent.includes("undefined"));
    },

    "the borders of reads and TLS records are those that were recorded, and are said to be unknown otherwise"() {
      const words = (record, session = {}, live = false) => {
        const events = { go() {}, filter() {}, say() {}, session() {}, test() {}, close() {}, shown() {}, find: () => session, state: () => ({ live }) };
        const detail = new Detail({}, events);
        detail.answer = { row: { session: [1] } };
        return detail.borders({ kind: "stanza", direction: "send", length: 40, xml: "<a/>", ...record }).map((line) => line.join(": "));
      };
      assert.deepEqual(words({ chunks: [7, 20] }, { borders: "reads" }), ["reads: the item arrived in 3 reads, split after 7, 20 bytes"]);
      assert.deepEqual(words({}, { borders: "reads" }), ["reads: the item arrived inside one read"]);
      assert.deepEqual(words({ chunks: [7], tls_records: [7, 9] }, { borders: "reads" }), ["reads: the item arrived in 2 reads, split after 7 bytes", "TLS records: the item arrived in 3 TLS records, split after 7, 9 bytes"]);
      assert.deepEqual(words({ tls_records: [] }, { borders: "segments" }), ["TLS records: the item arrived inside one TLS record"]);
      assert.deepEqual(words({ chunks: [3] }, { borders: "segments" }), ["TCP segments: the item arrived in 2 TCP segments, split after 3 bytes"]);
      // Of a log, or a capture of an older version in TLS, they are not known.
      assert.deepEqual(words({ chunks: [3] }, { borders: "missing" }), ["borders: the borders of reads and TLS records are not recorded"]);
      assert.deepEqual(words({}, { borders: "partial" }), ["reads: their borders are not recorded"]);
      assert.deepEqual(words({}, { borders: "partial" }, true), ["reads: the item arrived inside one read"]);
      assert.deepEqual(words({ jid: "a@b/c" }, { borders: "reads", client_tls: "TLS 1.3" }).at(-1), "TLS records: their borders are not recorded");
      for (const other of [{ origin: "tap" }, { truncated: true }, { kind: "torn" }, { kind: "bytes" }]) assert.deepEqual(words(other, { borders: "reads" }), []);
      const bytes = new TextEncoder().encode("<message><body>é</body></message>");
      assert.deepEqual(hexadecimal(bytes, new Map([[10, ["a read ends"]], [40, ["beyond"]]])).split("\n").map((line) => line.replace(/ +/g, " ")), [
        "0000 3c 6d 65 73 73 61 67 65 3e 3c <message><", "──── after 10 bytes: a read ends ────",
        "000a 62 6f 64 79 3e c3 a9 3c 2f 62 6f 64 79 3e 3c 2f body>..</body></", "001a 6d 65 73 73 61 67 65 3e message>"]);
    },

    "bytes in which secrets are replaced have no borders"() {
      const events = { go() {}, filter() {}, say() {}, session() {}, test() {}, close() {}, shown() {}, find: () => ({ borders: "reads" }) };
      const detail = new Detail({}, events);
      detail.answer = { row: { session: [1] } };
      const text = (record) => detail.drawBytes({ direction: "send", xml: "<auth>[redacted]</auth>", chunks: [4], ...record }).map((node) => node?.textContent ?? "").join("|");
      assert.match(text({ length: 23 }), /after 4 bytes: a read ends/);
      assert.match(text({ length: 60 }), /^(?!.*a read ends)[^]*secrets are replaced/);
    },

    "only facts that the filter language can express have a filter"() {
      const auth = { xml: "<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='SCRAM-SHA-1'>x</auth>" };
      assert.equal(factFilter(auth, "mechanism", "SCRAM-SHA-1"), "inspect:@mechanism=SCRAM-SHA-1");
      const challenge = { xml: "<challenge xmlns='urn:ietf:params:xml:ns:xmpp-sasl'>x</challenge>" };
      assert.equal(factFilter(challenge, "step", "challenge"), "element:{urn:ietf:params:xml:ns:xmpp-sasl}challenge");
      assert.equal(factFilter(auth, "user", "juliet"), undefined);
      assert.equal(factFilter({ xml: "<a xmlns='urn:xmpp:sm:3' h='5'/>" }, "h", "5"), "inspect:@h=5");
      assert.equal(factFilter({ xml: "<resume xmlns='urn:xmpp:sm:3' previd='[redacted:sm-id#1]'/>" }, "previd", "[redacted:sm-id#1]"), undefined);
      assert.equal(factFilter({}, "version", "TLS 1.3"), undefined);
    },

    "a request is copied only with a running proxy, and never has the token"() {
      globalThis.location = { origin: "http://127.0.0.1:5280" };
      const record = { kind: "stanza", session: 3, xml: "<message><body>it's</body></message>" };
      assert.equal(curlCommand(record, "client", { live: true, control: "/run/a b.sock", acts: true }),
        `printf %s '{"to":"client","stanza":"<message><body>it'\\''s</body></message>"}' | curl -sS --unix-socket '/run/a b.sock' --data-binary @- http://tap/sessions/3/inject`);
      assert.match(curlCommand(record, "server", { live: true, acts: true }), / \| curl .*"Authorization: Bearer \$XMPPTAP_TOKEN" .* 'http:\/\/127\.0\.0\.1:5280\/sessions\/3\/inject'$/);
      for (const state of [undefined, { live: false, control: "/a" }, { live: true }]) assert.equal(curlCommand(record, "server", state), undefined);
      assert.equal(curlCommand({ ...record, kind: "note" }, "server", { live: true, control: "/a" }), undefined);
      delete globalThis.location;
    },

    "the diagram shows the counts of both legs, and links the sessions of a resumption"() {
      const opened = [];
      const view = new DiagramView({}, { select() {}, session: (number) => opened.push(number), records() {}, test() {}, fault() {} });
      view.setSessions([listed(1), listed(2, { resumes: 1 })]);
      const links = (number) => {
        view.number = number;
        view.drawFacts();
        return view.names.all((node) => node.tagName === "BUTTON").map((node) => { node.dispatch("click"); return node.textContent; });
      };
      assert.deepEqual([links(1), links(2), opened.splice(0)], [["session 2"], ["session 1"], [2, 1]]);
      assert.match(view.names.textContent, /resumes session 1/);
      const sm = { from_client: 1200, to_server: 5, from_server: 3, to_client: 4 };
      const rows = [{ kind: "element", name: "a", direction: 2, leg: 2, text: "h=5", sm }, { kind: "session", code: "session-ready", direction: 0, name: "", text: "ready" }];
      view.store = storeOf(0, 2, { row: (index) => (rows[index] ? { index, at: index, time: 1, session: 2, payload: "", trip: null, level: 3, type: "", action: "", ...rows[index] } : null) });
      const draw = (index) => { const node = view.list.options.make(); view.draw(node, index); return node; };
      const answer = draw(0);
      assert.deepEqual([answer.leftLabel, answer.leftCounts, answer.rightCounts, answer.rightLabel].map((node) => node.textContent), ["", "→1\u202f200 ←4", "→5 ←3", "a h=5"]);
      assert.match(answer.left.title, /1\u202f200 from and 4 to the client, 5 to and 3 from the server/);
      const ready = draw(1);
      assert.deepEqual([ready.leftCounts.textContent, ready.words.textContent], ["", "session ready"]);
      assert.deepEqual([ready.link.textContent, ready.link.hidden, ready.across.hidden], ["go to session 1", false, false]);
      ready.link.dispatch("click", { stopPropagation() {} });
      assert.deepEqual(opened, [1]);
    },

    "a namespace with the name of a property of all objects is unknown"() {
      for (const name of ["constructor", "__proto__", "toString", "hasOwnProperty", "constructor#1"]) assert.deepEqual([specification(name), described(name)], [undefined, ""]);
      assert.deepEqual([described("urn:xmpp:ping"), described("urn:xmpp:omemo:1")], ["XEP-0199, ping", ""]);
    },

    async "a page that is a file has the records of a message that say what became of it, and finds them"() {
      const source = new FileSource("");
      const xml = (text) => `<message><body>${text}</body></message>`;
      const lines = [xml("one"), xml("two"), xml("TWO"), xml("three")].map((text, at) => JSON.stringify({ kind: "stanza", name: "message", xml: text, ...(at === 2 ? { action: "edited" } : {}) }));
      const rows = { at: [0, 1, 2, 3], kind: Array(4).fill("stanza"), name: Array(4).fill("message") };
      Object.assign(source, { lines, total: 4, data: { rows, state: {}, messages: [[0, 1, 3]], others: { 1: [2] }, conversations: { conversations: [{ conversation: 0 }] } } });
      const found = (await source.conversations("body:TWO")).conversations[0];
      assert.equal(found.found, 1);
      const { messages } = await source.messages(0, undefined, "action:edited");
      assert.deepEqual(messages.map((message) => [message.at, message.others.map((other) => other.action)]), [[1, ["edited"]]]);
      assert.deepEqual((await source.messages(0, undefined, "")).messages.map((message) => [message.at, message.others.length]), [[0, 0], [1, 1], [3, 0]]);
    },

    async "copies that are recorded later change a message that is shown"() {
      let talk = { conversation: 0, first: "a@b.example", second: "c@d.example", messages: 1, items: 1, changes: 0, time: 1, text: "hello" };
      const record = { kind: "stanza", direction: "send", jid: "a@b.example/x", to: "c@d.example", session: 1, id: "m", time: "2026-11-29T10:00:00Z", xml: "<message><body>hello</body></message>" };
      let others;
      const view = new ConversationsView({ isFile: true, conversations: async () => ({ run: "a", conversations: [talk], surveyed: 1, end: 1 }), messages: async () => ({ conversation: 0, items: 1, from: 0, messages: [{ at: 0, record, others }] }), rows: async () => ({ at: [], end: 0 }) }, { select() {}, filter() {}, fault(error) { if (error) throw error; } });
      await view.refresh();
      assert.ok(!view.chat.textContent.includes("dropped"));
      talk = { ...talk, changes: 1 };
      others = [{ ...record, direction: "recv", jid: "c@d.example/y", from: "a@b.example/x", action: "dropped" }];
      await view.refresh();
      assert.match(view.chat.textContent, /dropped by xmpptap on the way to c@d\.example\/y/);
      assert.equal(view.chat.all((node) => node.className.includes("message") && node.className.includes("bad")).length, 1);
    },

    async "the key for the time zone changes all times, also of a page that is a file"() {
      process.env.TZ = "Asia/Kolkata";
      const time = Date.UTC(2026, 10, 29, 20, 0, 0) * 1000;
      const rate = { start: time, width: 1e6, counts: [1] };
      const measures = new MeasuresView({ isFile: true, measures: async () => ({ rate, kinds: [], trips: [], namespaces: [], talkers: [], surveyed: 1, end: 1 }) }, { filter() {}, go() {}, fault() {} });
      await measures.refresh();
      const talk = { conversation: 0, first: "a@b.example", second: "c@d.example", messages: 1, items: 1, time, text: "hello" };
      const talks = new ConversationsView({ isFile: true, conversations: async () => ({ run: "a", conversations: [talk], surveyed: 1, end: 1 }), messages: async () => ({ conversation: 0, items: 1, from: 0, messages: [] }), rows: async () => ({ at: [], end: 0 }) }, { select() {}, filter() {}, fault() {} });
      await talks.refresh();
      const diagram = new DiagramView({}, { select() {}, session() {}, records() {}, test() {}, fault() {} });
      diagram.number = 1;
      diagram.setSessions([listed(1, { began: time })]);
      const times = () => [measures.node.find("axis").textContent.slice(0, 19), talks.list.all((node) => node.tagName === "TIME")[0].textContent, /since (.*?) ·/.exec(diagram.figures.textContent)[1]];
      const local = times();
      toggleZone();
      measures.redraw();
      talks.redraw();
      diagram.drawFacts();
      const changed = times();
      toggleZone();
      assert.deepEqual(local, ["2026-11-30 01:30:00", "01:30", "2026-11-30 01:30:00"]);
      assert.deepEqual(changed, ["2026-11-29 20:00:00", "20:00", "2026-11-29 20:00:00"]);
      assert.deepEqual([day(time), clock(time).slice(0, 5)], ["2026-11-30", "01:30"]);
    },
  });
  for (const [name, check] of Object.entries(tests)) {
    try { await check(); } catch (error) { error.message = `${name}: ${error.message}`; throw error; }
  }
}

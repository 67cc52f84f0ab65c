// Tests of chats: which stanza may change what another one has said.
import assert from "node:assert/strict";

export async function test(load) {
  const { Stanzas, chatOf, messageOf, nickname } = await load("chat.js");
  let at = 0;
  /** A stanza that romeo's client receives, or sends if it has no sender. */
  const stanza = (from, inner, fields = {}) => ({ at: at++, record: {
    time: "2026-11-22T10:00:00Z", session: 1, jid: "romeo@example.net/orchard", type: "chat", ...(from ? { direction: "recv", from } : { direction: "send", to: "juliet@example.org" }), ...fields,
    xml: `<message>${inner}</message>`,
  } });
  const said = (stanzas) => chatOf(stanzas).map((message) => message.body ?? "(encrypted)");
  const body = (text, more = "") => `<body>${text}</body>${more}`;
  const correct = (id) => `<replace xmlns='urn:xmpp:message-correct:0' id='${id}'/>`;
  const retract = (id, inner = "") => `<retract xmlns='urn:xmpp:message-retract:1' id='${id}'>${inner}</retract>`;
  const receipt = (id) => `<received xmlns='urn:xmpp:receipts' id='${id}'/>`;
  const displayed = (id) => `<displayed xmlns='urn:xmpp:chat-markers:0' id='${id}'/>`;
  const react = (id, ...texts) => `<reactions xmlns='urn:xmpp:reactions:0' id='${id}'>${texts.map((text) => `<reaction>${text}</reaction>`).join("")}</reactions>`;
  const juliet = "juliet@example.org/balcony";

  const tests = {
    "a correction of the same account replaces the text, also from another client"() {
      const [message, ...rest] = chatOf([stanza(juliet, body("one"), { id: "a" }), stanza("juliet@example.org/phone", body("two", correct("a")), { id: "b" }), stanza(juliet, body("three", correct("b")))]);
      assert.deepEqual([message.body, message.versions, rest], ["three", ["one", "two", "three"], []]);
    },

    "a receipt that was recorded before its message belongs to it"() {
      const [message, answer] = chatOf([
        stanza(null, receipt("a"), { to: juliet, time: "2026-11-22T10:00:00.000000003Z" }),
        stanza(null, body("two"), { to: juliet, time: "2026-11-22T10:00:00.000000004Z" }),
        stanza(juliet, body("one"), { id: "a", time: "2026-11-22T10:00:00.000000001Z" }),
      ]);
      assert.deepEqual([message.body, message.isReceived, answer.body], ["one", true, "two"]);
    },

    "a correction of another account's message is a message"() {
      for (const [from, fields] of [["mallory@example.org/x", {}], [null, {}], ["juliet@example.com/balcony", {}], ["example.org", {}]]) {
        const found = chatOf([stanza(juliet, body("one"), { id: "a" }), stanza(from, body("two", correct("a")), { id: "b", ...fields })]);
        assert.deepEqual(found.map((message) => [message.body, message.versions]), [["one", undefined], ["two", undefined]], `${from}`);
        assert.match(found[1].remark, /another's message, not applied/);
      }
      const [unknown] = chatOf([stanza(juliet, body("two", correct("z")))]);
      assert.match(unknown.remark, /not shown/);
    },

    "a client cannot change another account's message by its address"() {
      const mallory = { jid: "mallory@example.org/x", from: juliet, to: "romeo@example.net" };
      const [first, corrected, retracted] = chatOf([stanza(juliet, body("one"), { id: "a" }), stanza(null, body("two", correct("a")), mallory), stanza(null, body("three", retract("a")), mallory)]);
      assert.deepEqual([first.body, first.versions, first.isRetracted], ["one", undefined, undefined]);
      assert.deepEqual([corrected.sender, corrected.body, retracted.sender, retracted.body], ["mallory@example.org", "two", "mallory@example.org", "three"]);
      for (const message of [corrected, retracted]) assert.match(message.remark, /another's message, not applied/);
      // Her own address, and those of a component's users.
      assert.deepEqual(said([stanza(null, body("one"), { id: "a" }), stanza(null, body("two", correct("a")), { from: "romeo@example.net/orchard" })]), ["two"]);
      const bot = (name, inner) => stanza(null, inner, { jid: "bots.example.org", from: `${name}@bots.example.org`, id: "b" });
      assert.deepEqual(said([bot("one", body("1")), bot("two", body("2", correct("b"))), bot("one", body("3", correct("b")))]), ["3", "2"]);
    },

    "the same id of two senders means the message of the one who corrects it"() {
      assert.deepEqual(said([stanza(juliet, body("hers"), { id: "1" }), stanza(null, body("his"), { id: "1" }), stanza(juliet, body("hers, better", correct("1"))), stanza(null, body("his, better", correct("1")))]), ["hers, better", "his, better"]);
    },

    "in a room only the same occupant may correct"() {
      const room = (nick, inner, fields) => stanza(`balcony@rooms.example/${nick}`, inner, { type: "groupchat", ...fields });
      assert.deepEqual(said([room("juliet", body("one"), { id: "a" }), room("juliet", body("two", correct("a")))]), ["two"]);
      assert.deepEqual(said([room("juliet", body("one"), { id: "a" }), room("nurse", body("two", correct("a"))), room("juliet/x", body("three", correct("a"))), stanza("balcony@rooms.example", body("four", correct("a")), { type: "groupchat" })]), ["one", "two", "three", "four"]);
      // The own message has the address of the account.
      const own = (inner, fields) => stanza(null, inner, { type: "groupchat", to: "balcony@rooms.example", ...fields });
      assert.deepEqual(said([own(body("mine"), { id: "a" }), own(body("mine, better", correct("a"))), room("romeo", body("another's", correct("a")))]), ["mine, better", "another's"]);
      // Private messages of occupants of a room have the address of the room, too.
      const muc = "<x xmlns='http://jabber.org/protocol/muc#user'/>";
      const whisper = (nick, inner) => stanza(`balcony@rooms.example/${nick}`, inner + muc, { id: "p" });
      assert.deepEqual(said([whisper("juliet", body("psst")), whisper("nurse", body("forged", correct("p"))), whisper("juliet", body("psst!", correct("p")))]), ["psst!", "forged"]);
    },

    "other elements of the same name change nothing"() {
      assert.deepEqual(said([stanza(juliet, body("one"), { id: "a" }), stanza(juliet, body("two", "<replace xmlns='urn:x' id='a'/>")), stanza(juliet, body("three", "<retract xmlns='urn:x' id='a'/>"))]), ["one", "two", "three"]);
      assert.equal(messageOf({ direction: "recv", xml: "<message><displayed xmlns='urn:x' id='a'/><reactions xmlns='urn:x' id='a'/></message>" }).displayed, undefined);
    },

    "a receipt and a marker come from the other side"() {
      const marks = (...stanzas) => chatOf(stanzas).map((message) => [message.isReceived ?? false, message.isDisplayed ?? false]);
      const mine = stanza(null, body("one"), { id: "a" });
      assert.deepEqual(marks(mine, stanza(juliet, receipt("a"))), [[true, false]]);
      assert.deepEqual(marks(mine, stanza("juliet@example.org/phone", displayed("a"))), [[false, true]]);
      assert.deepEqual(marks(mine, stanza(null, receipt("a")), stanza("romeo@example.net/other", displayed("a"))), [[false, false]]);
      assert.deepEqual(marks(stanza(juliet, body("hers"), { id: "a" }), mine, stanza(juliet, receipt("a"))), [[false, false], [true, false]]);
      // A chat with oneself: the other client has received it.
      const self = { to: "romeo@example.net" };
      assert.deepEqual(marks(stanza("romeo@example.net/orchard", body("note"), { id: "n", ...self }), stanza("romeo@example.net/phone", receipt("n"), self)), [[true, false]]);
      // A message with a text is shown, whatever else it contains.
      assert.deepEqual(said([mine, stanza(juliet, body("hidden?", receipt("a")))]), ["one", "hidden?"]);
    },

    "only the sender retracts, or a moderator by the room"() {
      const retracted = (...stanzas) => chatOf(stanzas).map((message) => message.isRetracted ?? false);
      const first = stanza(juliet, body("one"), { id: "a" });
      assert.deepEqual(retracted(first, stanza("juliet@example.org/phone", retract("a"))), [true]);
      assert.deepEqual(retracted(first, stanza(juliet, "<apply-to xmlns='urn:xmpp:fasten:0' id='a'><retract xmlns='urn:xmpp:message-retract:0'/></apply-to>")), [true]);
      const [kept, forged] = chatOf([first, stanza(null, body("(a retraction)", retract("a")))]);
      assert.deepEqual([kept.isRetracted, forged.body], [undefined, "(a retraction)"]);
      assert.match(forged.remark, /another's message, not applied/);
      const room = (from, inner, fields) => stanza(from, inner, { type: "groupchat", ...fields });
      const inRoom = room("b@rooms.example/juliet", body("spam", "<stanza-id xmlns='urn:xmpp:sid:0' by='b@rooms.example' id='s1'/>"), { id: "a" });
      const moderated = retract("s1", "<moderated xmlns='urn:xmpp:message-moderate:1'/>");
      assert.deepEqual(retracted(inRoom, room("b@rooms.example", moderated)), [true]);
      assert.deepEqual(retracted(inRoom, room("b@rooms.example/nurse", moderated)), [false]);
      assert.deepEqual(retracted(inRoom, room("b@rooms.example/juliet", retract("s1"))), [true]);
      // An id that was not given by the room is not believed.
      const false_ = room("b@rooms.example/juliet", body("x", "<stanza-id xmlns='urn:xmpp:sid:0' by='example.org' id='s2'/>"), { id: "c" });
      assert.deepEqual(retracted(false_, room("b@rooms.example", retract("s2", "<moderated/>"))), [false]);
    },

    "reactions are those of the last stanza of each sender"() {
      const [message] = chatOf([stanza(juliet, body("one"), { id: "a" }), stanza(null, react("a", "x", "y")), stanza(juliet, react("a", "z")), stanza(null, body("y", react("a", "y")))]);
      assert.deepEqual([...message.reactions], [["romeo@example.net", ["y"]], ["juliet@example.org", ["z"]]]);
      const [none] = chatOf([stanza(juliet, body("one"), { id: "a" }), stanza(null, react("a", "x")), stanza(null, react("a"))]);
      assert.equal(none.reactions.size, 0);
    },

    "a stanza that was not passed changes nothing"() {
      const found = chatOf([stanza(juliet, body("one"), { id: "a" }), stanza(juliet, body("two", correct("a")), { action: "dropped" }), stanza(juliet, retract("a"), { action: "dropped" }), stanza(juliet, body("err", retract("a")), { type: "error" })]);
      assert.deepEqual(found.map((message) => [message.body, message.isRetracted]), [["one", undefined], ["two", undefined], ["err", undefined]]);
    },

    "what xmpptap did to a message on either leg is shown, with the text that was delivered"() {
      const message = (text) => `<message><body>${text}</body></message>`;
      const sent = (fields = {}) => ({ ...stanza(null, body("shout"), { id: "a", jid: juliet, to: "romeo@example.net" }), ...fields });
      const copy = (fields) => stanza(juliet, body("shout"), { id: "a", session: 2, ...fields }).record;
      const shown = (one) => chatOf([one]).map((found) => [found.body, found.sent, found.changes])[0];
      assert.deepEqual(shown(sent()), ["shout", undefined, []]);
      // Edited when it was sent: one message, with the text that was delivered.
      const edited = sent();
      Object.assign(edited.record, { action: "edited", rule: "a.pfw:9", edited: message("SHOUT") });
      assert.deepEqual(shown({ ...edited, others: [copy({ xml: message("SHOUT") })] }), ["SHOUT", "shout", ["edited by xmpptap"]]);
      // Dropped, or held and edited, on the way to the receiver.
      assert.deepEqual(shown(sent({ others: [copy({ action: "dropped" })] })), ["shout", undefined, ["dropped by xmpptap on the way to romeo@example.net/orchard"]]);
      assert.deepEqual(shown(sent({ others: [copy({ action: "edited", edited: message("by hand") })] })), ["by hand", "shout", ["edited by xmpptap on the way to romeo@example.net/orchard"]]);
      // Edited on both legs.
      assert.deepEqual(shown({ ...edited, others: [copy({ xml: message("SHOUT"), action: "edited", edited: message("by hand") })] }), ["by hand", "shout", ["edited by xmpptap", "edited by xmpptap on the way to romeo@example.net/orchard"]]);
      // Only the receiver's session was recorded.
      const alone = stanza(juliet, body("shout"), { id: "a", action: "edited", edited: message("by hand") });
      assert.deepEqual(shown(alone), ["by hand", "shout", ["edited by xmpptap"]]);
      // A correction that did not reach the receiver changes nothing.
      const correction = { ...stanza(null, body("better", correct("a")), { id: "b", jid: juliet, to: "romeo@example.net" }), others: [copy({ id: "b", action: "dropped" })] };
      assert.deepEqual(chatOf([sent(), correction]).map((found) => found.body), ["shout", "better"]);
    },

    "fetched messages stay when new ones arrive, without a hole"() {
      const answer = (from, count, items, fields = {}) => ({ from, items, messages: Array.from({ length: count }, (_, index) => ({ at: 10 * (from + index) })), ...fields });
      const places = (stanzas) => [stanzas.from, stanzas.list.length, stanzas.list[0].at, stanzas.list.at(-1).at];
      const stanzas = new Stanzas();
      stanzas.takeNewest(answer(300, 200, 500));
      stanzas.takeEarlier(answer(100, 200, 500), 300);
      // A second answer to the same request.
      stanzas.takeEarlier(answer(100, 200, 500), 300);
      assert.deepEqual(places(stanzas), [100, 400, 1000, 4990]);
      stanzas.takeNewest(answer(303, 200, 503, { first: 50, left_off: 2 }));
      assert.deepEqual([...places(stanzas), stanzas.items, stanzas.first, stanzas.leftOff], [100, 403, 1000, 5020, 503, 50, 2]);
      assert.ok(stanzas.list.every((entry, index) => entry.at === 10 * (100 + index)));
      // More new messages than an answer has: the earlier ones would not continue at them.
      stanzas.takeNewest(answer(800, 200, 1000));
      assert.deepEqual(places(stanzas), [800, 200, 8000, 9990]);
      // The list begins again.
      stanzas.takeNewest(answer(0, 5, 5));
      assert.deepEqual(places(stanzas), [0, 5, 0, 40]);
      // Not more than a number of them are kept.
      const many = new Stanzas();
      many.takeNewest(answer(5000, 200, 5200));
      many.takeEarlier(answer(0, 5000, 5200), 5000);
      many.takeNewest(answer(5100, 200, 5300));
      assert.deepEqual(places(many), [1100, 4200, 11000, 52990]);
    },

    "an answer without messages that xmpptap has removed shows none of them twice"() {
      const answer = (from, first, items) => ({ from, first, items, messages: Array.from({ length: items - first }, (_, index) => ({ at: 10 * (first + index) })) });
      const stanzas = new Stanzas();
      stanzas.takeNewest(answer(100, 100, 300));
      // Those with the indices 110 to 149 were removed after xmpptap had counted them.
      for (const [from, first, items] of [[110, 150, 310], [300, 305, 500], [310, 400, 510]]) {
        stanzas.takeNewest(answer(from, first, items));
        assert.deepEqual([stanzas.from, stanzas.list.map((entry) => entry.at)], [100, Array.from({ length: items - 100 }, (_, index) => 10 * (100 + index))]);
      }
      // All of them were removed, and nothing is new.
      stanzas.takeNewest({ from: 410, first: 510, items: 510, messages: [] });
      assert.deepEqual([stanzas.from, stanzas.list.length], [100, 410]);
    },

    "nicknames may contain slashes"() {
      assert.deepEqual([nickname("b@rooms.example/a/b"), nickname("b@rooms.example")], ["a/b", "b@rooms.example"]);
    },
  };
  for (const [name, run] of Object.entries(tests)) {
    try { run(); } catch (error) { error.message = `${name}: ${error.message}`; throw error; }
  }
}

// Tests of the page's scripts that need no browser.
//
//   node scripts.mjs FOLDER
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const folder = process.argv[2];
const load = (name) => import(pathToFileURL(`${folder}/${name}`).href);
const { parseXML, local, attribute, textOf, elements } = await load("xml.js");
const { injectCommand, pictureType, itemFilter } = await load("detail.js");
const { reducedFilter } = await load("source.js");
const { messageOf } = await load("conversations.js");
const { shellQuoted, visible, span, size, filterQuoted } = await load("format.js");
const { conditions, values } = await load("words.js");

// XML: namespaces, references, CDATA sections, ">" in attributes.
{
  const { roots, isCut } = parseXML(`<message a='1>2' b="x&amp;&#x41;"><body>a &lt; b<![CDATA[<c>]]></body><x xmlns='urn:a'><y/></x><p:z xmlns:p='urn:b'/></message>`);
  assert.equal(isCut, false);
  const [message] = roots;
  assert.equal(attribute(message, "a"), "1>2");
  assert.equal(attribute(message, "b"), "x&A");
  const [body, x, z] = elements(message);
  assert.equal(textOf(body), "a < b<c>");
  assert.deepEqual([x.space, elements(x)[0].space, local(z), z.space], ["urn:a", "urn:a", "z", "urn:b"]);
  assert.equal(message.space, "jabber:client");
}
// A truncated item, 10,000 children, deep nesting and an attribute of 1 MiB end, and what is left out is still text.
assert.equal(parseXML("<message><body>cut").roots.length, 1);
assert.equal(parseXML(`<a>${"<b/>".repeat(10000)}</a>`).isCut, true);
assert.equal(parseXML("<a>".repeat(5000)).isCut, true);
assert.equal(attribute(parseXML(`<a b='${"x".repeat(1 << 20)}'/>`).roots[0], "b").length, 1 << 20);
for (const junk of ["<", "</", "<a", "<a b", "<a b='", "<!", "&#xFFFFFFFF;", "&none;", "<![CDATA[", "]]>", "\u0000<a/>"]) parseXML(junk);

// A copied command sends the same bytes, whatever the stanza contains.
for (const xml of ["<message/>", "<a b='$(touch x)`id`\"'>'\\n\n!!</a>", "%s%d\\x41", "-n", "'''", "é\u{1F600}"]) {
  const command = injectCommand({ xml, session: 3 }, "client").replace(/xmpptap inject .*$/s, "cat");
  assert.equal(execFileSync("bash", ["-c", command]).toString(), xml);
  assert.equal(execFileSync("sh", ["-c", `printf %s ${shellQuoted(xml)}`]).toString(), xml);
}
assert.equal(itemFilter({ session: 3, id: "a b" }), 'session:3 and id:"a b"');
assert.equal(filterQuoted('a"b'), `'a"b'`);

// Pictures are recognised by their first bytes, with their size; SVG and HTML are not pictures.
const png = Buffer.concat([Buffer.from([0x89, 0x50, 0x4e, 0x47, 13, 10, 26, 10, 0, 0, 0, 13, 73, 72, 68, 82, 0, 0, 0, 7, 0, 0, 0, 9]), Buffer.alloc(40)]);
assert.deepEqual(pictureType(new Uint8Array(png)), ["image/png", 7, 9]);
const gif = Buffer.concat([Buffer.from("GIF89a"), Buffer.from([5, 0, 6, 0]), Buffer.alloc(40)]);
assert.deepEqual(pictureType(new Uint8Array(gif)), ["image/gif", 5, 6]);
const jpeg = Buffer.concat([Buffer.from([0xff, 0xd8, 0xff, 0xe0, 0, 4, 0, 0, 0xff, 0xc0, 0, 17, 8, 0, 3, 0, 4]), Buffer.alloc(40)]);
assert.deepEqual(pictureType(new Uint8Array(jpeg)), ["image/jpeg", 4, 3]);
for (const other of ["<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>", "<html><script>alert(1)</script></html>", "x"]) {
  assert.equal(pictureType(new Uint8Array(Buffer.from(other.padEnd(60)))), null);
}

// The reduced filter of a page that is a file.
{
  const rows = { session: [1, 2], direction: [1, 2], kind: ["stanza", "stanza"], name: ["message", "iq"], type: ["chat", "error"], level: [3, 2],
    code: ["", "item-not-found"], payload: ["{jabber:client}body", "{urn:xmpp:ping}ping"], from: ["", "a@b/c"], to: ["x@y", ""], body: [1, 0] };
  const lines = ['{"xml":"<body>Good Night</body>"}', '{"xml":"<iq/>"}'];
  const found = (text) => [0, 1].filter((index) => reducedFilter(text)(rows, index, lines));
  for (const [text, expected] of [["", [0, 1]], ["session:2", [1]], ["message", [0]], ["not message", [1]], ["message and send", [0]], ["recv error", [1]],
    ['"good night"', [0]], ['body:"good night"', [0]], ["body:xml", [0]], ["level:warn", [1]], ["payload:urn:xmpp:ping", [1]], ["code:item-not-found", [1]],
    ["with:a@b", [1]], ["type:chat", [0]], ["(", []]]) assert.deepEqual(found(text), expected, text);
}

// Messages: corrections, receipts, reactions.
const chat = messageOf({ direction: "recv", from: "a@b/c", jid: "d@e/f", xml: "<message><body>hi</body><replace xmlns='urn:xmpp:message-correct:0' id='m1'/></message>" });
assert.deepEqual([chat.body, chat.replaces, chat.from], ["hi", "m1", "a@b/c"]);
assert.deepEqual(messageOf({ direction: "send", jid: "d@e/f", xml: "<message><reactions xmlns='urn:xmpp:reactions:0' id='m'><reaction>x</reaction></reactions></message>" }).reactions, ["x"]);
assert.equal(messageOf({ direction: "send", xml: "<message" }).body, undefined);

// Characters that could hide or reverse text are named.
assert.equal(visible("a\u202eb\u0007\n\u2066"), "a\\u{202e}b\\u{7}⏎\\u{2066}");
assert.deepEqual([span(950), span(1500), span(61e6), size(999), size(1500)], ["950 µs", "1.5 ms", "1 min 1 s", "999 B", "1.5 kB"]);

// Everything that the completion offers is a word of the filter language.
const parser = readFileSync(`${folder}/../../TapRules/Filter/FilterParser.swift`, "utf8");
for (const [word] of [...conditions, ...Object.keys(values).map((name) => [name])]) {
  const name = word.replace(/[:~<>=].*$/, "");
  assert.ok(new RegExp(`["\\s,]${name.replace(/[-]/g, "[-]")}["\\s,:]`).test(parser) || ["and", "or", "not"].includes(name), `unknown condition ${name}`);
}
console.log("ok");

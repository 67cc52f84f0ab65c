// Tests of the page's scripts that need no browser.
//
//   node scripts.mjs FOLDER
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, readdirSync } from "node:fs";
import { pathToFileURL } from "node:url";

const folder = process.argv[2];
const load = (name) => import(pathToFileURL(`${folder}/${name}`).href);
const { parseXML, unescaped, local, attribute, textOf, elements } = await load("xml.js");
const { injectCommand, pictureType, itemFilter, scansionStep } = await load("detail.js");
const { pageFilter } = await load("pagefilter.js");
const { messageOf } = await load("chat.js");
const { shellCommand, shellQuoted, visible, span, size, filterCondition, sessionName } = await load("format.js");
const { conditions, values } = await load("words.js");
const { textFilter } = await load("conversations.js");
const { regularExpression } = await load("pattern.js");
const { testCommands } = await load("maketest.js");

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
// References to no entity of XML stay as they are, also those with the name of a property of all objects.
assert.equal(unescaped("&lt;&gt;&amp;&quot;&apos;"), `<>&"'`);
for (const text of ["&constructor;", "&toString;", "&__proto__;", "&hasOwnProperty;", "&none;"]) assert.equal(unescaped(text), text);
// The filter of a text finds it, and no other text, whatever characters it has.
assert.equal(textFilter("a"), "");
for (const [text, other] of [["contract", "contrct"], ["a.b", "axb"], ["1+1=2", "11=2"], ["(x|y)*", "x"], ["$5 {2}", "5 2"], ["what?", "wha"], ["d-e", "dxe"], ["Élan 合同", "Elan"], ["50%\\", "51%\\"], ['say "hi"', "say hi"], ["a[b]^", "a"]]) {
  const filter = textFilter(text);
  assert.ok(filter.startsWith('body~"(?i)') && filter.endsWith('"') && !filter.slice(6, -1).includes('"'), filter);
  pageFilter(filter);
  const pattern = regularExpression(filter.slice(6, -1));
  assert.ok(pattern.test(`before ${text} after`), text);
  assert.ok(!pattern.test(other), `${other} for ${text}`);
}
// A truncated item, 10,000 children, deep nesting and an attribute of 1 MiB end, and what is left out is still text.
assert.equal(parseXML("<message><body>cut").roots.length, 1);
assert.equal(parseXML(`<a>${"<b/>".repeat(10000)}</a>`).isCut, true);
assert.equal(parseXML("<a>".repeat(5000)).isCut, true);
assert.equal(attribute(parseXML(`<a b='${"x".repeat(1 << 20)}'/>`).roots[0], "b").length, 1 << 20);
// A thousand declarations are not copied for each of the children, and no prefix means a property of all objects.
{
  const many = Array.from({ length: 20_000 }, (_, number) => `xmlns:p${number}='u${number}'`).join(" ");
  const { roots } = parseXML(`<a ${many}>${"<p7:b/>".repeat(2900)}</a>`);
  assert.deepEqual([roots[0].children.length, roots[0].children.at(-1).space], [2900, "u7"]);
  let scopes = 0;
  const { create } = Object;
  Object.create = (parent) => { if (parent) scopes += 1; return create(parent); };
  try { parseXML(`<a xmlns='urn:a' xmlns:p='urn:p'>${"<b>".repeat(150)}<c xmlns='urn:c'/>${"</b>".repeat(150)}</a>`); } finally { Object.create = create; }
  assert.equal(scopes, 2, "an element without declarations has the scope of its parent");
  const [root] = parseXML("<a xmlns:__proto__='urn:p'><constructor:b/><__proto__:c/><d xmlns=''/><e/></a>").roots;
  assert.deepEqual(root.children.map((child) => child.space), ["", "urn:p", "", "jabber:client"]);
}
for (const junk of ["<", "</", "<a", "<a b", "<a b='", "<!", "&#xFFFFFFFF;", "&none;", "<![CDATA[", "]]>", "\u0000<a/>"]) parseXML(junk);

// The commands for a test are quoted for a shell, whatever the session contains.
{
  const [[, accounts], [, replay], [, convert]] = testCommands({ words: "'it'\\''s.xtap'" }, { session: 20_000_003, jid: "o'neil$(touch x)@example.org/a", server: "localhost:5222; x" });
  assert.equal(execFileSync("bash", ["-c", accounts.replace("> accounts.txt", "")]).toString(), "o'neil$(touch x)@example.org password.txt\n");
  assert.equal(execFileSync("bash", ["-c", replay.replace("xmpptap", "printf '%s|'")]).toString(), "replay|it's.xtap|--session|20000003|--to|localhost:5222; x|--accounts|accounts.txt|");
  assert.equal(convert, "xmpptap convert 'it'\\''s.xtap' session-20000003.scs --session 20000003");
  assert.ok(testCommands({ words: "a.xtap" }, { session: 1, server: "a:1", source: "log" })[1][1].includes("--to HOST:PORT"));
}

// A copied command sends the same bytes, whatever the stanza contains: also controls, newlines and what shells interpret.
for (const xml of ["<message/>", "<a b='$(touch x)`id`\"'>'\\n\n!!</a>", "%s%d\\x41", "-n", "'''", "", "é\u{1F600}", "a\nb\r\n\tc\n", "'\n'",
  String.fromCharCode(...Array.from({ length: 31 }, (_, index) => index + 1), 127, 128, 159), "{a,b}*?[x]~ #&;|<>()=^ \\"]) {
  const command = injectCommand({ xml, session: 3 }, "client").replace(/xmpptap inject .*$/s, "cat");
  for (const shell of ["bash", "sh"]) {
    assert.equal(execFileSync(shell, ["-c", command]).toString(), xml);
    assert.equal(execFileSync(shell, ["-c", `printf %s ${shellQuoted(xml)}`]).toString(), xml);
    assert.equal(execFileSync(shell, ["-c", `${shellCommand(["printf", "%s|", xml, "x y", "plain"])}`]).toString(), `${xml}|x y|plain|`);
  }
}
assert.equal(injectCommand({ xml: "<a/>", session: 3 }, "client"), "printf %s '<a/>' | xmpptap inject --session 3 --to client -");
// A damaged line can have any text for a number.
assert.equal(injectCommand({ xml: "<a/>", session: "3; touch 'x'" }, "client"), "printf %s '<a/>' | xmpptap inject --session '3; touch '\\''x'\\''' --to client -");
assert.deepEqual([1, 19_999_999, 20_000_003, 30_000_001, 120_000_012].map(sessionName), ["1", "19999999", "2·3", "3·1", "12·12"]);
assert.equal(shellQuoted("a\0b"), "'a\ufffdb'");
assert.equal(itemFilter({ session: 9, id: "a b" }, 3), 'session:3 and id:"a b"');
assert.equal(itemFilter({ name: "message" }, 3), "session:3 and message");
assert.equal(itemFilter({ name: "r" }, 3), "session:3 and element:r");
// A step of a scansion script has the stanza in lines that begin with a tab.
assert.equal(scansionStep({ direction: "send", jid: "juliet@example.org/balcony", xml: "<message>\n<body>a</body></message>" }), "Juliet sends:\n\t<message>\n\t<body>a</body></message>\n");
assert.equal(scansionStep({ direction: "recv", jid: "o'neil x@example.org/a", xml: "<iq/>" }), "Oneilx receives:\n\t<iq/>\n");
assert.equal(scansionStep({ direction: "recv", xml: "<iq/>" }), "Client receives:\n\t<iq/>\n");

// A condition of a value finds the value, and there is none for a value that the language cannot express.
for (const value of ["a", "a b", "a)", "(", '"', "a'b", '"a" b', "a,b", "<*>", ">x"]) {
  const condition = filterCondition("id", value);
  const rows = { kind: ["stanza", "stanza"] };
  const lines = [value, "other"].map((id) => JSON.stringify({ id }));
  assert.deepEqual([0, 1].map((index) => pageFilter(condition)(rows, index, lines)), [true, false], condition);
}
for (const [name, value] of [["id", "'\""], ["id", ""], ["id", undefined], ["id", "a\nb"], ["type", "a,b"], ["from", "<*>@x"], ["code", "a b"]]) {
  assert.equal(filterCondition(name, value), undefined, value);
}

// Pictures are recognised by their first bytes, with their size; SVG and HTML are not pictures.
const png = Buffer.concat([Buffer.from([0x89, 0x50, 0x4e, 0x47, 13, 10, 26, 10, 0, 0, 0, 13, 73, 72, 68, 82, 0, 0, 0, 7, 0, 0, 0, 9]), Buffer.alloc(40)]);
assert.deepEqual(pictureType(new Uint8Array(png)), ["image/png", 7, 9]);
const gif = Buffer.concat([Buffer.from("GIF89a"), Buffer.from([5, 0, 6, 0]), Buffer.alloc(40)]);
assert.deepEqual(pictureType(new Uint8Array(gif)), ["image/gif", 5, 6]);
const jpeg = Buffer.concat([Buffer.from([0xff, 0xd8, 0xff, 0xe0, 0, 4, 0, 0, 0xff, 0xc0, 0, 17, 8, 0, 3, 0, 4]), Buffer.alloc(40)]);
assert.deepEqual(pictureType(new Uint8Array(jpeg)), ["image/jpeg", 4, 3]);
// WebP: lossless, extended, lossy.
const webp = (...chunk) => new Uint8Array(Buffer.concat([Buffer.from("RIFF\x40\0\0\0WEBP", "latin1"), ...chunk.map((part) => Buffer.from(part)), Buffer.alloc(40)]));
const lossless = (width, height) => { const bits = (width - 1) | (height - 1) << 14 | 1 << 28; return [0x2f, bits & 255, bits >> 8 & 255, bits >> 16 & 255, bits >>> 24]; };
for (const [width, height] of [[401, 302], [1, 1], [16384, 16384], [16384, 1], [1, 16384]]) {
  assert.deepEqual(pictureType(webp("VP8L", [44, 0, 0, 0], lossless(width, height))), ["image/webp", width, height]);
}
assert.equal(pictureType(webp("VP8L", [44, 0, 0, 0], [0x2e, 0, 0, 0, 0])), null);
assert.deepEqual(pictureType(webp("VP8X", [10, 0, 0, 0], [16, 0, 0, 0], [0x90, 1, 0], [0x2d, 1, 0])), ["image/webp", 401, 302]);
assert.deepEqual(pictureType(webp("VP8 ", [44, 0, 0, 0], [0x50, 1, 0, 0x9d, 1, 0x2a], [0x91, 1], [0x2e, 1])), ["image/webp", 401, 302]);
assert.equal(pictureType(webp("VP8 ", [44, 0, 0, 0], [0x50, 1, 0, 0, 0, 0], [0x91, 1], [0x2e, 1])), null);
assert.equal(pictureType(webp("ANIM", [44, 0, 0, 0], lossless(3, 4))), null);
for (const other of ["<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>", "<html><script>alert(1)</script></html>", "x"]) {
  assert.equal(pictureType(new Uint8Array(Buffer.from(other.padEnd(60)))), null);
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

// Each script comes after those that it imports, and is embedded. In a page that is a file, the scripts are one module, in which names at
// the top level must differ; it has scripts of its own, and not those that act, which only the last script names.
{
  const lists = Object.fromEntries([...readFileSync(`${folder}/../Page/PageAssets.swift`, "utf8").matchAll(/let (\w+) = (?:named\()?\[([^\]]*)\]/g)]
    .map(([, name, names]) => [name, [...names.matchAll(/"(\w+\.js)"/g)].map((found) => found[1])]));
  const { scripts, fileScripts, actScripts } = lists;
  const assets = readFileSync(`${folder}/../../CAssets/assets.c`, "utf8");
  assert.deepEqual([...scripts, ...fileScripts].sort(), readdirSync(folder).filter((name) => name.endsWith(".js")).sort());
  assert.ok(actScripts.length > 0 && actScripts.every((name) => scripts.includes(name)) && scripts.at(-1) === "main.js");
  const common = scripts.filter((name) => name !== "main.js" && !actScripts.includes(name));
  for (const [order, absent] of [[scripts, []], [[...common, ...fileScripts, "main.js"], actScripts]]) {
    const seen = new Set();
    let bundle = "";
    for (const name of order) {
      const text = readFileSync(`${folder}/${name}`, "utf8");
      for (const [, imported] of text.matchAll(/^import .* from "\.\/(.*)";$/gm)) assert.ok(seen.has(imported) || name === "main.js" && absent.includes(imported), `${name} comes before ${imported}`);
      seen.add(name);
      assert.ok(assets.includes(`#embed "../TapControl/Web/${name}"`) && assets.includes(`{"web/${name}", `), `${name} is not in assets.c`);
      bundle += text.split("\n").filter((line) => !line.startsWith("import ")).map((line) => line.replace(/^export /, "")).join("\n");
    }
    execFileSync(process.execPath, ["--check", "--input-type=module", "-"], { input: bundle });
  }
}

// Further tests, each in a file.
for (const name of ["rows", "filters", "chat", "views"]) await (await import(`./${name}.mjs`)).test(load);
console.log("ok");

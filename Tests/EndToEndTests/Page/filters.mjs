// Tests of the filter of a page that is a file, with the cases of the Swift tests: both must find the same records and
// refuse the same mistakes at the same place.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const cases = readFileSync(fileURLToPath(new URL("../../TapRulesTests/RecordFilterTests.swift", import.meta.url)), "utf8");

/** The text of a literal of Swift. */
function swiftText(literal) {
  return literal.replace(/\\u\{([0-9a-fA-F]+)\}|\\(.)/g, (_, code, letter) => (code ? String.fromCodePoint(parseInt(code, 16)) : letter));
}

/** The records of the Swift tests, by their JSON. */
function swiftLines() {
  const list = cases.slice(cases.indexOf("let fields = ["), cases.indexOf("return fields.enumerated()"));
  const juliet = /let juliet = #"(.*)"#/.exec(cases)[1];
  const fields = [...list.matchAll(/(juliet\s*\+ )?#(?:"""\s*([^]*?)\s*"""#|"(.*?)"#(?=[,\n]))/g)]
    .map(([, isJuliets, many, one]) => (isJuliets ? juliet : "") + (many ?? one).replace(/\n\s*/g, ""));
  return fields.map((text, index) => `{"sequence":${index + 1},"time":"2026-11-22T10:00:00.000000000Z","monotonic":1.5,"part":"session",${text}}`);
}

/** The columns that a page has of records. */
function columns(lines) {
  const records = lines.map((line) => JSON.parse(line));
  const column = (of) => records.map(of);
  return {
    at: column((_, index) => index), session: column((record) => record.session ?? 0), kind: column((record) => record.kind),
    direction: column((record) => ["send", "recv"].indexOf(record.direction) + 1), name: column((record) => record.name ?? ""),
    level: column((record) => ["off", "error", "warn", "info", "verbose", "trace"].indexOf(record.level)),
    size: column((record) => record.length ?? 0), tap: column((record) => (record.origin === "tap" ? 1 : 0)),
  };
}

export async function test(load) {
  const { pageFilter } = await load("pagefilter.js");
  const { FilterMistake } = await load("filtervalue.js");
  const { prepared } = await load("filteritem.js");
  const { regularExpression, PatternFault } = await load("pattern.js");
  const { FileSource } = await load("filesource.js");
  const { conditions, values } = await load("words.js");
  const lines = swiftLines();
  const rows = columns(lines);
  assert.equal(lines.length, 15);
  const found = (text, all = rows, some = lines) => some.map((_, index) => index).filter((index) => pageFilter(text)(all, index, some));

  // The same records.
  const selections = [...cases.matchAll(/\(\s*"((?:[^"\\]|\\.)*)",\s*\[((?:\d+(?:, )?)*)\]\s*\)/g)];
  assert.ok(selections.length > 90, `${selections.length} cases`);
  for (const [, literal, numbers] of selections) {
    const text = swiftText(literal);
    if (text.endsWith(" and error")) assert.throws(() => pageFilter(text), FilterMistake);
    else assert.deepEqual(found(text).map((index) => index + 1), numbers.split(", ").filter(Boolean).map(Number), text);
  }

  // The same mistakes, at the same place.
  const refusals = [...cases.slice(cases.indexOf("A wrong expression is told")).matchAll(/\(\s*"((?:[^"\\]|\\.)*)",\s*"(column \d+: (?:[^"\\]|\\.)*)"\s*\)/g)];
  assert.ok(refusals.length >= 50, `${refusals.length} mistakes`);
  for (const [, literal, message] of refusals) {
    const text = swiftText(literal);
    let mistake;
    try { pageFilter(text); } catch (error) { mistake = error; }
    assert.ok(mistake instanceof FilterMistake, text);
    // A page does not know the reasons of conditions that only rules have, nor why an address is not a JID.
    const isShorter = /is not a condition of filters|is not a JID/.test(message);
    const expected = swiftText(message);
    if (isShorter) assert.equal(mistake.message.match(/^column \d+: /)[0], expected.match(/^column \d+: /)[0], text);
    else assert.equal(mistake.message, expected, text);
    assert.equal(mistake.column, Number(/^column (\d+)/.exec(message)[1]), text);
  }
  const nested = (depth) => "(".repeat(depth) + "message" + ")".repeat(depth);
  assert.deepEqual(found(nested(99)), found("message"));
  for (const text of [nested(100), `${"not ".repeat(100_000)}iq`]) assert.throws(() => pageFilter(text), /nested deeper than 100/);

  for (const [text, message] of [["size:> 0.3kB", 'column 9: unexpected ".3kB"; expected the end of the line'], ["level:warn,error", 'column 11: unexpected ",error"; expected the end of the line']]) {
    assert.throws(() => pageFilter(text), (error) => error.message === message, text);
  }
  // What a page does not know is refused by name.
  for (const [text, column, word] of [["iq or with:<<a*>>@b", 12, "Lua patterns"], ["inspect:body#~=%a+", 14, "Lua patterns"],
    ["inspect:body#$=x", 14, "expressions"], ["from-exactly:$<@to>", 14, "expressions"], ["inspect:@{urn:x}a=b", 9, "attributes in namespaces"]]) {
    assert.throws(() => pageFilter(text), (error) => error.column === column && error.message.includes(`does not know ${word}`) && error.message.includes("xmpptap view"), text);
  }

  // Further conditions.
  const more = [
    { kind: "stanza", direction: "send", level: "info", session: 20000001, name: "message", to: "Romeo@EXAMPLE.net./Orchard", jid: "juliet@example.org/b", from: "juliet@example.org",
      remote: "[2001:db8::7]:5000", length: 10, xml: "<message from='juliet@example.org'><body>Straße\nKELVIN \u212a</body><p:x xmlns:p='urn:q'><p:y a='1'>z</p:y></p:x></message>" },
    { kind: "stanza", direction: "recv", level: "info", session: 1, name: "iq", from: "juliet@example.org", jid: "juliet@example.org/b", remote: "[::ffff:192.0.2.9]:1", length: 10, truncated: true, xml: "<iq><ping xmlns='urn:xmpp:ping'/>" },
    { kind: "stanza", direction: "send", level: "info", session: 2, name: "message", to: "b\u00fccher@b\u00fccher.example", remote: "192.0.2.9:1", length: 10, xml: "<message to='x'><body>a<b/></body></message>" },
    { kind: "stanza", direction: "recv", level: "info", session: 4, name: "message", from: "example.org", to: "nobody@x.y", length: 10, xml: "<message><!-- no --><body>comment</body></message>" },
    { kind: "header" },
  ].map((record) => JSON.stringify(record));
  const moreRows = columns(more);
  for (const [text, expected] of [
    ["session:20000001", [0]], ["to:romeo@example.net", [0]], ["to:romeo@example.net/Orchard", [0]], ["to:romeo@example.net/orchard", []],
    ["to:<R*>@example.net", []], ["to:<r?me*>@<*.net>/<*>", [0]], ["to:<*>@<example.???>", [0, 1]], ["from-exactly:juliet@example.org/b", [0]],
    ["from-ip:2001:db8::7", [0]], ["from-subnet:2001:db8::/32", [0]], ["from-subnet:2001:db9::/32", []], ["from-subnet:192.0.2.8/31", [2]],
    ["to-self", [1]], ["to:b\u00fccher@xn--bcher-kva.example", [2]], ["with:B\u00dcCHER@B\u00fccher.Example", [2]],
    ["body~KELVIN.K", []], ["body~'(?i)kelvin \u212a'", [0]], ["body~'(?i)kelvin k'", []], ["body~Stra.e", [0]], ["body~Stra.e.K", []], ["body~'[^a-z]K'", [0]], ["body~'^K'", []],
    ["body:a", [0]], ["payload:urn:xmpp:ping", []], ["inspect:{urn:q}x/y#=z", [0]], ["inspect:{urn:q}x/y@a=1", [0]], ["inspect:{urn:q}x/z", []],
    ["inspect:subject#/=a", []], ["inspect:subject#~~=^$", [0, 2]], ["type:'chat|normal'", [0, 2, 3]], ["type:'available  normal'", [0, 2, 3]], ["body:comment", []], ["xml:comment", [3]], ["not message", [1]], ["not body:x", [0, 1, 2, 3]], ["xml:ping", [1]],
  ]) assert.deepEqual(found(text, moreRows, more), expected, text);
  assert.deepEqual(prepared("A@B.C/D"), { local: "a", domain: "b.c", resource: "D" });

  // Regular expressions mean what they mean to xmpptap.
  for (const [pattern, text, isMatch] of [["a.c", "a\rc", true], ["a.c", "a\nc", false], ["\\s", "\u00a0", false], ["\\W", "\u00e9", true], ["\\bx\\b", "\u00e9x\u00e9", true],
    ["(?i)[^a]", "A", false], ["(?i)[x-z]", "Y", true], ["(?i)\u00e9", "\u00c9", false], ["a{2}", "aa", true], ["a{2,}b", "aaab", true], ["[]a]", "]", true], ["[a-]", "-", true], ["\\x41\\x{1F600}", "A\u{1f600}", true],
    ["a|b|", "c", true], ["(a|b)+?c", "abc", true], ["\\/\\-", "/-", true], ["[\\d_]+$", "a1_", true], ["}", "}", true], ["/", "/", true]]) {
    assert.equal(regularExpression(pattern).test(text), isMatch, `${pattern} in ${JSON.stringify(text)}`);
  }
  for (const [pattern, offset] of [["(?=a)", 0], ["a**", 2], ["x{2", 1], ["{", 0], ["a{3,2}", 1], ["a{1001}", 1], ["\\p", 0], ["[\\D]", 1], ["[[:alpha:]]", 1], ["[z-a]", 2], ["(?i)a(?i)", 5], ["a)", 1],
    ["^*", 0], ["\\", 0], ["[a", 0], ["\\x{110000}", 0], ["(".repeat(65), 32], ["(?:".repeat(65), 192]]) {
    assert.throws(() => regularExpression(pattern), (error) => error instanceof PatternFault && error.offset === offset, pattern);
  }

  // Every word of the language is known, and is offered by the completion.
  const parser = readFileSync(fileURLToPath(new URL("../../../Sources/TapRules/Filter/FilterParser.swift", import.meta.url)), "utf8");
  const block = parser.slice(parser.indexOf("enum FilterWords"));
  const names = [...block.slice(block.indexOf("enum Name"), block.indexOf("var ruleName")).matchAll(/case ([^=\n]+?)(?: = "(.*)")?\n/g)].flatMap(([, list, raw]) => (raw ? [raw] : list.split(", ")));
  const words = [...block.slice(0, block.indexOf("enum Kinds")).matchAll(/"([a-z-]+)": \./g)].map((match) => match[1]);
  assert.ok(names.length > 25 && words.length > 9);
  for (const word of words) pageFilter(word);
  const offered = new Set(conditions.map(([word]) => word.replace(/[:~<>]$/, "")));
  const manual = readFileSync(fileURLToPath(new URL("../../../Sources/xmpptap/Manual/browser.md", import.meta.url)), "utf8");
  for (const name of [...names, ...words]) {
    assert.ok(offered.has(name), `${name} is not offered`);
    assert.match(manual, new RegExp(`\`${name}[:>]?\``), `${name} is not in the manual`);
  }
  for (const name of names) assert.throws(() => pageFilter(name), /without a value/, name);
  for (const [name, list] of Object.entries(values)) for (const value of list) pageFilter(`${name}${value}`);

  // A search in a file goes on step by step, and finds the same as one in the whole.
  const many = Array.from({ length: 30_000 }, (_, index) => JSON.stringify({ kind: "stanza", direction: "send", level: index % 100 ? "info" : "warn", session: 1, name: "message", length: 1,
    xml: `<message><body>${index % 3 ? "fair" : "foul"} ${"x".repeat(200)}</body></message>` }));
  const source = new FileSource("");
  Object.assign(source, { lines: many, total: many.length, data: { rows: columns(many), state: { run: "r" } } });
  let answer;
  let steps = 0;
  // The clock moves with each look at it, so that the number of steps does not depend on the machine.
  const { now } = Date;
  let time = 0;
  Date.now = () => (time += 5);
  do {
    answer = await source.rows({ from: -10, count: 10, filter: "body:foul" });
    steps += 1;
    assert.ok(answer.scanned > 0 && answer.end <= answer.scanned);
  } while (answer.scanned < answer.total);
  assert.deepEqual([answer.end, answer.start, answer.at.length, answer.at.at(-1)], [10_000, 9990, 10, 29_997]);
  assert.ok(steps > 1, "the search ends in one step");
  const around = await source.rows({ around: 3000, count: 2, filter: "body:foul" });
  assert.deepEqual(around.at, [2997, 3000]);
  assert.deepEqual([await source.seek(100, "level:warn", false), await source.seek(100, "level:warn", true), await source.seek(101, "level:warn", true),
    await source.seek(-1, "level:warn", false), await source.seek(30_000, "level:warn", true), await source.seek(29_900, "level:warn", false), await source.seek(0, "level:warn", true)],
  [200, 0, 100, 0, 29_900, -1, -1]);
  Date.now = now;
  await assert.rejects(source.rows({ from: 0, filter: "message or" }), (error) => error.status === 422 && error.code === "invalid-filter" && error.column === 11);
  assert.equal((await source.rows({ from: 0, count: 5, filter: " " })).end, 30_000);
}

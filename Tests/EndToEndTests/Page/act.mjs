// Drives the page of `proxy --web --web-act` in headless Chromium, and two clients through the proxy. Prints one line for each
// fact that it has checked, and ends with a status other than 0 if one does not hold.
//
//   node act.mjs URL PORT PASSWORD-OF-JULIET PASSWORD-OF-ROMEO RULES CONTROL XMPPTAP CAPTURE
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createConnection } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "./client.mjs";
import { eventually, faults, finish, isAccessible, key, navigate, open, run, shows, type, until } from "./page.mjs";

const [, , url, port, secretOfJuliet, secretOfRomeo, rules, control, xmpptap, capture] = process.argv;

/** Sends a request to the control socket, as another user of the proxy would. */
function ask(method, path, body = "") {
  return new Promise((done, fail) => {
    const socket = createConnection(control);
    let text = "";
    socket.setEncoding("utf8");
    socket.on("data", (data) => { text += data; });
    socket.on("error", fail);
    socket.on("end", () => done({ status: Number(text.slice(9, 12)), body: text.slice(text.indexOf("\r\n\r\n") + 4) }));
    socket.write(`${method} ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
  });
}

/** Presses the button with a text, within an element. */
const click = (within, text) => run(`[...document.querySelectorAll(${JSON.stringify(`${within} button`)})].find((button) => button.textContent === ${JSON.stringify(text)} && !button.disabled).click()`);
/** Sets the value of a field as typing does. */
const fillIn = (selector, value) => run(`(() => {
  const field = document.querySelector(${JSON.stringify(selector)});
  field.value = ${JSON.stringify(value)};
  for (const kind of ["input", "change"]) field.dispatchEvent(new Event(kind, { bubbles: true }));
})()`);
const focus = (selector) => run(`document.querySelector(${JSON.stringify(selector)}).focus()`);
const inject = '[aria-label="Stanza to inject"]';
/** The held stanza with a text, as an expression. */
const item = (text) => `[...document.querySelectorAll("article.held")].find((node) => node.querySelector("textarea").value.includes(${JSON.stringify(text)}))`;

/** Forgets the faults of requests that were refused on purpose. */
function forgive(status) {
  const other = faults.splice(0).filter((fault) => !fault.includes(status));
  if (other.length) throw new Error(other.join("\n"));
}

const juliet = new Client(port, "juliet", secretOfJuliet, "balcony");
const romeo = new Client(port, "romeo", secretOfRomeo, "orchard");

async function injects() {
  await run(`document.querySelector('[aria-label="Session to act on"]').value = "1"; document.querySelector('[aria-label="Session to act on"]').dispatchEvent(new Event("change"))`);
  await fillIn('[aria-label="Template"]', "disco#info");
  await until("a template is filled in for the session", `document.querySelector('${inject}').value.includes("<iq to='localhost' type='get'")`);
  await key("Enter", 2);
  await until("the answer to a request is shown with its round trip", shows(".history .state", "answered by a result after") + " && " + shows(".history .tree", "disco#info"));
  await fillIn(inject, "<message to='romeo@localhost'>\n  <body>text</bodi>\n</message>");
  await until("a mistake is marked at its place", shows("#inject-mistake", "line 2, column "));
  await isAccessible("a mistake in a stanza");
  await key("Enter", 2);
  await new Promise((done) => setTimeout(done, 500));
  if (romeo.has("<body>text")) throw new Error("a stanza with a mistake was sent");
  forgive("422");

  const body = "it's \"quoted\" $(touch x) `id` \\ %s !! $HOME";
  const text = `<message to='${romeo.jid}' type='chat' id='i1'><body>${body}\nnext line</body></message>`;
  await fillIn(inject, text);
  await focus(inject);
  await key("Enter", 2);
  await until("a message is sent", shows(".history .state", "sent after"));
  await eventually("romeo gets the message", () => romeo.received.split("id='i1'").length === 2);
  await run(`navigator.clipboard.writeText = async (text) => { window.copied = text; }`);
  await click('[aria-label="Inject"]', "copy as command");
  await until("the command is copied", "window.copied");
  const folder = mkdtempSync(join(tmpdir(), "xmpptap-command-"));
  try {
    writeFileSync(join(folder, "xmpptap"), `#!/bin/sh\nexec '${xmpptap}' "$@" --control '${control}'\n`, { mode: 0o755 });
    execFileSync("bash", ["-c", await run("window.copied")], { cwd: folder, env: { ...process.env, PATH: `${folder}:${process.env.PATH}` } });
  } finally { rmSync(folder, { recursive: true }); }
  await eventually("the command sends the message again", () => romeo.received.split("id='i1'").length === 3);
  const [one, other] = romeo.received.split("<message").filter((part) => part.includes("id='i1'")).map((part) => part.slice(0, part.indexOf("</message>")));
  if (one !== other || !one.includes("next line")) throw new Error(`the command sends other bytes: ${one} and ${other}`);
  console.log("ok: the command sends the same bytes");

  await fillIn(inject, "a draft");
  await focus(inject);
  await key("ArrowUp", 2);
  await until("the history has the last stanza", `document.querySelector('${inject}').value.includes("next line")`);
  for (let step = 0; step < 2; step++) await key("ArrowUp", 2);
  await until("and those before it, also one that was refused", `document.querySelector('${inject}').value.includes("disco#info")`);
  for (let step = 0; step < 3; step++) await key("ArrowDown", 2);
  await until("and the draft", `document.querySelector('${inject}').value === "a draft"`);
}

async function pings() {
  await fillIn('[aria-label="Ping"]', "server");
  await click('[aria-label="Pings"]', "Ping every 2 s");
  await until("round trips of pings are shown", shows('[aria-label="Pings"] .summary', "p50") + ` && document.querySelector(".pings svg path").getAttribute("d")`);
  await until("another ping follows", shows('[aria-label="Pings"] .summary', "2 of the last 60"));
  await click('[aria-label="Pings"]', "Stop");
}

async function holds() {
  await fillIn('[aria-label="Hold stanzas that match"]', "message and round-trip>1s");
  await click('[aria-label="Hold"]', "Hold");
  await until("a filter that cannot be evaluated is marked", shows('[aria-label="Hold"] .fault', "is not known when a stanza arrives"));
  forgive("422");
  await fillIn('[aria-label="Hold stanzas that match"]', "message and body:hold");
  await fillIn('[aria-label="Number of stanzas to hold"]', "50");
  await fillIn('[aria-label="Sessions to hold in"]', "all");
  await click('[aria-label="Hold"]', "Hold");
  await until("stanzas are held in both sessions", shows('[aria-label="Hold"] .outcome', "held in 2 sessions") + ` && document.querySelectorAll(".pauses li").length === 2`);

  // A stanza that is held takes neither the view nor the focus.
  await key("Escape");
  await key("2");
  await focus(".filter");
  juliet.say("hold one", romeo);
  await until("the status line says that a stanza is held", shows(".heldline", "1 held, next passes in"));
  if (!await run(`location.hash.includes("view=records") && document.activeElement.matches(".filter")`)) throw new Error("a held stanza takes the view or the focus");
  if (romeo.has("hold one")) throw new Error("the message is not held");
  await run("document.activeElement.blur()");
  await key("7");
  await until("the tray has it, with a countdown", `${item("hold one")}?.querySelector(".remaining").textContent.startsWith("passes in ")`);
  await isAccessible("the tray");

  // Two others are held in turn while the first one is edited.
  await run(`(() => {
    const field = ${item("hold one")}.querySelector("textarea");
    field.focus();
    field.value = field.value.replace("hold one", "changed by hand");
    field.dispatchEvent(new Event("input", { bubbles: true }));
    field.setSelectionRange(5, 9);
    window.edited = field;
  })()`);
  const state = `JSON.stringify([document.activeElement === window.edited, window.edited.isConnected, window.edited.value, window.edited.selectionStart, window.edited.selectionEnd,
    window.edited.getBoundingClientRect().top, window.edited.getBoundingClientRect().height, document.querySelector(".trayscroll").scrollTop, document.querySelector(".panels").scrollTop])`;
  const before = await run(state);
  if (!before.startsWith("[true,true,")) throw new Error(before);
  const isStill = async (when) => {
    await new Promise((done) => setTimeout(done, 1500));
    const now = await run(state);
    if (now !== before) throw new Error(`${when}, the editor changes from ${before} to ${now}`);
    console.log(`ok: ${when}, the editor stays as it is`);
  };
  romeo.say("hold two", juliet);
  await until("a second one is held", item("hold two"));
  await isStill("when another is held");
  // Someone else passes it; then it is held again on its way to juliet.
  const held = async (session) => JSON.parse((await ask("GET", `/sessions/${session}/held`)).body).held.find((entry) => entry.stanza.includes("hold two"));
  const first = await held(2);
  if ((await ask("POST", `/sessions/2/held/${first.number}`, '{"action":"pass"}')).status !== 204) throw new Error("not passed");
  await until("a third one is held", `document.querySelectorAll("article.held:not(.done)").length === 2 && document.querySelectorAll("article.held").length === 3`);
  await isStill("when one is passed and the next is held");
  const second = await held(1);
  if ((await ask("POST", `/sessions/1/held/${second.number}`, '{"action":"pass"}')).status !== 204) throw new Error("not passed");
  await juliet.until("hold two");
  await isStill("when that is passed, too");

  await run(`window.good = window.edited.value; window.edited.value = "<message><body>broken</message>"; window.edited.dispatchEvent(new Event("input", { bubbles: true }))`);
  await click("article.held", "Pass edited");
  await until("an edit that is refused says why, and stays held", shows("article.held .fault", "stays held, its edit was refused"));
  forgive("422");
  await isAccessible("a refused edit");
  await run(`window.edited.value = window.good; window.edited.dispatchEvent(new Event("input", { bubbles: true })); window.edited.focus()`);
  await key("Enter", 2);
  await romeo.until("<body>changed by hand</body>");
  if (romeo.has("hold one")) throw new Error("the message was relayed unedited, too");
  await until("the tray is empty again", `!document.querySelector("article.held")`);

  juliet.say("hold and drop", romeo);
  await until("it is held", item("hold and drop"));
  await click("article.held", "Drop");
  juliet.say("after the drop", romeo);
  await romeo.until("after the drop");
  if (romeo.has("hold and drop")) throw new Error("the message was not dropped");

  // One key passes all, in any view.
  juliet.say("hold for all", romeo);
  await until("it is held", item("hold for all"));
  await key("3");
  await run("document.activeElement.blur()");
  await key("P");
  await until("it is held on its way to romeo", shows(".heldline", "1 held"));
  for (let attempt = 0; attempt < 100 && !romeo.has("hold for all"); attempt++) {
    await key("P");
    await new Promise((done) => setTimeout(done, 100));
  }
  await romeo.until("hold for all");
  await key("7");
  await click(".pauses", "end");
  await until("a pause is ended by its button", `document.querySelectorAll(".pauses li").length === 1`);
}

async function switchesRules() {
  const shout = async (number) => {
    juliet.write(`<message to='${romeo.jid}'><body>shout</body><thread>t${number}</thread></message>`);
    await romeo.until(`<thread>t${number}</thread>`);
    return romeo.has(`<body>SHOUT</body><thread>t${number}</thread>`);
  };
  if (!await shout(1)) throw new Error("the rule does not act");
  await until("the rule has its hits", `document.querySelector('[aria-label="Rules"] td.figure')?.textContent === "1"`);
  await run(`document.querySelector('[aria-label="Rules"] input').click()`);
  await until("the rule is off", shows('[aria-label="Rules"] .outcome', "is off"));
  if (await shout(2)) throw new Error("a rule that is off acts");
  const text = readFileSync(rules, "utf8");
  writeFileSync(rules, `${text}\nKIND: massage\nDROP.\n`);
  await run(`document.querySelector('[aria-label="Rules"] td .link').click()`);
  await until("the hits of a rule lead to its records", shows(".records .row .text", "edited") + ` && document.querySelector(".filter").value.startsWith("rule:")`);
  await key("7");
  await click('[aria-label="Rules"]', "Reload the files");
  await until("a mistake in the files has its file and line", shows('[aria-label="Rules"] .faults', `${rules}:6`));
  forgive("422");
  writeFileSync(rules, text);
  await click('[aria-label="Rules"]', "Reload the files");
  await until("a reload switches the rule on", shows('[aria-label="Rules"] .outcome', "on again: 1") + ` && document.querySelector('[aria-label="Rules"] input').checked`);
  if (!await shout(3)) throw new Error("the rule does not act after the reload");
  await fillIn('[aria-label="Level of the log"]', "warn");
  await until("the level of the log is changed", shows('[aria-label="Levels"] .outcome', "changed"));
  await fillIn('[aria-label="Level of this session"]', "verbose");
  await until("the levels stay as chosen", `document.querySelector('select[aria-label="Level of the log"]').value === "warn" && document.querySelector('select[aria-label="Level of this session"]').value === "verbose"`);
  await eventually("the session has its level", async () => (await ask("GET", "/level")).body.includes('"sessions":{"1":"verbose"}'));
}

async function makesTests() {
  await key("1");
  await until("the sessions are listed", shows(".sessions .row .who", "juliet@localhost"));
  await key("Home");
  await key("m");
  await until("the commands for a test name the capture", shows(".maketest pre", `xmpptap replay ${capture} --session 1 --to `) + " && " + shows(".maketest pre", `xmpptap convert ${capture} session-1.scs --session 1`));
  await isAccessible("the commands for a test");
  await key("Escape");
}

async function check() {
  await juliet.login();
  await romeo.login();
  await open(url);
  await until("the page has one more view", `document.querySelectorAll(".views [role=tab]").length === 7`);
  await key("7");
  await until("the sessions can be chosen", `[...document.querySelectorAll('[aria-label="Session to act on"] option')].map((option) => option.textContent).join() === "1 ${juliet.jid},2 ${romeo.jid}"`);
  await isAccessible("the view that acts");
  await injects();
  await pings();
  await holds();
  await switchesRules();
  await makesTests();

  // The page is left: what it holds passes long before its time.
  await key("7");
  await fillIn('[aria-label="Hold stanzas that match"]', "message and body:end");
  await click('[aria-label="Hold"]', "Hold");
  await until("the last pause is set", shows(".pauses li", "body:end"));
  const began = Date.now();
  juliet.say("the end", romeo);
  await until("the last stanza is held", item("the end"));
  if (faults.length) throw new Error(`faults: ${faults.join("\n")}`);
  await navigate("about:blank");
  await romeo.until("<body>the end</body>");
  if (Date.now() - began > 50_000) throw new Error("the stanza passed only when its time was over");
  juliet.say("the end is free", romeo);
  await romeo.until("the end is free");
  juliet.socket.end("</stream:stream>");
  romeo.socket.end("</stream:stream>");
  console.log("ok: no fault, no violation of the policy");
}

await finish(check);

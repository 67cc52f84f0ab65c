// `view` of a folder, of packets, of a client's log, and of a session of twelve hours, in one browser. Prints one line for each fact
// that it has checked, and ends with a status other than 0 if one does not hold.
//
//   node recordings.mjs XMPPTAP FOLDER [CORPUS]
import { spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { eventually, faults, finish, isAccessible, key, navigate, open, run, shows, type, until } from "./page.mjs";

const [, , xmpptap, folder, corpus] = process.argv;
let hasPage = false;

/** Shows files by `view`, makes checks, and ends `view`. */
async function view(paths, fragment, check) {
  const program = spawn(xmpptap, ["view", ...paths], { stdio: ["ignore", "ignore", "pipe"] });
  let text = "";
  program.stderr.setEncoding("utf8").on("data", (data) => { text += data; });
  try {
    await eventually(`view ${paths.map((path) => path.split("/").at(-1))} has a page`, () => /http:\S+/.test(text));
    const url = `${/http:\S+/.exec(text)[0]}&${fragment}`;
    if (hasPage) await navigate(url); else await open(url);
    hasPage = true;
    await check();
  } finally {
    // The page asks for nothing when its server has ended.
    await navigate("about:blank");
    program.kill("SIGINT");
    await new Promise((done) => { program.on("exit", done); if (program.exitCode !== null) done(); });
  }
}

const header = '{"xtap":1,"tool":"test","time":"2026-11-29T08:00:00Z","level":"verbose","filter":null,"complete":false,"redaction":"secrets","run":"RUN","records_before":0}';
const time = (seconds) => new Date(Date.UTC(2026, 10, 29, 8) + seconds * 1000).toISOString();
const line = (sequence, seconds, fields) => JSON.stringify({ sequence, time: time(seconds), monotonic: seconds, level: "info", session: 1, jid: "juliet@example.org/balcony", ...fields });
const stanza = (sequence, seconds, direction, xml, fields) => line(sequence, seconds, { kind: "stanza", direction, leg: direction === "send" ? "client" : "server", length: xml.length, xml, ...fields });

/** A session of twelve hours: in each of 24 half hours, 400 stanzas within 200 s, and then nothing. */
function longSession() {
  const lines = [header.replace("RUN", "long"), line(1, 0, { kind: "session", code: "session-began", message: "session began" })];
  for (let hour = 0; hour < 24; hour++) {
    for (let number = 0; number < 400; number++) {
      const id = `m${hour}-${number}`;
      lines.push(stanza(lines.length, hour * 1800 + number / 2, number % 2 ? "recv" : "send", `<message id='${id}' type='chat'><body>part ${hour}, text ${number}</body></message>`, { name: "message", type: "chat", id, payload: "{jabber:client}body" }));
    }
  }
  return `${lines.join("\n")}\n`;
}

/** A short session of another client. */
function shortSession(run, user, text) {
  const jid = `${user}@example.org/garden`;
  return [header.replace("RUN", run), line(1, 0, { jid, kind: "session", code: "session-began", message: "session began" }),
    stanza(2, 1, "send", `<message to='nurse@example.org' type='chat'><body>${text}</body></message>`, { jid, name: "message", to: "nurse@example.org", type: "chat", payload: "{jabber:client}body" })].join("\n") + "\n";
}

const rowsInView = `document.querySelectorAll(".diagram .row:not([hidden])").length`;
const nodes = `document.querySelectorAll("*").length`;

async function longDiagram() {
  await until("the diagram of twelve hours has its first rows", `${rowsInView} > 10 && ${shows(".diagram .label", "part 0, text 0")}`);
  await until("the whole session was searched", `document.querySelector(".diagram").getAttribute("aria-rowcount") === "9602"`);
  const before = { rows: await run(rowsInView), nodes: await run(nodes) };
  await run(`document.querySelector(".diagram").focus()`);
  await key("End");
  await until("End shows its last row", shows(".diagram .label", "part 23, text 399"));
  for (let step = 0; step < 8; step++) {
    await run(`(() => { const list = document.querySelector(".diagram"); list.scrollTop = ${step / 8} * list.scrollHeight; })()`);
    await until(`row of part ${step * 3} is drawn after scrolling`, `!document.querySelector(".diagram .row.pending:not([hidden])") && ${rowsInView} > 10`);
  }
  const after = { rows: await run(rowsInView), nodes: await run(nodes) };
  // A row more or less can be cut; the details of the selected record are more nodes, but not those of 9600 rows.
  if (after.rows > before.rows + 4 || after.nodes > before.nodes + 400) throw new Error(`rows in view are not all that is drawn: ${JSON.stringify([before, after])}`);
  console.log(`ok: ${after.nodes} elements show a diagram of 9601 rows`);
  await run(`(() => { const list = document.querySelector(".diagram"); list.scrollTop = 0; })()`);
  // 26 min 40 s pass between two parts: a gap of one line.
  await run(`document.querySelector(".diagram").scrollTop = 0`);
  await until("the list is at its beginning", shows(".diagram .label", "part 0, text 0"));
  await run(`document.querySelector(".diagram").scrollTop = 390 * 24`);
  await until("an idle time is folded into a line", `[...document.querySelectorAll(".diagram .row.pause:not([hidden])")].some((row) => row.dataset.gap.startsWith("26 min 40 s without") && row.getBoundingClientRect().height === 24 + 18)`);
  await isAccessible("a diagram with a gap");
  const height = `document.querySelector(".diagram .row:not([hidden]):not(.pause)").getBoundingClientRect().height`;
  const heights = [await run(height)];
  for (const [name, sign] of [["+", 1], ["+", 1], ["-", -1], ["-", -1], ["-", -1]]) {
    await key(name);
    await until(`the rows are ${sign > 0 ? "larger" : "smaller"} after ${name}`, `(${height} - ${heights.at(-1)}) * ${sign} > 0 && ${rowsInView} > 10 && !document.querySelector(".diagram .row.pending:not([hidden])")`);
    heights.push(await run(height));
  }
  await run(`document.querySelector('[aria-label="Larger rows"]').click()`);
  await until("a button enlarges them again", `${height} === ${heights[0]}`);
}

async function savedFilters() {
  const filter = `document.querySelector(".filter")`;
  await key("2");
  await key("/");
  await type("message and body~399");
  await key("Enter");
  await until("a filter finds the last message of each part", `document.querySelector(".counts").textContent.startsWith("24 of ")`);
  await until("the gaps between them stay", `document.querySelectorAll(".records .row.pause:not([hidden])").length > 5`);
  await run(`document.querySelector('[aria-label="Save this filter"]').click()`);
  await until("the filter is saved", `document.querySelector('[aria-label="Save this filter"]').getAttribute("aria-pressed") === "true"`);
  await run(`document.querySelector('[aria-label="Remove the filter"]').click()`);
  await run("document.activeElement.blur()");
  await key("/");
  await until("the list of filters begins with the saved one", `!document.querySelector(".completions").hidden && document.querySelector(".completions li").textContent === "message and body~399saved"`);
  await run("location.reload()");
  await until("the page is loaded again", `${filter}?.value === "" && document.querySelectorAll(".records .row:not([hidden])").length > 10`);
  await key("/");
  await until("it is kept by the browser", shows(".completions li", "message and body~399"));
  await key("ArrowDown");
  await key("Enter");
  await until("a saved filter is applied at once", `${filter}.value === "message and body~399" && document.querySelector(".counts").textContent.startsWith("24 of ")`);
  await run(`document.querySelector('[aria-label="Save this filter"]').click()`);
  await run(`document.querySelector('[aria-label="Remove the filter"]').click()`);
  await run("document.activeElement.blur()");
  await key("/");
  await until("it is removed again", `!document.querySelector(".completions").hidden && !${shows(".completions li", "saved")}`);
}

async function check() {
  const long = join(folder, "long.json");
  writeFileSync(long, longSession());
  await view([long], "view=diagram&session=1", async () => {
    await longDiagram();
    await savedFilters();
  });
  const captures = join(folder, "captures");
  mkdirSync(captures);
  writeFileSync(join(captures, "one.xtap"), shortSession("one", "juliet", "from the first file"));
  writeFileSync(join(captures, "two.xtap"), shortSession("two", "romeo", "from the second file"));
  await view([captures], "view=records", async () => {
    await until("a folder shows the records of its files", shows(".records .row .text", "from the first file") + " && " + shows(".records .row .text", "from the second file"));
    await key("1");
    await until("sessions of the second run have its number", shows(".sessions .row .session", "2·1") + " && " + shows(".sessions .row .who", "romeo@example.org"));
  });
  if (corpus) {
    await view([join(corpus, "pcap/zeek-xmpp-starttls.pcap")], "view=records", () => until("packets are shown as records", shows(".records .row .what", "starttls") + " && " + shows(".records .row .what", "proceed")));
    await view([join(corpus, "xmppframework-login.log")], "view=records", async () => {
      await until("a client's log is shown as records", shows(".records .row .what", "iq result"));
      await key("1");
      await until("its session has the account", shows(".sessions .row .who", "@"));
    });
  }
  if (faults.length) throw new Error(`faults: ${faults.join("\n")}`);
  console.log("ok: no fault, no violation of the policy");
}

await finish(check);

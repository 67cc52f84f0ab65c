// Many tabs, many connections, and a browser that sleeps: the page of `proxy --web` with its built-in server. Prints one line for
// each fact that it has checked, and ends with a status other than 0 if one does not hold.
//
//   node load.mjs URL PORT PASSWORD-OF-JULIET
import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { freeze, openTabs } from "./chromium.mjs";
import { Client } from "./client.mjs";
import { eventually, faults, finish, key, open, run, shows, type, until } from "./page.mjs";

const [, , url, port, password] = process.argv;
const { host, port: webPort, hash } = new URL(url);
const authorization = `Bearer ${hash.replace("#token=", "")}`;

/** Number of connections that the page's port has accepted. */
function connections() {
  const local = `:${Number(webPort).toString(16).toUpperCase().padStart(4, "0")}`;
  return readFileSync("/proc/net/tcp", "utf8").split("\n").filter((line) => line.split(/ +/)[2]?.endsWith(local) && line.split(/ +/)[4] === "01").length;
}

const state = () => fetch(`http://${host}/page/state`, { headers: { authorization, connection: "close" } });

/** The status of a request. */
async function status() {
  const answer = await state();
  await answer.text();
  return answer.status;
}

/** The position of the first record that the proxy keeps. */
async function firstRecord() {
  const answer = await state();
  const text = await answer.text();
  if (!answer.ok) throw new Error(`the state is refused: ${answer.status} ${text}`);
  return JSON.parse(text).first;
}

const juliet = new Client(port, "juliet", password, "balcony");

/** Sends a ping through the proxy, and waits for its answer. */
async function ping(id) {
  juliet.write(`<iq type='get' id='${id}' to='localhost'><ping xmlns='urn:xmpp:ping'/></iq>`);
  await eventually(`the relay answers: ${id}`, () => juliet.received.includes(`id='${id}'`) || juliet.received.includes(`id="${id}"`));
}

async function manyTabs() {
  const tabs = await openTabs(url, 50);
  await eventually("50 hidden tabs are open", async () => (await tabs.loaded()) === 50);
  await ping("tabs");
  await until("the page in front has the records", shows(".records .row .what", "iq get"));
  return tabs;
}

async function manyConnections() {
  const sockets = [];
  const began = performance.now();
  for (let number = 0; number < 200; number++) {
    const socket = connect(Number(webPort), "127.0.0.1");
    Object.assign(socket, { text: "" });
    socket.setEncoding("utf8");
    socket.on("data", (text) => { socket.text += text; });
    socket.on("error", () => {});
    socket.write(`GET /page/rows?from=-1&count=1&known=9000000&wait=20 HTTP/1.1\r\nHost: ${host}\r\nAuthorization: ${authorization}\r\n\r\n`);
    sockets.push(socket);
  }
  const refused = () => sockets.filter((socket) => socket.text.startsWith("HTTP/1.1 503 ") && socket.destroyed).length;
  await eventually("all but 64 connections are refused", () => refused() >= 200 - 64 && connections() <= 64);
  await ping("connections");
  // One stays, to show that the others do not count until their time is over.
  const kept = sockets.find((socket) => !socket.text);
  for (const socket of sockets) if (socket !== kept) socket.destroy();
  await eventually("connections that were given up make room for others", async () => (await status()) === 200);
  // Requests wait 20 s. On a busy machine that time may be over before.
  if (kept.text && performance.now() - began < 20_000) throw new Error("they made room only when the time of their requests was over");
  kept.destroy();
  juliet.say("after the connections", juliet);
  await until("the page goes on", shows(".records .row .text", "after the connections"));
  await until("and says nothing of what has failed", `document.querySelector(".banner").hidden`);
  const other = faults.splice(0).filter((fault) => !fault.includes("503"));
  if (other.length) throw new Error(other.join("\n"));
}

/** While the page in front is frozen, too, none needs a connection. */
async function sleeps(tabs) {
  juliet.say("before the sleep", juliet);
  await key("/");
  await type("message");
  await key("Enter");
  await until("the filter finds the message", shows(".records .row .text", "before the sleep"));
  await run(`document.querySelector(".records").focus()`);
  await freeze(true);
  // As many messages as it takes until the proxy has forgotten the first records.
  for (let round = 0; (await firstRecord()) < 1000; round++) {
    const last = `<thread>r${round}</thread>`;
    juliet.received = "";
    juliet.write(`<message to='${juliet.jid}'><body>x</body></message>`.repeat(2000) + `<message to='${juliet.jid}'><body>x</body>${last}</message>`);
    while (!juliet.has(last)) await new Promise((done) => setTimeout(done, 20));
  }
  juliet.say("after the sleep", juliet);
  await juliet.until("after the sleep");
  await eventually("neither hidden tabs nor a frozen page hold a connection", () => connections() === 0);
  await tabs.close();
  await freeze(false);
  await until("the status says with a filter, too, what is no longer kept", `/ of .* older ones are no longer kept/.test(document.querySelector(".counts").textContent)`);
  const line = `/^\\d+ older records no longer kept/.test(document.querySelector(".records .row.pause:not([hidden])")?.dataset.gap.replace(/\\s(?=\\d)/g, ""))`;
  await key("Home");
  await until("so does a line above the first record", line);
  await key("c");
  await until("the filter is gone", `!document.querySelector(".counts").textContent.includes(" of ")`);
  await key("End");
  await until("the page has what has arrived meanwhile", shows(".records .row .text", "after the sleep"));
  await key("Home");
  await until("the line is there without a filter", line);
}

async function check() {
  await open(`${url}&view=records`);
  await until("the page records", shows(".counts", "recording since"));
  await juliet.login();
  await until("the page has the login", shows(".records .row .what", "presence"));
  await manyConnections();
  await sleeps(await manyTabs());
  juliet.socket.end("</stream:stream>");
  if (faults.length) throw new Error(`faults: ${faults.join("\n")}`);
  console.log("ok: no fault, no violation of the policy");
}

await finish(check);

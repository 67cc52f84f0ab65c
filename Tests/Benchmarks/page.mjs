// Measures the page in headless Chromium, for the command `run --page`.
//
//   node page.mjs measure XMPPTAP CAPTURE    prints how fast the page is, live and with a capture of many records
//   node page.mjs open FILE COUNT            opens COUNT pages at the address that xmpptap has written to FILE; ends when killed
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createConnection, createServer } from "node:net";
import { close, inBrowser, open, run, send } from "../EndToEndTests/Page/chromium.mjs";

const header = "xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' version='1.0'>";
const held = 100_000;
const sessions = 50;
const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

/** A server that accepts any login, and then returns every byte. */
async function serve() {
  const open = `<?xml version='1.0'?><stream:stream from='garden.example' id='s' ${header}<stream:features>`;
  const server = createServer((socket) => {
    const steps = [
      ["'1.0'>", () => `${open}<mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><mechanism>PLAIN</mechanism></mechanisms></stream:features>`],
      ["</auth>", () => "<success xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>"],
      ["'1.0'>", () => `${open}<bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></stream:features>`],
      ["</iq>", () => `<iq type='result' id='bind'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'><jid>${user}@garden.example/shed</jid></bind></iq>`],
    ];
    let seen = "";
    let user = "ash";
    socket.on("error", () => socket.destroy());
    socket.on("data", (data) => {
      if (!steps.length) return socket.write(data);
      seen += data;
      const secret = /<auth[^>]*>([^<]*)<\/auth>/.exec(seen)?.[1];
      if (secret) user = Buffer.from(secret, "base64").toString().split("\0")[1];
      if (!seen.endsWith(steps[0][0])) return;
      socket.write(steps.shift()[1]());
      seen = "";
    });
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  return server;
}

/** A client with an open session. */
class Client {
  static async open(port, user) {
    const client = new Client();
    client.user = user;
    client.returned = 0;
    client.socket = createConnection(port, "127.0.0.1");
    for (const [text, end] of [
      [`<?xml version='1.0'?><stream:stream to='garden.example' ${header}`, "</stream:features>"],
      [`<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>${Buffer.from(`\0${user}\0secret`).toString("base64")}</auth>`, "/>"],
      [`<?xml version='1.0'?><stream:stream to='garden.example' ${header}`, "</stream:features>"],
      ["<iq type='set' id='bind'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq>", "</iq>"],
    ]) {
      client.socket.write(text);
      let seen = "";
      await new Promise((done) => {
        const take = (data) => {
          seen += data;
          if (!seen.endsWith(end)) return;
          client.socket.off("data", take);
          done();
        };
        client.socket.on("data", take);
      });
    }
    client.socket.on("data", (data) => { for (const byte of data) if (byte === 10) client.returned += 1; });
    return client;
  }

  /** Sends a message with an end of line behind it, which is returned too. */
  send(number) {
    this.socket.write(`<message from='${this.user}@garden.example/shed' to='${this.user}@garden.example' type='chat' id='m${number}'><body>Water the roses before noon, number ${number}</body><active xmlns='http://jabber.org/protocol/chatstates'/></message>\n`);
  }
}

/** Messages through a proxy, of which each makes two records. */
class Load {
  constructor(clients) { this.clients = clients; this.sent = 0; }

  static async open(port) {
    const clients = [];
    for (let number = 0; number < sessions; number++) clients.push(await Client.open(port, `user${number}`));
    return new Load(clients);
  }

  get returned() { return this.clients.reduce((sum, client) => sum + client.returned, 0); }

  send() {
    this.sent += 1;
    this.clients[this.sent % sessions].send(this.sent);
  }

  /** Sends messages without pauses until all are returned. */
  async fill(count) {
    const end = this.sent + count;
    while (this.returned < end) {
      while (this.sent < end && this.sent - this.returned < 500) this.send();
      await pause(1);
    }
  }

  /** Sends messages at a rate for some seconds. */
  async keep(rate, seconds) {
    const began = performance.now();
    const first = this.sent;
    while (performance.now() - began < seconds * 1000) {
      const due = first + Math.floor((performance.now() - began) / 1000 * rate);
      while (this.sent < due) this.send();
      await pause(4);
    }
    return (this.sent - first) / seconds;
  }
}

const started = [];

/** Starts xmpptap; returns the process, and the values of a pattern in what it says. */
async function start(program, words, pattern) {
  const process = spawn(program, words, { stdio: ["ignore", "ignore", "pipe"] });
  started.push(process);
  let said = "";
  const found = await new Promise((done, fail) => {
    process.stderr.on("data", (data) => {
      said += data;
      const match = pattern.exec(said);
      if (match) done(match);
    });
    process.on("exit", () => fail(new Error(`${words.join(" ")} has ended: ${said}`)));
  });
  return { process, found };
}

const count = `Number(document.querySelector(".records")?.getAttribute("aria-rowcount") ?? 0)`;
const shown = `document.querySelectorAll(".records .row:not([hidden])").length`;

let target;

/** Closes the page that is open, opens the records view in a new one, and returns the milliseconds from the beginning of the navigation until rows were painted. */
async function firstRows(url, rows) {
  if (target) await inBrowser("Target.closeTarget", { targetId: target });
  target = await open("about:blank");
  const { identifier } = await send("Page.addScriptToEvaluateOnNewDocument", { source: `
    const look = () => {
      if (${count} > ${rows} && ${shown} > 10) requestAnimationFrame(() => { window.firstRows = performance.now(); });
      else requestAnimationFrame(look);
    };
    addEventListener("DOMContentLoaded", look);
    window.longTasks = [];
    new PerformanceObserver((list) => longTasks.push(...list.getEntries().map((task) => task.duration))).observe({ type: "longtask", buffered: true });
  ` });
  await send("Page.navigate", { url: `${url}&view=records` });
  let took;
  for (let attempt = 0; attempt < 2400 && !took; attempt++) {
    await pause(25);
    took = await run("window.firstRows").catch(() => undefined);
  }
  await send("Page.removeScriptToEvaluateOnNewDocument", { identifier });
  if (!took) throw new Error(`no rows: ${await run("document.body.innerText.slice(0, 500)")}`);
  return took;
}

/** Scrolls through the records, and returns the durations of the frames. */
const scroll = `(async () => {
  const list = document.querySelector(".records");
  const frames = [];
  let last = await new Promise(requestAnimationFrame);
  for (let step = 0; step < 600; step++) {
    list.scrollTop = step % 50 === 49 ? list.scrollHeight * step / 600 : list.scrollTop + 400;
    const now = await new Promise(requestAnimationFrame);
    frames.push(now - last);
    last = now;
  }
  return frames;
})()`;

/** Memory of the page's process in MiB, with its share of what processes share. */
async function memory() {
  const { processInfo } = await inBrowser("SystemInfo.getProcessInfo");
  const sizes = processInfo.filter((one) => one.type === "renderer").map((one) => {
    return Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${one.id}/smaps_rollup`, "utf8"))[1]) / 1024;
  });
  return Math.max(...sizes);
}

async function heap() {
  await send("HeapProfiler.collectGarbage");
  return (await send("Runtime.getHeapUsage")).usedSize / (1 << 20);
}

const say = (what, value, unit, must) => console.log(`${what.padEnd(64)} ${value.toFixed(value < 10 ? 1 : 0).padStart(7)} ${unit}   (at most ${must})`);

async function measureLive(program) {
  const server = await serve();
  const proxy = await start(program, ["proxy", "--listen", "127.0.0.1:0", "--upstream", `127.0.0.1:${server.address().port}`, "--log", "off", "--web", "0"],
    /listening on 127\.0\.0\.1:(\d+)[\s\S]*(http:\/\/127\S+token=\w+)|(http:\/\/127\S+token=\w+)[\s\S]*listening on 127\.0\.0\.1:(\d+)/);
  const [port, url] = [proxy.found[1] ?? proxy.found[4], proxy.found[2] ?? proxy.found[3]];
  // Records are kept while a page is open, and for a minute after it.
  target = await open(url);
  await pause(2000);
  const load = await Load.open(Number(port));
  await load.fill(held / 2);
  const times = [];
  for (let attempt = 0; attempt < 5; attempt++) times.push(await firstRows(url, 200));
  say(`first 200 rows with ${held} records held`, Math.min(...times), "ms", "300");
  await pause(3000);
  const rows = await run(count);
  console.log(`rows in the page: ${rows}`);
  const frames = await run(scroll);
  say("scrolling: frames over 50 ms, in a hundred", 100 * frames.filter((frame) => frame > 50).length / frames.length, "", "1");
  say("JavaScript heap", await heap(), "MiB", "64");
  say("memory of the page", await memory(), "MiB", "200");
  await run("longTasks.length = 0; document.querySelector('.records').scrollTop = 1e9");
  const rate = await load.keep(2500, 60);
  say(`live, ${Math.round(rate * 2)} records a second: tasks over 100 ms in a minute`, (await run("longTasks")).filter((task) => task > 100).length, "", "5");
  say("the longest of them", Math.max(0, ...await run("longTasks")), "ms", "-");
  say("JavaScript heap after it", await heap(), "MiB", "64");
  say("memory of the page after it", await memory(), "MiB", "200");
  for (const client of load.clients) client.socket.destroy();
  proxy.process.kill();
  server.close();
}

async function measureCapture(program, path) {
  const began = performance.now();
  const view = await start(program, ["view", path, "--listen", "127.0.0.1:0"], /http:\/\/127\S+token=\w+/);
  const listening = performance.now() - began;
  const first = await firstRows(view.found[0], 10);
  say("view of the capture: until the address is printed", listening, "ms", "-");
  say("view of the capture: from the command to the first rows", listening + first, "ms", "2000");
  for (let attempt = 0; attempt < 1200 && await run(count) < 1_000_000; attempt++) await pause(50);
  say("view of the capture: until all records are listed", performance.now() - began, "ms", "-");
  console.log(`rows in the page: ${await run(count)}`);
  const frames = await run(scroll);
  say("scrolling: frames over 50 ms, in a hundred", 100 * frames.filter((frame) => frame > 50).length / frames.length, "", "1");
  say("JavaScript heap", await heap(), "MiB", "64");
  say("memory of the page", await memory(), "MiB", "200");
  view.process.kill();
}

async function openPages(file, pages) {
  for (let attempt = 0; attempt < 400; attempt++) {
    const url = /http:\/\/127\S+token=\w+/.exec(readFileSync(file, "utf8"))?.[0];
    if (url) {
      for (let page = 0; page < pages; page++) await open(`${url}&view=records`);
      console.log("open");
      return new Promise(() => {});
    }
    await pause(25);
  }
  throw new Error(`no address in ${file}`);
}

/** Ends xmpptap and the browser, and then this program. */
async function finish(status) {
  for (const one of started) one.kill();
  await close();
  process.exit(status);
}

const [, , command, first, second] = process.argv;
for (const signal of ["SIGTERM", "SIGINT"]) process.on(signal, () => finish(0));
try {
  if (command === "open") await openPages(first, Number(second));
  await measureLive(first);
  await measureCapture(first, second);
  await finish(0);
} catch (error) {
  console.log(String(error.stack ?? error));
  await finish(1);
}

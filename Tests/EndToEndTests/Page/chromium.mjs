// Drives headless Chromium by the DevTools protocol, over a pipe.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const profile = mkdtempSync(join(tmpdir(), "xmpptap-chromium-"));
const browser = spawn("chromium", ["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
  `--user-data-dir=${profile}`, "--disable-background-networking", "--no-first-run", "about:blank"],
{ stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });

let number = 0;
let rest = Buffer.alloc(0);
const waiting = new Map();
/** Addresses of requests without an answer yet, by their identifier. */
export const pending = new Map();
/** Errors of scripts, violations of the policy, and requests that failed. */
export const faults = [];
export const requests = [];
browser.stdio[4].on("data", (data) => {
  rest = Buffer.concat([rest, data]);
  for (let end = rest.indexOf(0); end >= 0; end = rest.indexOf(0)) {
    const message = JSON.parse(rest.subarray(0, end).toString());
    rest = rest.subarray(end + 1);
    if (message.id) waiting.get(message.id)?.(message);
    else if (message.method === "Runtime.exceptionThrown") faults.push(message.params.exceptionDetails.exception?.description ?? message.params.exceptionDetails.text);
    else if (message.method === "Log.entryAdded") faults.push(message.params.entry.text);
    else if (message.method === "Network.requestWillBeSent") {
      requests.push(message.params.request.url);
      pending.set(message.params.requestId, message.params.request.url);
    } else if (["Network.loadingFinished", "Network.loadingFailed"].includes(message.method)) pending.delete(message.params.requestId);
  }
});

let session;
let page;
/** Sends a command to the page. */
export function send(method, parameters = {}) {
  return new Promise((done, fail) => {
    const id = (number += 1);
    waiting.set(id, (message) => {
      waiting.delete(id);
      if (message.error) fail(new Error(`${method}: ${message.error.message}`)); else done(message.result);
    });
    browser.stdio[3].write(`${JSON.stringify({ id, method, params: parameters, sessionId: session })}\0`);
  });
}

export async function run(expression) {
  const { result, exceptionDetails } = await send("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
  if (exceptionDetails) throw new Error(`${expression}: ${exceptionDetails.exception?.description ?? exceptionDetails.text}`);
  return result.value;
}

/** Sends a command to the browser instead of the page. */
export async function inBrowser(method, parameters) {
  const own = session;
  session = undefined;
  const sent = send(method, parameters);
  session = own;
  return sent;
}

/** Presses a key; modifiers are those of the protocol, such as 2 for Ctrl. */
export async function key(name, modifiers = 0) {
  const codes = { Enter: 13, Escape: 27, ArrowDown: 40, ArrowUp: 38, End: 35, Home: 36 };
  const event = { key: name, modifiers, windowsVirtualKeyCode: codes[name] ?? name.toUpperCase().charCodeAt(0) };
  const text = modifiers ? undefined : name.length === 1 ? name : name === "Enter" ? "\r" : undefined;
  await send("Input.dispatchKeyEvent", { ...event, type: "keyDown", text });
  await send("Input.dispatchKeyEvent", { ...event, type: "keyUp" });
}

/** Types a text; commands that are sent at once arrive without a pause between them. */
export const type = (text) => Promise.all([...text].map((letter) => key(letter)));

/** Opens a page, and returns its identifier. */
export async function open(url) {
  page = (await inBrowser("Target.createTarget", { url: "about:blank" })).targetId;
  ({ sessionId: session } = await inBrowser("Target.attachToTarget", { targetId: page, flatten: true }));
  for (const domain of ["Runtime", "Page", "Log", "Network"]) await send(`${domain}.enable`);
  await send("Emulation.setDeviceMetricsOverride", { width: 1280, height: 800, deviceScaleFactor: 1, mobile: false });
  await navigate(url);
  return page;
}

/** Shows another address in the tab of the page. */
export const navigate = (url) => send("Page.navigate", { url });

/** Hides the page behind another tab, or shows it again. */
export async function hide(isHidden) {
  const show = (target) => inBrowser("Target.activateTarget", { targetId: target });
  if (!isHidden) return show(page);
  return show((await inBrowser("Target.createTarget", { url: "about:blank" })).targetId);
}

/** Lets the page do nothing, as the browser of a machine that sleeps, or lets it continue. */
export async function freeze(isFrozen) {
  // A frozen page is hidden, and stays so until another tab was in front.
  if (isFrozen) await hide(true);
  await send("Page.setWebLifecycleState", { state: isFrozen ? "frozen" : "active" });
  if (!isFrozen) await hide(false);
}

/** Opens tabs behind the page, with the same address. */
export async function openTabs(url, count) {
  const targets = await Promise.all(Array.from({ length: count }, () => inBrowser("Target.createTarget", { url, background: true })));
  const tabs = targets.map((target) => target.targetId);
  return {
    /** The number of tabs that have loaded their page. */
    loaded: async () => (await inBrowser("Target.getTargets", {})).targetInfos.filter((target) => tabs.includes(target.targetId) && /xmpptap/.test(target.title)).length,
    close: () => Promise.all(tabs.map((targetId) => inBrowser("Target.closeTarget", { targetId }))),
  };
}

export async function close() {
  browser.kill();
  await new Promise((done) => { browser.on("exit", done); setTimeout(done, 5000); });
  rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
}

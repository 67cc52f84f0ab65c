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

/** Waits until an expression is true. */
export async function until(what, expression) {
  // The limit only ends a test that hangs; loaded machines are slow.
  for (let attempt = 0; attempt < 1200; attempt++) {
    if (await run(`Boolean(${expression})`)) return console.log(`ok: ${what}`);
    await new Promise((done) => setTimeout(done, 50));
  }
  throw new Error(`not so: ${what}; the page says: ${await run("document.body.innerText.slice(0, 3000)")}`);
}

/** Waits until a condition of this script is true. */
export async function eventually(what, isSo) {
  for (let attempt = 0; attempt < 1200; attempt++) {
    if (await isSo()) return console.log(`ok: ${what}`);
    await new Promise((done) => setTimeout(done, 50));
  }
  throw new Error(`not so: ${what}`);
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

export const type = async (text) => { for (const letter of text) await key(letter); };
export const shows = (selector, text) => `[...document.querySelectorAll(${JSON.stringify(selector)})].some((node) => !node.closest("[hidden]") && node.textContent.includes(${JSON.stringify(text)}))`;

/**
 * The texts on screen with less contrast than 4.5 to 1 (WCAG 1.4.3), in both themes. Runs in the page.
 */
function faintTexts() {
  const parse = (text) => { const [red, green, blue, alpha = 1] = text.match(/[\d.]+/g).map(Number); return { red, green, blue, alpha }; };
  const over = (top, below) => ({ alpha: 1, ...Object.fromEntries(["red", "green", "blue"].map((name) => [name, top[name] * top.alpha + below[name] * (1 - top.alpha)])) });
  const luminance = (colour) => {
    const [red, green, blue] = [colour.red, colour.green, colour.blue].map((value) => value / 255).map((value) => (value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const contrast = (one, other) => { const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b); return (high + 0.05) / (low + 0.05); };
  const paper = (node) => {
    const layers = [];
    for (let outer = node; outer; outer = outer.parentElement) layers.push(parse(getComputedStyle(outer).backgroundColor));
    return layers.reverse().reduce((below, layer) => over(layer, below), { red: 255, green: 255, blue: 255, alpha: 1 });
  };
  const found = new Set();
  let count = 0;
  const look = (node, text, style) => {
    const box = node.getBoundingClientRect();
    if (!text.trim() || !box.width || !box.height || style.visibility === "hidden" || node.closest("[hidden], .narrow, .offscreen")) return;
    count += 1;
    const below = paper(node);
    const ratio = contrast(over(parse(style.color), below), below);
    if (ratio < 4.5) found.add(`${document.documentElement.dataset.theme}: ${ratio.toFixed(2)} ${node.tagName}.${node.className} "${text.trim().slice(0, 30)}"`);
  };
  const { theme } = document.documentElement.dataset;
  for (const name of ["light", "dark"]) {
    document.documentElement.dataset.theme = name;
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) look(walker.currentNode.parentElement, walker.currentNode.data, getComputedStyle(walker.currentNode.parentElement));
    for (const input of document.querySelectorAll("input, textarea")) {
      look(input, input.value, getComputedStyle(input));
      look(input, input.value ? "" : input.placeholder, getComputedStyle(input, "::placeholder"));
    }
  }
  if (theme) document.documentElement.dataset.theme = theme; else delete document.documentElement.dataset.theme;
  return { count, found: [...found] };
}

/** Checks that all texts on screen can be read in both themes. */
export async function isReadable(view) {
  const { count, found } = await run(`(${faintTexts})()`);
  if (count < 20) throw new Error(`${view}: only ${count} texts`);
  if (found.length) throw new Error(`${view}: too little contrast: ${found.join("; ")}`);
  console.log(`ok: the texts of ${view} have enough contrast in both themes`);
}

/** Opens a page, and returns its identifier. */
export async function open(url) {
  const { targetId } = await send("Target.createTarget", { url: "about:blank" });
  ({ sessionId: session } = await send("Target.attachToTarget", { targetId, flatten: true }));
  for (const domain of ["Runtime", "Page", "Log", "Network"]) await send(`${domain}.enable`);
  await send("Emulation.setDeviceMetricsOverride", { width: 1280, height: 800, deviceScaleFactor: 1, mobile: false });
  await send("Page.navigate", { url });
  return targetId;
}

/** Runs the checks, and ends the browser and this program. */
export async function finish(check) {
  let status = 0;
  try {
    await check();
  } catch (error) {
    console.log(String(error.stack ?? error));
    status = 1;
  }
  browser.kill();
  await new Promise((done) => { browser.on("exit", done); setTimeout(done, 5000); });
  rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
  process.exit(status);
}

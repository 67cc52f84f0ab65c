// Drives headless Firefox by WebDriver BiDi, with Debian's node-ws.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";

const WebSocket = createRequire(import.meta.url)("/usr/share/nodejs/ws");
const profile = mkdtempSync(join(tmpdir(), "xmpptap-firefox-"));
// No requests of the browser itself, and no page of its own.
writeFileSync(join(profile, "user.js"), Object.entries({
  "app.normandy.enabled": false, "app.update.enabled": false, "browser.safebrowsing.malware.enabled": false, "browser.safebrowsing.phishing.enabled": false,
  "browser.shell.checkDefaultBrowser": false, "browser.startup.homepage_override.mstone": "ignore", "datareporting.policy.dataSubmissionEnabled": false,
  "network.captive-portal-service.enabled": false, "network.connectivity-service.enabled": false, "services.settings.server": "data:,", "toolkit.telemetry.enabled": false,
}).map(([name, value]) => `user_pref(${JSON.stringify(name)}, ${JSON.stringify(value)});\n`).join(""));
const browser = spawn("firefox-esr", ["--headless", "--no-remote", "--remote-debugging-port=0", "--profile", profile, "about:blank"],
  { stdio: ["ignore", "ignore", "pipe"], env: { ...process.env, HOME: profile } });

/** Addresses of requests without an answer yet, by their identifier. */
export const pending = new Map();
/** Errors of scripts, violations of the policy, and requests that failed. */
export const faults = [];
export const requests = [];
let number = 0;
let page;
const waiting = new Map();

/** The socket of a session; its address is a line of the browser's. */
const opening = new Promise((done, fail) => {
  let text = "";
  browser.stderr.on("data", (data) => {
    text += data;
    const address = /WebDriver BiDi listening on (ws:\S+)/.exec(text)?.[1];
    if (!address) return;
    text = "";
    browser.stderr.removeAllListeners("data").resume();
    const socket = new WebSocket(`${address}/session`);
    socket.on("open", () => done(socket));
    socket.on("error", fail);
    socket.on("message", receive);
  });
  browser.on("exit", (status) => fail(new Error(`Firefox has ended with status ${status}: ${text}`)));
});

function receive(data) {
  const { id, type, method, params, result, error, message } = JSON.parse(data);
  if (type === "event") return happened(method, params);
  const { done, fail } = waiting.get(id) ?? {};
  waiting.delete(id);
  if (error) fail?.(new Error(`${error}: ${message}`)); else done?.(result);
}

function happened(method, params) {
  if (method === "log.entryAdded") {
    if (["error", "warn"].includes(params.level)) faults.push(params.text);
    return;
  }
  // Other tabs are not the page.
  if (params.context !== page) return;
  const { request, url } = params.request;
  if (method === "network.beforeRequestSent") {
    requests.push(url);
    pending.set(request, url);
  } else {
    pending.delete(request);
    if (params.response?.status >= 400) faults.push(`status ${params.response.status} of ${url}`);
  }
}

async function send(method, params = {}) {
  const socket = await opening;
  return new Promise((done, fail) => {
    const id = (number += 1);
    waiting.set(id, { done, fail: (error) => fail(new Error(`${method}: ${error.message}`)) });
    socket.send(JSON.stringify({ id, method, params }));
  });
}

/** The value that a description of the protocol means. */
function valueOf({ type, value }) {
  if (type === "array") return value.map(valueOf);
  if (type === "object" && value) return Object.fromEntries(value.map(([name, inner]) => [name, valueOf(inner)]));
  return value ?? (type === "null" ? null : undefined);
}

export async function run(expression) {
  const answer = await send("script.evaluate", { expression, target: { context: page }, awaitPromise: true });
  if (answer.type === "exception") throw new Error(`${expression}: ${answer.exceptionDetails.text}`);
  return valueOf(answer.result);
}

const codes = { Enter: "\uE007", Escape: "\uE00C", ArrowDown: "\uE015", ArrowUp: "\uE013", End: "\uE010", Home: "\uE011" };
const press = (value) => [{ type: "keyDown", value }, { type: "keyUp", value }];
const perform = (actions) => send("input.performActions", { context: page, actions: [{ type: "key", id: "keyboard", actions }] });

/** Presses a key; the only modifier is 2 for Ctrl. */
export async function key(name, modifiers = 0) {
  const [down, up] = press("\uE009");
  const actions = press(codes[name] ?? name);
  await perform(modifiers === 2 ? [down, ...actions, up] : actions);
}

/** Types a text at once: the page asks for what is typed after a short pause, and a part of a filter is a mistake. */
export const type = (text) => perform([...text].flatMap(press));

/** Opens a page. */
export async function open(url) {
  await send("session.new", { capabilities: {} });
  await send("session.subscribe", { events: ["log.entryAdded", "network.beforeRequestSent", "network.responseCompleted", "network.fetchError"] });
  page = (await send("browsingContext.create", { type: "tab" })).context;
  await send("browsingContext.setViewport", { context: page, viewport: { width: 1280, height: 800 } });
  await navigate(url);
}

/** Shows another address in the tab of the page. */
export const navigate = (url) => send("browsingContext.navigate", { context: page, url, wait: "none" });

/** Hides the page behind another tab, or shows it again. */
export async function hide(isHidden) {
  const context = isHidden ? (await send("browsingContext.create", { type: "tab" })).context : page;
  await send("browsingContext.activate", { context });
}

export async function close() {
  browser.kill();
  await new Promise((done) => { browser.on("exit", done); setTimeout(done, 5000); });
  rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
}

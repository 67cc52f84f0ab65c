// What tests of the page do in any browser. The last argument `firefox` chooses Firefox instead of Chromium.
import { readFileSync } from "node:fs";

const driver = await import(process.argv.at(-1) === "firefox" ? "./firefox.mjs" : "./chromium.mjs");
export const { faults, hide, key, navigate, open, pending, requests, run, type } = driver;

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

/** The script of axe, which `.ci/packages test` fetches; undefined without it, in Firefox, and for `view`, whose page is that of `live`. */
const axe = (() => {
  try { return process.argv.at(-1) === "firefox" || process.argv[2] === "view" ? undefined : readFileSync(new URL("../../../.build/axe/axe_playwright_python/axe.min.js", import.meta.url), "utf8"); } catch { return undefined; }
})();

/** What axe finds on screen in both themes, apart from what has little impact. Runs in the page. */
async function seriousFindings() {
  const { theme } = document.documentElement.dataset;
  const found = [];
  for (const name of ["light", "dark"]) {
    document.documentElement.dataset.theme = name;
    const { violations } = await window.axe.run(document, { resultTypes: ["violations"] });
    for (const { id, impact, help, nodes } of violations) {
      if (!["serious", "critical"].includes(impact)) continue;
      found.push(`${name}: ${impact}: ${id}, ${help}: ${nodes.slice(0, 3).map((node) => `${node.html.slice(0, 160)} (${node.failureSummary})`).join("; ")}`);
    }
  }
  if (theme) document.documentElement.dataset.theme = theme; else delete document.documentElement.dataset.theme;
  return found;
}

/** Checks that all texts on screen can be read in both themes, and that axe finds nothing serious. */
export async function isAccessible(view) {
  const { count, found } = await run(`(${faintTexts})()`);
  if (count < 20) throw new Error(`${view}: only ${count} texts`);
  if (found.length) throw new Error(`${view}: too little contrast: ${found.join("; ")}`);
  console.log(`ok: the texts of ${view} have enough contrast in both themes`);
  if (!axe) return;
  if (!await run("Boolean(window.axe)")) await run(axe);
  const serious = await run(`(${seriousFindings})()`);
  if (serious.length) throw new Error(`${view}: axe finds ${serious.join("\n")}`);
  console.log(`ok: axe finds nothing serious in ${view} in both themes`);
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
  await driver.close();
  process.exit(status);
}

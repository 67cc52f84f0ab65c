// Elements are made with text nodes only: text from the wire is never parsed as markup.

/**
 * Creates an element. Properties beginning with `on` are listeners, `class` is the class, others are attributes;
 * false and undefined leave them out.
 * @param {string} name
 * @param {Record<string, any> | null} [properties]
 * @param {...(Node | string | number | null | undefined | false)} children
 * @returns {any}
 */
export function el(name, properties, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(properties ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key === "class") node.className = value;
    else if (key === "text") node.textContent = value;
    else node.setAttribute(key, value === true ? "" : String(value));
  }
  add(node, children);
  return node;
}

/**
 * Appends nodes and texts.
 * @param {Node} node
 * @param {any[]} children
 */
export function add(node, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    node.appendChild(typeof child === "object" ? child : document.createTextNode(String(child)));
  }
}

/**
 * Replaces all children.
 * @param {Element} node
 * @param {...any} children
 */
export function fill(node, ...children) {
  node.replaceChildren();
  add(node, children);
}

/**
 * Sets the text of a node if it differs, so that unchanged rows cost no layout.
 * @param {any} node
 * @param {string} text
 */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

const svgSpace = "http://www.w3.org/2000/svg";

/**
 * Creates an element of SVG.
 * @param {string} name
 * @param {Record<string, any>} properties
 * @param {...Node} children
 */
export function svg(name, properties, ...children) {
  const node = document.createElementNS(svgSpace, name);
  for (const [key, value] of Object.entries(properties)) node.setAttribute(key, String(value));
  for (const child of children) node.appendChild(child);
  return node;
}

/**
 * Draws counts as bars.
 * @param {number[]} counts
 * @param {number} width
 * @param {number} height
 * @param {string} label
 */
export function bars(counts, width, height, label) {
  const most = Math.max(1, ...counts);
  const step = width / Math.max(1, counts.length);
  let path = "";
  counts.forEach((count, index) => {
    if (!count) return;
    const tall = Math.max(1, (count / most) * height);
    path += `M${(index * step).toFixed(1)} ${height}v${(-tall).toFixed(1)}h${Math.max(1, step - 0.6).toFixed(1)}v${tall.toFixed(1)}z`;
  });
  return svg("svg", { class: "bars", width, height, viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": label },
    svg("path", { d: path }));
}

/**
 * Calls a function after a time, but not before the page is visible: a hidden page asks for nothing.
 * @param {number} wait in milliseconds
 * @param {() => void} call
 * @returns {() => void} gives the call up
 */
export function callLater(wait, call) {
  let isWanted = true;
  const go = () => {
    if (!isWanted) return;
    if (document.hidden) document.addEventListener("visibilitychange", go, { once: true });
    else call();
  };
  const timer = setTimeout(go, wait);
  return () => {
    isWanted = false;
    clearTimeout(timer);
  };
}

/** Asks again and again while a view is shown. */
export class Poll {
  /** @param {() => number} wait until the next request in milliseconds; 0 for none @param {() => Promise<void>} ask must not fail */
  constructor(wait, ask) {
    this.wait = wait;
    this.ask = ask;
    this.isOn = false;
  }

  start() { this.isOn = true; this.now(); }
  stop() { this.isOn = false; this.giveUp?.(); }

  /** Asks without waiting. */
  async now() {
    this.giveUp?.();
    await this.ask();
    this.giveUp?.();
    const wait = this.wait();
    if (this.isOn && wait) this.giveUp = callLater(wait, () => this.now());
  }
}

/**
 * A part of a view with a heading.
 * @param {string} title
 * @param {...any} children
 */
export function panel(title, ...children) { return el("section", { class: "panel", "aria-label": title }, el("h2", { text: title }), ...children); }

/**
 * A field for a stanza.
 * @param {Record<string, any>} properties
 */
export function stanzaField(properties) { return el("textarea", { class: "stanza", spellcheck: "false", autocomplete: "off", autocapitalize: "off", ...properties }); }

/**
 * A choice from values and their texts.
 * @param {string} label
 * @param {[string, string][]} options
 * @param {() => void} [change]
 */
export function choice(label, options, change) { return el("select", { "aria-label": label, onchange: change }, ...options.map(([value, text]) => el("option", { value, text }))); }

/**
 * Copies a text, and says so.
 * @param {string} text
 * @param {(text: string) => void} say
 */
export async function copy(text, say) {
  try {
    await navigator.clipboard.writeText(text);
    say(`copied ${text.length} characters`);
  } catch {
    const area = el("textarea", { class: "offscreen" });
    area.value = text;
    document.body.appendChild(area);
    area.select();
    document.execCommand("copy");
    area.remove();
    say(`copied ${text.length} characters`);
  }
}

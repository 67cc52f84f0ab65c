// Elements without a browser: what the views of the page need of a document.

class FakeNode {
  children = [];
  parent = null;

  get childNodes() { return this.children; }
  get textContent() { return this.children.map((child) => child.textContent).join(""); }
  set textContent(text) { this.replaceChildren(new FakeText(text)); }

  appendChild(child) {
    if (child.name === "#fragment") { for (const one of [...child.children]) this.appendChild(one); return child; }
    child.remove?.();
    child.parent = this;
    this.children.push(child);
    return child;
  }

  append(...all) { for (const child of all) this.appendChild(typeof child === "string" ? new FakeText(child) : child); }
  prepend(child) { child.parent = this; this.children.unshift(child); }
  replaceChildren(...all) { this.children = []; this.append(...all); }
  remove() { if (this.parent) this.parent.children = this.parent.children.filter((child) => child !== this); this.parent = null; }
  contains(other) { return other === this || this.children.some((child) => child.contains?.(other)); }
  get lastChild() { return this.children.at(-1); }
}

class FakeText extends FakeNode {
  constructor(text) { super(); this.text = String(text); }
  get textContent() { return this.text; }
}

class FakeElement extends FakeNode {
  attributes = new Map();
  listeners = {};
  style = { setProperty() {} };
  dataset = {};
  hidden = false;
  disabled = false;
  #value = "";

  constructor(name) { super(); this.tagName = name.toUpperCase(); }

  get className() { return this.attributes.get("class") ?? ""; }
  set className(text) { this.attributes.set("class", text); }
  get id() { return this.attributes.get("id") ?? ""; }
  set id(text) { this.attributes.set("id", text); }
  get classList() {
    const names = new Set(this.className.split(" ").filter(Boolean));
    const set = () => { this.className = [...names].join(" "); };
    return {
      add: (...all) => { all.forEach((name) => names.add(name)); set(); }, remove: (...all) => { all.forEach((name) => names.delete(name)); set(); },
      contains: (name) => names.has(name), toggle: (name, on = !names.has(name)) => { names[on ? "add" : "delete"](name); set(); },
    };
  }

  /** A choice has the value of one of its options, the first one at the beginning. */
  get value() {
    if (this.tagName !== "SELECT") return this.#value;
    const values = this.children.map((option) => option.attributes.get("value"));
    return values.includes(this.#value) ? this.#value : this.isChosen ? "" : values[0] ?? "";
  }
  set value(text) { this.isChosen = true; this.#value = String(text); }

  setAttribute(name, value) { this.attributes.set(name, String(value)); if (name === "value") this.#value = String(value); if (name === "disabled") this.disabled = true; }
  getAttribute(name) { return this.attributes.get(name) ?? null; }
  removeAttribute(name) { this.attributes.delete(name); }
  addEventListener(type, listener) { (this.listeners[type] ??= []).push(listener); }
  dispatch(type, event = {}) { for (const listener of this.listeners[type] ?? []) listener({ target: this, preventDefault() {}, ...event }); }
  focus() { globalThis.document.activeElement = this; }
  select() {}
  scrollIntoView() {}

  /** All elements below this one that a function accepts. */
  all(accepts) { return this.children.flatMap((child) => (child instanceof FakeElement ? [...(accepts(child) ? [child] : []), ...child.all(accepts)] : [])); }
  /** The first element with a class, or with a label. */
  find(text) { return this.all((node) => node.className.split(" ").includes(text) || node.getAttribute("aria-label") === text)[0]; }
  button(text) { return this.all((node) => node.tagName === "BUTTON" && node.textContent === text)[0]; }
  /** Selectors of a role or a class only. */
  querySelectorAll(selector) {
    const role = /^\[role=(\w+)\]$/.exec(selector)?.[1];
    return this.all((node) => (role ? node.getAttribute("role") === role : node.className.split(" ").includes(selector.slice(1))));
  }
  querySelector(selector) { return this.querySelectorAll(selector)[0] ?? null; }
  closest(selector) { return this.className.split(" ").includes(selector.slice(1)) ? this : this.parent?.closest?.(selector) ?? null; }
}

/** Puts a document into the global object, and returns it. Frames are drawn when `frame` is called. */
export function installDocument() {
  const frames = [];
  const body = new FakeElement("body");
  const document = {
    hidden: false, body, documentElement: new FakeElement("html"), activeElement: body,
    createElement: (name) => new FakeElement(name), createElementNS: (_, name) => new FakeElement(name), createTextNode: (text) => new FakeText(text),
    addEventListener() {}, removeEventListener() {}, querySelector: () => null,
    /** Draws what waits for the next frame. */
    frame() { for (const draw of frames.splice(0)) draw(); },
    /** The functions that observe sizes. */
    observers: [],
  };
  Object.assign(globalThis, {
    document, Node: FakeNode, requestAnimationFrame: (draw) => frames.push(draw),
    ResizeObserver: class { constructor(changed) { document.observers.push(changed); } observe() {} },
    window: { addEventListener() {} },
  });
  return document;
}

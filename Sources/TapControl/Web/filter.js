// The box for a filter: completion, the place of an error, and saved filters.
import { el, fill } from "./dom.js";
import { localStorageGet, localStorageSet } from "./format.js";
import { conditions, values } from "./words.js";

const storageKey = "xmpptap.filters";

/** @returns {string[]} */
function savedFilters() {
  try {
    const list = JSON.parse(localStorageGet(storageKey) ?? "[]");
    return Array.isArray(list) ? list.filter((entry) => typeof entry === "string") : [];
  } catch { return []; }
}

/** A box with a filter. */
export class FilterBox {
  /**
   * @param {{ onChange: (text: string) => void, hint: string, onEnter?: () => void, label?: string }} options `onEnter` is called
   *   instead of applying the filter; `hint` follows an error
   */
  constructor(options) {
    this.options = options;
    this.input = el("input", {
      type: "text", class: "filter", spellcheck: "false", autocomplete: "off", autocapitalize: "off", role: "combobox",
      "aria-label": options.label ?? "Filter", "aria-expanded": "false", "aria-autocomplete": "list", "aria-controls": "completions",
      placeholder: "Filter: message and with:romeo@example.org",
      oninput: () => this.typed(), onkeydown: (/** @type {KeyboardEvent} */ event) => this.key(event),
      onfocus: () => { clearTimeout(this.closing); this.complete(); }, onblur: () => { this.closing = setTimeout(() => this.close(), 120); },
    });
    this.list = el("ul", { id: "completions", class: "completions", role: "listbox", "aria-label": "Conditions" });
    this.list.hidden = true;
    this.error = el("p", { class: "fault", role: "alert" });
    this.error.hidden = true;
    this.save = el("button", { class: "plain", title: "Save this filter, or remove it", "aria-pressed": "false", text: "☆", "aria-label": "Save this filter",
      onclick: () => this.toggleSaved() });
    this.clear = el("button", { class: "plain", title: "Remove the filter (Esc)", text: "✕", "aria-label": "Remove the filter",
      onclick: () => { this.set(""); this.input.focus(); this.complete(); } });
    this.node = el("div", { class: "filterbox", role: "search" },
      el("div", { class: "filterline" }, this.input, this.save, this.clear, this.list), this.error);
    this.chosen = -1;
    /** @type {{ text: string, note: string, isWhole?: boolean }[]} */
    this.entries = [];
    this.update();
  }

  get text() { return this.input.value; }

  /**
   * Sets the filter and applies it.
   * @param {string} text
   */
  set(text) {
    this.input.value = text;
    this.close();
    this.apply();
  }

  apply() {
    clearTimeout(this.timer);
    this.update();
    this.options.onChange(this.input.value.trim());
  }

  typed() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.apply(), 250);
    this.complete();
    this.update();
  }

  update() {
    const isSaved = savedFilters().includes(this.text.trim());
    this.save.textContent = isSaved ? "★" : "☆";
    this.save.setAttribute("aria-pressed", String(isSaved));
    this.save.hidden = this.clear.hidden = this.text.trim() === "";
  }

  toggleSaved() {
    const text = this.text.trim();
    const saved = savedFilters();
    localStorageSet(storageKey, JSON.stringify(saved.includes(text) ? saved.filter((entry) => entry !== text) : [text, ...saved].slice(0, 50)));
    this.update();
  }

  /**
   * Marks the place of an error; none if there is no text.
   * @param {string} text
   * @param {number} column from 1
   */
  fault(text, column) {
    this.error.hidden = text === "";
    this.input.classList.toggle("wrong", text !== "");
    this.input.setAttribute("aria-invalid", String(text !== ""));
    if (text === "") return;
    const words = [...this.input.value];
    const at = Math.min(Math.max(0, column - 1), words.length);
    fill(this.error,
      el("code", null, words.slice(Math.max(0, at - 30), at).join(""),
        el("mark", { class: "place", text: words[at] ?? " " }), words.slice(at + 1, at + 30).join("")),
      el("span", { text: `${text}${/[.?]$/.test(text) ? "" : "."} ${this.options.hint}` }));
  }

  // Completion

  /** The word before the cursor, and where it begins. */
  word() {
    const end = this.input.selectionStart ?? this.text.length;
    const before = this.text.slice(0, end);
    const start = Math.max(before.lastIndexOf(" "), before.lastIndexOf("(")) + 1;
    return { start, end, text: before.slice(start).toLowerCase() };
  }

  complete() {
    const { text } = this.word();
    const colon = text.indexOf(":") + 1;
    const listed = colon > 0 ? values[text.slice(0, colon)] : undefined;
    if (this.text.trim() === "") {
      this.entries = [
        ...savedFilters().map((entry) => ({ text: entry, note: "saved", isWhole: true })),
        ...conditions.map(([word, note]) => ({ text: word, note })),
      ];
    } else if (listed) {
      const typed = text.slice(colon);
      this.entries = listed.filter((value) => value.startsWith(typed) && value !== typed)
        .map((value) => ({ text: text.slice(0, colon) + value, note: "" }));
    } else {
      this.entries = text === "" ? [] : conditions.filter(([word]) => word.startsWith(text) && word !== text)
        .map(([word, note]) => ({ text: word, note }));
    }
    this.chosen = -1;
    this.open();
  }

  open() {
    this.list.hidden = this.entries.length === 0;
    this.input.setAttribute("aria-expanded", String(!this.list.hidden));
    fill(this.list, ...this.entries.slice(0, 60).map((entry, index) => el("li", {
      role: "option", id: `completion-${index}`, "aria-selected": index === this.chosen ? "true" : "false",
      onmousedown: (/** @type {Event} */ event) => { event.preventDefault(); this.take(index); },
    }, el("code", { text: entry.text }), el("span", { text: entry.note }))));
    if (this.chosen >= 0) {
      this.input.setAttribute("aria-activedescendant", `completion-${this.chosen}`);
      this.list.children[this.chosen]?.scrollIntoView({ block: "nearest" });
    } else {
      this.input.removeAttribute("aria-activedescendant");
    }
  }

  close() {
    this.list.hidden = true;
    this.input.setAttribute("aria-expanded", "false");
  }

  /**
   * Inserts a completion.
   * @param {number} index
   */
  take(index) {
    const entry = this.entries[index];
    if (!entry) return;
    if (entry.isWhole) return this.set(entry.text);
    const { start, end } = this.word();
    const isOpen = /[:~<>]$/.test(entry.text);
    const text = entry.text + (isOpen ? "" : " ");
    this.input.value = this.text.slice(0, start) + text + this.text.slice(end);
    this.input.setSelectionRange(start + text.length, start + text.length);
    if (isOpen) this.complete(); else this.close();
    if (!isOpen) this.typed();
    this.update();
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const isOpen = !this.list.hidden;
    const move = (/** @type {number} */ step) => {
      event.preventDefault();
      const count = Math.min(60, this.entries.length);
      this.chosen = (this.chosen + step + count + (this.chosen < 0 && step < 0 ? 1 : 0)) % Math.max(1, count);
      this.open();
    };
    if (event.key === "ArrowDown" && isOpen) move(1);
    else if (event.key === "ArrowUp" && isOpen) move(-1);
    else if (event.key === "Tab" && isOpen && this.chosen >= 0) { event.preventDefault(); this.take(this.chosen); }
    else if (event.key === "Enter") {
      event.preventDefault();
      if (isOpen && this.chosen >= 0) this.take(this.chosen);
      else {
        this.close();
        if (this.options.onEnter) this.options.onEnter(); else this.apply();
      }
    } else if (event.key === "Escape") {
      event.preventDefault();
      event.stopPropagation();
      if (isOpen) this.close();
      else if (this.text) this.set("");
      else this.input.blur();
    }
  }
}

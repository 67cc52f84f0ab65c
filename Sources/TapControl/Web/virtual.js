// A list of which only the rows in view are elements.
import { el } from "./dom.js";

/** Browsers limit the height of elements; beyond this height the scroll position is scaled. */
const maximumHeight = 8_000_000;

/**
 * The index at the upper edge if a row is at the lower edge.
 * @param {number} first
 * @param {number} end the index after that row
 * @param {number} height of the view
 * @param {(index: number) => number} heightOf the height of a row
 * @returns {number} a fraction if the row is cut
 */
export function topBefore(first, end, height, heightOf) {
  let room = height;
  for (let index = end - 1; index >= first; index--) {
    const tall = heightOf(index);
    if (tall > room) return index + 1 - room / tall;
    room -= tall;
  }
  return first;
}

/**
 * The places of the rows in view, and one more: where each row begins, from the upper edge.
 * @param {number} top the index at the upper edge
 * @param {number} end
 * @param {number} height of the view
 * @param {(index: number) => number} heightOf
 * @returns {number[]}
 */
export function placesOf(top, end, height, heightOf) {
  const start = Math.floor(top);
  const places = [];
  let place = 0;
  for (let index = start; index < end && place < height; index++) {
    const tall = heightOf(index);
    if (index === start) place = (start - top) * tall;
    places.push(place);
    place += tall;
  }
  places.push(place);
  return places;
}

/**
 * A list with rows of one height; some have a gap above them. Indices are those of the list: they stay the same when the list grows.
 */
export class VirtualList {
  /**
   * @param {{ rowHeight: number, label: string, columns: number, header?: HTMLElement,
   *   make: () => HTMLElement, draw: (node: any, index: number) => void, gap?: (index: number) => number, onScroll?: () => void, onResize?: () => void }} options
   */
  constructor(options) {
    this.options = options;
    this.first = 0;
    this.end = 0;
    /** The index of the row at the upper edge; a fraction if it is cut. */
    this.top = 0;
    this.isFollowing = false;
    this.spacer = el("div", { class: "spacer" });
    this.window = el("div", { class: "window", role: "rowgroup" });
    this.node = el("div", { class: "virtual", role: "grid", tabindex: 0, "aria-label": options.label,
      "aria-colcount": options.columns, "aria-readonly": "true" }, options.header, this.window, this.spacer);
    /** @type {HTMLElement[]} */
    this.pool = [];
    this.selected = -1;
    this.last = 0;
    this.laidOut = 0;
    this.heightOf = (/** @type {number} */ index) => this.rowHeight + (options.gap?.(index) ?? 0);
    this.isDrawing = false;
    this.height = 0;
    this.node.addEventListener("scroll", () => this.scrolled(), { passive: true });
    new ResizeObserver(() => {
      const wasInView = this.selected >= this.top - 1 && this.selected < this.top + this.page;
      this.height = this.window.clientHeight;
      if (this.isFollowing) this.top = this.lowest;
      else if (this.selected >= 0 && wasInView) this.reveal(this.selected);
      this.layout();
      this.draw();
      options.onResize?.();
    }).observe(this.window);
  }

  get rowHeight() { return this.options.rowHeight; }
  get count() { return this.end - this.first; }
  /** Number of whole rows in view. */
  get page() {
    const places = placesOf(this.top, this.end, this.height, this.heightOf);
    return Math.max(1, places.filter((place, slot) => slot > 0 && place < this.height + 0.1).length - (places[0] < -0.1 ? 1 : 0));
  }

  /** The largest value of `top`. */
  get lowest() { return topBefore(this.first, this.end, this.height, this.heightOf); }
  get isAtEnd() { return this.top >= this.lowest - 0.5; }
  get isScaled() { return this.count * this.rowHeight > maximumHeight; }

  /**
   * Changes the number of rows; those in view do not move.
   * @param {number} first
   * @param {number} end
   */
  resize(first, end) {
    const isOther = first !== this.first || end !== this.end;
    this.first = first;
    this.end = end;
    this.node.setAttribute("aria-rowcount", String(this.count + 1));
    if (this.isFollowing) this.top = this.lowest;
    this.top = Math.min(Math.max(this.top, first), this.lowest);
    // Rows that arrive can have gaps above them.
    if (isOther || this.laidOut !== this.lowest) this.layout();
    this.draw();
  }

  /**
   * Moves the row into view.
   * @param {number} index
   * @param {"nearest" | "middle"} where
   */
  reveal(index, where = "nearest") {
    const above = topBefore(this.first, index + 1, where === "middle" ? this.height / 2 + this.rowHeight : this.height, this.heightOf);
    if (where === "middle" || index >= this.top && above > this.top) this.top = above;
    else if (index < this.top) this.top = index;
    else return this.draw();
    this.top = Math.min(Math.max(this.top, this.first), this.lowest);
    this.isFollowing = false;
    this.layout();
    this.draw();
    this.options.onScroll?.();
  }

  /**
   * Shows a row at the upper edge.
   * @param {number} top the index; a fraction if the row is cut
   */
  show(top) {
    this.top = Math.min(Math.max(top, this.first), this.lowest);
    this.isFollowing = false;
    this.layout();
    this.draw();
    this.options.onScroll?.();
  }

  /** Shows the end, and stays there when rows are added. */
  follow() {
    this.isFollowing = true;
    this.top = this.lowest;
    this.layout();
    this.draw();
    this.options.onScroll?.();
  }

  layout() {
    this.laidOut = this.lowest;
    this.spacer.style.height = `${this.room}px`;
    this.setScroll();
  }

  /** The number of pixels to scroll. */
  get room() { return Math.min((this.lowest - this.first) * this.rowHeight, Math.max(0, maximumHeight - this.height)); }

  /** Sets the scroll bar to the row at the upper edge. */
  setScroll() {
    const rows = Math.max(1e-9, this.lowest - this.first);
    const wanted = this.isScaled ? ((this.top - this.first) / rows) * this.room : (this.top - this.first) * this.rowHeight;
    if (Math.abs(this.node.scrollTop - wanted) > 0.5) this.node.scrollTop = wanted;
    this.last = this.node.scrollTop;
  }

  scrolled() {
    const now = this.node.scrollTop;
    const step = now - this.last;
    if (Math.abs(step) < 0.5) return;
    this.last = now;
    if (!this.isScaled) {
      this.top = this.first + now / this.rowHeight;
    } else if (Math.abs(step) < 3 * this.height) {
      // The wheel and the arrows of the scroll bar move by pixels, whatever the scale is.
      this.top += step / this.rowHeight;
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.setScroll(), 150);
    } else {
      const room = Math.max(1, maximumHeight - this.height);
      this.top = this.first + (now / room) * (this.lowest - this.first);
    }
    this.top = Math.min(Math.max(this.top, this.first), this.lowest);
    this.isFollowing = this.isAtEnd;
    this.draw();
    this.options.onScroll?.();
  }

  /** Draws the rows in view in the next frame. */
  draw() {
    if (this.isDrawing) return;
    this.isDrawing = true;
    requestAnimationFrame(() => {
      this.isDrawing = false;
      this.drawNow();
    });
  }

  drawNow() {
    const start = Math.floor(this.top);
    const places = placesOf(this.top, this.end, this.height, this.heightOf);
    const needed = places.length - 1;
    const end = start + needed;
    while (this.pool.length < needed) {
      const node = this.options.make();
      node.classList.add("row");
      this.pool.push(node);
      this.window.appendChild(node);
    }
    for (let slot = 0; slot < this.pool.length; slot++) {
      const node = this.pool[slot];
      // A row keeps its element while it is in view.
      const index = start + ((((slot - start) % this.pool.length) + this.pool.length) % this.pool.length);
      if (index >= end || index < this.first) {
        node.hidden = true;
        // Nothing may take a hidden row for the selected one.
        node.removeAttribute("id");
        node.removeAttribute("aria-selected");
        continue;
      }
      node.hidden = false;
      node.id = `${this.id}-${index}`;
      node.setAttribute("aria-rowindex", String(index - this.first + 2));
      node.setAttribute("aria-selected", index === this.selected ? "true" : "false");
      node.style.height = `${places[index - start + 1] - places[index - start]}px`;
      node.style.transform = `translateY(${places[index - start]}px)`;
      this.options.draw(node, index);
    }
    // A row that is scrolled out of view has no element.
    if (this.selected >= start && this.selected < end) this.node.setAttribute("aria-activedescendant", `${this.id}-${this.selected}`);
    else this.node.removeAttribute("aria-activedescendant");
  }

  get id() {
    if (!this.node.id) this.node.id = `list${(VirtualList.number += 1)}`;
    return this.node.id;
  }

  /**
   * The index of the row of an event; -1 if it is on none.
   * @param {Event} event
   */
  indexOf(event) {
    const row = /** @type {HTMLElement} */ (event.target).closest(".row");
    return row ? Number(row.id.slice(row.id.lastIndexOf("-") + 1)) : -1;
  }
}
VirtualList.number = 0;

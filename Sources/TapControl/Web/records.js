// The list of records.
import { el, setText } from "./dom.js";
import { clock, count, day, size, span, visible } from "./format.js";
import { classOf, rowText, what } from "./rows.js";
import { VirtualList } from "./virtual.js";

/**
 * @typedef {import("./rows.js").Row} Row
 * @typedef {import("./rows.js").RowStore} RowStore
 */

/** Idle time from which a row says how long nothing happened, in microseconds. */
const idle = 30_000_000;
const levelNames = ["off", "error", "warn", "info", "verbose", "trace"];

/** The list of records as a table. */
export class RecordsList {
  /**
   * @param {RowStore} store
   * @param {{ onSelect: (row: Row | null) => void, onOpen: (row: Row) => void, onScroll: () => void }} events
   */
  constructor(store, events) {
    this.store = store;
    this.events = events;
    this.selectedAt = -1;
    this.isLive = false;
    const heads = [["number", "#"], ["time", "time"], ["session", "session"], ["direction", "dir"], ["what", "item"],
      ["peer", "peer"], ["text", "content"], ["size", "size"], ["trip", "answer"]];
    const header = el("div", { class: "head", role: "row", "aria-rowindex": 1 },
      ...heads.map(([name, text]) => el("span", { class: name, role: "columnheader", text })));
    this.list = new VirtualList({
      rowHeight: 22, label: "Records", columns: heads.length, header,
      make: () => {
        const cells = heads.map(([name]) => el("span", { class: name, role: "gridcell" }));
        const node = el("div", { role: "row" }, ...cells);
        /** @type {any} */ (node).cells = cells;
        return node;
      },
      draw: (node, index) => this.draw(node, index),
      onScroll: () => { this.need(); this.events.onScroll(); },
    });
    this.list.isFollowing = true;
    this.node = this.list.node;
    this.node.classList.add("records");
    this.node.addEventListener("mousedown", (/** @type {Event} */ event) => {
      const index = this.list.indexOf(event);
      if (index >= 0) this.select(index);
    });
    this.node.addEventListener("dblclick", (/** @type {Event} */ event) => {
      const row = store.row(this.list.indexOf(event));
      if (row) this.events.onOpen(row);
    });
    this.store.isFollowing = () => this.list.isFollowing;
  }

  /** Shows changes of the store. */
  update() {
    const { list, store } = this;
    if (store.isFresh) {
      list.first = store.first;
      list.end = store.end;
      if (this.selectedAt >= 0) {
        list.resize(store.first, store.end);
        this.keepSelected();
      } else {
        // Files are read from their beginning, live records from the end.
        list.top = store.first;
        list.isFollowing = this.isLive;
      }
    }
    // Rows in view stay where they are, even if the server no longer has them.
    const first = list.isFollowing || store.isFresh ? store.first : Math.min(store.first, Math.max(list.first, Math.floor(list.top)));
    list.resize(Math.min(first, store.end), store.end);
    this.need();
  }

  /** Keeps the selected record in view when the filter changes. */
  async keepSelected() {
    const at = this.selectedAt;
    try {
      const index = await this.store.indexOf(at);
      if (at !== this.selectedAt) return;
      const row = this.store.row(index);
      this.list.selected = row && row.at === at ? index : -1;
      if (index >= 0) this.list.reveal(index, "middle");
    } catch { /* Polling reports the error. */ }
  }

  need() {
    const rows = this.list.height / 22;
    this.store.need(Math.floor(this.list.top), Math.ceil(this.list.top + rows) + 1);
  }

  /**
   * @param {any} node
   * @param {number} index
   */
  draw(node, index) {
    const row = this.store.row(index);
    const { cells } = node;
    if (!row) {
      const isGone = index < this.store.first;
      node.className = "row pending";
      cells.forEach((/** @type {Node} */ cell) => setText(cell, ""));
      setText(cells[6], isGone ? "no longer kept" : "…");
      return;
    }
    const before = index > this.list.first ? this.store.row(index - 1) : null;
    const pause = before && row.time && before.time ? row.time - before.time : 0;
    const isOtherDay = before && row.time && before.time && day(row.time) !== day(before.time);
    const classes = `row ${classOf(row)}${pause >= idle || isOtherDay ? " pause" : ""}`;
    if (node.className !== classes) node.className = classes;
    setText(cells[0], row.number ? String(row.number) : "");
    setText(cells[1], clock(row.time));
    setText(cells[2], row.session ? String(row.session) : "");
    setText(cells[3], row.direction === 1 ? "→" : row.direction === 2 ? "←" : "");
    const direction = row.direction === 1 ? "SEND, client to server" : row.direction === 2 ? "RECV, server to client" : "";
    if (cells[3].title !== direction) { cells[3].title = direction; cells[3].setAttribute("aria-label", direction); }
    setText(cells[4], visible(what(row)));
    const peer = row.direction === 1 ? row.to : row.from;
    setText(cells[5], visible(peer ?? ""));
    const pauseNote = isOtherDay ? `${day(row.time)} · ` : pause >= idle ? `${span(pause)} later · ` : "";
    const mark = row.action ? `[${visible(row.action)}] ` : row.tap ? "[xmpptap] " : "";
    setText(cells[6], `${pauseNote}${mark}${rowText(row)}`);
    setText(cells[7], row.size ? size(row.size) : "");
    setText(cells[8], row.trip !== null && row.answers ? span(row.trip) : "");
    if (row.level <= 2) cells[6].title = levelNames[row.level]; else cells[6].removeAttribute("title");
  }

  /**
   * Selects the row at an index.
   * @param {number} index
   */
  select(index) {
    const bounded = Math.min(Math.max(index, this.list.first), this.list.end - 1);
    if (bounded < 0) return;
    this.list.selected = bounded;
    this.list.reveal(bounded);
    const row = this.store.row(bounded);
    if (row) {
      this.selectedAt = row.at;
      this.events.onSelect(row);
    } else {
      // The row is on its way.
      this.store.need(bounded, bounded + 1);
      clearTimeout(this.later);
      this.later = setTimeout(() => { if (this.list.selected === bounded) this.select(bounded); }, 60);
    }
  }

  /**
   * Selects a record by its position.
   * @param {number} at
   */
  async selectAt(at) {
    this.selectedAt = at;
    const index = await this.store.indexOf(at);
    const row = this.store.row(index);
    if (row) {
      this.list.isFollowing = false;
      this.list.selected = index;
      this.selectedAt = row.at;
      this.list.reveal(index, "middle");
      this.events.onSelect(row);
    }
    return row !== null && row.at === at;
  }

  /** The selected row. */
  get selected() { return this.list.selected >= 0 ? this.store.row(this.list.selected) : null; }

  /**
   * Handles a key.
   * @param {KeyboardEvent} event
   * @returns {boolean} whether it has a meaning
   */
  key(event) {
    const { list } = this;
    const current = list.selected >= 0 ? list.selected : Math.floor(list.top) - 1;
    switch (event.key) {
      case "ArrowDown": case "j": this.select(current + 1); return true;
      case "ArrowUp": case "k": this.select(list.selected >= 0 ? current - 1 : Math.floor(list.top)); return true;
      case "PageDown": case " ": this.select(current + list.page); return true;
      case "PageUp": this.select(current - list.page); return true;
      case "Home": case "g": this.select(list.first); return true;
      case "End": case "G": this.select(list.end - 1); return true;
      case "f": list.selected = -1; this.selectedAt = -1; this.events.onSelect(null); list.follow(); return true;
      case "Enter": if (this.selected) this.events.onOpen(this.selected); return true;
      default: return false;
    }
  }
}

/**
 * A sentence about what the list shows.
 * @param {RowStore} store
 * @param {VirtualList} list
 */
export function listStatus(store, list) {
  const shown = store.end - store.first;
  const whole = store.total - (store.begin ?? 0);
  const parts = [store.filter ? `${count(shown)} of ${count(whole)} records` : `${count(shown)} records`];
  if (store.filter && store.scanned < store.total) {
    parts.push(`searching, ${Math.floor(((store.scanned - (store.begin ?? 0)) / Math.max(1, whole)) * 100)} %`);
  }
  if (!store.filter && store.first > 0) parts.push(`${count(store.first)} older ones are no longer kept`);
  if (list.isFollowing) parts.push("following");
  else if (store.end - list.top - list.page > 1) parts.push(`${count(Math.max(0, Math.floor(store.end - list.top - list.page)))} below`);
  return parts.join(" · ");
}

// The list of records.
import { Cursor } from "./cursor.js";
import { el, setText } from "./dom.js";
import { clock, count, day, sessionName, size, span, visible } from "./format.js";
import { classOf, drawGap, gapHeight, rowText, what } from "./rows.js";
import { VirtualList } from "./virtual.js";

/** @typedef {import("./rows.js").Row} Row @typedef {import("./rows.js").RowStore} RowStore */

const levelNames = ["off", "error", "warn", "info", "verbose", "trace"];

/** The list of records as a table. */
export class RecordsList {
  /** @param {RowStore} store @param {{ onSelect: (row: Row | null) => void, onOpen: (row: Row) => void, onScroll: () => void }} events */
  constructor(store, events) {
    this.store = store;
    this.events = events;
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
      gap: (index) => (this.gone(index) ? gapHeight : store.gap(index)),
      onScroll: () => { this.cursor.scrolled(); this.events.onScroll(); },
      // How many rows are below is known only then.
      onResize: () => { this.cursor.need(); this.events.onScroll(); },
    });
    this.list.isFollowing = true;
    this.cursor = new Cursor(this.list, store, events.onSelect);
    this.node = this.list.node;
    this.node.classList.add("records");
    this.node.addEventListener("mousedown", (/** @type {Event} */ event) => {
      const index = this.list.indexOf(event);
      if (index >= 0) this.cursor.select(index);
    });
    this.node.addEventListener("dblclick", (/** @type {Event} */ event) => {
      const row = store.row(this.list.indexOf(event));
      if (row) this.events.onOpen(row);
    });
    this.store.isFollowing = () => this.list.isFollowing;
  }

  /** Shows changes of the store. Files are read from their beginning, live records from the end. */
  update() { this.cursor.update(this.isLive); }

  /**
   * Number of records before a row that are no longer kept, whether they match the filter or not: 0 for all rows but the first one.
   * @param {number} index
   * @returns {number}
   */
  gone(index) { return index !== this.list.first ? 0 : this.store.filter ? this.store.begin : index; }

  /** @param {any} node @param {number} index */
  draw(node, index) {
    const row = this.store.row(index);
    const { cells } = node;
    if (!row) {
      const isGone = index < Math.max(this.store.first, this.store.dropped);
      node.className = "row pending";
      cells.forEach((/** @type {Node} */ cell) => setText(cell, ""));
      setText(cells[6], isGone ? "no longer kept" : this.store.isStuck ? "cannot be read" : "…");
      return;
    }
    const before = index > this.list.first ? this.store.row(index - 1) : null;
    const isOtherDay = before && row.time && before.time && day(row.time) !== day(before.time);
    const classes = `row ${classOf(row)}${drawGap(node, this.store.idle(index), this.store.filter ? "records that match" : "records", this.gone(index))}`;
    if (node.className !== classes) node.className = classes;
    setText(cells[0], row.number ? String(row.number) : "");
    setText(cells[1], clock(row.time));
    setText(cells[2], row.session ? sessionName(row.session) : "");
    setText(cells[3], row.direction === 1 ? "→" : row.direction === 2 ? "←" : "");
    const direction = row.direction === 1 ? "SEND, client to server" : row.direction === 2 ? "RECV, server to client" : "";
    if (cells[3].title !== direction) { cells[3].title = direction; cells[3].setAttribute("aria-label", direction); }
    setText(cells[4], visible(what(row)));
    const peer = row.direction === 1 ? row.to : row.from;
    setText(cells[5], visible(peer ?? ""));
    const mark = row.action ? `[${visible(row.action)}] ` : row.tap ? "[xmpptap] " : "";
    setText(cells[6], `${isOtherDay ? `${day(row.time)} · ` : ""}${mark}${rowText(row)}`);
    setText(cells[7], row.size ? size(row.size) : "");
    setText(cells[8], row.trip !== null && row.answers ? span(row.trip) : "");
    if (row.level <= 2) cells[6].title = levelNames[row.level]; else cells[6].removeAttribute("title");
  }

  /** The selected row. */
  get selected() { return this.cursor.row; }

  /**
   * Handles a key.
   * @param {KeyboardEvent} event
   * @returns {boolean} whether it has a meaning
   */
  key(event) {
    switch (event.key) {
      case "f": this.cursor.clear(); this.events.onSelect(null); this.list.follow(); return true;
      case "Enter": if (this.selected) this.events.onOpen(this.selected); return true;
      default: return this.cursor.move(event.key);
    }
  }
}

/**
 * A sentence about what the list shows.
 * @param {RowStore} store
 * @param {VirtualList} list
 */
export function listStatus(store, list) {
  const shown = store.end - store.first - store.gaps;
  const whole = store.total - (store.begin ?? 0);
  const parts = [store.filter ? `${count(shown)} of ${count(whole)} records` : `${count(shown)} records`];
  if (store.filter && store.scanned < store.total) {
    parts.push(`searching, ${Math.floor(((store.scanned - (store.begin ?? 0)) / Math.max(1, whole)) * 100)} %`);
  }
  if (store.begin > 0) parts.push(`${count(store.begin)} older ones are no longer kept`);
  if (list.isFollowing) parts.push("following");
  else if (list.height && store.end - list.top - list.page > 1) parts.push(`${count(Math.max(0, Math.floor(store.end - list.top - list.page)))} below`);
  return parts.join(" · ");
}

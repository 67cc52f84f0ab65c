// The selected row of a list of records, and the place that stays in view when the list changes.

/**
 * @typedef {import("./rows.js").Row} Row
 * @typedef {import("./rows.js").RowStore} RowStore
 * @typedef {import("./virtual.js").VirtualList} VirtualList
 */

/** The selection of a list, kept by the record: indices change with the filter. */
export class Cursor {
  /** @param {VirtualList} list @param {RowStore} store @param {(row: Row) => void} onSelect */
  constructor(list, store, onSelect) {
    this.list = list;
    this.store = store;
    this.onSelect = onSelect;
    /** The position of the selected record; it stays while a filter hides the record. */
    this.at = -1;
    /** The row that is selected as soon as it is there. */
    this.awaited = -1;
    /**
     * The record that is put into view when the list has begun again, and its distance from the upper edge.
     * @type {{ at: number, below: number | null, isAsked: boolean } | null}
     */
    this.anchor = null;
    /** Changes with each selection, so that an earlier one that is still searched for is given up. */
    this.wishes = 0;
  }

  /**
   * Shows changes of the store.
   * @param {boolean} follows whether a new list is shown from its end
   */
  update(follows) {
    const { list, store } = this;
    if (store.isFresh) {
      list.first = store.first;
      list.end = store.end;
      list.selected = this.awaited = -1;
      if (this.at >= 0) this.anchor ??= { at: this.at, below: null, isAsked: false };
      if (!this.anchor) {
        list.top = store.first;
        list.isFollowing = follows;
      }
    }
    // Rows in view stay where they are, even if the server no longer has them.
    const first = list.isFollowing || store.isFresh ? store.first : Math.min(store.first, Math.max(list.first, Math.floor(list.top)));
    list.resize(Math.min(first, store.end), store.end);
    if (this.anchor) this.keepAnchor(this.anchor);
    if (this.awaited >= 0 && store.row(this.awaited)) this.select(this.awaited);
    this.need();
  }

  /** Fetches the rows in view. */
  need() {
    const { list } = this;
    // The row before has the time of the gap above the first one.
    this.store.need(Math.floor(list.top) - 1, Math.ceil(list.top + list.height / list.rowHeight) + 1);
  }

  /** The user has moved the list. */
  scrolled() {
    this.anchor = null;
    this.need();
  }

  /** Notes which record is in view, before the list begins again with other indices. */
  remember() {
    const { list, store } = this;
    if (list.isFollowing) return;
    const isInView = list.selected >= list.top - 1 && list.selected < list.top + list.page;
    const row = isInView ? store.row(list.selected) : store.row(Math.floor(list.top));
    if (row) this.anchor = { at: row.at, below: row.index - list.top, isAsked: false };
  }

  /**
   * Puts a record into view as soon as the search has passed it.
   * @param {{ at: number, below: number | null, isAsked: boolean }} anchor
   */
  async keepAnchor(anchor) {
    const { list, store } = this;
    const isPassed = store.scanned > Math.max(anchor.at, this.at) || store.scanned >= store.total;
    if (anchor.isAsked || !isPassed) return;
    anchor.isAsked = true;
    try {
      const place = await store.find(anchor.at);
      const chosen = this.at >= 0 && this.at !== anchor.at ? await store.find(this.at) : place;
      // The user has moved the list, or it has begun again; then the next change is a reason to ask again.
      if (this.anchor !== anchor || !place || !chosen) return;
      this.anchor = null;
      list.selected = chosen.isFound && chosen.row?.at === this.at ? chosen.index : -1;
      if (anchor.below === null) list.reveal(Math.max(place.index, list.first), "middle");
      else list.show(place.index - anchor.below);
    } catch { /* Polling reports the error. */ } finally {
      anchor.isAsked = false;
    }
  }

  /**
   * Selects the row at an index.
   * @param {number} index
   */
  select(index) {
    const bounded = Math.min(Math.max(index, this.list.first), this.list.end - 1);
    if (bounded < 0) return;
    this.wishes += 1;
    this.anchor = null;
    this.list.selected = bounded;
    this.list.reveal(bounded);
    const row = this.store.row(bounded);
    this.awaited = row ? -1 : bounded;
    if (row) {
      this.at = row.at;
      this.onSelect(row);
    } else {
      this.store.need(bounded, bounded + 1);
    }
  }

  /** Selects nothing. */
  clear() {
    this.wishes += 1;
    this.anchor = null;
    this.at = this.awaited = this.list.selected = -1;
  }

  /**
   * Selects a record by its position, as soon as a search that is under way has passed it.
   * @param {number} at
   * @returns {Promise<boolean | null>} whether the list has it; null if something else was chosen meanwhile
   */
  async selectAt(at) {
    const { list, store } = this;
    const wish = this.wishes += 1;
    this.at = at;
    this.awaited = -1;
    while (store.isOn && wish === this.wishes) {
      const change = store.changed();
      const place = store.isSettled ? await store.find(at) : null;
      // Another view may have been opened meanwhile.
      if (wish !== this.wishes || !store.isOn) break;
      if (place?.row && place.isFound && store.isSettled) {
        this.anchor = null;
        list.isFollowing = false;
        list.selected = place.index;
        list.reveal(place.index, "middle");
        this.onSelect(place.row);
        return true;
      }
      if (place?.isKnown && store.isSettled) return false;
      await change;
    }
    return null;
  }

  /** The selected row. */
  get row() { return this.list.selected >= 0 ? this.store.row(this.list.selected) : null; }

  /**
   * Moves the selection by a key.
   * @param {string} key
   * @returns {boolean} whether the key has a meaning
   */
  move(key) {
    const { list } = this;
    const current = list.selected >= 0 ? list.selected : Math.floor(list.top) - 1;
    switch (key) {
      case "ArrowDown": case "j": this.select(current + 1); return true;
      case "ArrowUp": case "k": this.select(list.selected >= 0 ? current - 1 : Math.floor(list.top)); return true;
      case "PageDown": case " ": this.select(current + list.page); return true;
      case "PageUp": this.select(current - list.page); return true;
      // The list still has the rows in view that the server no longer has.
      case "Home": case "g": this.select(Math.min(Math.max(list.first, this.store.first, this.store.dropped), list.end - 1)); return true;
      case "End": case "G": this.select(list.end - 1); return true;
      default: return false;
    }
  }
}

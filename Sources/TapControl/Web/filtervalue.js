// Values of the conditions of a page's filter, and the mistakes in them.
import { visible } from "./format.js";

/** A mistake in a filter. */
export class FilterMistake extends Error {
  /** @param {number} column in characters, from 1 @param {string} found @param {string} [expected] @param {string} [nearest] */
  constructor(column, found, expected, nearest) {
    super(visible(`column ${column}: ${found}${expected ? `; ${expected}` : ""}${nearest ? `; did you mean "${nearest}"?` : ""}`));
    this.column = column;
  }
}

const sizeUnits = new Map([["", 1], ["b", 1], ["kb", 1000], ["mb", 1e6], ["kib", 1 << 10], ["mib", 1 << 20]]);
/** Nanoseconds. */
const timeUnits = new Map([["ms", 1e6], ["s", 1e9], ["min", 6e10], ["m", 6e10], ["h", 3.6e12]]);

/**
 * The word nearest to a mistyped one; undefined if none is near.
 * @param {string} word
 * @param {string[]} known
 */
export function nearestWord(word, known) {
  if (word.length > 32) return undefined;
  const distance = (/** @type {string} */ one, /** @type {string} */ other) => {
    let before = /** @type {number[]} */ ([]);
    let row = Array.from({ length: other.length + 1 }, (_, place) => place);
    for (let index = 0; index < one.length; index++) {
      const next = [index + 1];
      for (let column = 0; column < other.length; column++) {
        let best = Math.min(row[column] + (one[index] === other[column] ? 0 : 1), next[column] + 1, row[column + 1] + 1);
        if (index > 0 && column > 0 && one[index] === other[column - 1] && one[index - 1] === other[column]) best = Math.min(best, before[column - 1] + 1);
        next.push(best);
      }
      before = row;
      row = next;
    }
    return row[other.length];
  };
  let found;
  let least = 3;
  for (const other of known) {
    const far = distance(word.toLowerCase(), other);
    if (far < least) [found, least] = [other, far];
  }
  return found && least < found.length - 1 ? found : undefined;
}

/** A value of a condition, with the column of its beginning. */
export class FilterValue {
  /** @param {string} text @param {number} column */
  constructor(text, column) {
    this.text = text;
    this.column = column;
  }

  /** @param {string} found @param {string} [expected] @param {string} [nearest] @param {number} [column] */
  mistake(found, expected, nearest, column = this.column) { return new FilterMistake(column, found, expected, nearest); }

  /**
   * The items of a list that is separated by commas, and also by spaces and `|` if it is spaced.
   * @param {boolean} [isSpaced]
   * @returns {FilterValue[]}
   */
  list(isSpaced = false) {
    const found = [];
    for (const { 0: item, index } of this.text.matchAll(isSpaced ? /[^,\s|]+/gu : /[^,]+/gu)) {
      const before = [...this.text.slice(0, index)].length + (item.length - item.trimStart().length);
      if (item.trim()) found.push(new FilterValue(item.trim(), this.column + before));
    }
    if (found.length === 0) throw this.mistake("the list is empty");
    return found;
  }

  /**
   * One of several words.
   * @param {string} what
   * @param {string[]} words
   */
  choice(what, words) {
    const word = /^\s*([^\s,]*)/u.exec(this.text)?.[1] ?? "";
    const rest = this.text.trimStart().slice(word.length);
    if (!words.includes(word.toLowerCase())) {
      throw this.mistake(word ? `"${word}" is not a valid ${what}` : `missing ${what}`, `expected ${words.join(", ")}`, nearestWord(word, words));
    }
    if (rest.trim()) throw this.mistake(`unexpected "${rest.trim()}"`, "expected the end of the line", undefined, this.column + [...this.text].length - [...rest].length);
    return word.toLowerCase();
  }

  /**
   * Words of a list.
   * @param {string} what
   * @param {string[]} words
   */
  words(what, words) {
    return this.list().map((item) => {
      if (!words.includes(item.text)) throw item.mistake(`"${item.text}" is not ${what}`, `expected ${words.join(", ")}`, nearestWord(item.text, words));
      return item.text;
    });
  }

  /**
   * A comparison with a number that has a unit.
   * @param {"size" | "duration"} what
   * @returns {(value: number) => boolean}
   */
  comparison(what) {
    const sign = /^\s*([<>=]*)\s*/.exec(this.text) ?? ["", ""];
    const compare = new Map(/** @type {[string, (a: number, b: number) => boolean][]} */ ([
      ["<", (a, b) => a < b], ["<=", (a, b) => a <= b], ["=", (a, b) => a === b], ["==", (a, b) => a === b], [">=", (a, b) => a >= b], [">", (a, b) => a > b],
    ])).get(sign[1]);
    if (!compare) throw this.mistake(sign[1] ? `"${sign[1]}" is not a comparison` : "missing comparison", "expected >, <, >=, <= or =");
    const rest = this.text.slice(sign[0].length);
    const at = this.column + sign[0].length;
    const digits = (what === "size" ? /^[0-9]+/ : /^[0-9.]+/).exec(rest)?.[0] ?? "";
    if (!digits || !Number.isFinite(Number(digits))) throw this.mistake(digits ? `"${digits}" is not a valid ${what}` : `missing ${what}`, "expected a number", undefined, at);
    const [, between, unit] = /^(\s*)(\p{L}*)/u.exec(rest.slice(digits.length)) ?? ["", "", ""];
    const scale = what === "size" ? sizeUnits.get(unit.toLowerCase()) : timeUnits.get(unit);
    if (scale === undefined && what === "size") throw this.mistake(`"${unit}" is not a unit of size`, "expected B, kB, MB, KiB or MiB", undefined, at);
    if (scale === undefined) throw this.mistake(unit ? `"${unit}" is not a unit of time` : "a duration without a unit", "expected ms, s, min or h, as in 500ms", undefined, at);
    const more = rest.slice(digits.length + between.length + unit.length);
    if (more.trim()) throw this.mistake(`unexpected "${more.trim()}"`, "expected the end of the line", undefined, at + [...rest].length - [...more.trimStart()].length);
    return (found) => compare(found, Math.floor(Number(digits) * scale));
  }
}

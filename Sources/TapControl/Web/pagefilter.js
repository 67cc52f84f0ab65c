// The filter of a page that is a file. It has the words of --filter, and refuses with its place what it does not know: an
// answer that differs from that of xmpptap would be worse than none.
import { FilterCondition, plainWords, usages } from "./filtercondition.js";
import { FilteredItem } from "./filteritem.js";
import { FilterMistake, FilterValue, nearestWord } from "./filtervalue.js";

/** @typedef {import("./source.js").Columns} Columns @typedef {(item: FilteredItem) => boolean} Test */

const maximumFilterDepth = 100;

/**
 * Parses a filter.
 * @param {string} text
 * @returns {(rows: Columns, index: number, lines: string[]) => boolean}
 */
export function pageFilter(text) {
  const test = new PageFilterParser(text).parse();
  return (rows, index, lines) => {
    // Headers and damaged lines are not records.
    if (["header", "damage", "gap"].includes(rows.kind[index])) return false;
    return test(new FilteredItem(rows, index, lines));
  };
}

const isOfFilterName = (/** @type {string | undefined} */ letter) => letter !== undefined && /^[A-Za-z0-9_-]$/.test(letter);
const isSpace = (/** @type {string | undefined} */ letter) => letter !== undefined && /^\s$/u.test(letter);

/** Parses a filter as xmpptap does: `or` of `and` of conditions, `not`, and parentheses. */
class PageFilterParser {
  /** @param {string} text */
  constructor(text) {
    this.text = [...text];
    this.index = 0;
  }

  get isAtEnd() { return this.index >= this.text.length; }
  get next() { return this.text[this.index]; }
  get rest() { return this.text.slice(this.index).join(""); }

  /** @param {string} found @param {string} [expected] @param {string} [nearest] @param {number} [index] */
  mistake(found, expected, nearest, index = this.index) { return new FilterMistake(index + 1, found, expected, nearest); }

  /** @param {string} letter */
  sees(letter) { return this.text[this.index] === letter; }

  skipSpaces() { while (isSpace(this.next)) this.index += 1; }

  /** @param {(letter: string) => boolean} isTaken */
  take(isTaken) {
    const start = this.index;
    while (!this.isAtEnd && isTaken(this.next)) this.index += 1;
    return this.text.slice(start, this.index).join("");
  }

  /** @returns {Test} */
  parse() {
    this.skipSpaces();
    if (this.isAtEnd) throw this.mistake("the filter is empty", "expected a condition such as message");
    const found = this.either(0);
    if (!this.isAtEnd) throw this.next === ")" ? this.mistake('")" without "("') : this.unexpected();
    return found;
  }

  /** @param {number} depth @returns {Test} */
  either(depth) {
    const tests = [this.both(depth)];
    while (this.takeWord("or")) tests.push(this.both(depth));
    return tests.length === 1 ? tests[0] : (item) => tests.some((test) => test(item));
  }

  /** @param {number} depth @returns {Test} */
  both(depth) {
    const tests = [this.factor(depth)];
    while (this.takeWord("and")) tests.push(this.factor(depth));
    return tests.length === 1 ? tests[0] : (item) => tests.every((test) => test(item));
  }

  /** @param {number} depth @returns {Test} */
  factor(depth) {
    this.skipSpaces();
    if (depth >= maximumFilterDepth) throw this.mistake(`nested deeper than ${maximumFilterDepth} levels`, "expected a simpler filter");
    if (this.takeWord("not")) {
      const inner = this.factor(depth + 1);
      return (item) => !inner(item);
    }
    if (!this.sees("(")) return this.condition();
    const start = this.index;
    this.index += 1;
    const inner = this.either(depth + 1);
    this.skipSpaces();
    if (!this.sees(")")) {
      if (!this.isAtEnd) throw this.unexpected();
      throw this.mistake('"(" without ")"', undefined, undefined, start);
    }
    this.index += 1;
    this.skipSpaces();
    return inner;
  }

  /** @param {string} word */
  takeWord(word) {
    this.skipSpaces();
    const start = this.index;
    if (this.take(isOfFilterName).toLowerCase() === word && !(":=~<>".includes(this.next ?? " "))) return true;
    this.index = start;
    return false;
  }

  unexpected() {
    const word = this.text.slice(this.index).join("").split(/\s/u)[0];
    const signs = new Map([["&&", "and"], ["&", "and"], ["||", "or"], ["|", "or"]]);
    return this.mistake(`unexpected "${word}"`, 'expected and, or, ")" or the end', signs.get(word) ?? nearestWord(word, ["and", "or"]));
  }

  /** @returns {Test} */
  condition() {
    const start = this.index;
    const typed = this.take(isOfFilterName);
    const name = typed.toLowerCase().replaceAll("_", "-");
    if (!name) {
      if (this.isAtEnd) throw this.mistake("the filter ends here", "expected a condition such as message");
      throw this.mistake(`"${this.next}" instead of a condition`, "expected a condition such as message or type:chat", this.next === "!" ? "not" : undefined);
    }
    const afterName = this.index;
    this.skipSpaces();
    const isAlone = !":=~<>".includes(this.next ?? " ");
    if (isAlone && Object.hasOwn(plainWords, name)) {
      this.index = afterName;
      return plainWords[name];
    }
    if (!Object.hasOwn(usages, name)) throw this.unknown(name, typed, start, afterName);
    if (isAlone) throw this.mistake(`${name} without a value`, `expected ${usages[name]}`);
    const isCompared = name === "size" || name === "round-trip";
    const sign = this.next;
    const signs = isCompared ? ":=<>" : ["body", "subject", "thread", "status"].includes(name) ? ":=~" : name === "xml" ? ":~" : ":";
    if (!signs.includes(sign)) throw this.mistake(`"${sign}" after ${name}`, `expected ${usages[name]}`);
    if (!(isCompared && sign !== ":")) this.index += 1;
    this.skipSpaces();
    return new FilterCondition(name, sign, this.value(name, isCompared)).test();
  }

  /** @param {string} name @param {string} typed @param {number} start @param {number} afterName */
  unknown(name, typed, start, afterName) {
    if (Object.hasOwn(plainWords, name)) return this.mistake(`${name} takes no value`, `expected ${name} alone`, undefined, afterName);
    return this.mistake(`unknown condition "${typed}"`, 'expected a condition such as message, type:chat or body~"hello"',
      nearestWord(name, [...Object.keys(plainWords).sort(), ...Object.keys(usages)]), start);
  }

  /**
   * The value: a quoted text, or everything up to a space or a closing parenthesis that was not opened.
   * @param {string} name
   * @param {boolean} isCompared
   */
  value(name, isCompared) {
    const start = this.index;
    if (this.next === '"' || this.next === "'") {
      const quote = this.next;
      this.index += 1;
      const inner = this.take((letter) => letter !== quote);
      if (this.isAtEnd) throw this.mistake(`${quote} is not closed`, undefined, undefined, start);
      this.index += 1;
      return new FilterValue(inner, start + 2);
    }
    if (isCompared) {
      this.take((letter) => "<>=".includes(letter));
      this.skipSpaces();
    }
    let depth = 0;
    this.take((letter) => {
      if (letter === "(") depth += 1;
      if (letter === ")") depth -= 1;
      return depth >= 0 && !isSpace(letter);
    });
    if (this.index === start) throw this.mistake(`${name} without a value`, `expected ${usages[name]}`);
    return new FilterValue(this.text.slice(start, this.index).join(""), start + 1);
  }
}

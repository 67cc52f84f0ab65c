// Regular expressions as xmpptap reads them: those of JavaScript differ in what ".", classes and "(?i)" mean, so each part
// is checked and written anew.

/** A mistake in a pattern, at an offset in characters. */
export class PatternFault extends Error {
  /** @param {string} message @param {number} offset */
  constructor(message, offset) {
    super(message);
    this.offset = offset;
  }
}

const maximumGroups = 32;
const maximumNesting = 64;
const maximumRepetitions = 1000;

/**
 * Parses a regular expression.
 * @param {string} source
 * @returns {RegExp}
 */
export function regularExpression(source) {
  return new RegExp(new PatternParser(source).parse(), "u");
}

/** Writes an expression of xmpptap as one of JavaScript with the flag `u`. */
class PatternParser {
  /** @param {string} source */
  constructor(source) {
    this.text = [...source];
    this.index = 0;
    this.depth = 0;
    this.groups = 0;
    this.ignoresCase = false;
  }

  /** @param {string} message @param {number} [place] */
  fault(message, place = this.index) { return new PatternFault(message, place); }

  get isAtEnd() { return this.index >= this.text.length; }
  get next() { return this.text[this.index]; }

  /** @param {string} word */
  consume(word) {
    for (let place = 0; place < word.length; place++) if (this.text[this.index + place] !== word[place]) return false;
    this.index += word.length;
    return true;
  }

  parse() {
    this.ignoresCase = this.consume("(?i)");
    const found = this.choice();
    if (!this.isAtEnd) throw this.fault('")" without "("');
    return found;
  }

  /** @returns {string} */
  choice() {
    const branches = [this.sequence()];
    while (this.consume("|")) branches.push(this.sequence());
    return branches.join("|");
  }

  sequence() {
    let found = "";
    while (!this.isAtEnd && this.next !== "|" && this.next !== ")") found += this.repetition();
    return found;
  }

  repetition() {
    const start = this.index;
    const atom = this.atom();
    let bounds = "";
    if (this.consume("*")) bounds = "*";
    else if (this.consume("+")) bounds = "+";
    else if (this.consume("?")) bounds = "?";
    else if (this.next === "{") bounds = this.bounds();
    else return atom;
    if (["^", "$", "\\b", "\\B"].includes(atom)) throw this.fault("nothing to repeat", start);
    if (this.consume("?")) bounds += "?";
    if (!this.isAtEnd && "*+?".includes(this.next)) throw this.fault("nothing to repeat");
    return atom + bounds;
  }

  bounds() {
    const start = this.index;
    this.index += 1;
    const least = this.number();
    if (least === null) throw this.fault('a number must follow "{"; write \\{ for the character', start);
    const isRange = this.consume(",");
    const most = isRange ? this.number() : least;
    if (!this.consume("}")) throw this.fault('"{" without "}"', start);
    if (Math.max(least, most ?? 0) > maximumRepetitions) throw this.fault(`more than ${maximumRepetitions} repetitions`, start);
    if (most !== null && most < least) throw this.fault("the bounds are in the wrong order", start);
    return `{${least}${isRange ? `,${most ?? ""}` : ""}}`;
  }

  number() {
    let value = null;
    while (/^[0-9]$/.test(this.next ?? "")) {
      value = Math.min((value ?? 0) * 10 + Number(this.next), 1_000_000);
      this.index += 1;
    }
    return value;
  }

  /** @returns {string} */
  atom() {
    const start = this.index;
    switch (this.next) {
      case "(": return this.group();
      case "[": return this.set();
      case ".": this.index += 1; return "[^\\n]";
      case "^": case "$": this.index += 1; return this.text[start];
      case "*": case "+": case "?": case "{": throw this.fault("nothing to repeat");
      case "\\": {
        if (this.consume("\\b")) return "\\b";
        if (this.consume("\\B")) return "\\B";
        const { ranges, isComplement } = this.escape();
        return this.written(ranges, isComplement);
      }
      default: {
        const code = this.character();
        return this.written([[code, code]], false);
      }
    }
  }

  group() {
    const start = this.index;
    this.depth += 1;
    if (this.depth > maximumNesting) throw this.fault(`groups nested deeper than ${maximumNesting}`, start);
    if (!this.consume("(?:")) {
      this.index += 1;
      if (this.next === "?") throw this.fault('"(?" is supported only as (?:…) and, at the beginning, as (?i)', start);
      this.groups += 1;
      if (this.groups > maximumGroups) throw this.fault("too many captures", start);
    }
    const inner = this.choice();
    if (!this.consume(")")) throw this.fault('"(" without ")"', start);
    this.depth -= 1;
    return `(?:${inner})`;
  }

  /** @returns {{ ranges: [number, number][], isComplement: boolean, isClass: boolean }} */
  escape() {
    const start = this.index;
    this.index += 1;
    if (this.isAtEnd) throw this.fault('"\\" at the end', start);
    const letter = this.next;
    this.index += 1;
    const simple = /** @type {Record<string, number>} */ ({ n: 10, r: 13, t: 9 })[letter];
    if (simple !== undefined) return { ranges: [[simple, simple]], isComplement: false, isClass: false };
    const ranges = /** @type {Record<string, [number, number][]>} */ ({
      d: [[0x30, 0x39]], w: [[0x30, 0x39], [0x41, 0x5a], [0x5f, 0x5f], [0x61, 0x7a]], s: [[9, 13], [32, 32]],
    })[letter.toLowerCase()];
    if (ranges && /[dwsDWS]/.test(letter)) return { ranges: ranges.slice(), isComplement: letter < "a", isClass: true };
    if (letter === "x") {
      const isClosed = this.consume("{");
      let digits = "";
      while (digits.length < (isClosed ? 6 : 2) && /^[0-9a-fA-F]$/.test(this.next ?? "")) {
        digits += this.next;
        this.index += 1;
      }
      const code = digits ? parseInt(digits, 16) : -1;
      const isWhole = isClosed ? this.consume("}") : digits.length === 2;
      if (!isWhole || code < 0 || code > 0x10ffff || code >= 0xd800 && code <= 0xdfff) throw this.fault("not a Unicode character", start);
      return { ranges: [[code, code]], isComplement: false, isClass: false };
    }
    if (/[0-9]/.test(letter)) throw this.fault("back references are not supported", start);
    if (/[a-zA-Z]/.test(letter)) throw this.fault("an unknown escape", start);
    const code = letter.codePointAt(0) ?? 0;
    return { ranges: [[code, code]], isComplement: false, isClass: false };
  }

  set() {
    const start = this.index;
    this.index += 1;
    const isComplement = this.consume("^");
    /** @type {[number, number][]} */
    const ranges = [];
    for (let isFirst = true; ; isFirst = false) {
      if (this.isAtEnd) throw this.fault('"[" without "]"', start);
      if (!isFirst && this.consume("]")) break;
      if (this.next === "[" && this.text[this.index + 1] === ":") throw this.fault("classes such as [:alpha:] are not supported; write their characters");
      const low = this.member(ranges);
      if (low === null) continue;
      if (this.next !== "-" || this.text[this.index + 1] === "]" || this.index + 1 >= this.text.length) {
        ranges.push([low, low]);
        continue;
      }
      const place = this.index;
      this.index += 1;
      const high = this.member(ranges);
      if (high === null || high < low) throw this.fault("the range has no end after its beginning", place);
      ranges.push([low, high]);
    }
    return this.written(ranges, isComplement);
  }

  /**
   * Parses a character of a set; null for a class, after adding its ranges.
   * @param {[number, number][]} ranges
   */
  member(ranges) {
    const start = this.index;
    if (this.next !== "\\") return this.character();
    const found = this.escape();
    if (found.isComplement) throw this.fault("a complement such as \\D is not supported inside [ ]", start);
    if (!found.isClass) return found.ranges[0][0];
    ranges.push(...found.ranges);
    return null;
  }

  character() {
    const code = this.next.codePointAt(0) ?? 0;
    this.index += 1;
    return code;
  }

  /**
   * Writes a set of characters. Only ASCII letters have two cases.
   * @param {[number, number][]} ranges
   * @param {boolean} isComplement
   */
  written(ranges, isComplement) {
    const all = ranges.slice();
    if (this.ignoresCase) {
      for (const [low, high] of ranges) {
        for (const [first, last, step] of [[0x41, 0x5a, 32], [0x61, 0x7a, -32]]) {
          const begin = Math.max(low, first);
          const end = Math.min(high, last);
          if (begin <= end) all.push([begin + step, end + step]);
        }
      }
    }
    const hex = (/** @type {number} */ code) => `\\u{${code.toString(16)}}`;
    return `[${isComplement ? "^" : ""}${all.map(([low, high]) => (low === high ? hex(low) : `${hex(low)}-${hex(high)}`)).join("")}]`;
  }
}

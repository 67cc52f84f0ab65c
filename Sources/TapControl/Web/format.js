// Times, sizes and durations as text.

const two = (/** @type {number} */ n) => String(n).padStart(2, "0");
let isUTC = localStorageGet("xmpptap.zone") === "utc";

/** @param {string} key */
export function localStorageGet(key) {
  // A page that was opened from a file may have no storage.
  try { return localStorage.getItem(key); } catch { return null; }
}

/** @param {string} key @param {string} value */
export function localStorageSet(key, value) {
  try { localStorage.setItem(key, value); } catch { /* The setting lasts as long as the page. */ }
}

/** Shows times in UTC, or in the zone of this machine. */
export function toggleZone() {
  isUTC = !isUTC;
  localStorageSet("xmpptap.zone", isUTC ? "utc" : "local");
}

/**
 * The parts of a time.
 * @param {number} time microseconds since 1970
 */
function parts(time) {
  const date = new Date(time / 1000);
  return isUTC
    ? [date.getUTCFullYear(), date.getUTCMonth() + 1, date.getUTCDate(), date.getUTCHours(), date.getUTCMinutes(),
      date.getUTCSeconds(), date.getUTCMilliseconds()]
    : [date.getFullYear(), date.getMonth() + 1, date.getDate(), date.getHours(), date.getMinutes(), date.getSeconds(),
      date.getMilliseconds()];
}

/**
 * The time of day with milliseconds.
 * @param {number} time
 */
export function clock(time) {
  if (!time) return "";
  const [, , , hour, minute, second, milli] = parts(time);
  return `${two(hour)}:${two(minute)}:${two(second)}.${String(milli).padStart(3, "0")}`;
}

/**
 * The day.
 * @param {number} time
 */
export function day(time) {
  if (!time) return "";
  const [year, month, date] = parts(time);
  return `${year}-${two(month)}-${two(date)}`;
}

/**
 * The time zone.
 * @param {number} time
 */
export function zone(time) {
  if (isUTC) return "UTC";
  const minutes = -new Date(time / 1000).getTimezoneOffset();
  const name = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (minutes === 0) return name === "UTC" ? "UTC" : `${name} +00:00`;
  const sign = minutes < 0 ? "−" : "+";
  return `${name} ${sign}${two(Math.floor(Math.abs(minutes) / 60))}:${two(Math.abs(minutes) % 60)}`;
}

/**
 * A time with its day and the microseconds.
 * @param {number} time
 */
export function stamp(time) {
  if (!time) return "no time";
  const micro = String(Math.floor(time % 1000)).padStart(3, "0");
  return `${day(time)} ${clock(time)}${micro} ${zone(time)}`;
}

/**
 * A duration.
 * @param {number} time microseconds
 */
export function span(time) {
  if (time < 1000) return `${Math.round(time)} µs`;
  if (time < 1e6) return `${digits(time / 1000)} ms`;
  if (time < 60e6) return `${digits(time / 1e6)} s`;
  if (time < 3600e6) return `${Math.floor(time / 60e6)} min ${Math.floor((time % 60e6) / 1e6)} s`;
  if (time < 86400e6) return `${Math.floor(time / 3600e6)} h ${Math.floor((time % 3600e6) / 60e6)} min`;
  return `${Math.floor(time / 86400e6)} d ${Math.floor((time % 86400e6) / 3600e6)} h`;
}

/** @param {number} value */
function digits(value) {
  return value < 10 ? value.toFixed(1).replace(/\.0$/, "") : String(Math.round(value));
}

/**
 * A size.
 * @param {number} bytes
 */
export function size(bytes) {
  if (bytes < 1000) return `${bytes} B`;
  if (bytes < 1e6) return `${digits(bytes / 1000)} kB`;
  if (bytes < 1e9) return `${digits(bytes / 1e6)} MB`;
  return `${digits(bytes / 1e9)} GB`;
}

/**
 * A number with thousands separated.
 * @param {number} number
 */
export function count(number) {
  return String(number).replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

/** @param {number} number @param {string} word */
export function plural(number, word) {
  return `${count(number)} ${word}${number === 1 ? "" : "s"}`;
}

const controls = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/**
 * Shows control characters and characters that change the direction of text, which could hide what was sent.
 * @param {string} text
 */
export function visible(text) {
  return text.replace(controls, (found) => {
    if (found === "\n") return "⏎";
    if (found === "\t") return "⇥";
    return `\\u{${(found.codePointAt(0) ?? 0).toString(16)}}`;
  });
}

/** The distance between the numbers of the first sessions of two runs, as xmpptap counts them. */
export const sessionsOfRun = 10_000_000;

/**
 * The number of a session as it is shown. Files of several runs have several sessions 1: the third session of the second run
 * has the number 20000003, and is shown as 2·3.
 * @param {number} number
 */
export function sessionName(number) {
  return number < 2 * sessionsOfRun ? String(number) : `${Math.floor(number / sessionsOfRun)}·${number % sessionsOfRun}`;
}

/**
 * Quotes a text for a POSIX shell: within single quotes, every other character means itself.
 * @param {string} text
 */
export function shellQuoted(text) {
  // No argument of a command can contain NUL.
  return `'${text.replaceAll("\0", "\ufffd").replaceAll("'", "'\\''")}'`;
}

/**
 * A command of its words; only those that need it are quoted.
 * @param {any[]} words
 */
export function shellCommand(words) {
  return words.map(String).map((word) => (/^[A-Za-z0-9_%+.,:@/-]+$/.test(word) ? word : shellQuoted(word))).join(" ");
}

/**
 * The bare JID of a full one.
 * @param {string} jid
 */
export function bare(jid) {
  const slash = jid.indexOf("/");
  return slash < 0 ? jid : jid.slice(0, slash);
}

/** Conditions with a list of values, which a comma separates. */
const listed = ["type", "code", "condition", "action", "kind", "part", "session"];

/**
 * A condition of a filter; undefined if the language cannot express the value.
 * @param {string} name
 * @param {any} value
 * @returns {string | undefined}
 */
export function filterCondition(name, value) {
  const text = String(value ?? "");
  // The box for a filter has one line.
  if (!text.trim() || /[\u0000-\u001f\u007f]/.test(text)) return undefined;
  if (listed.includes(name) && /[,|\s]/u.test(text)) return undefined;
  // In an address, angle brackets enclose a pattern.
  if (["from", "to", "with", "jid"].includes(name) && text.includes("<")) return undefined;
  if (!/[\s()"']/u.test(text)) return `${name}:${text}`;
  if (!text.includes('"')) return `${name}:"${text}"`;
  return text.includes("'") ? undefined : `${name}:'${text}'`;
}

/** Applies the theme that the user has chosen; without one, that of the system applies. */
export function applyTheme() {
  const chosen = localStorageGet("xmpptap.theme");
  if (chosen) document.documentElement.dataset.theme = chosen;
}

/** Changes between the light and the dark theme. */
export function toggleTheme() {
  const isDark = (document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  document.documentElement.dataset.theme = isDark ? "light" : "dark";
  localStorageSet("xmpptap.theme", isDark ? "light" : "dark");
}

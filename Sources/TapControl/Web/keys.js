// The keys, their list, and the command palette.
import { el, fill } from "./dom.js";

/** @type {[string, [string, string][]][]} */
export const keys = [
  ["Everywhere", [
    ["1 … 6", "sessions, records, diagram, conversations, errors, measures"],
    ["/", "filter, or find"],
    ["?", "this list"],
    ["Ctrl K", "commands"],
    ["Esc", "close, or go back"],
    ["z", "local time or UTC"],
    ["t", "light or dark"],
  ]],
  ["Sessions", [
    ["↓ ↑ j k", "next and previous session"],
    ["Enter", "its records, or the diagram of a failed login"],
    ["d", "its diagram"],
    ["m", "make a test of it; in the diagram, too"],
  ]],
  ["Records", [
    ["↓ ↑ j k", "next and previous record"],
    ["Page ↓ ↑, Home, End, g, G", "page, first, last"],
    ["f", "follow new records"],
    ["Enter", "details"],
    ["a", "from a request to its answer, and back"],
    ["e E", "next and previous error or warning"],
    ["s", "only this session"],
    ["d", "diagram of this session"],
    ["y", "copy the XML"],
    ["c", "remove the filter and keep the place"],
  ]],
  ["Diagram", [
    ["↓ ↑ j k, Page, Home, End, f", "as in records"],
    ["l", "only the login, or everything"],
    ["[ ]", "previous and next session"],
    ["+ −", "size of the rows"],
  ]],
  ["Conversations", [
    ["↓ ↑ j k", "next and previous conversation"],
  ]],
];

/**
 * The keys of a page that can act.
 * @type {[string, [string, string][]]}
 */
const actingKeys = ["Act", [
  ["7", "inject, hold, ping, rules and levels"],
  ["P", "pass all held stanzas, in every view"],
  ["/ i", "filter to hold by, stanza to inject"],
  ["Ctrl Enter", "send the stanza, or pass the edited one"],
  ["Ctrl ↑ ↓", "earlier and later injected stanzas"],
]];

/**
 * Shows a dialog.
 * @param {HTMLElement} content
 * @param {string} label
 */
export function dialog(content, label) {
  const node = el("dialog", { "aria-label": label }, content);
  document.body.appendChild(node);
  node.addEventListener("close", () => node.remove());
  node.addEventListener("click", (/** @type {Event} */ event) => { if (event.target === node) node.close(); });
  node.showModal();
  return node;
}

/**
 * Shows the list of keys.
 * @param {boolean} acts whether the page can act
 */
export function showKeys(acts) {
  const close = el("button", { text: "close (Esc)" });
  const node = dialog(el("div", { class: "keylist" }, el("h2", { text: "Keys" }), ...(acts ? [...keys, actingKeys] : keys).map(([title, list]) => el("section", null, el("h3", { text: title }),
    el("dl", null, ...list.flatMap(([key, text]) => [el("dt", null, el("kbd", { text: key })), el("dd", { text })])))), close), "Keys");
  close.addEventListener("click", () => node.close());
}

/**
 * Shows the commands, narrowed by what is typed.
 * @param {[string, () => void][]} commands
 */
export function showPalette(commands) {
  let chosen = 0;
  /** @type {[string, () => void][]} */
  let shown = commands;
  const list = el("ul", { role: "listbox", id: "palette", "aria-label": "Commands" });
  const input = el("input", { type: "text", role: "combobox", "aria-expanded": "true", "aria-controls": "palette", "aria-label": "Command", placeholder: "Command" });
  const node = dialog(el("div", { class: "palette" }, input, list), "Commands");
  const run = (/** @type {number} */ index) => { node.close(); shown[index]?.[1](); };
  const draw = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    shown = commands.filter(([text]) => words.every((/** @type {string} */ word) => text.toLowerCase().includes(word)));
    chosen = Math.min(Math.max(0, chosen), Math.max(0, Math.min(30, shown.length) - 1));
    fill(list, ...shown.slice(0, 30).map(([text], index) => el("li", { role: "option", id: `command-${index}`, "aria-selected": String(index === chosen), onclick: () => run(index), text })));
    if (shown.length > 30) list.appendChild(el("li", { class: "hint", text: `${shown.length - 30} more: type words to find them` }));
    input.setAttribute("aria-activedescendant", `command-${chosen}`);
  };
  input.addEventListener("input", () => { chosen = 0; draw(); });
  input.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "ArrowDown") chosen += 1;
    else if (event.key === "ArrowUp") chosen -= 1;
    else if (event.key === "Enter") return run(chosen);
    else return;
    event.preventDefault();
    draw();
  });
  draw();
  input.focus();
}

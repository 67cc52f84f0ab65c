// The commands that make a regression test of a session. They are for a shell: the page itself runs nothing.
import { choice, copy, el, fill } from "./dom.js";
import { bare, sessionName, shellCommand, visible } from "./format.js";
import { dialog } from "./keys.js";
import { choiceOf } from "./sessions.js";

/** Maximum number of sessions in the choice. */
const maximumTested = 5000;

/**
 * The commands for a session.
 * @param {{ words: string, remark?: string }} recording the files, quoted for a shell
 * @param {any} session
 * @returns {[string, string][]} what each does, and the command
 */
export function testCommands(recording, session) {
  const number = String(session.session);
  const script = `session-${number}.scs`;
  const account = session.jid ? bare(session.jid) : "juliet@example.org";
  const server = session.server && !session.source ? session.server : "HOST:PORT";
  return [
    ["Write the accounts that are played: the account, and the file with its password. The password is not in the recording.",
      `${shellCommand(["printf", "%s\\n", `${account} password.txt`])} > accounts.txt`],
    ["Play the client of this session against the server, and compare the answers by meaning.",
      `xmpptap replay ${recording.words} --session ${shellCommand([number])} ${shellCommand(["--to", server, "--accounts", "accounts.txt"])}`],
    ["Or write it as a scansion script, to read and change it; replay runs the script, too.",
      `xmpptap convert ${recording.words} ${shellCommand([script, "--session", number])}`],
  ];
}

/**
 * Shows how to make a test of a session.
 * @param {any} state the state of the page
 * @param {any[]} sessions
 * @param {any} session the one that is shown first
 * @param {(text: string) => void} say
 */
export function showTest(state, sessions, session, say) {
  const close = el("button", { text: "close (Esc)" });
  const body = el("div");
  const listed = [session, ...sessions.filter((other) => other.session !== session.session)].slice(0, maximumTested).sort((a, b) => a.session - b.session);
  const chosen = choice("Session to make a test of", listed.map((one) => [String(one.session), `session ${choiceOf(one)}`]),
    () => fill(body, ...explanation(state, listed.find((one) => String(one.session) === chosen.value), say)));
  chosen.value = String(session.session);
  fill(body, ...explanation(state, session, say));
  const node = dialog(el("div", { class: "maketest" }, el("h2", null, "Make a test of ", chosen), body, close), "Make a test");
  close.addEventListener("click", () => node.close());
}

/**
 * What to do for a test of a session.
 * @param {any} state
 * @param {any} session
 * @param {(text: string) => void} say
 */
function explanation(state, session, say) {
  const { recording } = state;
  const parts = [];
  if (!recording) {
    parts.push(el("p", { text: state.live ? "A test is made from a capture, and this proxy writes none. Start it with --capture, and let the client connect again:" : "A test is made from a recording, such as a capture; this page shows none." }));
    if (state.live) parts.push(command("xmpptap proxy … --capture test.xtap", undefined));
  } else {
    if (session.state === "open" && state.live) parts.push(el("p", { text: "The session is open: what it does from now on becomes a part of the test. Close the client before the test is made." }));
    if (session.failure) parts.push(el("p", { text: "The login has failed. The test expects that it fails again, for the same reason." }));
    if (recording.remark) parts.push(el("p", { class: "fault", text: visible(recording.remark) }));
    for (const [text, line] of testCommands(recording, session)) parts.push(el("p", { text }), command(line, say));
    parts.push(el("p", { class: "note", text: "xmpptap help regression explains what is compared, and how a test runs in CI." }));
  }
  return parts;
}

/**
 * A command line with a button that copies it.
 * @param {string} line
 * @param {((text: string) => void) | undefined} say
 */
function command(line, say) {
  return el("div", { class: "command" }, el("pre", { class: "raw", text: line }), say && el("button", { class: "small", text: "copy", onclick: () => copy(line, say) }));
}

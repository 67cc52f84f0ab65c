// The page of a proxy between Prosody and slixmpp clients, in a window of 1280 pixels. Prints one line for each fact that it has
// checked, and ends with a status other than 0 if one does not hold.
//
//   node clients.mjs URL
import { faults, finish, isAccessible, key, open, run, shows, until } from "./page.mjs";

const [, , url] = process.argv;

/** The text of a cell in the row of a session, as far as it is on screen. */
const cell = (who, name) => `(() => {
  const row = [...document.querySelectorAll(".sessions .row:not([hidden])")].find((node) => node.querySelector(".who").textContent.startsWith(${JSON.stringify(who)}));
  const node = row?.querySelector(${JSON.stringify(`.${name}`)});
  const { left, right, width, height } = node.getBoundingClientRect();
  if (!width || !height || left < 0 || right > innerWidth) return undefined;
  return node.scrollWidth > node.clientWidth ? undefined : node.querySelector("svg") ? node.querySelector("path").getAttribute("d") : node.textContent;
})()`;

async function check() {
  await open(url);
  await key("1");
  await until("the sessions have their accounts", shows(".sessions .row .who", "juliet@localhost/") + " && " + shows(".sessions .row .who", "romeo@localhost/"));
  for (const [name, wanted] of [["client", /slixmpp/i], ["tls", /^none$/], ["line", /^M/], ["peers", /^[1-9]/], ["slowest", / (µs|ms|s)$/], ["sent", /^[1-9]/], ["received", /^[1-9]/], ["state", /^ended$/]]) {
    await until(`the list shows ${name} of a session`, `${wanted}.test(${cell("juliet", name)})`);
  }
  await until("the failed login has its cause", shows(".sessions .row .state", "login failed: the user name is known, the password is wrong"));
  await isAccessible("sessions in two lines");
  await key("5");
  const group = `[...document.querySelectorAll(".findings tr")].find((row) => row.textContent.includes("login failed: "))`;
  await until("failed logins are grouped by their cause, with their number", `${group}?.querySelector(".figure").textContent === "2" && /login failed: [a-z-]+$/.test(${group}.children[3].textContent)`);
  await run(`[...${group}.querySelectorAll("button")].find((button) => button.textContent === "records").click()`);
  await until("the group leads to its records", `document.querySelector(".counts").textContent.startsWith("2 of ")`);
  await key("5");
  await run(`${group}.querySelector("button.link").click()`);
  await until("and to the diagram of a session, with the diagnosis", shows(".diagnosis", "The login failed at sasl"));
  await key("4");
  await until("the conversation has the texts of both", shows(".chat .bubble .text", "the contract is signed") + " && " + shows(".chat .bubble .text", "I take thee at thy word"));
  await until("a message has its receipt", shows(".chat .bubble .meta", "delivered"));
  if (faults.length) throw new Error(`faults: ${faults.join("\n")}`);
  console.log("ok: no fault, no violation of the policy");
}

await finish(check);

// A proxy ends and comes back while its page is open: nothing that the page shows is lost, and it says what has happened. Prints one
// line for each fact that it has checked, and ends with a status other than 0 if one does not hold.
//
//   node restart.mjs XMPPTAP
import { spawn } from "node:child_process";
import { Client } from "./client.mjs";
import { eventually, faults, finish, isAccessible, key, open, run, shows, until } from "./page.mjs";

const [, , xmpptap] = process.argv;

/** Starts a proxy with the built-in server, and returns it with its page and port. */
async function start(web) {
  const program = spawn(xmpptap, ["proxy", "--listen", "127.0.0.1:0", "--web", web, "--web-act", "--log", "off", "--control", "none"], { stdio: ["ignore", "ignore", "pipe"] });
  let text = "";
  program.stderr.setEncoding("utf8").on("data", (data) => { text += data; });
  await eventually("the proxy listens", () => text.includes("listening on 127.0.0.1:"));
  return {
    url: /http:\S+/.exec(text)[0], port: /listening on 127\.0\.0\.1:(\d+)/.exec(text)[1], password: /juliet@localhost +password (\S+)/.exec(text)[1],
    async end() {
      program.kill("SIGTERM");
      await new Promise((done) => { program.on("exit", done); if (program.exitCode !== null) done(); });
    },
  };
}

const banner = (text) => shows(".banner", text);

async function check() {
  const first = await start("0");
  await open(first.url);
  await until("the page records", shows(".counts", "recording since"));
  await new Client(first.port, "juliet", "wrong", "balcony").fail();
  const juliet = new Client(first.port, "juliet", first.password, "balcony");
  await juliet.login();
  juliet.say("of the first run", juliet);
  await key("2");
  await until("the page has the message", shows(".records .row .text", "of the first run"));
  await first.end();
  await until("the page says that the proxy does not answer", banner("does not answer"));
  await until("its records stay", shows(".records .row .text", "of the first run"));

  const second = await start(new URL(first.url).port);
  await until("the page says that the proxy was started again, and what to do", banner("was started again and has a new token") + " && " + banner("Open the address"));
  await isAccessible("a page of an earlier run");
  await run(`location.hash = ${JSON.stringify(new URL(second.url).hash)}`);
  await until("with the new address, the page announces the new run", banner("still shows the records of the earlier run") + " && " + shows(".banner button", "Show the new run"));
  await until("the token is not in the address", `!location.href.includes("token")`);
  const other = new Client(second.port, "juliet", second.password, "balcony");
  await other.login();
  other.say("of the second run", other);
  await other.until("of the second run");
  await key("1");
  await until("the sessions are those of the first run", shows(".sessions .row .state", "login failed"));
  await key("2");
  await until("so are the records", shows(".records .row .text", "of the first run") + " && !" + shows(".records .row .text", "of the second run"));
  await run(`[...document.querySelectorAll(".banner button")][0].click()`);
  await until("the button shows the new run", shows(".records .row .text", "of the second run") + " && !" + shows(".records .row .text", "of the first run") + ` && document.querySelector(".banner").hidden`);
  await key("1");
  await until("the sessions are those of the new run", shows(".sessions .row .who", "juliet@localhost/balcony") + " && !" + shows(".sessions .row .state", "login failed"));
  await second.end();
  // Requests that failed while no proxy ran, or with the old token.
  const wrong = faults.splice(0).filter((fault) => !/ERR_|403/.test(fault));
  if (wrong.length) throw new Error(wrong.join("\n"));
  console.log("ok: no fault, no violation of the policy");
}

await finish(check);

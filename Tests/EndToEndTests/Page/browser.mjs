// Drives the page in headless Chromium or Firefox. Prints one line for each fact that it has checked, and ends with a status other than 0
// if one does not hold.
//
//   node browser.mjs live|view|page|store|report URL [firefox]
import { eventually, faults, finish, hide, isAccessible, key, open, pending, requests, run, shows, type, until } from "./page.mjs";

const [, , scene, url] = process.argv;

/** Opens the page, makes the checks of a scene, and then those of all scenes. */
async function checkAll(check) {
  await open(url);
  await check();
  const origin = new URL(url).origin;
  const foreign = requests.filter((request) => !request.startsWith(url.startsWith("file:") ? "file:" : origin) && !/^(data|blob|about):/.test(request));
  if (foreign.length) throw new Error(`requests to others: ${foreign.join(", ")}`);
  if (faults.length) throw new Error(`faults: ${faults.join("\n")}`);
  console.log("ok: no fault, no violation of the policy, no request to others");
}

async function check() {
  await until("the page has its views", `document.querySelectorAll(".views [role=tab]").length === 6`);
  await key("1");
  await until("the sessions are listed", shows(".sessions .row .who", "juliet@localhost"));
  await until("the token is not in the address", `!location.href.includes("token")`);
  if (url.startsWith("http:")) {
    const token = await run(`sessionStorage.getItem("xmpptap.token")`);
    await run(`sessionStorage.setItem("xmpptap.token", "old"); location.hash = "view=sessions&token=" + ${JSON.stringify(token)}`);
    await until("an address with a token loads the open page again", `!location.href.includes("token") && sessionStorage.getItem("xmpptap.token") === ${JSON.stringify(token)} && (document.querySelector(".sessions .row .who")?.textContent ?? "").includes("@localhost")`);
  }
  await until("the failed login has its cause", shows(".sessions .row .state", "login failed"));
  await isAccessible("sessions");
  const makeTest = `[...document.querySelectorAll(".bar button")].find((button) => button.textContent === "make a test")`;
  await run(`${makeTest}.click()`);
  await until("without a selected session, a test is made of the failed login", shows(".maketest pre", "talk.xtap --session 1 --to "));
  await run(`(() => { const choice = document.querySelector(".maketest select"); choice.value = "2"; choice.dispatchEvent(new Event("change")); })()`);
  await until("another session can be chosen", shows(".maketest pre", "talk.xtap --session 2 --to ") + " && !" + shows(".maketest", "The login has failed."));
  await key("Escape");
  await until("the dialog is closed", `!document.querySelector("dialog")`);
  await run(`document.querySelector(".sessions").focus()`);
  await key("Home");
  await key("m");
  await until("the commands for a test of the session are shown", shows(".maketest pre", "talk.xtap --session 1 --to ") + " && " + shows(".maketest", "The login has failed."));
  await isAccessible("the commands for a test");
  await key("Escape");
  await until("the dialog is closed", `!document.querySelector("dialog")`);

  await key("2");
  await until("the records are listed", `document.querySelectorAll(".records .row:not([hidden])").length > 10`);
  await key("Home");
  await until("the first record is selected", `document.querySelector(".records [aria-selected=true]")?.getAttribute("aria-rowindex") === "2"`);
  await key("/");
  await type("message and body:contract");
  await key("Enter");
  await until("the filter finds the message", `document.querySelector(".counts").textContent.startsWith("2 of ")`);
  const rows = await run(`document.querySelector(".records").getAttribute("aria-rowcount")`);
  if (rows !== "3") throw new Error(`aria-rowcount is ${rows}, not that of the filtered list`);
  await run(`document.querySelector(".records").focus()`);
  await key("Home");
  await until("the details show the XML", shows(".detail .tree", "the contract is signed"));
  await until("namespaces have their specification", shows(".detail .spec", "XEP-0184"));
  await isAccessible("records and details");
  await until("markup from the wire is text", `!document.querySelector(".detail script, .detail b b")`);
  const at = await run(`document.querySelector(".records [aria-selected=true] .number").textContent`);
  const position = await run(`new URLSearchParams(location.hash.slice(1)).get("at")`);
  await key("c");
  await until("the selected record stays when the filter goes", `document.querySelector(".records [aria-selected=true] .number")?.textContent === ${JSON.stringify(at)} && !document.querySelector(".counts").textContent.includes(" of ")`);

  // A link to a view, a filter and a record works within an open page, too.
  for (const [filter, other] of [["message", "1"], ["presence or message", "3"]]) {
    await key(other);
    await run(`location.hash = new URLSearchParams({ view: "records", filter: ${JSON.stringify(filter)}, at: ${JSON.stringify(position)} })`);
    await until(`a link shows a record in the list of ${filter}`, `document.querySelector(".records [aria-selected=true] .number")?.textContent === ${JSON.stringify(at)} && document.querySelector(".counts").textContent.includes(" of ") && document.querySelector(".filter").value === ${JSON.stringify(filter)}`);
  }
  await run(`location.hash = "view=records"`);
  await until("a link without a filter removes it", `document.querySelector(".filter").value === "" && !document.querySelector(".counts").textContent.includes(" of ")`);

  if (url.startsWith("http:")) {
    const cut = await run(`import("/xml.js").then(({ cutText }) => {
      const node = cutText("x".repeat(5000), 300);
      const before = node.textContent.length;
      node.querySelector("button").click();
      return [before, node.textContent.length, node.querySelectorAll("button").length];
    })`);
    if (cut[0] > 340 || cut[1] !== 5000 || cut[2] !== 0) throw new Error(`a long value is not cut until it is asked for: ${cut}`);
    // The browser's own encoder, with a lossless and a lossy picture: as it is, and without its extended header.
    const picture = await run(`import("/detail.js").then(async ({ pictureType }) => {
      const found = [];
      for (const quality of [1, 0.5]) {
        const canvas = Object.assign(document.createElement("canvas"), { width: 301, height: 77 });
        canvas.getContext("2d", { alpha: false }).fillRect(3, 4, 50, 60);
        const blob = await new Promise((done) => canvas.toBlob(done, "image/webp", quality));
        const bytes = new Uint8Array(await blob.arrayBuffer());
        found.push(pictureType(bytes).join(" "));
        const name = (at) => String.fromCharCode(...bytes.subarray(at, at + 4));
        let at = 12;
        while (!/^VP8[L ]$/.test(name(at))) at += 8 + (new DataView(bytes.buffer).getUint32(at + 4, true) + 1 & ~1);
        found.push(name(at), pictureType(new Uint8Array([...bytes.subarray(0, 12), ...bytes.subarray(at)])).join(" "));
      }
      return found.join();
    })`);
    const sized = "image/webp 301 77";
    if (picture !== [sized, "VP8L", sized, sized, "VP8 ", sized].join()) throw new Error(`sizes of WebP pictures: ${picture}`);
    console.log("ok: WebP pictures have their size");
    // The scroll position of the longer list is scaled.
    for (const total of scene === "live" ? [1000, 1_000_000] : []) {
      const gaps = await run(`(${faultsOfGaps})(${total})`);
      if (gaps.length) throw new Error(`gaps in a list of ${total} rows: ${gaps.slice(0, 10).join("; ")}`);
    }
    if (scene === "live") console.log("ok: a list with gaps has its rows without holes, and the keys show the selected one");
  }

  const before = faults.length;
  await key("/");
  await type("message or");
  await key("Enter");
  await until("a mistake in a filter is marked at its place", shows(".fault", "column 11"));
  await isAccessible("a mistake in the filter");
  await until("the last result stays", `document.querySelectorAll(".records .row:not([hidden]):not(.pending)").length > 10`);
  // The state is asked for every 3 s; its answer says nothing about the filter.
  await new Promise((done) => setTimeout(done, 3500));
  if (!await run(shows(".fault", "column 11"))) throw new Error("the mark of the mistake does not stay");
  // The refused requests are the only ones that may fail.
  const other = faults.splice(before).filter((fault) => !fault.includes("422"));
  if (other.length) throw new Error(other.join("\n"));
  await key("Escape");
  await key("Escape");

  await run(`document.querySelector(".records").focus()`);
  await key("End");
  await until("the last record has its details", `document.querySelector(".detail:not([hidden]) h2")`);
  // The last one can be the end of the failed session, whose diagram is drawn.
  await run(`location.hash = new URLSearchParams({ view: "records", at: ${JSON.stringify(position)} })`);
  await until("a message has its details", `document.querySelector(".detail:not([hidden]) h2 .number")?.textContent.trim().endsWith(${JSON.stringify(at.trim())})`);
  await key("3");
  await until("a diagram has no details of another session", `!document.querySelector(".detail:not([hidden])")`);
  await until("the diagram begins with the failed login and its diagnosis", shows(".diagnosis", "The login failed at sasl"));
  const words = await run(`document.querySelector(".diagnosis").innerText.split(/\\s+/).length`);
  if (words > 64) throw new Error(`the diagnosis has ${words} words`);
  await key("End");
  await until("the login steps are beside it", shows(".diagram .row .margin", "✗"));
  await isAccessible("the diagram");
  const crossing = await run(`[...document.querySelectorAll(".diagram .row:not([hidden]) .half.arrow")].filter((half) => half.getBoundingClientRect().width > half.parentElement.getBoundingClientRect().width / 2 + 1).length`);
  if (crossing) throw new Error(`${crossing} arrows cross a lane`);

  await key("4");
  await until("the conversation has the messages", shows(".chat .bubble .text", "the contract is signed"));
  await until("a correction replaces the text", shows(".chat .bubble .meta", "edited 1×"));
  await until("a published avatar is shown beside its messages, and a letter without one", `[...document.querySelectorAll(".chat img.avatar")].some((picture) => picture.naturalWidth === 1) && document.querySelector(".chat span.avatar:not(.none)")`);
  await until("a receipt is shown at its message", shows(".chat .bubble .meta", "delivered"));
  await isAccessible("conversations");
  await key("/");
  await type("CONTRACT");
  await until("a word finds the messages with it", shows(".chathead .summary", "with “CONTRACT”, as they were sent") + ` && document.querySelectorAll(".chat .bubble").length === 1 && document.querySelector(".chat mark").textContent === "contract"`);
  await until("the list says how many", shows(".talks .count", "1 of 4"));
  await isAccessible("found messages");
  await run(`[...document.querySelectorAll(".chathead button")].find((button) => button.textContent === "show all").click()`);
  await until("all messages are shown again", `document.querySelectorAll(".chat .bubble").length > 1 && !document.querySelector(".chat mark")`);
  await run(`document.activeElement.blur()`);
  await key("5");
  await until("the causes of errors are listed", shows(".findings td", "not-authorized"));
  await until("errors and warnings are counted", `/^\\d+ causes: \\d+ errors(, \\d+ warnings?)?$/.test(document.querySelector(".view .summary").textContent)`);
  await until("the tab has the number of errors", `document.querySelector("#tab-findings").textContent === "Errors " + / (\\d+) errors/.exec(document.querySelector(".view .summary").textContent)[1]`);
  await isAccessible("errors");
  await key("6");
  await until("round trips are measured", shows(".measures td", "XEP-0199"));
  await isAccessible("measures");
  await key("?");
  await until("the keys are listed", shows("dialog", "next and previous record"));
  await isAccessible("keys");
  await key("Escape");
  await until("the keys are closed", `!document.querySelector("dialog")`);
  await key("k", 2);
  await type("diagram");
  await until("the commands are listed", shows(".palette [aria-selected=true]", "Show diagram"));
  await isAccessible("commands");
  await key("Escape");
  await until("the commands are closed", `!document.querySelector("dialog")`);
  // Each colour of a row on each of its backgrounds, also those that the records of this test do not have.
  await key("2");
  await until("the records are listed again", `document.querySelectorAll(".records .row:not([hidden])").length > 10`);
  await run(`(() => {
    const rows = [...document.querySelectorAll(".records .row:not([hidden])")];
    const classes = ["send", "recv", "event", "send bad", "recv warn", "recv faint", "send tap", "recv dropped", "event remark", "pending"];
    rows.forEach((row, index) => {
      row.className = "row " + classes[index % classes.length];
      row.setAttribute("aria-selected", String(index >= classes.length));
    });
  })()`);
  await isAccessible("rows of all kinds");

  if (url.startsWith("http:")) {
    const waits = () => [...pending.values()].some((address) => address.includes("/page/rows") && address.includes("wait="));
    await eventually("the page waits for new records", waits);
    await hide(true);
    await until("another tab hides the page", "document.hidden");
    await eventually("a hidden page has no connection", () => pending.size === 0);
    const count = requests.length;
    await new Promise((done) => setTimeout(done, 4000));
    if (requests.length !== count) throw new Error(`a hidden page asks: ${requests.slice(count)}`);
    await hide(false);
    await eventually("the page waits again when it is shown", waits);
  }
  await until("nothing from the wire was executed", `!window.executed && !document.querySelector("img[src^=http]")`);
}

/** Shows a list with gaps, and returns what is wrong with the places of its rows. Runs in the page. */
async function faultsOfGaps(total) {
  const [{ RecordsList }, { RowStore }] = await Promise.all(["/records.js", "/rows.js"].map((name) => import(name)));
  const column = (from, count, of) => Array.from({ length: count }, (_, place) => of(from + place));
  // Each seventh row comes a minute late.
  const time = (index) => 1_700_000_000_000_000 + index * 1e6 + Math.floor(index / 7) * 60e6;
  const rows = async ({ from = 0, count = 2, around = from, wait = 0 }) => {
    if (wait) await new Promise(() => {});
    const start = around < 0 ? total + around : around;
    const some = Math.min(count, total - start);
    const all = (of) => column(start, some, of);
    return { run: "r", first: 0, end: total, start, at: all((index) => index), number: all((index) => index + 1), time: all(time), kind: all(() => "stanza"), name: all(() => "message"), text: all((index) => `row ${index}`), level: all(() => 3), direction: all(() => 1) };
  };
  const store = new RowStore({ rows }, { onChange: () => records.update(), onFault: () => {} });
  const records = new RecordsList(store, { onSelect: () => {}, onOpen: () => {}, onScroll: () => {} });
  const box = document.createElement("div");
  box.className = "view";
  Object.assign(box.style, { position: "fixed", inset: "0 0 auto 0", height: "301px", background: "Canvas" });
  box.append(records.node);
  document.body.append(box);
  store.start();
  const { list, cursor } = records;
  const wrong = [];
  const settle = async () => {
    for (let turn = 0; turn < 3000; turn++) {
      // A list that was scrolled draws its rows in the next frame.
      await new Promise(requestAnimationFrame);
      await new Promise(requestAnimationFrame);
      if (list.height > 0 && list.end === total && !box.querySelector(".row.pending:not([hidden])") && !list.isDrawing) return;
    }
    wrong.push("rows do not arrive");
  };
  const look = async (when, selected) => {
    await settle();
    const view = list.window.getBoundingClientRect();
    const shown = [...box.querySelectorAll(".row:not([hidden])")].map((node) => ({ node, index: node.getAttribute("aria-rowindex") - 2, box: node.getBoundingClientRect() })).sort((one, other) => one.index - other.index);
    shown.forEach(({ node, index, box: { top, height } }, place) => {
      const gap = getComputedStyle(node, "::before").content === "none" ? "" : node.dataset.gap;
      const isLate = index > 0 && index % 7 === 0;
      if (Math.abs(height - (isLate ? 40 : 22)) > 0.1 || gap !== (isLate ? "1 min 1 s without records" : "")) wrong.push(`${when}: row ${index} has height ${height}, gap ${gap}`);
      if (place && Math.abs(top - shown[place - 1].box.bottom) > 0.1) wrong.push(`${when}: row ${index} begins at ${top}, after ${shown[place - 1].box.bottom}`);
      if (index === selected && (top < view.top - 0.1 || top + height > view.bottom + 0.1)) wrong.push(`${when}: row ${index} is cut`);
    });
    if (shown[0].box.top > view.top + 0.1 || shown.at(-1).box.bottom < view.bottom - 0.1) wrong.push(`${when}: the view is not filled`);
    if (selected !== undefined && box.querySelector("[aria-selected=true]")?.getAttribute("aria-rowindex") !== String(selected + 2)) wrong.push(`${when}: row ${selected} is not selected`);
    return shown.at(-1);
  };
  await look("at the beginning");
  for (const [key, times] of [["End", 1], ["ArrowUp", 20], ["PageUp", 3], ["PageDown", 2], ["Home", 1], ["ArrowDown", 20]]) {
    for (let turn = 0; turn < times; turn++) {
      cursor.move(key);
      await look(`after ${key}`, list.selected);
    }
  }
  for (const part of [0.3, 0.7001, 1]) {
    list.node.scrollTop = part * list.node.scrollHeight;
    const last = await look(`after scrolling to ${part}`);
    if (part === 1 && (last.index !== total - 1 || Math.abs(last.box.bottom - list.window.getBoundingClientRect().bottom) > 0.5)) wrong.push(`the last row ends at ${last.box.bottom}`);
  }
  list.follow();
  if ((await look("following")).index !== total - 1) wrong.push("following does not show the last row");
  if (list.node.getAttribute("aria-rowcount") !== String(total + 1)) wrong.push("the number of rows is wrong");
  store.stop();
  box.remove();
  return wrong;
}

/** The page of an audit store, which has neither login steps nor the XML of stanzas. */
async function checkStore() {
  await until("the sessions of the store are listed", shows(".sessions .row .who", "juliet@localhost") + " && " + shows(".sessions .row .who", "romeo@localhost"));
  await until("the failed login has its cause", shows(".sessions .row .state", "login failed"));
  await key("Home");
  await key("m");
  await until("a store makes no test", shows(".maketest", "this page shows none"));
  await key("Escape");
  await until("the dialog is closed", `!document.querySelector("dialog")`);
  await key("2");
  await until("the stanzas are listed", shows(".records .row .text", "the contract is signed"));
  await key("4");
  await until("the conversation has the messages", shows(".chat .bubble .text", "the contract is signed") + " && " + shows(".chat .bubble .text", "Art thou not Romeo?"));
  await key("3");
  await until("the diagram begins with the failed login", shows(".diagnosis", "The login failed: "));
}

/** The page of a comparison. */
async function checkReport() {
  await until("the report is shown first", shows(".report .verdict", "Failed") + " && " + shows("[aria-selected=true]", "Report"));
  await until("a difference has its place and both values", shows(".report td", "Art thou not Romeo?") + " && " + shows(".report td", "Art thou not Paris?") + " && " + shows(".report th", "body/text()"));
  await until("what differs is marked", `[...document.querySelectorAll(".side mark")].map((node) => node.textContent).join("|").includes("Art thou not Romeo?|Art thou not Paris?")`);
  await isAccessible("the report");
  for (const [side, text] of [[0, "Art thou not Romeo?"], [1, "Art thou not Paris?"]]) {
    await run(`[...document.querySelectorAll(".cause")].find((cause) => cause.textContent.includes("Romeo?")).querySelectorAll(".side")[${side}].querySelector("button").click()`);
    await until(`the record of side ${side + 1} is shown`, shows(".detail .tree", text));
    await run(`document.querySelector("#tab-report").click()`);
  }
}

await finish(() => checkAll(scene === "store" ? checkStore : scene === "report" ? checkReport : check));

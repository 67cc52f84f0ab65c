// Prints the request that the page copies for a stanza.
//
//   node command.mjs FOLDER ORIGIN STATE RECORD
import { pathToFileURL } from "node:url";

const [folder, origin, state, record] = process.argv.slice(2);
globalThis.location = { origin };
const { curlCommand } = await import(pathToFileURL(`${folder}/detail.js`).href);
process.stdout.write(curlCommand(JSON.parse(record), "client", JSON.parse(state)) ?? "none");

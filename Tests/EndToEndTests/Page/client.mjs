// A client of XMPP over plain TCP, for tests of the page.
import { connect } from "node:net";
import { eventually } from "./page.mjs";

const header = "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' to='localhost' version='1.0'>";

/** A client that does only what the test tells it to do. */
export class Client {
  constructor(port, user, password, resource) {
    Object.assign(this, { user, password, resource, received: "" });
    this.socket = connect(Number(port), "127.0.0.1");
    this.socket.setEncoding("utf8");
    this.socket.on("data", (text) => { this.received += text; });
    this.socket.on("error", (error) => { this.received += `<!-- ${error.message} -->`; });
  }

  get jid() { return `${this.user}@localhost/${this.resource}`; }
  write(text) { this.socket.write(text); }
  has(text) { return this.received.includes(text); }
  until(text) { return eventually(`${this.user} gets ${text.slice(0, 60)}`, () => this.has(text)); }

  async authenticate() {
    this.write(header);
    await this.until("</stream:features>");
    this.write(`<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>${Buffer.from(`\0${this.user}\0${this.password}`).toString("base64")}</auth>`);
  }

  /** Logs in with a wrong password. */
  async fail() {
    await this.authenticate();
    await this.until("<failure");
    this.socket.end("</stream:stream>");
  }

  async login() {
    await this.authenticate();
    await this.until("<success");
    this.write(header);
    await this.until("urn:ietf:params:xml:ns:xmpp-bind");
    this.write(`<iq type='set' id='bind'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'><resource>${this.resource}</resource></bind></iq>`);
    await this.until("</jid>");
    this.write("<presence/>");
  }

  say(body, other) { this.write(`<message to='${other.jid}' type='chat'><body>${body}</body></message>`); }
}

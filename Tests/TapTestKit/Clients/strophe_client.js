// A login by Strophe over WebSocket or BOSH, with Debian's node-ws and node-xmldom. Arguments: URL, JID, password.
// Prints a line for each event. Sends to itself each line of standard input as a message, and ends at the message "end".
const path = "/usr/share/nodejs/";
const { DOMParser, XMLSerializer, DOMImplementation } = require(path + "@xmldom/xmldom");
Object.assign(global, {
    WebSocket: require(path + "ws"), DOMParser, XMLSerializer, window: global, self: global,
    document: { implementation: new DOMImplementation(), createElement: () => ({}) },
});

// The part of XMLHttpRequest that Strophe's BOSH uses.
global.XMLHttpRequest = class XMLHttpRequest {
    readyState = 0; status = 0; responseText = ""; responseXML = null;
    static http = require(process.argv[2].startsWith("https") ? "https" : "http");
    static agent = new XMLHttpRequest.http.Agent({ keepAlive: true });
    open(method, url) { this.options = [url, { method, headers: {}, agent: XMLHttpRequest.agent }]; this.readyState = 1; }
    setRequestHeader(name, value) { this.options[1].headers[name] = value; }
    send(data) {
        const change = (state, status) => { this.readyState = state; this.status = status; this.onreadystatechange?.(); };
        this.options[1].headers["Content-Length"] = Buffer.byteLength(data);
        this.request = XMLHttpRequest.http.request(...this.options, response => {
            const parts = [];
            response.on("data", part => parts.push(part));
            response.on("end", () => {
                this.responseText = Buffer.concat(parts).toString();
                if (this.responseText) this.responseXML = new DOMParser().parseFromString(this.responseText, "text/xml");
                change(4, response.statusCode);
            });
        });
        this.request.on("error", () => change(4, 0));
        this.request.end(data);
    }
    abort() { this.request?.destroy(); }
};
const loaded = require("/usr/share/javascript/strophe/strophe.js");
const { Strophe, $pres, $msg, $iq } = loaded.Strophe ? loaded : global;
const [url, jid, password] = process.argv.slice(2);
const connection = new Strophe.Connection(url);
const say = text => process.stdout.write(text + "\n");

function begin() {
    connection.addHandler(stanza => {
        const body = stanza.getElementsByTagName("body")[0];
        if (body) say("message " + Strophe.getText(body));
        if (body && Strophe.getText(body) === "end") connection.disconnect();
        return true;
    }, null, "message");
    connection.send($pres());
    connection.sendIQ($iq({ type: "get" }).c("query", { xmlns: "jabber:iq:roster" }), () => say("roster"), () => say("no roster"));
    say("ready " + connection.jid);
    const lines = require("readline").createInterface({ input: process.stdin });
    lines.on("line", line => connection.send($msg({ to: connection.jid, type: "chat" }).c("body").t(line)));
}

connection.connect(jid, password, (status, condition) => {
    if (status === Strophe.Status.CONNECTED) begin();
    if (status === Strophe.Status.CONNFAIL || status === Strophe.Status.AUTHFAIL) say("failed " + condition);
    if (status === Strophe.Status.DISCONNECTED) {
        say("ended");
        process.exit(0);
    }
});
setTimeout(() => process.exit(1), 120000);

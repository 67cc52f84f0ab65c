"""A scripted XMPP client: types into profanity on a terminal of its own, prints one JSON object a line per happening.

What happened is read from profanity's own debug log, which prints every element it sends and receives.
Events: connected, tls, bound, roster, present, pong, sent, received, ready, failed, disconnected.
`ready` comes after the roster, the presence and the pings; only then are messages sent and waited for.
Exit code: 0 when everything asked for was done, 1 otherwise (a `failed` event says why).
"""

import argparse
import fcntl
import json
import os
import pty
import re
import shutil
import struct
import sys
import tempfile
import termios
import threading
import time
import xml.etree.ElementTree as ElementTree

CLIENT = "{jabber:client}"
BIND = "{urn:ietf:params:xml:ns:xmpp-bind}"
PING = "{urn:xmpp:ping}ping"
ELEMENT = re.compile(r"^\S+ \w+: DBG: (SENT|RECV): (<.*>)$")


class Trouble(Exception):
    """The session did not go as asked; the text says how."""


class Profanity:
    """A running profanity with a home of its own, what its log has told so far, and a keyboard."""

    def __init__(self, options):
        self.home = tempfile.mkdtemp(prefix="profanity-")
        self.log = options.log or os.path.join(self.home, "debug.log")
        self.read = 0
        self.screen = bytearray()
        self.counts = {}
        self.pings = {}
        self.write_account(options)
        arguments = ["profanity", "--log", "DEBUG", "--logfile", self.log, "--account", "tested"]
        # Nothing of the caller's environment: no display, no session bus, no key ring.
        environment = {
            "HOME": self.home,
            "XDG_CONFIG_HOME": os.path.join(self.home, "config"),
            "XDG_DATA_HOME": os.path.join(self.home, "data"),
            "TERM": "xterm",
            "LC_ALL": "C.UTF-8",
            "PATH": "/usr/bin:/bin",
        }
        if options.ca:
            # The system's folder of roots is read beside the file, unless another is named.
            environment.update(SSL_CERT_FILE=os.path.abspath(options.ca), SSL_CERT_DIR=self.home)
        self.process, self.terminal = pty.fork()
        if self.process == 0:
            os.execve("/usr/bin/profanity", arguments, environment)
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 160, 0, 0))
        threading.Thread(target=self.drain, daemon=True).start()

    def write_account(self, options):
        folder = os.path.join(self.home, "data", "profanity")
        os.makedirs(folder)
        os.makedirs(os.path.join(self.home, "config", "profanity"))
        account = {
            "enabled": "true",
            "jid": options.jid,
            "password": options.password,
            "resource": options.resource,
            "server": options.host,
            "port": options.port,
            "tls.policy": "disable" if options.no_tls
            else "legacy" if options.direct
            else "force" if options.ca
            else "trust",
        }
        with open(os.path.join(folder, "accounts"), "w", encoding="utf-8") as file:
            file.write("[tested]\n" + "".join(f"{key}={value}\n" for key, value in account.items()))

    def drain(self):
        # A terminal nobody reads fills up and stops the program.
        try:
            while data := os.read(self.terminal, 65536):
                self.screen += data
        except OSError:
            pass

    def shown(self):
        """The last of what the terminal was sent, without its control sequences."""
        return re.sub(r"\x1b[\[(][0-9;?]*[A-Za-z]|[\x00-\x1f]+", " ", self.screen[-2000:].decode("utf-8", "replace"))

    def type(self, line):
        os.write(self.terminal, line.encode() + b"\r")

    def tell(self, event, **facts):
        self.counts[event] = self.counts.get(event, 0) + 1
        print(json.dumps({"event": event, **facts}, ensure_ascii=False), flush=True)

    def follow(self):
        """Reads what the log has gained and tells the events in it."""
        if not os.path.exists(self.log):
            return
        with open(self.log, "rb") as file:
            file.seek(self.read)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self.read += len(line)
                self.happened(line.decode("utf-8", "replace").rstrip("\n"))

    def happened(self, line):
        if line.endswith("connection successful"):
            self.tell("connected")
        elif line.endswith("proceeding with TLS"):
            self.tell("tls")
        elif "connection_features_received" in line:
            # What /ping asks before it sends anything. Not an event of its own.
            self.counts["features"] = 1
        elif "XMPP_CONN_DISCONNECT" in line:
            self.tell("disconnected")
        elif match := ELEMENT.match(line):
            try:
                # Log lines name the namespace of a stanza only where it is not the stream's.
                element = ElementTree.fromstring(f"<s xmlns='jabber:client'>{match[2]}</s>")[0]
            except (ElementTree.ParseError, IndexError):
                return  # a stream header or end
            self.element(match[1], element)

    def element(self, direction, element):
        sent = direction == "SENT"
        if element.tag == CLIENT + "message":
            body = element.findtext(CLIENT + "body")
            if body and sent:
                self.tell("sent", to=element.get("to"), id=element.get("id"), body=body)
            elif body:
                self.sender = element.get("from")
                self.tell("received", **{"from": self.sender, "id": element.get("id"), "body": body})
        elif element.tag == CLIENT + "presence" and sent and element.get("type") is None:
            self.tell("present")
        elif element.tag == CLIENT + "iq":
            self.iq(sent, element)
        elif not sent and element.tag.endswith("}failure"):
            raise Trouble("authentication: " + element[0].tag.split("}")[1])

    def iq(self, sent, iq):
        if sent and iq.find(PING) is not None:
            self.pings[iq.get("id")] = (iq.get("to"), time.monotonic())
        elif not sent and iq.get("id") in self.pings and iq.get("type") in ("result", "error"):
            jid, since = self.pings.pop(iq.get("id"))
            self.tell("pong", jid=jid, seconds=time.monotonic() - since)
        elif not sent and (jid := iq.findtext(f"{BIND}bind/{BIND}jid")):
            self.tell("bound", jid=jid)
        elif not sent and iq.get("id") == "roster":
            self.tell("roster", items=sorted(item.get("jid") for item in iq.iter("{jabber:iq:roster}item")))

    def wait(self, event, count, deadline):
        """Until `event` was told `count` times in all."""
        while True:
            self.follow()
            if self.counts.get(event, 0) >= count:
                return
            if self.ended():
                raise Trouble(f"profanity ended before {event}")
            if "disconnected" in self.counts and event != "disconnected":
                raise Trouble("the connection ended")
            if time.monotonic() > deadline:
                raise Trouble(f"no {event} in time")
            time.sleep(0.02)

    def ended(self):
        """Whether the program has ended; reaps it then."""
        if self.process:
            pid, status = os.waitpid(self.process, os.WNOHANG)
            if pid:
                self.process, self.status = 0, os.waitstatus_to_exitcode(status)
        return self.process == 0

    def quit(self, deadline):
        self.type("/quit")
        while not self.ended():
            if time.monotonic() > deadline:
                raise Trouble("profanity did not quit")
            time.sleep(0.02)
        self.follow()
        if self.status != 0:
            raise Trouble(f"profanity ended with {self.status}")

    def close(self):
        if not self.ended():
            os.kill(self.process, 9)
            os.waitpid(self.process, 0)
        shutil.rmtree(self.home, ignore_errors=True)


def session(client, options):
    deadline = time.monotonic() + options.timeout
    for event in ("bound", "roster", "present", "features"):
        client.wait(event, 1, deadline)
    # TLS from the first byte on is not told apart, and not left out.
    if not options.no_tls and not options.direct and "tls" not in client.counts:
        raise Trouble("the session is not encrypted")
    if options.ping:
        client.type("/ping")
        client.wait("pong", 1, deadline)
    client.tell("ready")
    for number, (to, body) in enumerate(options.send):
        client.type(f"/msg {to} {body}")
        client.wait("sent", number + 1, deadline)
    for number in range(options.receive):
        client.wait("received", number + 1, deadline)
        if options.reply:
            client.type(f"/msg {client.sender} {options.reply}")
            client.wait("sent", len(options.send) + number + 1, deadline)
    client.quit(deadline)


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jid", required=True)
    parser.add_argument("--password", required=True)
    parser.add_argument("--resource", default="profanity")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--no-tls", action="store_true", help="stay in plain text (default: insist on STARTTLS)")
    parser.add_argument("--direct", action="store_true", help="begin with TLS, rather than ask for it")
    parser.add_argument("--ca", help="file of certificates to verify the server with (default: accept any)")
    parser.add_argument("--ping", action="store_true", help="ping the server")
    parser.add_argument("--send", nargs=2, metavar=("JID", "BODY"), action="append", default=[])
    parser.add_argument("--reply", metavar="BODY", help="answer each message with this")
    parser.add_argument("--receive", metavar="N", type=int, default=0, help="wait for this many messages")
    parser.add_argument("--log", metavar="FILE", help="keep profanity's own debug log here")
    parser.add_argument("--timeout", metavar="SECONDS", type=float, default=30)
    return parser.parse_args()


def main():
    options = parse()
    client = Profanity(options)
    try:
        session(client, options)
        return 0
    except Trouble as trouble:
        client.tell("failed", reason=str(trouble))
        if os.path.exists(client.log):
            with open(client.log, encoding="utf-8", errors="replace") as log:
                sys.stderr.write("".join(log.readlines()[-40:]))
        sys.stderr.write(client.shown() + "\n")
        return 1
    finally:
        client.close()


if __name__ == "__main__":
    sys.exit(main())

"""What the status line costs: the same load through a proxy on a terminal that has the line, and on one that cannot."""
import fcntl
import os
import pathlib
import pty
import re
import socket
import statistics
import struct
import tempfile
import termios
import threading
import time

HEADER = b"<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' version='1.0'"
FEATURES = {
    "sasl": b"<mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><mechanism>PLAIN</mechanism></mechanisms>",
    "bind": b"<bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/>",
}
STANZA = b"<message to='juliet@localhost' type='chat' id='%08d'><body>Art thou not Romeo, and a Montague?</body></message>"
# Stanzas, and how many pass in a second; None is as many as can.
LOADS = (("as fast as it goes", 100_000, None), ("at 500 a second", 1_000, 500))
ROUNDS = 7


def until(connection, word):
    """Reads until a word has come."""
    data = b""
    while word not in data:
        more = connection.recv(1 << 16)
        if not more:
            raise EOFError(f"the connection ended before {word}: {data[-200:]}")
        data = data[-64:] + more


def serve(listener):
    """Serves the one client."""
    while True:
        with listener.accept()[0] as connection:
            try:
                return serve_client(connection)
            except (EOFError, ConnectionError):
                # The proxy has looked whether the server is there.
                continue


def serve_client(connection):
    """Logs a client in, then takes stanzas until the stream ends."""
    for features, then in (("sasl", b"</auth>"), ("bind", b"</iq>")):
        until(connection, b">")
        connection.sendall(
            HEADER + b" from='localhost' id='s'><stream:features>" + FEATURES[features] + b"</stream:features>"
        )
        until(connection, then)
        if features == "sasl":
            connection.sendall(b"<success xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>")
    connection.sendall(
        b"<iq type='result' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'>"
        b"<jid>romeo@localhost/x</jid></bind></iq>"
    )
    until(connection, b"</stream:stream>")
    connection.sendall(b"</stream:stream>")


def stanzas(count, rate):
    """The stanzas, as they are written."""
    step, began = (100, None) if rate is None else (1, time.monotonic())
    for first in range(0, count, step):
        if began is not None:
            time.sleep(max(0, began + first / rate - time.monotonic()))
        yield b"".join(STANZA % number for number in range(first, first + step))


def load(port, writes):
    """Logs in and sends what is to be written."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(HEADER + b" to='localhost'>")
        until(connection, b"</stream:features>")
        connection.sendall(b"<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>AHJvbWVvAHg=</auth>")
        until(connection, b"<success")
        connection.sendall(HEADER + b" to='localhost'>")
        until(connection, b"</stream:features>")
        connection.sendall(b"<iq type='set' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq>")
        until(connection, b"</iq>")
        for data in writes:
            connection.sendall(data)
        connection.sendall(b"</stream:stream>")
        until(connection, b"</stream:stream>")


def used(process):
    """Seconds of the processors that the threads of a process have had; the clock of whole processes is too coarse."""
    threads = pathlib.Path(f"/proc/{process}/task").iterdir()
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9


def measure(program, kind, count, rate):
    """The proxy's time of the processors for a stanza, in seconds; the terminal's kind is that of TERM."""
    with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as listener:
        process, terminal = pty.fork()
        if process == 0:
            command = [
                str(program), "proxy", "--listen", "127.0.0.1:0", "--upstream", f"127.0.0.1:{listener.getsockname()[1]}",
                "--control", "none", "--log", "info", "--format", "compact", "--color", "always",
            ]
            places = dict.fromkeys(("XDG_RUNTIME_DIR", "XDG_STATE_HOME", "HOME"), folder)
            os.execve(command[0], command, os.environ | places | {"TERM": kind, "LC_ALL": "C.UTF-8"})
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        seen, port, listening = bytearray(), [], threading.Event()

        def drain():
            try:
                while data := os.read(terminal, 1 << 16):
                    seen.extend(data)
                    found = re.search(rb"listening on 127\.0\.0\.1:(\d+)", seen) if not port else None
                    if found:
                        port.append(int(found[1]))
                        listening.set()
            except OSError:
                # The proxy has ended.
                listening.set()

        threads = [threading.Thread(target=drain), threading.Thread(target=serve, args=(listener,), daemon=True)]
        for thread in threads:
            thread.start()
        listening.wait()
        if not port:
            raise SystemExit(f"benchmark: the proxy has failed: {seen.decode()}")
        before = used(process)
        load(port[0], stanzas(count, rate))
        took = used(process) - before
        os.kill(process, 15)
        os.waitpid(process, 0)
        threads[0].join()
        os.close(terminal)
        has_line = b"stanzas/s" in seen
        if has_line != (kind != "dumb"):
            raise SystemExit(f"benchmark: TERM={kind}: {'a' if has_line else 'no'} status line")
        return took / count


def compare(program):
    """Prints medians of both for each load; rounds alternate."""
    program = pathlib.Path(program).resolve()
    for name, count, rate in LOADS:
        runs = {"dumb": [], "xterm-256color": []}
        for _ in range(ROUNDS):
            for kind, times in runs.items():
                times.append(measure(program, kind, count, rate))
        without, with_line = (statistics.median(times) * 1e6 for times in runs.values())
        spread = (max(runs["dumb"]) - min(runs["dumb"])) * 1e6
        print(
            f"status line, {name:20} {with_line:8.2f} µs of CPU a stanza, without it {without:.2f} µs "
            f"({(with_line / without - 1) * 100:+.1f} %; the runs without it differ by {spread:.2f} µs)",
            flush=True,
        )

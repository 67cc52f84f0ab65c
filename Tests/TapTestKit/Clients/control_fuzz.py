"""Drives the control socket of a running xmpptap with schemathesis, by its own description.

    python3 control_fuzz.py SOCKET FOLDER [OPTION...]

FOLDER is where schemathesis is installed; the options are its own. Its requests go over TCP: a thread passes each
connection on to the Unix socket. Live records end after a moment. Of three sessions the first is to stay: pings go to the
second, which answers them, and the third is paused and closed instead.
"""

import socket
import subprocess
import sys
import tempfile
import threading


def elsewhere(data):
    for old, new in [
        (b"POST /sessions/1/ping", b"POST /sessions/2/ping"),
        (b"POST /sessions/1/pause", b"POST /sessions/3/pause"),
        (b"DELETE /sessions/1 ", b"DELETE /sessions/3 "),
    ]:
        data = data.replace(old, new)
    return data


def ask(source, target):
    pipe(source, target, elsewhere)


def answer(source, target):
    def limit(data):
        if b"text/event-stream" in data:
            source.settimeout(0.1)
        return data

    pipe(source, target, limit)


def pipe(source, target, change):
    try:
        while data := source.recv(65536):
            target.sendall(change(data))
    except TimeoutError:
        target.sendall(b"0\r\n\r\n")
        source.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    try:
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def forward(listener, path):
    while True:
        client, _ = listener.accept()
        server = socket.socket(socket.AF_UNIX)
        server.connect(path)
        threading.Thread(target=ask, args=(client, server), daemon=True).start()
        threading.Thread(target=answer, args=(server, client), daemon=True).start()


def main(path, folder, options):
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=forward, args=(listener, path), daemon=True).start()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/openapi.json"
    run = ["import sys; sys.argv[0] = 'schemathesis'; from schemathesis.cli import schemathesis; schemathesis()"]
    command = [sys.executable, "-c", *run, "run", url, *options]
    # It leaves files of its own where it runs.
    with tempfile.TemporaryDirectory() as place:
        environment = {"PYTHONPATH": folder, "PATH": "/usr/bin:/bin", "HOME": place}
        return subprocess.run(command, env=environment, cwd=place).returncode


sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))

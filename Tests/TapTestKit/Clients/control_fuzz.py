"""Drives the control socket of a running xmpptap with schemathesis, by its own description.

    python3 control_fuzz.py SOCKET FOLDER [OPTION...]

FOLDER is where schemathesis is installed; the options are its own. Its requests go over TCP: a thread passes each
connection on to the Unix socket. What would not end, or not soon (live records, pings that nobody answers), and what would
end the session is left out.
"""

import socket
import subprocess
import sys
import tempfile
import threading


def pipe(source, target):
    try:
        while data := source.recv(65536):
            target.sendall(data)
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
        for pair in [(client, server), (server, client)]:
            threading.Thread(target=pipe, args=pair, daemon=True).start()


def main(path, folder, options):
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=forward, args=(listener, path), daemon=True).start()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/openapi.json"
    left_out = [
        argument
        for name in ["streamRecords", "traceRules", "closeSession", "ping"]
        for argument in ["--exclude-operation-id", name]
    ]
    run = ["import sys; sys.argv[0] = 'schemathesis'; from schemathesis.cli import schemathesis; schemathesis()"]
    command = [sys.executable, "-c", *run, "run", url, *left_out, *options]
    # It leaves files of its own where it runs.
    with tempfile.TemporaryDirectory() as place:
        environment = {"PYTHONPATH": folder, "PATH": "/usr/bin:/bin", "HOME": place}
        return subprocess.run(command, env=environment, cwd=place).returncode


sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))

"""Runs a program that counts what it executes on typical work, for the compiler to optimise by these counts.

    .packaging/train.py PROGRAM COUNTS    COUNTS is a folder for the counts

It reads packets and captures in every form, and relays a load at several levels.
"""
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "Tests/Benchmarks"))
sys.dont_write_bytecode = True

import captures
import statusline

MEGABYTES = 8
# Stanzas that are relayed, each as one write, and then as many in large writes.
RELAYED = 20_000
READS = (
    ["--log", "info"],
    ["--log", "info", "--format", "compact"],
    ["--log", "verbose,send,recv"],
    ["--log", "verbose", "--format", "json"],
    ["--log", "verbose", "--format", "compact"],
    ["--stats"],
    ["--sessions"],
    ["--filter", "iq and not type:result"],
)
RULES = ("redact-bodies", "log-subscriptions", "no-typing")
# Seconds that a step may take: a build must not wait for ever.
PATIENCE = 120


class Trainer:
    """Runs the program; what it counts, and what it writes otherwise, goes to two folders."""

    def __init__(self, program, counts, folder):
        self.program = str(pathlib.Path(program).resolve())
        self.folder = folder
        places = dict.fromkeys(("XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "HOME"), str(folder))
        self.environment = os.environ | places | {"LLVM_PROFILE_FILE": f"{pathlib.Path(counts).resolve()}/%p.profraw"}

    def run(self, *arguments):
        """Runs a command to its end."""
        outcome = subprocess.run(
            [self.program, *map(str, arguments)], env=self.environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=PATIENCE,
        )
        if outcome.returncode != 0:
            raise SystemExit(f"train: {' '.join(map(str, arguments))}: {outcome.stderr}")

    def relay(self, *arguments):
        """Sends a load through a proxy."""
        stanzas = [stanza.encode() for stanza in captures.mix()]
        writes = [stanzas[number % len(stanzas)] for number in range(RELAYED)]
        writes += [b"".join(writes[first:first + 100]) for first in range(0, RELAYED, 100)]
        said = self.folder / "proxy.err"
        with socket.create_server(("127.0.0.1", 0)) as listener, open(said, "w") as errors:
            threading.Thread(target=statusline.serve, args=(listener,), daemon=True).start()
            proxy = subprocess.Popen(
                [
                    self.program, "proxy", "--listen", "127.0.0.1:0", "--upstream",
                    f"127.0.0.1:{listener.getsockname()[1]}", "--control", "none", *map(str, arguments),
                ],
                env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors,
            )
            try:
                statusline.load(self.port(proxy, said), writes)
                proxy.terminate()
                if proxy.wait(PATIENCE) != 0:
                    raise SystemExit(f"train: the proxy has failed: {said.read_text()}")
            finally:
                proxy.kill()
                proxy.wait()

    @staticmethod
    def port(proxy, said):
        """The port on which a proxy listens, once it does."""
        while proxy.poll() is None:
            found = re.search(r"listening on 127\.0\.0\.1:(\d+)", said.read_text())
            if found:
                return int(found[1])
            time.sleep(0.01)
        raise SystemExit(f"train: the proxy has failed: {said.read_text()}")


def train(program, counts):
    socket.setdefaulttimeout(PATIENCE)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        trainer = Trainer(program, counts, folder)
        clear, secret, keys, recorded = (folder / file for file in ("c.pcap", "s.pcap", "keys", "c.xtap"))
        captures.make(MEGABYTES, clear)
        captures.make(MEGABYTES, secret, keys)
        trainer.run("convert", clear, recorded)
        for options in READS:
            trainer.run("read", clear, *options)
            trainer.run("read", recorded, *options)
        trainer.run("read", secret, "--keylog", keys, "--log", "info")
        trainer.run("read", secret, "--keylog", keys, "--log", "verbose")
        trainer.run("diff", recorded, recorded)
        trainer.run("demo")
        trainer.relay("--log", "off")
        trainer.relay("--log", "info")
        trainer.relay("--log", "off", "--log-to", f"{folder}/x.log,verbose")
        trainer.relay("--log", "info,send,recv", "--capture", folder / "r.xtap")
        rules = [part for rule in RULES for part in ("--rules", ROOT / f"filters/{rule}.pfw")]
        trainer.relay("--log", "info", *rules)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    train(*sys.argv[1:])

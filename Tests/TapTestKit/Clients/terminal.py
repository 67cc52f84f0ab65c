"""Runs a program on a terminal of its own, whose size and end the flags choose.

Its output goes to standard output as it comes. With --close-at the terminal is closed as soon as that text has come, while the
program goes on. With --reply the program's standard input and standard error are the terminal too, and the answer is typed as
soon as that text has come. SIGTERM is passed on. Exit code: the program's, or 128 and the signal's number.
"""

import argparse
import fcntl
import os
import pty
import signal
import struct
import subprocess
import sys
import termios

parser = argparse.ArgumentParser()
parser.add_argument("--columns", type=int, required=True)
parser.add_argument("--rows", type=int, required=True)
parser.add_argument("--close-at", help="text at which the terminal is closed")
parser.add_argument("--controlling", action="store_true", help="whether closing it raises SIGHUP")
parser.add_argument("--reply", nargs=2, metavar=("TEXT", "ANSWER"), help="what is typed when a text has come")
parser.add_argument("command", nargs="+")
options = parser.parse_args()

terminal, end = pty.openpty()
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", options.rows, options.columns, 0, 0))


def begin():
    os.setsid()
    if options.controlling:
        fcntl.ioctl(end, termios.TIOCSCTTY, 0)


program = subprocess.Popen(
    options.command,
    stdin=end if options.controlling or options.reply else subprocess.DEVNULL,
    stdout=end,
    stderr=end if options.reply else None,
    preexec_fn=begin,
)
signal.signal(signal.SIGTERM, lambda *_: program.terminate())
os.close(end)
seen = b""
mark = options.close_at.encode() if options.close_at else None
question = options.reply[0].encode() if options.reply else None
while mark is None or mark not in seen:
    try:
        # Little at a time: the rest is still to be written when the terminal is closed.
        part = os.read(terminal, 64)
    except OSError:
        break
    if not part:
        break
    seen = (seen + part)[-4096:]
    if question and question in seen:
        question = None
        os.write(terminal, options.reply[1].encode() + b"\n")
    sys.stdout.buffer.write(part)
    sys.stdout.buffer.flush()
os.close(terminal)
if mark and mark in seen:
    print("closed", file=sys.stderr, flush=True)
code = program.wait()
sys.exit(code if code >= 0 else 128 - code)

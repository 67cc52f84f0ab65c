"""Starts a program as a service manager does, and prints what it notifies.

    service_manager.py SOCKETS PROGRAM ARGUMENT...

It opens so many listening sockets on 127.0.0.1 and hands them over as descriptors from 3 on. {0} in an argument stands for
the port of the first. A line for each notification on standard output; SIGHUP and SIGTERM go to the program, whose exit
code is this script's.
"""

import os
import signal
import socket
import sys
import threading

count = int(sys.argv[1])
sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
ports = [listener.getsockname()[1] for listener in sockets]
command = [word.format(*ports) for word in sys.argv[2:]]

notices = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
# An address without a file.
name = f"xmpptap-test-{os.getpid()}"
notices.bind("\0" + name)
print("ports", *ports, flush=True)

child = os.fork()
if child == 0:
    # Out of the way of the descriptors that are about to be used.
    kept = [os.dup2(listener.fileno(), 100 + index) for index, listener in enumerate(sockets)]
    for index, descriptor in enumerate(kept):
        os.dup2(descriptor, 3 + index)
        os.close(descriptor)
    os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(count), NOTIFY_SOCKET="@" + name)
    os.execv(command[0], command)

for listener in sockets:
    listener.close()
for number in (signal.SIGHUP, signal.SIGTERM):
    signal.signal(number, lambda number, frame: os.kill(child, number))


def listen():
    while True:
        for line in notices.recv(4096).decode().splitlines():
            print(line, flush=True)


threading.Thread(target=listen, daemon=True).start()
status = os.waitpid(child, 0)[1]
sys.exit(os.waitstatus_to_exitcode(status))

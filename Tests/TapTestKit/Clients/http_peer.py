#!/usr/bin/python3
"""An HTTP server with prepared answers: http_peer.py PORT FOLDER

The answer to a request for /NAME is the file NAME, byte for byte, after which the connection is closed. It follows after
one second if NAME ends in "-late". The body of the request is stored in NAME.request.
"""
import pathlib
import socket
import sys
import threading
import time

folder = pathlib.Path(sys.argv[2])


def chunks(stream):
    while size := int(stream.readline().split(b";")[0], 16):
        yield stream.read(size)
        stream.readline()


def serve(connection):
    with connection, connection.makefile("rb") as stream:
        name = stream.readline().split(b" ")[1].decode().lstrip("/")
        fields = {}
        while line := stream.readline().strip():
            key, value = line.decode().split(":", 1)
            fields[key.lower()] = value.strip()
        if "transfer-encoding" in fields:
            body = b"".join(chunks(stream))
        else:
            body = stream.read(int(fields.get("content-length", 0)))
        (folder / (name + ".request")).write_bytes(body)
        if name.endswith("-late"):
            time.sleep(1)
        connection.sendall((folder / name).read_bytes())


listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("ready", flush=True)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

"""An HTTPS server for tests. Arguments: certificate, key, folder, and a port (default: any). Prints its port.

The last part of a request's path names a file of the folder, which is sent with CORS. NAME.raw is a whole answer; in it,
{port} is the port of the server. NAME.slow sends a byte each second, without an end.
"""

import os
import socket
import socketserver
import ssl
import sys
import time

CERTIFICATE, KEY, FOLDER = sys.argv[1:4]
CONTEXT = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
CONTEXT.load_cert_chain(CERTIFICATE, KEY)


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True

    def handle_error(self, request, client_address):
        pass


class Handler(socketserver.BaseRequestHandler):
    def handle(self):
        connection = CONTEXT.wrap_socket(self.request, server_side=True)
        request = b""
        while b"\r\n\r\n" not in request:
            piece = connection.recv(4096)
            if not piece:
                return
            request += piece
        name = os.path.join(FOLDER, os.path.basename(request.split()[1].split(b"?")[0].decode()))
        if os.path.exists(name + ".slow"):
            while True:
                connection.sendall(b"H" if request else b"")
                time.sleep(1)
        if os.path.exists(name + ".raw"):
            answer = open(name + ".raw", "rb").read().replace(b"{port}", str(self.server.server_address[1]).encode())
        elif os.path.exists(name):
            body = open(name, "rb").read()
            answer = b"HTTP/1.1 200 OK\r\nAccess-Control-Allow-Origin: *\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        else:
            answer = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
        connection.sendall(answer)
        connection.unwrap().shutdown(socket.SHUT_WR)


with Server(("127.0.0.1", int(sys.argv[4]) if len(sys.argv) > 4 else 0), Handler) as server:
    print(server.server_address[1], flush=True)
    server.serve_forever()

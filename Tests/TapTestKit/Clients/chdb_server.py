"""Serves chdb, which is the engine of a current ClickHouse server, by ClickHouse's interface for HTTP on 127.0.0.1.

Prints the port when it is ready. Supports only what audit stores need: one user without a password, one request at a time, data in RowBinary.
"""

import argparse
import gzip
import http.server
import os
import re
import sys
import tempfile
import urllib.parse


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", required=True, help="folder in which chdb is installed")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--data", required=True, help="folder for the tables")
    return parser.parse_args()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query, keep_blank_values=True))
        database = query.pop("database", "default")
        statement = query.pop("query", None)
        try:
            session.query(f"USE {database}")
            status = 200
            if statement is None:
                answer = self.run(body.decode(), query)
            else:
                answer = self.insert(statement, body, query)
        except RuntimeError as problem:
            status, answer = 500, str(problem).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    @staticmethod
    def run(statement, settings):
        if settings:
            statement += " SETTINGS " + Handler.clause(settings)
        return session.query(statement, "TabSeparated").bytes() or b""

    @staticmethod
    def clause(settings):
        return ", ".join(f"{name} = {value if value.isdigit() else repr(value)}" for name, value in settings.items())

    @staticmethod
    def insert(statement, data, settings):
        # The format of the statement is for the data of the request, which chdb reads from a file.
        table, columns = re.fullmatch(r"INSERT INTO (\w+) \((.*)\) FORMAT RowBinary", statement).groups()
        known = session.query(
            f"SELECT name, type FROM system.columns WHERE table = '{table}' AND database = currentDatabase()", "TabSeparated"
        )
        types = dict(line.split("\t") for line in str(known).splitlines())
        structure = ", ".join(f"{name} {types[name]}" for name in columns.split(", "))
        with tempfile.NamedTemporaryFile(dir=options.data) as file:
            file.write(data)
            file.flush()
            clause = f" SETTINGS {Handler.clause(settings)}" if settings else ""
            source = f"file('{file.name}', 'RowBinary', '{structure}')"
            session.query(f"INSERT INTO {table} ({columns}){clause} SELECT {columns} FROM {source}")
        return b""


if __name__ == "__main__":
    options = parse()
    sys.path.insert(0, options.library)
    from chdb import session as sessions

    session = sessions.Session(os.path.join(options.data, "tables"))
    server = http.server.HTTPServer(("127.0.0.1", options.port), Handler)
    print(options.port, flush=True)
    server.serve_forever()

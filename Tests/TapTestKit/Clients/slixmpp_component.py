"""A component (XEP-0114): connects with slixmpp, answers each message with the same words, prints one JSON object a line.

Events: ready, received, failed, disconnected. Ends when it has answered once, or could not log in.
Exit code: 0 when it has answered, 1 otherwise.
"""

import argparse
import asyncio
import json
import sys

from slixmpp.componentxmpp import ComponentXMPP


def tell(event, **facts):
    print(json.dumps({"event": event, **facts}, ensure_ascii=False), flush=True)


class Component(ComponentXMPP):
    def __init__(self, options):
        super().__init__(options.domain, options.secret, "127.0.0.1", options.port)
        self.done = asyncio.get_event_loop().create_future()
        self.has_answered = False
        self.register_plugin("xep_0030")
        self.register_plugin("xep_0199")
        self.add_event_handler("session_start", lambda _: tell("ready"))
        self.add_event_handler("message", self.answer)
        self.add_event_handler("stream_error", lambda error: tell("failed", reason=error["condition"]))
        self.add_event_handler("disconnected", self.end)

    def answer(self, message):
        tell("received", body=message["body"])
        message.reply(message["body"]).send()
        self.has_answered = True
        self.disconnect()

    def end(self, _):
        tell("disconnected")
        if not self.done.done():
            self.done.set_result(None)


async def main(options):
    component = Component(options)
    component.connect()
    try:
        await asyncio.wait_for(component.done, 30)
    except asyncio.TimeoutError:
        tell("failed", reason="timeout")
    return 0 if component.has_answered else 1


parser = argparse.ArgumentParser()
parser.add_argument("--domain", required=True)
parser.add_argument("--secret", required=True)
parser.add_argument("--port", type=int, required=True)
sys.exit(asyncio.get_event_loop().run_until_complete(main(parser.parse_args())))

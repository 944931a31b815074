"""A model server on loopback that can read tables: for scripts that ask a model as users do."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextmanager
def model_server(answer: Callable[[str], str]) -> Iterator[str]:
    """Its address, in the wire format of OpenAI; `answer` takes a prompt."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            message = {"role": "assistant", "content": answer(asked["messages"][-1]["content"])}
            choice = {"index": 0, "finish_reason": "stop", "message": message}
            content = {"choices": [choice], "usage": {"prompt_tokens": 50, "completion_tokens": 5}}
            payload = json.dumps(content).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)

        def do_GET(self) -> None:
            self.send_error(404)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def largest_amount(prompt: str) -> str:
    """The largest amount of the text, doubled where that is asked for; asked for another wording,
    a little more polite one.
    """
    if prompt.startswith("Write the following question in other words"):
        return prompt.partition("\n\n")[2].replace("Answer with", "Please answer with")
    found = max(map(float, re.findall(r"\d+\.\d\d\b", prompt)), default=0.0)
    found *= 2 if "multiply the value by 2" in prompt else 1
    return f"It stands there.\nAnswer: {found:.2f}" if "last line: Answer:" in prompt else f"{found:.2f}"

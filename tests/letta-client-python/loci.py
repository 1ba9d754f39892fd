"""The built program on a private Postgres, and a scripted model that its agents ask."""

import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

KEY = "sk-loci-python-test-0123456789abcdef"


class Model:
    """Answers chat completions, whole and streamed. Each answer is a text, or a list of calls (name, arguments)."""

    def __init__(self):
        self.script = []
        self.asked = []
        self.calls = 0
        model = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def send(self, kind, body):
                self.send_response(200)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_GET(self):
                listed = {"object": "list", "data": [{"id": "scripted", "object": "model"}]}
                self.send("application/json", json.dumps(listed).encode())

            def do_POST(self):
                request = json.loads(self.rfile.read(int(self.headers["content-length"])))
                self.send(*model.answer(request))

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def says(self, *answers):
        """Sets the next answers. Without one, the model says "Understood."."""
        self.script, self.asked = list(answers), []

    def answer(self, request):
        self.asked.append(request)
        said = self.script.pop(0) if self.script else "Understood."
        message = {"role": "assistant", "content": said if isinstance(said, str) else None}
        if not isinstance(said, str):
            message["tool_calls"] = []
            for name, arguments in said:
                self.calls += 1
                function = {"name": name, "arguments": json.dumps(arguments)}
                message["tool_calls"].append({"id": f"call_{self.calls}", "type": "function", "function": function})
        finish = "stop" if isinstance(said, str) else "tool_calls"
        usage = {"prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 105}
        base = {"id": "answer", "created": 0, "model": request["model"]}
        if not request.get("stream"):
            choice = {"index": 0, "message": message, "finish_reason": finish}
            whole = {**base, "object": "chat.completion", "choices": [choice], "usage": usage}
            return "application/json", json.dumps(whole).encode()
        deltas = [{"role": "assistant", "content": piece} for piece in re.findall(r"\S+\s*", message["content"] or "")]
        deltas += [{"tool_calls": [{"index": i, **call}]} for i, call in enumerate(message.get("tool_calls", []))]
        chunks = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
        chunks.append({"index": 0, "delta": {}, "finish_reason": finish})
        events = [{**base, "object": "chat.completion.chunk", "choices": [chunk]} for chunk in chunks]
        events.append({**base, "object": "chat.completion.chunk", "choices": [], "usage": usage})
        lines = [f"data: {json.dumps(event)}\n\n" for event in events] + ["data: [DONE]\n\n"]
        return "text/event-stream", "".join(lines).encode()


class Loci:
    """The program, which serves until stop."""

    def __init__(self, model):
        self.directory = Path(tempfile.mkdtemp(prefix="loci-python-"))
        self.directory.chmod(0o711)  # as root, Postgres runs as another user
        program = os.environ.get("LOCI_PROGRAM", str(Path(__file__).resolve().parents[2] / "bin" / "loci"))
        settings = {
            "LOCI_HOME": str(self.directory / "home"),
            "LOCI_ADDR": "127.0.0.1:0",
            "LOCI_API_KEY": KEY,
            "LOCI_LLM_BASE_URL": f"{model.url}/v1",
            "LOCI_LLM_MODEL": "scripted",
            "LOCI_LLM_CONTEXT_WINDOW": "32000",
        }
        self.log = open(self.directory / "log", "w+")
        self.process = subprocess.Popen(
            [program, "serve"], env={**os.environ, **settings}, stdout=subprocess.PIPE, stderr=self.log, text=True
        )
        for line in self.process.stdout:
            if found := re.search(r"serves (http:\S+)", line):
                self.url = found.group(1)
                return
        raise SystemExit(f"{program} ended with {self.process.wait()}:\n{self.faults(all_lines=True)}")

    def faults(self, all_lines=False):
        """The lines of the log that report faults."""
        self.log.seek(0)
        return [line for line in self.log if all_lines or re.search(r"level=ERROR|^panic", line)]

    def stop(self):
        """Ends the program. Returns what was wrong with it."""
        self.process.terminate()
        status = self.process.wait()
        wrong = self.faults() + ([f"the server ended with status {status}\n"] if status else [])
        self.log.close()
        shutil.rmtree(self.directory, ignore_errors=True)
        return wrong

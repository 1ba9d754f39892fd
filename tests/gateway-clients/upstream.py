"""A scripted provider that speaks OpenAI's and Anthropic's APIs, and keeps what it was sent.

Its answers depend on the request alone: a question about the weather is answered with two calls of the tool weather,
results with a text, a request for structured output with an object.
"""

import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CITIES = ["Paris", "Rome"]
CAT = {"name": "Pixel", "age": 7}


class Upstream:
    def __init__(self):
        self.received = []  # (method and path, headers, body)
        upstream = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                self.reply({"object": "list", "data": [{"id": "scripted", "object": "model", "created": 0, "owned_by": "x"}]})

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                upstream.received.append((f"POST {self.path}", dict(self.headers), body.decode()))
                request = json.loads(body)
                if self.path.endswith("/count_tokens"):
                    return self.reply({"input_tokens": 12})
                if self.path.endswith("/chat/completions"):
                    whole, events = chat(request)
                elif self.path.endswith("/responses"):
                    whole, events = response(request)
                else:
                    whole, events = message(request)
                if not request.get("stream"):
                    return self.reply(whole)
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.send_header("transfer-encoding", "chunked")
                self.send_header("x-request-id", "req_1")
                self.end_headers()
                for event in events + (["[DONE]"] if self.path.endswith("/chat/completions") else []):
                    text = event if isinstance(event, str) else json.dumps(event)
                    kind = f"event: {event['type']}\n" if isinstance(event, dict) and "type" in event else ""
                    piece = f"{kind}data: {text}\n\n".encode()
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                self.wfile.write(b"0\r\n\r\n")

            def reply(self, whole):
                body = json.dumps(whole).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.send_header("x-request-id", "req_1")
                self.end_headers()
                self.wfile.write(body)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"


def text_of(item):
    content = item.get("content")
    if isinstance(content, list):
        return " ".join(part.get("text", "") for part in content if isinstance(part, dict))
    return content or ""


def answer(request, items):
    """The answer to a request: a text, or calls as (id, name, arguments)."""
    if isinstance(items, str):
        items = [{"role": "user", "content": items}]
    last = items[-1]
    said = text_of(last).split("<recalled_memory>")[0]
    names = [tool.get("name") or tool.get("function", {}).get("name") for tool in request.get("tools") or []]
    is_result = last.get("role") == "tool" or last.get("type") == "function_call_output"
    if isinstance(last.get("content"), list):
        is_result = is_result or any(part.get("type") == "tool_result" for part in last["content"])
    finals = [name for name in names if name and name not in ("weather",)]
    if "weather" in names and not is_result and "weather" in said:
        return [(f"call_{len(items)}_{i}", "weather", {"city": city}) for i, city in enumerate(CITIES)]
    if finals:
        return [(f"call_{len(items)}", finals[0], CAT)]
    if request.get("response_format") or (request.get("text") or {}).get("format", {}).get("type") == "json_schema":
        return json.dumps(CAT)
    if request.get("output_config", {}).get("format") or request.get("output_format"):
        return json.dumps(CAT)
    return "It is warm in both." if is_result else f"Understood, message {len(items)}."


def id_of(prefix, request):
    return prefix + hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()[:24]


def chat(request):
    said = answer(request, request["messages"])
    is_text = isinstance(said, str)
    shown = {"role": "assistant", "content": said if is_text else None}
    if not is_text:
        shown["tool_calls"] = [
            {"id": i, "type": "function", "function": {"name": n, "arguments": json.dumps(a)}} for i, n, a in said
        ]
    finish = "stop" if is_text else "tool_calls"
    usage = {"prompt_tokens": 40, "completion_tokens": 5, "total_tokens": 45}
    base = {"id": "chatcmpl-1", "created": 1, "model": request["model"]}
    whole = {**base, "object": "chat.completion", "usage": usage}
    whole["choices"] = [{"index": 0, "message": shown, "finish_reason": finish, "logprobs": None}]
    deltas = [{"role": "assistant", "content": ""}]
    if is_text:
        deltas += [{"content": piece} for piece in said.split(" ")]
    for n, call in enumerate(shown.get("tool_calls", [])):
        arguments = call["function"]["arguments"]
        begin = {**call, "index": n, "function": {**call["function"], "arguments": arguments[:4]}}
        deltas += [{"tool_calls": [begin]}, {"tool_calls": [{"index": n, "function": {"arguments": arguments[4:]}}]}]
    chunk = {**base, "object": "chat.completion.chunk"}
    events = [{**chunk, "choices": [{"index": 0, "delta": d, "finish_reason": None}]} for d in deltas]
    events.append({**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    if (request.get("stream_options") or {}).get("include_usage"):
        events.append({**chunk, "choices": [], "usage": usage})
    return whole, events


def response(request):
    said = answer(request, request["input"])
    if isinstance(said, str):
        part = {"type": "output_text", "text": said, "annotations": [], "logprobs": []}
        output = [{"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}]
    else:
        output = [
            {"type": "function_call", "id": f"fc_{i}", "call_id": i, "name": n, "arguments": json.dumps(a), "status": "completed"}
            for i, n, a in said
        ]
    whole = {
        "id": id_of("resp_", request), "object": "response", "created_at": 1, "status": "completed", "model": request["model"],
        "output": output, "parallel_tool_calls": True, "tool_choice": "auto", "tools": request.get("tools") or [],
        "instructions": None, "metadata": {}, "temperature": 1.0, "top_p": 1.0, "error": None, "incomplete_details": None,
    }
    whole["usage"] = {
        "input_tokens": 40, "output_tokens": 5, "total_tokens": 45,
        "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0},
    }
    events = [{"type": "response.created", "response": {**whole, "status": "in_progress", "output": [], "usage": None}}]
    for n, item in enumerate(output):
        of = {"output_index": n, "item_id": item["id"]}
        if item["type"] == "message":
            begin = {**item, "status": "in_progress", "content": []}
            part = item["content"][0]
            events += [
                {"type": "response.output_item.added", "output_index": n, "item": begin},
                {"type": "response.content_part.added", **of, "content_index": 0, "part": {**part, "text": ""}},
                {"type": "response.output_text.delta", **of, "content_index": 0, "delta": part["text"], "logprobs": []},
                {"type": "response.output_text.done", **of, "content_index": 0, "text": part["text"], "logprobs": []},
                {"type": "response.content_part.done", **of, "content_index": 0, "part": part},
            ]
        else:
            begin = {**item, "status": "in_progress", "arguments": ""}
            events += [
                {"type": "response.output_item.added", "output_index": n, "item": begin},
                {"type": "response.function_call_arguments.delta", **of, "delta": item["arguments"]},
                {"type": "response.function_call_arguments.done", **of, "name": item["name"], "arguments": item["arguments"]},
            ]
        events.append({"type": "response.output_item.done", "output_index": n, "item": item})
    events.append({"type": "response.completed", "response": whole})
    return whole, [{**e, "sequence_number": i} for i, e in enumerate(events)]


def message(request):
    said = answer(request, request["messages"])
    content = []
    if request.get("thinking", {}).get("type") == "enabled":
        content.append({"type": "thinking", "thinking": "Let me see.", "signature": "c2lnbmF0dXJl"})
    if isinstance(said, str):
        content.append({"type": "text", "text": said})
    else:
        content += [{"type": "tool_use", "id": i, "name": n, "input": a} for i, n, a in said]
    stop = "end_turn" if isinstance(said, str) else "tool_use"
    usage = {"input_tokens": 40, "output_tokens": 5, "cache_read_input_tokens": 30, "cache_creation_input_tokens": 0}
    whole = {"id": "msg_1", "type": "message", "role": "assistant", "model": request["model"], "content": content}
    whole |= {"stop_reason": stop, "stop_sequence": None, "usage": usage}
    begin = {**whole, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    events = [{"type": "message_start", "message": begin}]
    for n, block in enumerate(content):
        if block["type"] == "text":
            empty, deltas = {"type": "text", "text": ""}, [{"type": "text_delta", "text": block["text"]}]
        elif block["type"] == "thinking":
            empty = {"type": "thinking", "thinking": "", "signature": ""}
            deltas = [{"type": "thinking_delta", "thinking": block["thinking"]}]
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
        else:
            empty = {**block, "input": {}}
            deltas = [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
        events.append({"type": "content_block_start", "index": n, "content_block": empty})
        events += [{"type": "content_block_delta", "index": n, "delta": d} for d in deltas]
        events.append({"type": "content_block_stop", "index": n})
    events.append({"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": {"output_tokens": 5}})
    events.append({"type": "message_stop"})
    return whole, events

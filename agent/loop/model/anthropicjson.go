package model

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/loci-memory/loci/embed/provider"
	"github.com/loci-memory/loci/recall/chat"
)

// streamed returns a middleware that makes a message in plain JSON, with which some servers answer a request for a
// stream, the stream of its events. What is no message stays.
func streamed(mostBytes int64) option.Middleware {
	return func(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
		return streamOf(r, next, mostBytes)
	}
}

func streamOf(r *http.Request, next option.MiddlewareNext, mostBytes int64) (*http.Response, error) {
	answer, err := next(r)
	if err != nil || answer.StatusCode != http.StatusOK {
		return answer, err
	}
	in := bufio.NewReader(answer.Body)
	answer.Body = readCloser{in, answer.Body}
	answer.Header.Set("Content-Type", "text/event-stream")
	if first, err := firstByte(in); err != nil || first != '{' {
		return answer, nil //nolint:nilerr // the stream's reader meets it again
	}
	whole, err := io.ReadAll(io.LimitReader(in, mostBytes+1))
	if err == nil && int64(len(whole)) > mostBytes {
		err = provider.ErrTooBig
	}
	if err != nil {
		return answer, err
	}
	answer.Body = readCloser{bytes.NewReader(eventsOf(whole)), answer.Body}
	return answer, nil
}

type readCloser struct {
	io.Reader
	io.Closer
}

// firstByte skips white space and returns the byte after it, which stays to be read.
func firstByte(in *bufio.Reader) (byte, error) {
	for {
		b, err := in.ReadByte()
		if err != nil {
			return 0, err
		}
		if !bytes.ContainsRune([]byte(" \t\r\n"), rune(b)) {
			return b, in.UnreadByte()
		}
	}
}

// eventsOf returns the server-sent events of a message of Anthropic's; one event for any other JSON.
func eventsOf(whole []byte) []byte {
	var message map[string]json.RawMessage
	var blocks []map[string]json.RawMessage
	var out bytes.Buffer
	event := func(kind string, data any) { fmt.Fprintf(&out, "event: %s\ndata: %s\n\n", kind, chat.Encode(data)) }
	if json.Unmarshal(whole, &message) != nil || textOf(message["type"]) != "message" ||
		json.Unmarshal(message["content"], &blocks) != nil {
		event("error", json.RawMessage(oneLine(whole)))
		return out.Bytes()
	}
	end := map[string]any{"stop_reason": message["stop_reason"], "stop_sequence": message["stop_sequence"]}
	usage := message["usage"]
	for _, name := range []string{"content", "stop_reason", "stop_sequence"} {
		delete(message, name)
	}
	message["content"] = json.RawMessage("[]")
	event("message_start", map[string]any{"type": "message_start", "message": message})
	for i, block := range blocks {
		deltas := emptied(block)
		event("content_block_start", map[string]any{"type": "content_block_start", "index": i, "content_block": block})
		for _, d := range deltas {
			event("content_block_delta", map[string]any{"type": "content_block_delta", "index": i, "delta": d})
		}
		event("content_block_stop", map[string]any{"type": "content_block_stop", "index": i})
	}
	if len(usage) == 0 {
		usage = json.RawMessage("{}")
	}
	event("message_delta", map[string]any{"type": "message_delta", "delta": end, "usage": usage})
	event("message_stop", map[string]any{"type": "message_stop"})
	return out.Bytes()
}

// emptied empties what streams send piece by piece of a block, and returns the pieces.
func emptied(block map[string]json.RawMessage) (deltas []map[string]any) {
	move := func(field, kind, as, empty string) {
		value := block[field]
		if len(value) == 0 {
			return
		}
		block[field] = json.RawMessage(empty)
		deltas = append(deltas, map[string]any{"type": kind, as: value})
	}
	switch textOf(block["type"]) {
	case "text":
		move("text", "text_delta", "text", `""`)
	case "thinking":
		move("thinking", "thinking_delta", "thinking", `""`)
		move("signature", "signature_delta", "signature", `""`)
	case "tool_use":
		if input := block["input"]; len(input) > 0 && input[0] != '"' { // which some servers send as a text already
			block["input"] = chat.Encode(string(oneLine(input)))
		}
		move("input", "input_json_delta", "partial_json", `{}`)
	}
	return deltas
}

// oneLine returns a JSON text without white space between its tokens, or as a JSON text if it is no JSON.
func oneLine(raw []byte) []byte {
	var compact bytes.Buffer
	if json.Compact(&compact, raw) != nil {
		return chat.Encode(string(raw))
	}
	return compact.Bytes()
}

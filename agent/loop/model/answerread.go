package model

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/loci-memory/loci/embed/provider"
	"github.com/loci-memory/loci/recall/chat"
)

// FormatResponses is the format of OpenAI's Responses API, in which answers can be read.
const FormatResponses = "responses"

// ReadAnswer reads what a provider answered to another program in a format: a stream of events, or a body without a
// stream. Only the first choice counts. Its error is a *Fault if the answer is not whole, has more than maxBytes, or is
// none; an answer that the provider withheld is returned with the fault.
func ReadAnswer(ctx context.Context, format string, body io.Reader, maxBytes int64) (Answer, error) {
	at := &provider.Endpoint{Kind: "language model", Answers: "an answer", MaxAnswerBytes: maxBytes}
	hide := func(Delta) {}
	switch format {
	case FormatAnthropic:
		return readAnthropic(ctx, at, body, hide)
	case FormatResponses:
		return readResponse(ctx, at, body)
	}
	return readOpenAI(ctx, at, body, hide)
}

// responseEvent is an event of a stream of the Responses API, or a response without a stream.
type responseEvent struct {
	Type     text            `json:"type"`
	Object   text            `json:"object"`
	Response json.RawMessage `json:"response"`
	Status   text            `json:"status"`
}

// readResponse reads a response. The last event of a stream holds all of it.
func readResponse(ctx context.Context, at *provider.Endpoint, body io.Reader) (a Answer, err error) {
	for from := newEvents(body, at.MaxAnswerBytes); ; {
		raw, err := from.next()
		if errors.Is(err, io.EOF) {
			return a, cut(ctx, at)
		}
		if err != nil {
			return a, faultOf(ctx, at, err)
		}
		var e responseEvent
		if json.Unmarshal(raw, &e) != nil {
			return a, broken(at, "with a stream whose events are no JSON")
		}
		switch {
		case e.Type == "response.completed" || e.Type == "response.incomplete":
			return wholeResponse(at, e.Response)
		case e.Object == "response" && (e.Status == "completed" || e.Status == "incomplete" || e.Status == ""):
			return wholeResponse(at, raw)
		}
	}
}

func wholeResponse(at *provider.Endpoint, raw json.RawMessage) (a Answer, err error) {
	response := chat.NewObject(map[string]json.RawMessage{"response": raw}, time.UTC)
	d, _ := response.ReadAnswer("response")
	if err := response.Err(); err != nil {
		return a, broken(at, "with a response that is not understood: "+err.Error())
	}
	var of struct {
		ID text `json:"id"`
	}
	_ = json.Unmarshal(raw, &of) // ReadAnswer has parsed it
	u := chat.NewObject(map[string]json.RawMessage{"usage": fieldOf(raw, "usage")}, time.UTC).Usage("usage")
	a = Answer{ID: string(of.ID), Content: d.Content, Finish: Stop, Usage: Usage{Prompt: u.Prompt,
		Completion: u.Completion, Cached: u.CacheRead, CacheWrite: u.CacheWrite}}
	switch response.Ending("response") {
	case chat.Length:
		a.Finish = Length
	case chat.Filtered:
		a.Finish = Refused
	}
	return a, nil
}

func fieldOf(object json.RawMessage, name string) json.RawMessage {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(object, &fields) // anything but an object has no fields
	return fields[name]
}

package summary

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/loci-memory/loci/recall/chat"
)

// errAskedOften is the error of a call beyond MaxModelCalls.
var errAskedOften = errors.New("the model was asked often enough")

// failed records why a call gave no answer. The text of an unknown error is not for organizations.
func (w *writer) failed(err error) {
	w.why, w.detail = "the language model fails", err.Error()
	known, ok := errors.AsType[interface {
		error
		Public() string
	}](err)
	switch {
	case ok:
		w.why = w.redacted(known.Public())
	case errors.Is(err, errAskedOften):
		w.why = err.Error()
	}
}

func (w *writer) call(ctx context.Context, messages []chat.Message, tools []byte, own bool) (Reply, error) {
	if w.modelCalls >= w.maxCalls {
		return Reply{}, errAskedOften
	}
	if err := ctx.Err(); err != nil {
		return Reply{}, err
	}
	w.asked = messages[len(messages)-1].Content
	r, err := w.m.Complete(ctx, w.configured(Request{Model: w.m.Name, Messages: messages, Tools: tools}, own))
	w.modelCalls += Calls(err)
	w.prompt += max(r.PromptTokens, 0)
	w.output += max(r.OutputTokens, 0)
	return r, err
}

// configured returns the request with the model settings.
func (w *writer) configured(r Request, own bool) Request {
	var settings struct {
		Temperature *float32 `json:"temperature"`
		MaxTokens   int      `json:"max_output_tokens"`
		Reasoning   struct {
			Effort string `json:"reasoning_effort"`
		} `json:"reasoning"`
	}
	_ = json.Unmarshal(w.s.ModelSettings, &settings) // settings of another form are ignored
	r.Temperature, r.Effort, r.MaxTokens = settings.Temperature, settings.Reasoning.Effort, max(settings.MaxTokens, 0)
	if r.MaxTokens == 0 && !own { // the agent's own prompt leaves little room in its window
		r.MaxTokens = w.answer()
	}
	return r
}

// learn records the model's window and its count of tokens, as an overflow names them.
func (w *writer) learn(o *Overflow, sent int) {
	w.sent = min(w.sent, sent)
	if o.Counted {
		w.read = max(w.read, o.Window)
	}
	if o.Window > 0 && (w.window == 0 || o.Window < w.window) {
		w.window = o.Window
	}
	if o.Sent > 0 && sent > 0 {
		w.scale = max(w.scale, min(1.1*float64(o.Sent)/float64(sent), 4))
	}
}

// answer returns how many tokens the model's answer may take, including reasoning.
func (w *writer) answer() int {
	if w.window == 0 {
		return 0
	}
	return max(min(w.budget+8_192, w.window/4), min(w.budget, w.window/2))
}

// overGap returns by how many of our tokens a request was too large for the model; 0 if unknown.
func (w *writer) overGap(o *Overflow, sent int) int {
	switch {
	case o != nil && o.Sent > o.Window && o.Window > 0:
		return int(float64(o.Sent-o.Window) * float64(sent) / float64(o.Sent))
	case w.window > 0:
		return max(int(float64(sent)-float64(w.window-w.answer())/w.scale), 0)
	}
	return 0
}

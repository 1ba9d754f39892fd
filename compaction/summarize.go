package compaction

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
)

// MaxModelCalls is how often a model is asked for one summary, at most: the agent's own once, another with the whole, the clamped and the cut
// transcript, and once again for an answer that is not taken. A call that a Summarizer repeats because it failed is one of them.
const MaxModelCalls = 5

// Patience is how long a model may take for one summary, all calls together, where the Model does not say. Then it is extracted.
const Patience = 5 * time.Minute

// MinBudget is the least that a summary is written within, in tokens, whatever its budget: the budget of a plan may be next to nothing.
const MinBudget = 96

// unknownRoom is how many tokens of a transcript are sent when it was too large for a model whose window nobody knows. Letta: 48,000 bytes.
const unknownRoom = 12_000

// margin is by how much a request may be larger than we count it, where the provider has not yet said by how much it is.
const margin = 1.2

// Model writes summaries.
type Model struct {
	Summarizer
	Name     string        // that is asked for, without its provider; empty for the endpoint's default
	Window   int           // tokens that it takes; 0 where that is not known. The window of the agent's own model is not looked at
	Patience time.Duration // 0 means Patience

	// Redact takes secrets out of what is kept, with the key of the organization. Nil does it with a key that all share.
	Redact func(string) string
}

// Summarize makes the summary that stands for what is evicted. There always is one: where m is nil, down, slow, too small for what it is
// given or writes nonsense, it is extracted; the only error is the end of ctx. It is within the budget of e, or MinBudget where that is
// less, and within the settings' clip_chars; it is valid UTF-8, and names what the last request named. A summary of nothing is the previous
// one. No model is asked where no message says anything.
func Summarize(ctx context.Context, e Evicted, s Settings, m *Model) (Summary, error) {
	w := newWork(e, s, m)
	if len(w.entries) == 0 {
		return w.nothing(), ctx.Err()
	}
	if m == nil {
		w.why = "no model is configured"
		return w.extracted(), ctx.Err()
	}
	patience := m.Patience
	if patience == 0 {
		patience = Patience
	}
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	text, how, ok := w.ask(limited)
	if ctx.Err() != nil {
		return Summary{}, ctx.Err()
	}
	if !ok {
		if limited.Err() != nil {
			w.why = fmt.Sprintf("the model took longer than %v", patience)
		}
		return w.extracted(), nil
	}
	return w.summary(text, how), nil
}

// work is a summary in the making.
type work struct {
	e        Evicted
	s        Settings
	m        *Model
	budget   int // tokens of the text
	previous string
	entries  []entry
	flat     string // of the entries, once it is needed
	probes   probes
	cut      []recall.Message // that a transcript leaves out

	window int     // of the model, as far as it is known
	scale  float64 // its tokens for one of ours
	sent   int     // tokens, as we count them, of the smallest request that was too large

	asked                      string // last
	modelCalls, prompt, output int
	why                        string
}

func newWork(e Evicted, s Settings, m *Model) *work {
	w := &work{e: e, s: s, m: m, scale: margin, sent: math.MaxInt, entries: transcript(e.Messages, false)}
	replaced := tokensIn(w.entries)
	if logged := 0; len(e.Messages) > 0 {
		for _, m := range e.Messages {
			logged += max(m.Tokens, 0)
		}
		replaced = max(replaced, logged)
	}
	if e.Previous != nil {
		w.previous = strings.TrimSpace(clean(e.Previous.Text))
		replaced += tokens.Estimate(w.previous)
	}
	w.budget = min(e.Budget, replaced-1)
	if s.ClipChars != nil {
		w.budget = min(w.budget, *s.ClipChars/4)
	}
	w.budget = max(w.budget, MinBudget)
	w.probes = probesOf(e.Messages, w.previous, w.budget)
	if m != nil {
		w.window = max(m.Window, 0)
	}
	return w
}

func (w *work) from() int64 { return w.e.Messages[0].Seq }
func (w *work) to() int64   { return w.e.Messages[len(w.e.Messages)-1].Seq }

// ask tries one way after the other until an answer is taken.
func (w *work) ask(ctx context.Context) (text string, how How, ok bool) {
	if w.e.Self != nil {
		turns := w.selfRequest()
		text, next := w.try(ctx, turns, w.e.Self.Tools, true)
		if !next {
			return text, Own, text != ""
		}
		if ctx.Err() != nil {
			return "", "", false
		}
	}
	for _, stage := range []struct {
		how  How
		make func() []Turn
	}{{Whole, w.whole}, {Clamped, w.clampedTranscript}, {Middle, w.middle}} {
		w.cut = nil
		turns := stage.make()
		if turns == nil {
			continue
		}
		text, next := w.try(ctx, turns, nil, false)
		if !next {
			return text, stage.how, text != ""
		}
	}
	return "", "", false
}

// whole is a request with the whole transcript, nil where it does not fit.
func (w *work) whole() []Turn { return w.fitting(w.request(joined(w.entries))) }

// clampedTranscript is one with results clamped, nil where that does not help.
func (w *work) clampedTranscript() []Turn {
	entries := transcript(w.e.Messages, true)
	if tokensIn(entries) == tokensIn(w.entries) {
		return nil
	}
	return w.fitting(w.request(joined(entries)))
}

// fitting is a request that is within the model's window as we count it, and smaller than what was too large already; else nil.
func (w *work) fitting(turns []Turn) []Turn {
	n := tokensOfTurns(turns)
	if n >= w.sent || w.window > 0 && float64(n)*w.scale > float64(w.window-w.answer()) {
		return nil
	}
	return turns
}

// middle is a request whose transcript has its middle cut, as small as the window asks for, nil where there is no window to speak of.
func (w *work) middle() []Turn {
	entries := transcript(w.e.Messages, true)
	frame := tokensOfTurns(w.request(""))
	room := unknownRoom
	if w.window > 0 {
		room = int(float64(w.window-w.answer())/w.scale) - frame
	}
	if w.sent < math.MaxInt {
		room = min(room, (w.sent-frame)*9/10)
		if w.window == 0 {
			room = min(room, (w.sent-frame)/2)
		}
	}
	if room < leastRoom {
		w.why = "the model's window is too small for a transcript"
		return nil
	}
	head, tail, first, last := cutMiddle(entries, room)
	if first > last || last < 0 { // all of it fits
		return w.fitting(w.request(head + tail))
	}
	w.cut = between(w.e.Messages, entries[first].seq, entries[last].seq)
	about := extract(w.cut, "", probesOf(w.cut, "", room)).text("", int(aboutShare*float64(room)), probes{})
	note := middleNote(entries[first], entries[last], last-first+1, tokensIn(entries[first:last+1]), defused(about))
	return w.fitting(w.request(head + note + tail))
}

// leastRoom is the least of a transcript that is worth a call, in tokens.
const leastRoom = 400

func between(messages []recall.Message, from, to int64) []recall.Message {
	var all []recall.Message
	for _, m := range messages {
		if m.Seq >= from && m.Seq <= to {
			all = append(all, m)
		}
	}
	return all
}

// answer is how many tokens the model's answer may take: room to think for those that do, if the window has it.
func (w *work) answer() int {
	if w.window == 0 {
		return 0
	}
	return max(min(w.budget+8_192, w.window/4), min(w.budget, w.window/2))
}

func tokensOfTurns(turns []Turn) (n int) {
	for _, t := range turns {
		n += tokens.Estimate(t.Content) + 4
		for _, c := range t.Calls {
			n += tokens.Estimate(c.Name) + tokens.Estimate(c.Arguments)
		}
	}
	return n
}

// try asks one way, and once more for what the answer lacks. next says that another way may do better; without it and a text, none will.
// What goes wrong with the agent's own request may go well with a transcript.
func (w *work) try(ctx context.Context, turns []Turn, tools []byte, own bool) (text string, next bool) {
	reply, err := w.call(ctx, turns, tools, own)
	if over, ok := errors.AsType[*Overflow](err); ok {
		w.why = over.Error()
		if !own {
			w.learn(over, tokensOfTurns(turns))
		}
		return "", true
	}
	if err != nil {
		w.why = err.Error()
		return "", own
	}
	text = textOf(reply)
	fault := w.reject(reply, text)
	if fault == "" {
		return w.complete(ctx, turns, tools, text, own), false
	}
	if w.why = fault; own || reply.Finish == Refused {
		text = w.shortened(reply, text)
		return text, text == "" && own
	}
	last := turns[len(turns)-1]
	last.Content += "\n\n" + fault
	second, err := w.call(ctx, append(turns[:len(turns)-1:len(turns)-1], last), tools, own)
	if err != nil {
		w.why = err.Error()
		return w.shortened(reply, text), false
	}
	better := textOf(second)
	if fault = w.reject(second, better); fault == "" {
		w.why = ""
		return w.kept(better), false
	}
	w.why = fault
	return cmp.Or(w.shortened(second, better), w.shortened(reply, text)), false
}

// complete asks once more for a summary that names what this one does not, and adds what is missing still.
func (w *work) complete(ctx context.Context, turns []Turn, tools []byte, text string, own bool) string {
	ids, request := w.probes.missing(text)
	w.why = ""
	if len(ids) == 0 && !request {
		return w.kept(text)
	}
	again := append(slices.Clip(turns), Turn{Role: "assistant", Content: text},
		Turn{Role: "user", Content: complaint(ids, request, w.probes, words(w.s.Mode, w.budget))})
	reply, err := w.call(ctx, again, tools, own)
	if err == nil {
		if better := textOf(reply); w.reject(reply, better) == "" {
			if still, stillRequest := w.probes.missing(better); len(still) < len(ids) || len(still) == len(ids) && request && !stillRequest {
				text = better
			}
		}
	}
	return w.kept(text)
}

// shortened is an answer that was nothing but too long, cut to its budget; empty for any other.
func (w *work) shortened(r Reply, text string) string {
	tokens := tokens.Estimate(text)
	if tokens <= w.budget || tokens > 2*w.budget || w.echoes(text) || errorText.MatchString(text) || r.Finish == Refused {
		return ""
	}
	return w.kept(text)
}

func (w *work) call(ctx context.Context, turns []Turn, tools []byte, own bool) (Reply, error) {
	if w.modelCalls == MaxModelCalls {
		return Reply{}, errors.New("the model was asked often enough")
	}
	if err := ctx.Err(); err != nil {
		return Reply{}, err
	}
	w.modelCalls++
	w.asked = turns[len(turns)-1].Content
	r, err := w.m.Complete(ctx, w.configured(Request{Model: w.m.Name, Messages: turns, Tools: tools}, own))
	w.prompt += max(r.PromptTokens, 0)
	w.output += max(r.OutputTokens, 0)
	return r, err
}

// configured is a request with what the settings say of the model.
func (w *work) configured(r Request, own bool) Request {
	var given struct {
		Temperature *float32 `json:"temperature"`
		MaxTokens   int      `json:"max_output_tokens"`
		Reasoning   struct {
			Effort string `json:"reasoning_effort"`
		} `json:"reasoning"`
	}
	_ = json.Unmarshal(w.s.ModelSettings, &given) // what is of another shape is not for us
	r.Temperature, r.Effort, r.MaxTokens = given.Temperature, given.Reasoning.Effort, max(given.MaxTokens, 0)
	if r.MaxTokens == 0 && !own { // the agent's own request leaves little of its window
		r.MaxTokens = w.answer()
	}
	return r
}

// learn takes what an overflow says of the model's window and of how its tokens compare with ours.
func (w *work) learn(o *Overflow, sent int) {
	w.sent = min(w.sent, sent)
	if o.Window > 0 && (w.window == 0 || o.Window < w.window) {
		w.window = o.Window
	}
	if o.Sent > 0 && sent > 0 {
		w.scale = max(w.scale, min(1.1*float64(o.Sent)/float64(sent), 4))
	}
}

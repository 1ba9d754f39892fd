package compaction

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/chat"
	"github.com/loci-memory/loci/recall/tokens"
)

// MaxModelCalls bounds the calls of a model for one summary: the agent's own model once, another with the whole, the
// clamped and the cut transcript, and once again for an answer that is rejected. A call that a Summarizer repeats
// because it failed counts once.
const MaxModelCalls = 5

// Patience bounds all calls of a model for one summary, unless the Model sets another bound. Past it the summary is
// extracted.
const Patience = 5 * time.Minute

// MinBudget is the least budget of a summary in tokens: that of a plan may be close to zero.
const MinBudget = 128

// unknownRoom is how many tokens of a transcript are sent if all of it was too large for a model whose window is
// unknown. Letta: 48,000 bytes.
const unknownRoom = 12_000

// margin is the factor by which a provider may count more tokens than we do, until it has told its count.
const margin = 1.2

// Summarize makes the summary that replaces what is evicted. It fails only if ctx ends: if m is nil, down, slow, too
// small for the transcript or writes nonsense, the summary is extracted. A summary keeps to the budget of e, or to
// MinBudget if that is more, and to the settings' clip_chars; it is valid UTF-8, and names what the last request named.
// If no message says anything, no model is asked and the summary is the previous one.
func Summarize(ctx context.Context, e Evicted, s Settings, m *Model) (Summary, error) {
	if history, turn, ok := e.divided(); ok {
		return summarizeDivided(ctx, history, turn, s, m)
	}
	w := newWriter(e, s, m)
	switch {
	case len(e.Messages) == 0:
	case e.Hidden:
		return w.hidden(), ctx.Err()
	case e.Notes != "":
		return w.fromNotes(), ctx.Err()
	}
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
	return w.summary(frame.Restore(text), how), nil
}

// writer makes one summary.
type writer struct {
	e        Evicted
	s        Settings
	m        *Model
	budget   int // tokens of the text, without what it quotes of the user
	quoted   []quotation
	reserved int // tokens of the budget of e for these

	quotedChars int    // of the settings' clip_chars for these; s has the rest
	previous    string // text of the summary before
	entries     []entry
	flat        string // text of the entries without line ends; empty until echoes needs it
	must        mustMention
	found       *extraction      // in all that is summarized; nil until it is needed
	cut         []recall.Message // messages that the last transcript left out

	window int     // tokens of the model's window; 0 if unknown
	scale  float64 // the model's tokens for one of ours
	sent   int     // tokens, by our count, of the smallest request that was too large
	read   int     // tokens that the provider read of a request of which it seemed to leave out a part

	maxCalls int // of the model
	dropped  int // oldest rounds that the last transcript left out
	gap      int // tokens by which the last request was too large; 0: unknown

	asked                      string // the last message of the last request
	modelCalls, prompt, output int
	why, detail                string // of the last failure: for the organization, and for the operator
}

func newWriter(e Evicted, s Settings, m *Model) *writer {
	w := &writer{e: e, s: s, m: m, scale: margin, sent: math.MaxInt, entries: transcript(e.Messages, false),
		maxCalls: MaxModelCalls}
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
	w.reserve()
	w.budget = min(e.Budget-w.reserved, replaced-1)
	if s.ClipChars != nil {
		w.budget = min(w.budget, *s.ClipChars/4)
	}
	w.budget = max(w.budget, MinBudget)
	w.must = mustMentionOf(e.Messages, appended.ReplaceAllString(w.previous, ""), w.budget)
	if m != nil {
		w.window = max(m.Window, 0)
	}
	return w
}

func (w *writer) from() int64 { return w.e.Messages[0].Seq }
func (w *writer) to() int64   { return w.e.Messages[len(w.e.Messages)-1].Seq }

// ask tries one way after the other until an answer is accepted.
func (w *writer) ask(ctx context.Context) (text string, how How, ok bool) {
	if w.e.Self != nil {
		messages := w.selfRequest()
		text, next := w.try(ctx, messages, w.e.Self.Tools, true)
		if !next {
			return text, Own, text != ""
		}
		if ctx.Err() != nil {
			return "", "", false
		}
	}
	for _, stage := range w.stages() {
		w.cut = nil
		if stage.how == Staged {
			if text, ok := w.staged(ctx); ok {
				return text, Staged, true
			}
			continue
		}
		messages := stage.make()
		if messages == nil {
			continue
		}
		text, next := w.try(ctx, messages, nil, false)
		if !next {
			return text, stage.how, text != ""
		}
	}
	return "", "", false
}

// stage is a way to ask a model; make returns nil if it does not do.
type stage struct {
	how  How
	make func() []chat.Message
}

// stages returns the ways in which a model other than the agent's own is asked, in order.
func (w *writer) stages() []stage {
	ways := []stage{{Whole, w.whole}, {Staged, nil}, {Clamped, w.clampedTranscript}}
	if f := w.e.Format; f != nil && f.HeadDrop {
		return append(ways, slices.Repeat([]stage{{Middle, w.headDropped}}, maxHeadDrops)...)
	}
	return append(ways, stage{Middle, w.middle})
}

// whole returns a request with the whole transcript; nil if it does not fit.
func (w *writer) whole() []chat.Message { return w.ifFits(w.request(joined(w.entries))) }

// clampedTranscript returns a request with tool results clamped; nil if it does not fit or clamps nothing.
func (w *writer) clampedTranscript() []chat.Message {
	entries := transcript(w.e.Messages, true)
	if tokensIn(entries) == tokensIn(w.entries) {
		return nil
	}
	return w.ifFits(w.request(joined(entries)))
}

// ifFits returns a request that fits the model's window by our count and is smaller than any that was too large; else
// nil.
func (w *writer) ifFits(messages []chat.Message) []chat.Message {
	n := tokensOfMessages(messages)
	if n >= w.sent || w.window > 0 && float64(n)*w.scale > float64(w.window-w.answer()) {
		w.gap = w.overGap(nil, n)
		return nil
	}
	return messages
}

// middle returns a request with the middle of its transcript cut so that it fits; nil if the window has less than
// leastRoom tokens for it.
func (w *writer) middle() []chat.Message {
	entries := transcript(w.e.Messages, true)
	fixed := tokensOfMessages(w.request(""))
	room := unknownRoom
	if w.window > 0 {
		room = int(float64(w.window-w.answer())/w.scale) - fixed
	}
	if w.sent < math.MaxInt {
		room = min(room, (w.sent-fixed)*9/10)
		if w.window == 0 {
			room = min(room, (w.sent-fixed)/2)
		}
	}
	if room < leastRoom {
		w.why = "the model's window is too small for a transcript"
		return nil
	}
	head, tail, first, last := cutMiddle(entries, room)
	if first > last || last < 0 { // all of it fits
		return w.ifFits(w.request(head + tail))
	}
	w.cut = between(w.e.Messages, entries[first].seq, entries[last].seq)
	about := w.aboutCut(room, int(aboutShare*float64(room)))
	note := middleNote(entries[first:last+1], frame.Neutralize(about))
	return w.ifFits(w.request(head + note + tail))
}

// aboutCut extracts, within a budget, what the messages that a transcript left out are about.
func (w *writer) aboutCut(mentions, budget int) string {
	return extract(w.cut, "", mustMentionOf(w.cut, "", mentions)).within("", budget, mustMention{})
}

// leastRoom is the fewest tokens of a transcript that are worth a call.
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

func tokensOfMessages(messages []chat.Message) (n int) {
	for _, t := range messages {
		n += tokens.Estimate(t.Content) + tokens.PerMessage
		for _, c := range t.Calls {
			n += tokens.Estimate(c.Name) + tokens.Estimate(c.Arguments)
		}
	}
	return n
}

// try asks in one way, and once more if the answer is rejected or lacks what it must mention. next says that another
// way may succeed: after most failures of the agent's own model, and after an overflow.
func (w *writer) try(ctx context.Context, messages []chat.Message, tools []byte, own bool) (text string, next bool) {
	reply, err := w.call(ctx, messages, tools, own)
	over, ok := errors.AsType[*Overflow](err)
	if ok && over.Counted && tokensOfMessages(messages) < w.read { // it has room for more: it counts too few
		err, ok = nil, false
	}
	if ok {
		w.failed(err)
		if !own {
			w.learn(over, tokensOfMessages(messages))
			w.gap = w.overGap(over, tokensOfMessages(messages))
		}
		return "", true
	}
	if err != nil {
		w.failed(err)
		return "", own
	}
	text = w.textOf(reply)
	fault := w.reject(reply, text)
	if fault.told == "" {
		return w.complete(ctx, messages, tools, text, own), false
	}
	if w.why = fault.why; own || reply.Finish == Refused {
		text = w.shortened(reply, text)
		return text, text == "" && own
	}
	last := messages[len(messages)-1]
	last.Content += "\n\n" + fault.told
	second, err := w.call(ctx, append(messages[:len(messages)-1:len(messages)-1], last), tools, own)
	if err != nil {
		w.failed(err)
		return w.shortened(reply, text), false
	}
	better := w.textOf(second)
	if fault = w.reject(second, better); fault.told == "" {
		w.why = ""
		return w.repaired(better), false
	}
	w.why = fault.why
	return cmp.Or(w.shortened(second, better), w.shortened(reply, text)), false
}

// complete asks once more for a summary that mentions what this one does not, and adds what is still missing.
func (w *writer) complete(ctx context.Context, messages []chat.Message, tools []byte, text string, own bool) string {
	ids, request := w.must.missing(text)
	headings := w.e.Format.lacks(text)
	w.why = ""
	if len(ids) == 0 && !request && len(headings) == 0 {
		return w.repaired(text)
	}
	again := append(slices.Clip(messages), chat.Message{Role: "assistant", Content: text},
		chat.Message{Role: "user", Content: w.complaint(append(headings, ids...), request)})
	reply, err := w.call(ctx, again, tools, own)
	if err == nil {
		if better := w.textOf(reply); w.reject(reply, better).told == "" {
			still, stillRequest := w.must.missing(better)
			formed := len(still) == len(ids) && request == stillRequest && len(w.e.Format.lacks(better)) < len(headings)
			if len(still) < len(ids) || len(still) == len(ids) && request && !stillRequest || formed {
				text = better
			}
		}
	}
	return w.repaired(text)
}

// shortened returns an answer cut to its budget if it was only too long, at most twice the budget; else an empty text.
func (w *writer) shortened(r Reply, text string) string {
	tokens := tokens.Estimate(text)
	onlyLong := tokens > w.budget && tokens <= 2*w.budget
	if !onlyLong || isNoise(text) || closings.MatchString(text) || w.echoes(text) || errorText.MatchString(text) ||
		r.Finish == Refused {
		return ""
	}
	return w.repaired(text)
}

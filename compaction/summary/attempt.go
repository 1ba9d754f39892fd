package summary

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"

	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/compaction/prose"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/chat"
	"github.com/loci-memory/loci/recall/tokens"
)

// whole returns a request with the whole transcript; nil if it does not fit.
func (w *writer) whole() []chat.Message { return w.ifFits(w.request(prose.Joined(w.entries))) }

// clampedTranscript returns a request with clamped tool results; nil if it does not fit or nothing was clamped.
func (w *writer) clampedTranscript() []chat.Message {
	entries := prose.Transcript(w.e.Messages, true)
	if prose.TokensIn(entries) == prose.TokensIn(w.entries) {
		return nil
	}
	return w.ifFits(w.request(prose.Joined(entries)))
}

// ifFits returns the request if it fits the model's window by our count, and is smaller than every request that was too
// large; otherwise nil.
func (w *writer) ifFits(messages []chat.Message) []chat.Message {
	n := tokensOfMessages(messages)
	if n >= w.sent || w.window > 0 && float64(n)*w.scale > float64(w.window-w.answer()) {
		w.gap = w.overGap(nil, n)
		return nil
	}
	return messages
}

// middle returns a request with a transcript without its middle, so that it fits; nil if the window has less than
// leastRoom tokens for the transcript.
func (w *writer) middle() []chat.Message {
	entries := prose.Transcript(w.e.Messages, true)
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
	head, tail, first, last := prose.CutMiddle(entries, room)
	if first > last || last < 0 { // everything fits
		return w.ifFits(w.request(head + tail))
	}
	w.cut = between(w.e.Messages, entries[first].Seq, entries[last].Seq)
	about := w.aboutCut(room, int(prose.AboutShare*float64(room)))
	note := middleNote(entries[first:last+1], frame.Neutralize(about))
	return w.ifFits(w.request(head + note + tail))
}

// leastRoom is the smallest transcript, in tokens, that is worth a call.
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

// try asks in one way. It asks a second time if the answer is rejected or does not mention everything that it must.
// next reports whether another way may succeed: after an overflow, and after most failures of the agent's own model.
func (w *writer) try(ctx context.Context, messages []chat.Message, tools []byte, own bool) (text string, next bool) {
	reply, err := w.call(ctx, messages, tools, own)
	over, ok := errors.AsType[*Overflow](err)
	if ok && over.Counted && tokensOfMessages(messages) < w.read { // the window has room for more, so the count is too low
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
		w.grant(better)
		return w.repaired(better), false
	}
	w.why = fault.why
	return cmp.Or(w.shortened(second, better), w.shortened(reply, text)), false
}

// complete asks once more if a summary does not mention everything that it must, and adds what is then still missing.
func (w *writer) complete(ctx context.Context, messages []chat.Message, tools []byte, text string, own bool) string {
	ids, request := w.must.Missing(text)
	headings := w.e.Format.Lacks(text)
	w.why = ""
	asked := w.budget
	w.grant(text)
	if len(ids) == 0 && !request && len(headings) == 0 {
		return w.repaired(text)
	}
	again := append(slices.Clip(messages), chat.Message{Role: "assistant", Content: text},
		chat.Message{Role: "user", Content: w.complaint(append(headings, ids...), request)})
	reply, err := w.call(ctx, again, tools, own)
	if err == nil {
		granted := w.budget
		w.budget = asked
		if better := w.textOf(reply); w.reject(reply, better).told == "" {
			still, stillRequest := w.must.Missing(better)
			formed := len(still) == len(ids) && request == stillRequest && len(w.e.Format.Lacks(better)) < len(headings)
			if len(still) < len(ids) || len(still) == len(ids) && request && !stillRequest || formed {
				text = better
			}
		}
		w.budget = granted
		w.grant(text)
	}
	return w.repaired(text)
}

// shortened returns an answer cut to its budget if it was only too long, by at most a factor of 12; otherwise an empty
// text.
func (w *writer) shortened(r Reply, text string) string {
	n := tokens.Estimate(text)
	if n <= w.budget || n > 12*w.budget || w.unfit(r, text).told != "" || errorText.MatchString(text) {
		return ""
	}
	return w.repaired(text)
}

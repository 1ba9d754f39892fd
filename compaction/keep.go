package compaction

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/loci-memory/loci/recall/redact"
	"github.com/loci-memory/loci/recall/tokens"
)

// kept is a model's text with what it must have and has not: identifiers, the last request, and what its transcript left out.
func (w *work) kept(text string) string {
	var tail strings.Builder
	if len(w.cut) > 0 {
		about := extract(w.cut, "", probesOf(w.cut, "", w.budget)).text("", w.budget/5, probes{})
		if about != "" {
			fmt.Fprintf(&tail, "\n\nNot read by the model for lack of room, %s:\n%s", Range(w.cut[0].Seq, w.cut[len(w.cut)-1].Seq), about)
		}
	}
	beside := tail.String()
	room := func(more string) int { return w.budget - tokens.Estimate(beside+more) - 1 }
	body := text
	for range 3 { // what is cut off may have been what was not missing
		more := w.lacking(body + beside)
		next := cutTo(text, room(more))
		if next == body {
			return body + beside + more
		}
		body = next
	}
	more := w.lacking("")
	return cutTo(text, room(more)) + beside + more
}

// lackingShare is how much of a summary's budget what a model left out may take, requestShare the last request of it.
const (
	lackingShare = 0.6
	requestShare = 0.25
)

// lacking are lines for what a text does not name.
func (w *work) lacking(text string) string {
	ids, request := w.probes.missing(text)
	room := int(lackingShare * float64(w.budget))
	lines := ""
	if request {
		line := fmt.Sprintf("\n\nLast request, word for word [%d]: %s", w.probes.last.Seq, oneLine(requestText(*w.probes.last), requestChars))
		if most := int(requestShare * float64(w.budget)); tokens.Estimate(line) > most {
			line = prefixWithin(line, most-1) + "…"
		}
		lines = line
		room -= tokens.Estimate(line) + 1
		ids, _ = w.probes.missing(text + line)
	}
	var fits []string
	room -= tokens.Estimate("\n\nAlso named: ")
	for _, id := range ids {
		if room -= tokens.Estimate(id + ", "); room < 0 {
			break
		}
		fits = append(fits, id)
	}
	if len(fits) == 0 {
		return lines
	}
	return lines + "\n\nAlso named: " + strings.Join(fits, ", ")
}

// clipSuffix ends a summary that was cut. Letta's.
const clipSuffix = "... [summary truncated to fit]"

// cutTo is a text within so many tokens.
func cutTo(text string, most int) string {
	if tokens.Estimate(text) <= most {
		return text
	}
	return strings.TrimSpace(prefixWithin(text, most-tokens.Estimate(clipSuffix)-1)) + clipSuffix
}

func limitChars(text string, chars *int) string {
	if chars == nil || utf8.RuneCountInString(text) <= *chars {
		return text
	}
	return beginningOf(text, max(*chars-utf8.RuneCountInString(clipSuffix), 0)) + clipSuffix
}

// extracted is a summary without a model.
func (w *work) extracted() Summary {
	budget := w.budget
	text := ""
	for range 8 { // a secret's placeholder may be longer than the secret
		text = w.redacted(extract(w.e.Messages, w.previous, w.probes).text(extractedBy, budget, w.probes))
		if tokens.Estimate(text) <= w.budget {
			break
		}
		budget -= tokens.Estimate(text) - w.budget
	}
	s := w.summary(text, Extracted)
	s.Model = ""
	return s
}

// nothing is the summary where no message says anything: the previous one.
func (w *work) nothing() Summary {
	if w.e.Previous == nil {
		s := w.summary(extractedBy+"\nNothing was said.", Extracted)
		s.Model = ""
		return s
	}
	w.budget = max(w.e.Budget, MinBudget)
	s := w.summary(w.previous, w.e.Previous.How)
	s.Model = w.e.Previous.Model
	return s
}

// summary fills in what a text stands for and what it took.
func (w *work) summary(text string, how How) Summary {
	text = limitChars(cutTo(w.redacted(clean(text)), w.budget), w.s.ClipChars)
	s := Summary{Text: text, How: how, Why: w.why, ModelCalls: w.modelCalls, PromptTokens: w.prompt, OutputTokens: w.output}
	if w.m != nil {
		s.Model = w.m.Name
	}
	if n := len(w.e.Messages); n > 0 {
		s.From, s.FromSeq = w.e.Messages[0].Position, w.e.Messages[0].Seq
		s.To, s.ToSeq = w.e.Messages[n-1].Position, w.e.Messages[n-1].Seq
	}
	if p := w.e.Previous; p != nil {
		if len(w.e.Messages) == 0 || p.From < s.From { // else a message leaves that was kept when those behind it left
			s.From, s.FromSeq = p.From, p.FromSeq
		}
		s.To, s.ToSeq = max(s.To, p.To), max(s.ToSeq, p.ToSeq)
	}
	s.Tokens = SummaryTokens(s)
	return s
}

func (w *work) redacted(text string) string {
	if w.m != nil && w.m.Redact != nil {
		return clean(w.m.Redact(text))
	}
	return redact.New(nil, redact.Options{}).Redact(text)
}

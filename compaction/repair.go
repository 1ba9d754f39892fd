package compaction

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/loci-memory/loci/recall/redact"
	"github.com/loci-memory/loci/recall/tokens"
)

// repaired returns a model's text with what it lacks: identifiers, the last request, and what its transcript left out.
func (w *writer) repaired(text string) string {
	var tail strings.Builder
	if len(w.cut) > 0 {
		if about := w.aboutCut(w.budget, w.budget/5); about != "" {
			fmt.Fprintf(&tail, "\n\nNot read by the model for lack of room, %s:\n%s",
				Range(w.cut[0].Seq, w.cut[len(w.cut)-1].Seq), about)
		}
	}
	unread := tail.String()
	room := func(more string) int { return w.budget - tokens.Estimate(unread+more) - 1 }
	body := text
	for range 3 { // a cut may remove what was not missing before
		more := w.missingLines(body + unread)
		next := cutTo(text, room(more))
		if next == body {
			return body + unread + more
		}
		body = next
	}
	more := w.missingLines("")
	return cutTo(text, room(more)) + unread + more
}

// missingShare is the share of a summary's budget that added lines may take, requestShare that of the last request.
const (
	missingShare = 0.6
	requestShare = 0.25
)

// missingLines returns lines with what a text does not mention.
func (w *writer) missingLines(text string) string {
	ids, request := w.must.missing(text)
	room := int(missingShare * float64(w.budget))
	lines := ""
	if request {
		line := fmt.Sprintf("\n\nLast request, word for word [%d]: %s", w.must.last.Seq,
			oneLine(requestText(*w.must.last), requestChars))
		if most := int(requestShare * float64(w.budget)); tokens.Estimate(line) > most {
			line = tokens.Prefix(line, most-1) + "…"
		}
		lines = line
		room -= tokens.Estimate(line) + 1
		ids, _ = w.must.missing(text + line)
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

// clipSuffix ends a summary that was cut, as in Letta.
const clipSuffix = "... [summary truncated to fit]"

// cutTo returns a text of at most some tokens.
func cutTo(text string, most int) string {
	if tokens.Estimate(text) <= most {
		return text
	}
	return strings.TrimSpace(tokens.Prefix(text, most-tokens.Estimate(clipSuffix)-1)) + clipSuffix
}

// limitChars returns a text of at most some characters; nil is no limit.
func limitChars(text string, chars *int) string {
	if chars == nil || utf8.RuneCountInString(text) <= *chars {
		return text
	}
	return tokens.PrefixChars(text, max(*chars-utf8.RuneCountInString(clipSuffix), 0)) + clipSuffix
}

// extracted returns a summary made without a model.
func (w *writer) extracted() Summary {
	budget := w.budget
	text := ""
	for range 8 { // a secret's placeholder may be longer than the secret
		text = w.redacted(extract(w.e.Messages, w.previous, w.must).within(extractedBy, budget, w.must))
		if tokens.Estimate(text) <= w.budget {
			break
		}
		budget -= tokens.Estimate(text) - w.budget
	}
	s := w.summary(text, Extracted)
	s.Model = ""
	return s
}

// nothing returns the summary of messages that say nothing: the previous one.
func (w *writer) nothing() Summary {
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

// summary returns a text as a summary, with the range that it replaces and the calls that it took.
func (w *writer) summary(text string, how How) Summary {
	text = limitChars(cutTo(w.redacted(clean(text)), w.budget), w.s.ClipChars)
	s := Summary{Text: text, How: how, Why: w.why, ModelCalls: w.modelCalls,
		PromptTokens: w.prompt, OutputTokens: w.output}
	if w.m != nil {
		s.Model = w.m.Name
	}
	if n := len(w.e.Messages); n > 0 {
		s.From, s.FromSeq = w.e.Messages[0].Position, w.e.Messages[0].Seq
		s.To, s.ToSeq = w.e.Messages[n-1].Position, w.e.Messages[n-1].Seq
	}
	if p := w.e.Previous; p != nil {
		if len(w.e.Messages) == 0 || p.From < s.From { // else the user's kept message leaves, which is before it
			s.From, s.FromSeq = p.From, p.FromSeq
		}
		s.To, s.ToSeq = max(s.To, p.To), max(s.ToSeq, p.ToSeq)
	}
	s.Tokens = SummaryTokens(s)
	return s
}

// redacted removes secrets from a text.
func (w *writer) redacted(text string) string {
	if w.m != nil && w.m.Redact != nil {
		return clean(w.m.Redact(text))
	}
	return redact.New(nil, redact.Options{}).Redact(text)
}

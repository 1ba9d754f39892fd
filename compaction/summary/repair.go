package summary

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/compaction/prose"
	"github.com/loci-memory/loci/recall/tokens"
)

// repaired adds to a model's text what it lacks: the last request, important lines from the previous summary and the
// messages, identifiers in the lines where they stood, and a note about messages that the model was not shown. It cuts
// the text if there is too little room for these additions. If the names of the last request still do not fit, it first
// drops the format's appendix, and then all additions except the last request.
func (w *writer) repaired(text string) string {
	for _, share := range appendixShares {
		note := ""
		if share == appendixShare {
			note = w.unread()
		}
		if whole := w.repairedWith(text, note+w.appendix(share)); w.namesLastRequest(whole) {
			return whole
		}
	}
	request := w.lastRequest("")
	return w.cutTo(w.redacted(prose.Clean(text)), w.budget-tokens.Estimate(request)-4) + request
}

// namesLastRequest reports whether a summary with this text has all names of the last request.
func (w *writer) namesLastRequest(text string) bool {
	lower := prose.Folded(prose.CutTo(w.redacted(prose.Clean(text)), w.budget))
	return !slices.ContainsFunc(w.must.Request, func(id string) bool { return !prose.Mentions(lower, id) })
}

// repairedWith returns a text with what it lacks, followed by more.
func (w *writer) repairedWith(text, more string) string {
	whole := w.extraction()
	body, added := text, ""
	for range 3 { // a cut may remove something that an earlier round found present
		added = w.lastRequest(body + more)
		free := w.budget - tokens.Estimate(text+more+added) - 4
		most := free
		if w.accepted == 0 {
			most = max(free, int(missingShare*float64(w.budget))-tokens.Estimate(added))
		}
		if lines := whole.lacking(body+more+added, most, w.must); lines != "" {
			added += "\n\n" + lines
		}
		next := w.cutTo(text, w.budget-tokens.Estimate(more+added)-1)
		if next == body {
			break
		}
		body = next
	}
	return body + more + added
}

// cutTo cuts a summary's text evenly under its headings.
func (w *writer) cutTo(text string, most int) string {
	return prose.CutSections(text, most, w.e.Format.IsHeading)
}

// missingShare is the share of a summary's budget that added lines may take away from an answer that is cut;
// requestShare is the share for the last request.
const (
	missingShare = 0.45
	requestShare = 0.25
)

// leastUnread is the smallest budget in tokens with room for a note about messages that the model was not shown.
const leastUnread = 200

// unread returns a note about messages that the model was not shown.
func (w *writer) unread() string {
	if len(w.cut) == 0 || w.budget < leastUnread {
		return ""
	}
	about := w.aboutCut(w.budget, w.budget/5)
	if about == "" {
		return ""
	}
	return fmt.Sprintf("\n\nNot read by the model for lack of room, %s:\n%s",
		clip.Range(w.cut[0].Seq, w.cut[len(w.cut)-1].Seq), about)
}

// lastRequest returns lines to add to a text: the last request if the text does not mention it, and the request's
// identifiers that are in neither.
func (w *writer) lastRequest(text string) string {
	lines := ""
	if _, lacks := w.must.Missing(text); lacks {
		most := int(requestShare * float64(w.budget))
		line := fmt.Sprintf("Last request, word for word [%d]: %s", w.must.Last.Seq,
			prose.Quoted(prose.RequestText(*w.must.Last)))
		whole := prose.WholeSentences(line, func(s string) bool { return tokens.Estimate(s) <= most })
		lines = "\n\n" + cmp.Or(whole, tokens.Prefix(line, most-1)+"…")
	}
	lower := prose.Folded(text + lines)
	ids := slices.DeleteFunc(slices.Clone(w.must.Request), func(id string) bool { return prose.Mentions(lower, id) })
	if len(ids) > 0 {
		lines += "\n\n" + prose.AlsoNamed + strings.Join(ids, ", ")
	}
	return lines
}

// extraction returns the lines found in all messages that are summarized.
func (w *writer) extraction() *extraction {
	if w.found == nil {
		w.found = extractAs(layoutOf(w.e.Format), w.e.Messages, prose.Appended.ReplaceAllString(w.previous, ""), w.must)
		w.found.focusOn(w.s.Focus)
	}
	return w.found
}

func (w *writer) extracted() clip.Summary {
	text := ""
	for _, share := range extractedShares {
		if text = w.extractedWith(share); w.namesLastRequest(text) {
			break
		}
	}
	s := w.summary(text, clip.Extracted)
	s.Model = ""
	return s
}

// extractedWith returns a text made without a model, and the format's appendix within a share of the budget.
func (w *writer) extractedWith(share float64) (text string) {
	budget := w.budget
	appendix := w.appendix(share)
	if appendix != "" {
		budget -= tokens.Estimate(appendix)
	}
	for range 8 { // a secret's placeholder may be longer than the secret
		text = w.redacted(w.extraction().within(prose.ExtractedBy, budget, w.must) + appendix)
		if tokens.Estimate(text) <= w.budget {
			break
		}
		budget -= tokens.Estimate(text) - w.budget
	}
	return text
}

// nothing returns the summary of messages that say nothing: the previous summary.
func (w *writer) nothing() clip.Summary {
	if w.e.Previous == nil {
		s := w.summary(prose.ExtractedBy+"\n"+prose.NothingSaid, clip.Extracted)
		s.Model = ""
		return s
	}
	w.budget = max(w.e.Budget-w.reserved, plan.MinBudget)
	s := w.summary(w.previous, w.e.Previous.How)
	s.Model = w.e.Previous.Model
	return s
}

// summary returns a text as a Summary, with the range that it replaces and the calls that it took.
func (w *writer) summary(text string, how clip.How) clip.Summary {
	text = prose.Clean(text)
	if w.e.Format.QuotesUser() {
		_, text = prose.QuotationsIn(text)
	}
	text = w.withQuotations(prose.LimitChars(prose.CutTo(w.redacted(text), w.budget), w.s.ClipChars))
	s := clip.Summary{Text: text, How: how, Why: w.why, Detail: w.detail, ModelCalls: w.modelCalls,
		PromptTokens: w.prompt, OutputTokens: w.output}
	if w.m != nil {
		s.Model = w.m.Name
	}
	if n := len(w.e.Messages); n > 0 {
		s.From, s.FromSeq = w.e.Messages[0].Position, w.e.Messages[0].Seq
		s.To, s.ToSeq = w.e.Messages[n-1].Position, w.e.Messages[n-1].Seq
	}
	if p := w.e.Previous; p != nil {
		if len(w.e.Messages) == 0 || p.From < s.From { // otherwise a kept user's message leaves from before it
			s.From, s.FromSeq = p.From, p.FromSeq
		}
		s.To, s.ToSeq = max(s.To, p.To), max(s.ToSeq, p.ToSeq)
	}
	if f := w.e.Format; f != nil {
		s.Before, s.After = f.Before, f.After
	}
	s.Tokens = clip.SummaryTokens(s)
	return s
}

// aboutCut extracts, within a budget, the content of the messages that a transcript left out.
func (w *writer) aboutCut(mentions, budget int) string {
	return extract(w.cut, "", prose.MustMentionOf(w.cut, "", mentions)).within("", budget, prose.MustMention{})
}

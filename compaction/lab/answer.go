package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/compaction/prose"
	"github.com/loci-memory/loci/compaction/summary"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/chat"
	"github.com/loci-memory/loci/recall/tokens"
)

// AnswerRatios are the shares of the context with which a model is asked a question again. At the first it sees the
// whole context.
var AnswerRatios = []float64{1, 0.5, 0.2}

// Query is a question of a session that a model is asked again.
type Query struct {
	Position int    // of the message that asks; for a question of a data set, that behind the last message
	Text     string // the question
	Recorded string // what the agent answered, or what the data set expects
	messages []recall.Message
}

// Queries returns at most most questions: those of a data set, or the newest messages of the user that the agent
// answered with a text.
func (s *Session) Queries(most int) (all []Query) {
	for _, q := range s.questions {
		if q.Text == "" || len(all) >= most {
			continue
		}
		n := len(s.messages) + 1
		asks := recall.Message{ID: fmt.Sprintf("message-%d", n), Seq: int64(n), Position: n, Role: recall.User,
			Content: []recall.Part{{Type: recall.Text, Text: q.Text}}, Tokens: tokens.PerMessage + s.meter.count(q.Text)}
		all = append(all, Query{n, q.Text, q.Answer, append(slices.Clip(slices.Clone(s.messages)), asks)})
	}
	if len(s.questions) > 0 {
		return all
	}
	answer := ""
	for i, m := range slices.Backward(s.messages) {
		text := said(m)
		switch {
		case m.Role == recall.Assistant && answer == "":
			answer = text
		case m.Role == recall.User:
			if text != "" && answer != "" && len(all) < most {
				all = append(all, Query{m.Position, text, answer, s.messages[:i+1]})
			}
			answer = ""
		}
	}
	slices.Reverse(all)
	return all
}

// said returns the texts of a message, without calls, results and thoughts.
func said(m recall.Message) string {
	var texts []string
	for _, p := range m.Content {
		if p.Type == recall.Text {
			texts = append(texts, strings.TrimSpace(p.Text))
		}
	}
	return strings.TrimSpace(strings.Join(texts, "\n"))
}

// tokens returns the tokens of the whole context of a question.
func (s *Session) contextTokens(q Query) int {
	n := s.fixed
	for _, m := range q.messages {
		n += m.Tokens
	}
	return n
}

// AskTokens estimates the tokens that a model reads to answer the questions at all AnswerRatios, with the summaries for
// those below 1, and how often it is asked at least: again, where a summary is refused or lacks something.
func (s *Session) AskTokens(queries []Query) (read, calls int) {
	for _, q := range queries {
		all := s.contextTokens(q)
		for _, ratio := range AnswerRatios {
			read += int(ratio * float64(all))
			calls++
			if ratio < 1 {
				read += all - int(ratio/2*float64(all))
				calls++
			}
		}
	}
	return read, calls
}

// Answer is a model's answer to a question with a share of the context.
type Answer struct {
	Session   string  `json:"session"`
	Position  int     `json:"position"` // of the question
	Question  string  `json:"question"` // at most answerChars
	Ratio     float64 `json:"ratio"`
	Tokens    int     `json:"context_tokens"`
	Text      string  `json:"answer"`               // at most answerChars
	Agreement float64 `json:"agreement"`            // with the answer at ratio 1: the share of its facts that are named
	Same      bool    `json:"same"`                 // the agreement is at least 0.8
	Recorded  float64 `json:"agreement_recorded"`   // likewise with the recorded answer
	Calls     int     `json:"model_calls"`          // including those for the summary
	Read      int     `json:"model_prompt_tokens"`  // as the provider counted
	Written   int     `json:"model_output_tokens"`  // likewise
	Failed    string  `json:"failed,omitempty"`     // why there is no answer
	Summary   string  `json:"summary_by,omitempty"` // model or rules; empty if the context is whole
}

// Bounds of a question.
const (
	answerChars = 2_000 // that a report shows
	answerMost  = 1_000 // tokens of an answer
)

// asking is what a model is told before the conversation.
const asking = "Below is a conversation between a user and an agent, which is you. Messages begin with their number " +
	"and their speaker; a line that begins with -> is a call of a tool. Answer the user's last message from what the " +
	"conversation says, in a few sentences, with the names and numbers that matter. You cannot call a tool now. If the " +
	"conversation does not say it, say that."

// Ask asks a model a question with each of AnswerRatios of its context, and compares the answers with the first. It
// returns an error only if ctx ends, with the answers so far.
func (s *Session) Ask(ctx context.Context, q Query, m *summary.Model) (answers []Answer, err error) {
	whole := ""
	for i, ratio := range AnswerRatios {
		a := Answer{Session: s.name, Position: q.Position, Question: clipped(q.Text, answerChars), Ratio: ratio}
		text, err := s.ask(ctx, q, m, &a)
		if ctx.Err() != nil {
			return answers, ctx.Err()
		}
		switch {
		case err != nil:
			a.Failed = clipped(err.Error(), answerChars)
		case i == 0:
			whole, a.Agreement = text, 1
		default:
			a.Agreement = agreement(whole, text)
		}
		if err == nil {
			a.Same, a.Recorded = a.Agreement >= sameFrom, agreement(q.Recorded, text)
		}
		a.Text = clipped(text, answerChars)
		answers = append(answers, a)
	}
	return answers, nil
}

// ask asks a model a question with the answer's ratio of the context.
func (s *Session) ask(ctx context.Context, q Query, m *summary.Model, a *Answer) (string, error) {
	limited, cancel := context.WithTimeout(ctx, cmp.Or(m.Patience, summary.Patience))
	defer cancel()
	view, err := s.share(limited, q, m, a)
	if err != nil {
		return "", err
	}
	a.Tokens = clip.Estimate(view)
	if m.Window > 0 && a.Tokens+answerMost > m.Window {
		return "", fmt.Errorf("the context has %d tokens, and the model's window %d", a.Tokens, m.Window)
	}
	entries := prose.Transcript(view.AsShown(), false)
	reply, err := m.Complete(limited, summary.Request{Model: m.Name, MaxTokens: answerMost, Messages: []chat.Message{
		{Role: "system", Content: strings.TrimSpace(s.system + "\n\n" + asking)},
		{Role: "user", Content: prose.Joined(entries)}}})
	a.Calls += summary.Calls(err)
	a.Read += reply.PromptTokens
	a.Written += reply.OutputTokens
	switch {
	case err != nil:
	case reply.Finish == summary.Refused:
		err = fmt.Errorf("the model refused to answer: %s", reply.Text)
	case strings.TrimSpace(reply.Text) == "":
		err = errors.New("the model answered with no text")
	}
	return strings.TrimSpace(reply.Text), err
}

// share returns the context of a question at the answer's ratio: the oldest messages are summarized.
func (s *Session) share(ctx context.Context, q Query, m *summary.Model, a *Answer) (clip.View, error) {
	all := s.contextTokens(q)
	most := max(int(a.Ratio*float64(all)), 1)
	v := clip.View{Window: max(2*most, s.fixed+leastRoom), Fixed: s.fixed, Messages: q.messages,
		Count: s.meter.counter()}
	if a.Ratio >= 1 {
		return v, nil
	}
	var planned plan.Plan
	for upTo := range policy.Within(most) {
		p, err := policy.Parse(upTo)
		if err != nil {
			return v, err
		}
		planned, err = p.Plan(v, policy.Moment{Now: q.messages[len(q.messages)-1].CreatedAt})
		if err != nil && !errors.Is(err, db.ErrInvalid) {
			return v, err
		}
		if err == nil && planned.After <= most {
			break
		}
	}
	if planned.Evicted == 0 {
		return v, nil // nothing can leave
	}
	made, err := summary.Summarize(ctx, planned.Evict(v), plan.Defaults(), m)
	if err != nil {
		return v, err
	}
	made.Tokens = s.summaryTokens(made)
	a.Calls += made.ModelCalls
	a.Read += made.PromptTokens
	a.Written += made.OutputTokens
	if a.Summary = "model"; made.How == clip.Extracted {
		a.Summary = "rules"
	}
	return planned.View(v, &made), nil
}

// Score is how the answers at a ratio agree with those at ratio 1.
type Score struct {
	Ratio     float64 `json:"ratio"`
	Answers   int     `json:"answers"`
	Same      int     `json:"same"`
	Agreement float64 `json:"agreement"`          // mean
	Recorded  float64 `json:"agreement_recorded"` // mean
	Tokens    int     `json:"context_tokens"`     // mean
	Failed    int     `json:"failed"`
}

// Scores returns the scores of the answers, by ratio.
func (r Report) Scores() (all []Score) {
	for _, ratio := range AnswerRatios {
		s := Score{Ratio: ratio}
		for _, a := range r.Answers {
			switch {
			case a.Ratio != ratio:
			case a.Failed != "":
				s.Failed++
			default:
				s.Answers++
				s.Tokens += a.Tokens
				s.Agreement += a.Agreement
				s.Recorded += a.Recorded
				if a.Same {
					s.Same++
				}
			}
		}
		n := max(s.Answers, 1)
		s.Tokens, s.Agreement, s.Recorded = s.Tokens/n, s.Agreement/float64(n), s.Recorded/float64(n)
		if s.Answers+s.Failed > 0 {
			all = append(all, s)
		}
	}
	return all
}

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// dialogue is a conversation between two parties, and questions about it.
type dialogue struct {
	name      string
	sessions  [][]turn
	questions []question
}

// turn is one party's contribution.
type turn struct {
	id            string // several turns may have the same id
	role, speaker string
	text          string
	at            time.Time // zero if unknown
}

// question is a question with the ids of the turns that answer it.
type question struct {
	kind, text string
	evidence   []string
}

// asked stores each dialogue with an agent of its own, and asks the dialogue's questions over REST. It prints how much
// of the evidence is among the first hits, as a table with these rows.
func (b *bench) asked(ctx context.Context, dialogues []dialogue, rows []recallRow) error {
	s, _, err := b.serve(ctx, filepath.Join(b.work, "asked"))
	if err != nil {
		return err
	}
	results := recalled{}
	for i, d := range dialogues {
		if err = s.ask(ctx, d, results); err != nil {
			err = fmt.Errorf("dialogue %s: %w", d.name, err)
			break
		}
		say("%d of %d dialogues", i+1, len(dialogues))
	}
	if err = errors.Join(err, s.stop()); err != nil {
		return err
	}
	fmt.Print(results.table(rows))
	return nil
}

func (s *instance) ask(ctx context.Context, d dialogue, results recalled) error {
	var agent named
	if err := s.call(ctx, http.MethodPost, "/v1/agents/", agentNamed(d.name), &agent); err != nil {
		return err
	}
	messages, err := s.tell(ctx, agent.ID, d.sessions)
	if err != nil {
		return err
	}
	for _, q := range d.questions {
		var evidence [][]string
		for _, id := range q.evidence {
			if ids := messages[id]; ids != nil {
				evidence = append(evidence, ids)
			}
		}
		if len(evidence) == 0 {
			continue
		}
		var hits []struct {
			ID string `json:"message_id"`
		}
		body := map[string]any{"query": q.text, "agent_id": agent.ID, "limit": cutoffs[len(cutoffs)-1]}
		if err := s.call(ctx, http.MethodPost, "/v1/messages/search", body, &hits); err != nil {
			return err
		}
		ids := make([]string, len(hits))
		for k, h := range hits {
			ids[k] = h.ID
		}
		results.add(q.kind, ids, evidence)
	}
	return nil
}

// tell stores sessions. It returns the ids of messages by the ids of their turns.
func (s *instance) tell(ctx context.Context, agent string, sessions [][]turn) (map[string][]string, error) {
	ids := map[string][]string{}
	for _, turns := range sessions {
		messages := make([]map[string]any, len(turns))
		for i, t := range turns {
			messages[i] = map[string]any{"role": t.role, "content": t.text}
			if t.speaker != "" {
				messages[i]["name"] = t.speaker
			}
			if !t.at.IsZero() {
				messages[i]["created_at"] = t.at.Format(time.RFC3339)
			}
		}
		var captured struct {
			Messages []named `json:"messages"`
		}
		if err := s.call(ctx, http.MethodPost, "/v1/agents/"+agent+"/messages/capture", map[string]any{"messages": messages},
			&captured); err != nil {
			return nil, err
		}
		for i, m := range captured.Messages {
			ids[turns[i].id] = append(ids[turns[i].id], m.ID)
		}
	}
	return ids, nil
}

// cutoffs are the numbers of first hits that are counted.
var cutoffs = []int{5, 10, 25, 50}

// recalled adds up the share of evidence among the first hits, by kind of question.
type recalled map[string]*struct {
	n     int
	share [4]float64
}

// add counts a question. A piece of evidence is found if one of its messages is among the first hits.
func (r recalled) add(kind string, hits []string, evidence [][]string) {
	if r[kind] == nil {
		r[kind] = &struct {
			n     int
			share [4]float64
		}{}
	}
	sum := r[kind]
	sum.n++
	for i, k := range cutoffs {
		first := hits[:min(k, len(hits))]
		for _, ids := range evidence {
			if slices.ContainsFunc(ids, func(id string) bool { return slices.Contains(first, id) }) {
				sum.share[i] += 1 / float64(len(evidence))
			}
		}
	}
}

// recallRow is a row of a table, for some kinds of questions together.
type recallRow struct {
	name  string
	kinds []string
}

func (r recalled) table(rows []recallRow) string {
	var b strings.Builder
	b.WriteString("| questions | n | recall@5 | @10 | @25 | @50 |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, row := range rows {
		n := 0
		var share [4]float64
		for _, kind := range row.kinds {
			if sum := r[kind]; sum != nil {
				n += sum.n
				for i := range share {
					share[i] += sum.share[i]
				}
			}
		}
		if n > 0 {
			f := 100 / float64(n)
			fmt.Fprintf(&b, "| %s | %d | %.1f | %.1f | %.1f | %.1f |\n", row.name, n,
				f*share[0], f*share[1], f*share[2], f*share[3])
		}
	}
	return b.String()
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// locomo measures search over the messages of a set in LoCoMo's file format: each of its dialogues is captured by an
// agent of its own, and each of its questions asked of that agent, over REST. It prints which share of the evidence is
// among the first hits.
func (b *bench) locomo(ctx context.Context, path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var samples []sample
	if err := json.Unmarshal(text, &samples); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	s, _, err := b.serve(ctx, filepath.Join(b.work, "locomo"))
	if err != nil {
		return err
	}
	found, err := s.askAll(ctx, samples)
	if err = errors.Join(err, s.stop()); err != nil {
		return err
	}
	fmt.Print(found.table())
	return nil
}

// sample is a dialogue with its questions.
type sample struct {
	ID           string                     `json:"sample_id"`
	Conversation map[string]json.RawMessage `json:"conversation"`
	Questions    []struct {
		Question string   `json:"question"`
		Evidence []string `json:"evidence"`
		Category int      `json:"category"`
	} `json:"qa"`
}

// utterance is a turn of a dialogue.
type utterance struct {
	Speaker string `json:"speaker"`
	ID      string `json:"dia_id"`
	Text    string `json:"text"`
	Caption string `json:"blip_caption"`
}

// categoryNames are those of LoCoMo's numbers.
var categoryNames = []string{1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}

// cutoffs are how many hits count as the first.
var cutoffs = []int{5, 10, 25, 50}

// recalled sums up, by category, the share of each question's evidence among the first hits.
type recalled map[int]*struct {
	n     int
	share [4]float64
}

func (s *instance) askAll(ctx context.Context, samples []sample) (recalled, error) {
	found := recalled{}
	for i, d := range samples {
		var agent named
		if err := s.call(ctx, http.MethodPost, "/v1/agents/", map[string]string{"name": d.ID}, &agent); err != nil {
			return nil, err
		}
		turns, err := s.tell(ctx, agent.ID, d)
		if err != nil {
			return nil, fmt.Errorf("dialogue %s: %w", d.ID, err)
		}
		for _, q := range d.Questions {
			evidence := evidenceOf(q.Evidence, turns)
			if len(evidence) == 0 {
				continue
			}
			var hits []struct {
				ID string `json:"message_id"`
			}
			body := map[string]any{"query": q.Question, "agent_id": agent.ID, "limit": cutoffs[len(cutoffs)-1]}
			if err := s.call(ctx, http.MethodPost, "/v1/messages/search", body, &hits); err != nil {
				return nil, err
			}
			ids := make([]string, len(hits))
			for k, h := range hits {
				ids[k] = h.ID
			}
			found.add(q.Category, ids, evidence)
		}
		say("%d of %d dialogues", i+1, len(samples))
	}
	return found, nil
}

// tell captures a dialogue; it returns the ids of its messages by those of its turns.
func (s *instance) tell(ctx context.Context, agent string, d sample) (map[string]string, error) {
	var first string
	if err := json.Unmarshal(d.Conversation["speaker_a"], &first); err != nil {
		return nil, fmt.Errorf("speaker_a: %w", err)
	}
	ids := map[string]string{}
	for n := 1; d.Conversation[session(n)] != nil; n++ {
		var turns []utterance
		var when string
		err := errors.Join(json.Unmarshal(d.Conversation[session(n)], &turns),
			json.Unmarshal(d.Conversation[session(n)+"_date_time"], &when))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", session(n), err)
		}
		at, err := time.Parse("3:04 pm on 2 January, 2006", when)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", session(n), err)
		}
		if len(turns) == 0 {
			continue
		}
		messages := make([]map[string]any, len(turns))
		for i, t := range turns {
			messages[i] = map[string]any{"role": "assistant", "name": t.Speaker, "content": t.said(),
				"created_at": at.Add(time.Duration(i) * time.Minute / 2).Format(time.RFC3339)}
			if t.Speaker == first {
				messages[i]["role"] = "user"
			}
		}
		var kept struct {
			Messages []named `json:"messages"`
		}
		if err := s.call(ctx, http.MethodPost, "/v1/agents/"+agent+"/messages/capture", map[string]any{"messages": messages},
			&kept); err != nil {
			return nil, err
		}
		for i, m := range kept.Messages {
			ids[turns[i].ID] = m.ID
		}
	}
	return ids, nil
}

func session(n int) string { return "session_" + strconv.Itoa(n) }

func (u utterance) said() string {
	if u.Caption == "" {
		return u.Text
	}
	return strings.TrimSpace(u.Text + " [shares " + u.Caption + "]")
}

// turnID is how evidence names a turn, as people wrote it: D8:6, D:11:26, D30:05.
var turnID = regexp.MustCompile(`D:?(\d+):0*(\d+)`)

func evidenceOf(named []string, turns map[string]string) (ids []string) {
	for _, text := range named {
		for _, m := range turnID.FindAllStringSubmatch(text, -1) {
			if id := turns["D"+m[1]+":"+m[2]]; id != "" && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

func (r recalled) add(category int, hits, evidence []string) {
	if r[category] == nil {
		r[category] = &struct {
			n     int
			share [4]float64
		}{}
	}
	of := r[category]
	of.n++
	for i, k := range cutoffs {
		for _, e := range evidence {
			if slices.Contains(hits[:min(k, len(hits))], e) {
				of.share[i] += 1 / float64(len(evidence))
			}
		}
	}
}

func (r recalled) table() string {
	var b strings.Builder
	b.WriteString("| questions | n | recall@5 | @10 | @25 | @50 |\n| --- | --- | --- | --- | --- | --- |\n")
	row := func(name string, categories ...int) {
		n := 0
		var share [4]float64
		for _, c := range categories {
			if of := r[c]; of != nil {
				n += of.n
				for i := range share {
					share[i] += of.share[i]
				}
			}
		}
		if n > 0 {
			f := 100 / float64(n)
			fmt.Fprintf(&b, "| %s | %d | %.1f | %.1f | %.1f | %.1f |\n", name, n, f*share[0], f*share[1], f*share[2], f*share[3])
		}
	}
	for c := 1; c < len(categoryNames); c++ {
		row(categoryNames[c], c)
	}
	row("1 to 4", 1, 2, 3, 4)
	row("all", 1, 2, 3, 4, 5)
	return b.String()
}

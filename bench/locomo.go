package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// locomoKinds are the names of LoCoMo's categories, which LoCoMo numbers from 1.
var locomoKinds = []string{"multi-hop", "temporal", "open-domain", "single-hop", "adversarial"}

// locomoRows are the rows that are reported for LoCoMo: one for each category, one for all categories with an answer,
// and one for all.
func locomoRows() (rows []recallRow) {
	for _, kind := range locomoKinds {
		rows = append(rows, recallRow{kind, []string{kind}})
	}
	return append(rows, recallRow{"1 to 4", locomoKinds[:4]}, recallRow{"all", locomoKinds})
}

// readLocomo reads a file of LoCoMo.
func readLocomo(path string) ([]dialogue, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var samples []locomoSample
	if err := json.Unmarshal(text, &samples); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	all := make([]dialogue, len(samples))
	for i, s := range samples {
		if all[i], err = s.dialogue(); err != nil {
			return nil, fmt.Errorf("read %s: dialogue %s: %w", path, s.ID, err)
		}
	}
	return all, nil
}

// locomoSample is a dialogue with its questions.
type locomoSample struct {
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

func (u utterance) said() string {
	if u.Caption == "" {
		return u.Text
	}
	return strings.TrimSpace(u.Text + " [shares " + u.Caption + "]")
}

// dialogue returns the sample as a dialogue. The first speaker is the user.
func (s locomoSample) dialogue() (dialogue, error) {
	d := dialogue{name: s.ID}
	var first string
	if err := json.Unmarshal(s.Conversation["speaker_a"], &first); err != nil {
		return d, fmt.Errorf("speaker_a: %w", err)
	}
	for n := 1; s.Conversation[sessionKey(n)] != nil; n++ {
		key := sessionKey(n)
		var utterances []utterance
		var dateTime string
		err := errors.Join(json.Unmarshal(s.Conversation[key], &utterances),
			json.Unmarshal(s.Conversation[key+"_date_time"], &dateTime))
		if err != nil {
			return d, fmt.Errorf("%s: %w", key, err)
		}
		start, err := time.Parse("3:04 pm on 2 January, 2006", dateTime)
		if err != nil {
			return d, fmt.Errorf("%s: %w", key, err)
		}
		var turns []turn
		for i, u := range utterances {
			t := turn{id: u.ID, role: "assistant", speaker: u.Speaker, text: u.said(),
				at: start.Add(time.Duration(i) * time.Minute / 2)}
			if u.Speaker == first {
				t.role = "user"
			}
			turns = append(turns, t)
		}
		if len(turns) > 0 {
			d.sessions = append(d.sessions, turns)
		}
	}
	for _, q := range s.Questions {
		if q.Category < 1 || q.Category > len(locomoKinds) {
			return d, fmt.Errorf("there is no category %d", q.Category)
		}
		d.questions = append(d.questions, question{locomoKinds[q.Category-1], q.Question, turnsNamed(q.Evidence)})
	}
	return d, nil
}

func sessionKey(n int) string { return "session_" + strconv.Itoa(n) }

// turnName matches the names of turns in evidence, as people wrote them: D8:6, D:11:26, D30:05.
var turnName = regexp.MustCompile(`D:?(\d+):0*(\d+)`)

// turnsNamed returns the ids of the turns named in texts, each once.
func turnsNamed(texts []string) (ids []string) {
	for _, text := range texts {
		for _, m := range turnName.FindAllStringSubmatch(text, -1) {
			if id := "D" + m[1] + ":" + m[2]; !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

package recall_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loci-memory/loci/bench/questions"
	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/embed/embedtest"
	"github.com/loci-memory/loci/recall"
)

// chatter is what the two people of the long dialogue say between the remarks that count: what others say in other
// dialogues.
func chatter() (texts []string) {
	for _, t := range questions.Dialogues() {
		texts = append(texts, t.Text)
	}
	for seed := range uint64(3) {
		for _, t := range newDialogue(seed + 20).turns {
			texts = append(texts, t.text)
		}
	}
	return texts
}

// chatterTurns is how many turns of chatter stand before each day of the long dialogue.
const chatterTurns = 30

// longDialogue returns the turns of the long dialogue.
func longDialogue(t *testing.T) (turns []turn) {
	t.Helper()
	talk, day, said := chatter(), "", 0
	for _, r := range questions.Evidence() {
		if r.ID == "" {
			continue
		}
		at, err := time.Parse(time.DateOnly, r.Day)
		if err != nil {
			t.Fatal(err)
		}
		if r.Day != day {
			day = r.Day
			for i := range chatterTurns {
				turns = append(turns, turn{speaker: []string{"Mira", "Jonas"}[i%2], first: i%2 == 0,
					text: talk[said%len(talk)], at: at.Add(time.Duration(-48*60+2*i) * time.Minute)})
				said++
			}
		}
		turns = append(turns, turn{id: r.ID, speaker: r.Speaker, text: r.Text, first: r.Speaker == "Mira",
			at: at.Add(18*time.Hour + time.Duration(len(turns)%50)*time.Minute)})
	}
	return turns
}

// A golden file records how much of the evidence for questions of weak kinds is found in a long dialogue, without
// vectors and with those of the model in the program.
func TestRetrievalOfEvidence(t *testing.T) {
	t.Parallel()
	scale.Long(t)
	all, kinds := map[string]*embedtest.Quality{}, []string{}
	for ranking, f := range map[string]*fixture{"words": newFixture(t), "both": newLocalFixture(t)} {
		ids := f.tell(f.agent, longDialogue(t))
		if ranking == "both" {
			f.must(recall.EmbedOnce(f.store, t.Context(), f.org, f.agent))
		}
		for _, q := range questions.Evidence() {
			if q.ID != "" {
				continue
			}
			var evidence []string
			for _, id := range q.Evidence {
				evidence = append(evidence, ids[id])
			}
			found := f.rank("default", recall.Query{Text: q.Question, AgentID: f.agent})
			for _, key := range []string{q.Kind + ranking, "all" + ranking} {
				if all[key] == nil {
					all[key] = &embedtest.Quality{}
				}
				all[key].Add(found, evidence)
			}
			if !slices.Contains(kinds, q.Kind) {
				kinds = append(kinds, q.Kind)
			}
		}
	}
	ofDialogues(t, func(key string, found, evidence []string) {
		if all[key] == nil {
			all[key] = &embedtest.Quality{}
		}
		all[key].Add(found, evidence)
	})
	var table strings.Builder
	table.WriteString(embedtest.QualityHead)
	for _, kind := range append(kinds, "all", "dialogues") {
		for _, ranking := range []string{"words", "both"} {
			table.WriteString(all[kind+ranking].Row(kind, ranking))
		}
	}
	checkGolden(t, "evidence", table.String())
}

// ofDialogues asks the questions about the short dialogues, each of which is the log of an agent.
func ofDialogues(t *testing.T, add func(key string, found, evidence []string)) {
	t.Helper()
	for ranking, f := range map[string]*fixture{"words": newFixture(t), "both": newLocalFixture(t)} {
		turns, asked, agents := map[string][]turn{}, map[string][]question{}, []string{}
		for i, r := range questions.Dialogues() {
			at, err := time.Parse(time.DateOnly, r.Day)
			if err != nil {
				t.Fatal(err)
			}
			if turns[r.Dialogue] == nil {
				agents = append(agents, r.Dialogue)
			}
			id := fmt.Sprint(i)
			turns[r.Dialogue] = append(turns[r.Dialogue], turn{id: id, speaker: r.Speaker, text: r.Text,
				first: strings.HasPrefix(r.Dialogue, r.Speaker), at: at.Add(time.Duration(i) * time.Minute)})
			if r.Question != "" {
				asked[r.Dialogue] = append(asked[r.Dialogue], question{text: r.Question, evidence: []string{id}})
			}
		}
		for _, name := range agents {
			agent := f.newAgent()
			ids := f.tell(agent, turns[name])
			if ranking == "both" {
				f.must(recall.EmbedOnce(f.store, t.Context(), f.org, agent))
			}
			for _, q := range asked[name] {
				found := f.rank("default", recall.Query{Text: q.text, AgentID: agent})
				add("dialogues"+ranking, found, []string{ids[q.evidence[0]]})
			}
		}
	}
}

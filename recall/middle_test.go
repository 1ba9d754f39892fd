package recall_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/embed/endpoint"
	"github.com/loci-memory/loci/embed/local"
	"github.com/loci-memory/loci/embed/rank"
	"github.com/loci-memory/loci/recall"
)

// middles are facts, each with a question that somebody asks about it.
var middles = []struct{ fact, question string }{
	{"Ingrid rotated the staging password; its new vault path is kv/payments/eu-7.",
		"Which vault path did Ingrid put the staging password at?"},
	{"The cold store in Tromsø is inspected by Halvard every second Thursday.",
		"How often does Halvard inspect the cold store?"},
	{"Queue reindex-catalog stalls when more than nine workers drain it at once.",
		"How many workers make the catalog queue stall?"},
	{"For the Lisbon office the invoice limit without approval is 4,350 euros.",
		"What is the invoice limit of the Lisbon office without approval?"},
}

// report returns a text of about so many words about the subjects of the facts, with a fact in its middle if it is not
// empty. The words of the questions are all over it, but not together.
func report(random *rand.Rand, words int, fact string) string {
	subjects := strings.Fields("vault password staging path queue worker catalog invoice office approval limit store " +
		"inspection Ingrid Halvard Lisbon Tromsø Thursday euros server disk tenant region backup ticket release")
	verbs := strings.Fields("checked moved restarted delayed approved reported closed scheduled compared reviewed")
	places := strings.Fields("overnight upstream again manually partly twice yesterday locally remotely quietly")
	var b strings.Builder
	said := false
	for n := 0; n < words; n += 9 {
		if !said && n >= words/2 {
			said = true
			b.WriteString(fact + "\n")
		}
		fmt.Fprintf(&b, "The %s was %s %s, see entry %d of log %d.\n", subjects[random.IntN(len(subjects))],
			verbs[random.IntN(len(verbs))], places[random.IntN(len(places))], random.IntN(9000), random.IntN(400))
	}
	return b.String()
}

// A fact in the middle of a long result is found among many results of that length with the same words, and the hit
// shows it.
func TestAMiddleIsFound(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		decoys, words int
		meaning       bool
	}{
		"of 5,000 words, by words":              {40, 5_000, false},
		"of 5,000 words, by words and meaning":  {scale.Of(10, 40), 5_000, true},
		"of 1,000 words, by words":              {40, 1_000, false},
		"of 12,000 words, by words and meaning": {10, 12_000, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			if test.meaning {
				f = newLocalFixture(t)
			}
			random := rand.New(rand.NewPCG(5, 8)) //nolint:gosec // a repeatable text
			facts := map[int]int{}
			for i := range middles {
				facts[(i+1)*test.decoys/5] = i
			}
			sent := map[int]string{}
			for n := range test.decoys + len(middles) {
				fact := ""
				i, has := facts[n]
				if has {
					fact = middles[i].fact
				}
				call := fmt.Sprintf("c%d", n)
				all := f.append(say(recall.User, "Read the next report."), called(call, "read", "{}"),
					returned(call, report(random, test.words, fact)))
				if has {
					sent[i] = all[2].ID
				}
			}
			if test.meaning {
				f.must(recall.EmbedOnce(f.store, t.Context(), f.org, f.agent))
			}
			for i, m := range middles {
				place := 0
				for n, h := range f.search(recall.Query{AgentID: f.agent, Text: m.question, Limit: 10}).Hits {
					if h.ID == sent[i] {
						place = n + 1
						if !strings.Contains(h.Snippet, m.fact) {
							t.Errorf("%q: the hit shows %q", m.question, h.Snippet)
						}
					}
				}
				if place == 0 {
					t.Errorf("%q does not find its fact", m.question)
				}
			}
		})
	}
}

// newLocalFixture returns a fixture with the model in the program.
func newLocalFixture(t *testing.T) *fixture {
	t.Helper()
	f := newFixture(t)
	encoder, err := local.Open()
	f.must(err)
	e := &endpoint.Endpoint{Embedder: local.NewTexts(encoder, 1), Queries: local.NewQueries(encoder),
		Weight: rank.BuiltinWeight, RefusesByNature: true, JobTexts: 16}
	space, err := endpoint.UseSpace(t.Context(), f.pool, "local", local.Model, local.Dimensions)
	f.must(err)
	e.Use(space)
	f.store = recall.New(f.pool, recall.Options{Endpoint: e})
	f.store.SetSettle(0)
	return f
}

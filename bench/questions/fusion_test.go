package questions_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci/bench/questions"
	"github.com/loci-memory/loci/db/dbtest/golden"
	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/embed/endpoint"
	"github.com/loci-memory/loci/embed/lexicon"
	"github.com/loci-memory/loci/embed/local"
	"github.com/loci-memory/loci/embed/rank"
)

// model makes vectors, and makes each only once.
type model struct {
	vector func(ctx context.Context, text string) ([]float32, error)
	known  map[string][]float32
}

func newModel(vector func(context.Context, string) ([]float32, error)) *model {
	return &model{vector: vector, known: map[string][]float32{}}
}

// Embed leaves out texts that are unfit for the model.
func (m *model) Embed(ctx context.Context, items []embed.Item) (all []embed.Vector, err error) {
	for _, item := range items {
		v, known := m.known[item.Text]
		if !known {
			if v, err = m.vector(ctx, item.Text); err != nil {
				return nil, err
			}
			m.known[item.Text] = v
		}
		if v != nil {
			all = append(all, embed.Vector{ID: item.ID, Values: v})
		}
	}
	return all, nil
}

// builtin returns the model in the program.
func builtin(t *testing.T) *model {
	encoder, err := local.Open()
	if err != nil {
		t.Fatal(err)
	}
	return newModel(func(ctx context.Context, text string) ([]float32, error) {
		all, err := encoder.Embed(ctx, []string{text})
		if err != nil {
			return nil, err
		}
		return all[0], nil
	})
}

// poor returns a model that knows which words texts share, but not their meaning.
func poor() *model {
	return newModel(func(_ context.Context, text string) ([]float32, error) {
		sum := make([]float32, local.Dimensions)
		for _, term := range lexicon.DistinctTerms(text) {
			for i, x := range randomVector(term) {
				sum[i] += x
			}
		}
		return embed.Normalize(sum), nil
	})
}

// blind returns a model that knows nothing.
func blind() *model {
	return newModel(func(_ context.Context, text string) ([]float32, error) {
		return embed.Normalize(randomVector(text)), nil
	})
}

func randomVector(seed string) []float32 {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(seed))
	random := rand.New(rand.NewPCG(hash.Sum64(), 1))
	v := make([]float32, local.Dimensions)
	for i := range v {
		v[i] = float32(random.NormFloat64())
	}
	return v
}

// quality counts the questions that were asked, and those with the answer among the first ten hits. reciprocal is the
// sum of one divided by the answers' places.
type quality struct {
	asked, found int
	reciprocal   float64
}

func (q *quality) add(rows []rank.Scored, answer int) {
	q.asked++
	index := slices.IndexFunc(rows[:min(10, len(rows))], func(r rank.Scored) bool { return r.ID == int64(answer) })
	if index >= 0 {
		q.found++
		q.reciprocal += 1 / float64(index+1)
	}
}

func (q *quality) hits() float64 { return 100 * float64(q.found) / float64(q.asked) }

func (q *quality) mrr() float64 { return 100 * q.reciprocal / float64(q.asked) }

// Each question has the text that answers it, also where several questions have one.
func TestQuestionsHaveTheirAnswers(t *testing.T) {
	t.Parallel()
	sets := map[string]questions.Set{"dialogues": questions.OfDialogues()[0]}
	for _, name := range questions.Names {
		sets[name] = questions.Read(name)
	}
	for _, c := range []struct{ set, question, answer string }{
		{"dialogues", "When did Nadia quit her job?", "I handed in my notice"},
		{"dialogues", "Where is Nadia going to work next?", "I start at the hospice"},
		{"faq", "How long may I keep a novel?", "The loan period of printed books"},
		{"manuals", "How can I be sure that what I downloaded was not tampered with?", "sha256sum --check"},
	} {
		set := sets[c.set]
		i := slices.IndexFunc(set.Questions, func(q questions.Question) bool { return q.Text == c.question })
		if i < 0 || !strings.Contains(set.Texts[set.Questions[i].Answer], c.answer) {
			t.Errorf("%s: question %d, %q, lacks the answer %q", c.set, i, c.question, c.answer)
		}
	}
}

func TestFusionNeverHurts(t *testing.T) {
	scale.Long(t)
	var table strings.Builder
	fmt.Fprintf(&table, "%-10s %-10s %4s  %13s  %13s  %13s\n", "model", "questions", "n", "words", "meaning", "fused")
	for _, test := range []struct {
		name   string
		model  *model
		weight float64
	}{
		{"built-in", builtin(t), rank.BuiltinWeight},
		{"judged", builtin(t), 0}, // the same model, but with an unknown weight
		{"poor", poor(), 0},
		{"blind", blind(), 0},
	} {
		names, byName := measure(t, &endpoint.Endpoint{Embedder: test.model, Weight: test.weight})
		for _, name := range names {
			words, meaning, fused := byName[name][0], byName[name][1], byName[name][2]
			fmt.Fprintf(&table, "%-10s %-10s %4d", test.name, name, words.asked)
			for _, q := range []*quality{words, meaning, fused} {
				fmt.Fprintf(&table, "  %5.1f / %5.1f", q.hits(), q.mrr())
			}
			table.WriteByte('\n')
			if fused.found < words.found-1 && fused.mrr() < words.mrr() { // fewer answers may stand higher
				t.Errorf("%s, %s: %d answers are found, and %d by words alone", test.name, name, fused.found, words.found)
			}
			if name != "all" {
				continue
			}
			if fused.hits() < words.hits()-0.3 || fused.mrr() < words.mrr()-0.3 {
				t.Errorf("%s: %.1f / %.1f, and %.1f / %.1f by words alone", test.name, fused.hits(), fused.mrr(), words.hits(),
					words.mrr())
			}
			best := max(words.hits(), meaning.hits())
			if test.weight != 0 && (fused.hits() < best-2 || fused.mrr() < max(words.mrr(), meaning.mrr())-2) {
				t.Errorf("%s: %.1f / %.1f, and %.1f / %.1f by meaning alone", test.name, fused.hits(), fused.mrr(),
					meaning.hits(), meaning.mrr())
			}
		}
	}
	checkGolden(t, table.String())
}

// measure asks all questions by words, by meaning and by both.
func measure(t *testing.T, endpoint *endpoint.Endpoint) (names []string, byName map[string]*[3]*quality) {
	t.Helper()
	byName = map[string]*[3]*quality{}
	qualitiesOf := func(name string) *[3]*quality {
		if byName[name] == nil {
			names = append(names, name)
			byName[name] = &[3]*quality{{}, {}, {}}
		}
		return byName[name]
	}
	sets := questions.OfDialogues()
	for _, name := range questions.Names {
		sets = append(sets, questions.Read(name))
	}
	learn(t, endpoint.Embedder, sets)
	for _, set := range sets {
		for _, q := range set.Questions {
			for i, arms := range []rank.Arms{{Words: true}, {Meaning: true}, {Words: true, Meaning: true}} {
				ranking, _ := rank.Texts(t.Context(), endpoint, q.Text, set.Texts, arms)
				qualitiesOf(set.Name)[i].add(ranking.Rows, q.Answer)
			}
		}
	}
	for _, name := range slices.Clone(names) {
		for i, q := range byName[name] {
			all := qualitiesOf("all")[i]
			all.asked, all.found, all.reciprocal = all.asked+q.asked, all.found+q.found, all.reciprocal+q.reciprocal
		}
	}
	return names, byName
}

// learn lets a model embed all texts and questions before a search, which would wait only seconds for them.
func learn(t *testing.T, model embed.Embedder, sets []questions.Set) {
	t.Helper()
	for _, set := range sets {
		texts := slices.Clone(set.Texts)
		for _, q := range set.Questions {
			texts = append(texts, q.Text)
		}
		for _, text := range texts {
			if _, err := model.Embed(t.Context(), []embed.Item{{Text: text}}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// checkGolden compares a table with its golden file, which -update writes.
func checkGolden(t *testing.T, got string) {
	t.Helper()
	golden.Check(t, "testdata/fusion.golden", got)
}

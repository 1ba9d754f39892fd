package local_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/loci-memory/loci/embed/local"
)

// rerankers returns the rerankers that testdata/reference.py has run, by name.
func rerankers(t *testing.T) map[string]*modelFiles {
	t.Helper()
	return map[string]*modelFiles{
		"reranker-bert": encoder{kind: "F32", tokenizer: "wordpiece", prefix: "bert.", activation: "gelu", hidden: 64,
			heads: 2, layers: 2, inner: 128, epsilon: 1e-12, classifier: true}.files(t),
		"reranker-xlm-roberta": encoder{kind: "F16", tokenizer: "unigram", prefix: "roberta.", activation: "gelu",
			hidden: 96, heads: 3, layers: 2, inner: 160, epsilon: 1e-5, classifier: true}.files(t),
	}
}

func TestRerankersGiveTheScoresOfTheReference(t *testing.T) {
	t.Parallel()
	type row struct {
		Text  string
		Score float64
	}
	for name, files := range rerankers(t) {
		directory := files.write(t, name)
		r, err := local.OpenReranker(directory)
		if err != nil {
			t.Fatal(err)
		}
		rows := readLines[row](t, reference(t, name, append([]string{"scores", directory}, questions...)...))
		texts := make([]string, len(rows))
		for i, row := range rows {
			texts[i] = row.Text
		}
		got, err := r.Scores(t.Context(), questions[0], texts)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range rows {
			if math.Abs(got[i]-want.Score) > 0.05 {
				t.Errorf("%s: score of %q: got %.3f, want %.3f", name, want.Text, got[i], want.Score)
			}
		}
	}
}

func TestALongQuestionLeavesRoomForTheText(t *testing.T) {
	t.Parallel()
	r, err := local.OpenReranker(rerankers(t)["reranker-bert"].write(t, "r"))
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("password ", 1000)
	got, err := r.Scores(t.Context(), long, []string{"the disk is full", "a clock", long, ""})
	if err != nil || len(got) != 4 || got[0] == got[1] {
		t.Errorf("scores of a question of 1,000 words: got %v, %v, want four, the first two different", got, err)
	}
}

func TestRerankingEndsWithItsContext(t *testing.T) {
	t.Parallel()
	r, err := local.OpenReranker(rerankers(t)["reranker-bert"].write(t, "r"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := r.Scores(ctx, "a question", []string{"a text"}); !errors.Is(err, context.Canceled) || got != nil {
		t.Errorf("got %v, %v, want no scores and context.Canceled", got, err)
	}
}

func TestARerankerThatIsNotRunIsRefusedInASentence(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		change func(*modelFiles)
		want   string
	}{
		{"a model of vectors", set("architectures", []string{"BertModel"}), `config.json has the architecture "BertModel"; ` +
			"a reranker is a BertForSequenceClassification or an XLMRobertaForSequenceClassification"},
		{"another architecture", set("model_type", "deberta-v2"),
			`config.json has the model_type "deberta-v2"; bert, xlm-roberta and model2vec are run`},
		{"several labels", set("id2label", map[string]string{"0": "no", "1": "yes"}),
			"config.json has several labels; a reranker has one"},
		{"no head", func(m *modelFiles) { delete(m.tensors, "classifier.weight") },
			"model.safetensors: it has no tensor classifier.weight"},
		{"a head of several labels", func(m *modelFiles) { m.add("F32", "classifier.weight", 0, 1, 3, 64) },
			"model.safetensors: its tensor classifier.weight has the shape [3 64]; config.json asks for [1 64]"},
	} {
		files := rerankers(t)["reranker-bert"]
		test.change(files)
		_, err := local.OpenReranker(files.write(t, "model"))
		if err == nil || !strings.Contains(err.Error(), "model is not used: "+test.want) {
			t.Errorf("%s: got %v, want %s", test.name, err, test.want)
		}
	}
}

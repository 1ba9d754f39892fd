package main

import (
	"math"
	"strings"
	"testing"
)

func TestSettingsChooseTheEmbeddingModel(t *testing.T) {
	t.Parallel()
	endpoint := embedding{BaseURL: "http://127.0.0.1:1/v1", Model: "m"}
	for _, c := range []struct {
		name         string
		settings     vectors
		now, next    embedding
		is, willBe   string
		refusedNames string // what the error names; empty if there is none
	}{
		{name: "without a setting it is built in", is: "builtin"},
		{name: "an endpoint that is set is used", now: endpoint, is: "endpoint"},
		{name: "builtin wins over an endpoint", settings: vectors{Model: "builtin"}, now: endpoint, is: "builtin"},
		{name: "off wins over an endpoint", settings: vectors{Model: "off"}, now: endpoint, is: "off"},
		{name: "off is off", settings: vectors{Model: "off"}, is: "off"},
		{name: "from builtin to an endpoint", next: endpoint, is: "builtin", willBe: "endpoint"},
		{name: "from an endpoint to builtin", settings: vectors{Next: "builtin"}, now: endpoint, is: "endpoint",
			willBe: "builtin"},
		{name: "from an endpoint to another", now: endpoint, next: endpoint, is: "endpoint", willBe: "endpoint"},
		{name: "a directory that is set is used", settings: vectors{Dir: "/m"}, is: "directory"},
		{name: "builtin wins over a directory", settings: vectors{Model: "builtin", Dir: "/m"}, is: "builtin"},
		{name: "directory wins over an endpoint", settings: vectors{Model: "directory", Dir: "/m"}, now: endpoint,
			is: "directory"},
		{name: "from builtin to a directory", settings: vectors{NextDir: "/m"}, is: "builtin", willBe: "directory"},
		{name: "from a directory to builtin", settings: vectors{Dir: "/m", Next: "builtin"}, is: "directory",
			willBe: "builtin"},
		{name: "from a directory to another", settings: vectors{Dir: "/m", NextDir: "/n"}, is: "directory",
			willBe: "directory"},
		{name: "from a directory to itself is refused", settings: vectors{Dir: "/m", NextDir: "/m"},
			refusedNames: "LOCI_EMBEDDING_NEXT_MODEL_DIR is the directory that is in use"},
		{name: "a directory needs a name", settings: vectors{Model: "directory"}, refusedNames: "LOCI_EMBEDDING_MODEL_DIR"},
		{name: "a next directory, too", settings: vectors{Next: "directory"},
			refusedNames: "LOCI_EMBEDDING_NEXT_MODEL_DIR"},
		{name: "a directory and an endpoint are refused", settings: vectors{Dir: "/m"}, now: endpoint,
			refusedNames: "LOCI_EMBEDDING_MODEL_DIR and LOCI_EMBEDDING_BASE_URL are both set"},
		{name: "next ones, too", settings: vectors{NextDir: "/m"}, next: endpoint,
			refusedNames: "LOCI_EMBEDDING_NEXT_MODEL_DIR and LOCI_EMBEDDING_NEXT_BASE_URL are both set"},
		{name: "an unknown model is refused", settings: vectors{Model: "openai"}, refusedNames: "LOCI_EMBEDDING is 'openai'"},
		{name: "an unknown next one, too", settings: vectors{Next: "off"}, refusedNames: "LOCI_EMBEDDING_NEXT is 'off'"},
		{name: "an endpoint needs a URL", settings: vectors{Model: "endpoint"}, refusedNames: "LOCI_EMBEDDING_BASE_URL"},
		{name: "a next endpoint, too", settings: vectors{Next: "endpoint"}, refusedNames: "LOCI_EMBEDDING_NEXT_BASE_URL"},
		{name: "nothing switches to itself", settings: vectors{Next: "builtin"}, refusedNames: "which is in use"},
		{name: "nothing switches from no vectors", settings: vectors{Model: "off"}, next: endpoint,
			refusedNames: "LOCI_EMBEDDING is off"},
		{name: "threads are not negative", settings: vectors{Threads: -1}, refusedNames: "LOCI_EMBEDDING_THREADS is -1"},
		{name: "a weight is not too high", settings: vectors{Weight: 3}, refusedNames: "LOCI_EMBEDDING_WEIGHT is 3"},
		{name: "a weight is a number", settings: vectors{Weight: math.NaN()}, refusedNames: "LOCI_EMBEDDING_WEIGHT is NaN"},
	} {
		current, next, err := c.settings.chosen(c.now, c.next)
		if current != c.is || next != c.willBe || (err == nil) != (c.refusedNames == "") ||
			err != nil && !strings.Contains(err.Error(), c.refusedNames) {
			t.Errorf("%s: got %q, then %q, %v", c.name, current, next, err)
		}
	}
	if got := (vectors{}).threads(); got < 1 {
		t.Errorf("threads by default: got %d", got)
	}
	if got := (vectors{Threads: 7}).threads(); got != 7 {
		t.Errorf("7 threads: got %d", got)
	}
}

func TestTheDoctorExaminesTheBuiltinModel(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		s    serving
		want string
	}{
		"built in": {serving{}, "the built-in model all-MiniLM-L6-v2 gives vectors of 384 numbers"},
		"off":      {serving{vectors: vectors{Model: "off"}}, "LOCI_EMBEDDING is off; search ranks by words"},
	} {
		if got := c.s.examineEmbeddings(t.Context()); got.Of != "embeddings" || !strings.Contains(got.Text, c.want) {
			t.Errorf("%s: got %+v, want %q", name, got, c.want)
		}
	}
	next := serving{vectors: vectors{Next: "builtin"}, embedding: embedding{BaseURL: "http://127.0.0.1:1/v1", Model: "m"}}
	if got := next.examineNextEmbeddings(t.Context()); len(got) != 1 || !strings.Contains(got[0].Text, "built-in model") {
		t.Errorf("the next model: got %+v", got)
	}
}

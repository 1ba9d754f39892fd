package main

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestARerankerThatIsNotThereStopsTheStart(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	for name, c := range map[string]struct {
		reranking
		want string
	}{
		"a directory without a model": {reranking{t.TempDir(), time.Second}, "is not used: config.json is missing"},
		"a model of vectors":          {reranking{petModel(t, "pets"), time.Second}, "config.json has the architecture"},
		"no time":                     {reranking{"", 0}, "LOCI_RERANK_TIMEOUT is 0s; it must be above 0"},
	} {
		_, err := c.reranker(log)
		if _, setting := errors.AsType[settingError](err); !setting || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
	if r, err := (reranking{"", time.Second}).reranker(log); r != nil || err != nil {
		t.Errorf("without a directory: got %v, %v, want no reranker", r, err)
	}
	found := reranking{t.TempDir(), time.Second}.examine(t.Context())
	if len(found) != 1 || found[0].Of != "reranker" || !strings.Contains(found[0].Text, "config.json is missing") {
		t.Errorf("the doctor finds %+v", found)
	}
}

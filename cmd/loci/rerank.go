package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/local"
	"github.com/loci-memory/loci/embed/rank"
)

// reranking holds the settings of the model that reranks the best hits of a search.
type reranking struct {
	RerankDir     string        `name:"rerank-model-dir" env:"LOCI_RERANK_MODEL_DIR" help:"Directory of a reranker."`
	RerankTimeout time.Duration `env:"LOCI_RERANK_TIMEOUT" default:"1s" help:"After it hits stay in their first order."`
}

// reranker opens the reranker; nil if none is configured. On a processor that is too slow it returns nil too, and logs
// that.
func (r reranking) reranker(log *slog.Logger) (*rank.Reranker, error) {
	switch {
	case r.RerankTimeout <= 0:
		return nil, settingError{fmt.Errorf("LOCI_RERANK_TIMEOUT is %v; it must be above 0, as 1s", r.RerankTimeout)}
	case r.RerankDir == "":
		return nil, nil
	case !local.Fast():
		log.Warn("the reranker of LOCI_RERANK_MODEL_DIR is not used: " + noRerankKernel)
		return nil, nil
	}
	opened, err := local.OpenReranker(r.RerankDir)
	if err != nil {
		return nil, settingError{fmt.Errorf("LOCI_RERANK_MODEL_DIR: %w", err)}
	}
	allowMemory(opened.Bytes())
	return &rank.Reranker{Name: opened.Name(), Timeout: r.RerankTimeout, Log: log, Scores: opened.Scores}, nil
}

const noRerankKernel = "this processor lacks the instructions that it needs (AVX2 with FMA, or arm64)"

// examine measures how fast the reranker judges as many texts as in a search.
func (r reranking) examine(ctx context.Context) []db.Finding {
	const of = "reranker"
	opened, err := r.reranker(slog.New(slog.DiscardHandler))
	switch {
	case err != nil:
		return []db.Finding{broken(of, err, "until then the server does not start")}
	case r.RerankDir == "":
		return nil
	case opened == nil:
		return []db.Finding{db.MakeFinding(of, db.Advice, noRerankKernel, "unset LOCI_RERANK_MODEL_DIR")}
	}
	text := strings.Repeat("The harbour town lies between two rivers, and the market is held by the church. ", 8)
	texts := make([]string, rank.RerankRows)
	for i := range texts {
		texts[i] = text
	}
	start := time.Now()
	if _, err := opened.Scores(ctx, "Where is the market held?", texts); err != nil {
		return []db.Finding{broken(of, err, "")}
	}
	duration := time.Since(start).Round(time.Millisecond)
	judged := fmt.Sprintf("the model %s judges %d texts in %s", opened.Name, len(texts), duration)
	if duration > r.RerankTimeout {
		return []db.Finding{db.MakeFinding(of, db.Advice, fmt.Sprintf("%s, and LOCI_RERANK_TIMEOUT is %s: hits stay in "+
			"their first order", judged, r.RerankTimeout), "name a smaller model, or allow more time")}
	}
	return []db.Finding{{Of: of, State: db.Well, Text: judged}}
}

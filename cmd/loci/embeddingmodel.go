package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/embed/local"
	"github.com/loci-memory/loci/server/metrics"
)

// The values of LOCI_EMBEDDING. LOCI_EMBEDDING_NEXT has the first two.
const (
	builtinModel  = "builtin"
	endpointModel = "endpoint"
	noModel       = "off"
)

// vectors says what makes vectors: the built-in model or an endpoint.
type vectors struct {
	Model   string  `name:"embedding" env:"LOCI_EMBEDDING" help:"What makes vectors: builtin (default), endpoint or off."`
	Next    string  `name:"embedding-next" env:"LOCI_EMBEDDING_NEXT" help:"The next of 'loci reembed': builtin, endpoint."`
	Threads int     `name:"embedding-threads" env:"LOCI_EMBEDDING_THREADS" help:"Of builtin (default: half the cores)."`
	Weight  float64 `name:"embedding-weight" env:"LOCI_EMBEDDING_WEIGHT" help:"Of meaning in searches, from 0.05 to 2."`
}

// chosen returns what makes vectors now, and what makes those that 'loci reembed' switches to, if anything does. Unset,
// it is the endpoint where there is one.
func (v vectors) chosen(now, next embedding) (is, willBe string, err error) {
	is, willBe = v.Model, v.Next
	if is == "" {
		is = builtinModel
		if now != (embedding{}) {
			is = endpointModel
		}
	}
	if willBe == "" && next != (embedding{}) {
		willBe = endpointModel
	}
	switch {
	case is != builtinModel && is != endpointModel && is != noModel:
		err = fmt.Errorf("LOCI_EMBEDDING is '%s'; it must be builtin, endpoint or off", is)
	case willBe != "" && willBe != builtinModel && willBe != endpointModel:
		err = fmt.Errorf("LOCI_EMBEDDING_NEXT is '%s'; it must be builtin or endpoint", willBe)
	case v.Threads < 0:
		err = fmt.Errorf("LOCI_EMBEDDING_THREADS is %d; it must be at least 1, or unset for half of the cores", v.Threads)
	case v.Weight != 0 && !(v.Weight >= 0.05 && v.Weight <= 2):
		err = fmt.Errorf("LOCI_EMBEDDING_WEIGHT is %v; it must be from 0.05 to 2, or unset", v.Weight)
	case is == endpointModel && now == (embedding{}):
		err = errors.New("LOCI_EMBEDDING is endpoint, and LOCI_EMBEDDING_BASE_URL names none: set it, or leave both out " +
			"for the built-in model")
	case willBe == endpointModel && next == (embedding{}):
		err = errors.New("LOCI_EMBEDDING_NEXT is endpoint, and LOCI_EMBEDDING_NEXT_BASE_URL names none: set it, or leave " +
			"both out")
	case willBe != "" && is == noModel:
		err = errors.New("LOCI_EMBEDDING_NEXT is set, and LOCI_EMBEDDING is off: without vectors there is nothing to " +
			"switch from; set the new model as LOCI_EMBEDDING")
	case willBe == builtinModel && is == builtinModel:
		err = errors.New("LOCI_EMBEDDING_NEXT is builtin, which is in use: leave it out, or set LOCI_EMBEDDING_NEXT_BASE_URL")
	}
	if err != nil {
		return "", "", settingError{err}
	}
	return is, willBe, nil
}

// threads returns how many threads the built-in model uses in the background.
func (v vectors) threads() int {
	if v.Threads > 0 {
		return v.Threads
	}
	return max(1, runtime.NumCPU()/2)
}

// errNoKernel says that the built-in model is not used.
var errNoKernel = errors.New("this processor lacks the instructions that the built-in embedding model needs (AVX2 " +
	"with FMA, or arm64), so texts get no vectors and search ranks by words; LOCI_EMBEDDING_BASE_URL names an " +
	"endpoint instead")

// jobTexts is how many texts a job embeds with the built-in model, so that a slow processor embeds those of all jobs at
// once in less than a job's time.
const jobTexts = 16

// builtin returns the built-in model; without an endpoint if this processor is too slow for it.
func (v vectors) builtin(log *slog.Logger, counts *metrics.Metrics) (e modelEndpoint, err error) {
	if !local.Fast() {
		return e, errNoKernel
	}
	encoder, err := local.Open()
	if err != nil {
		return e, err
	}
	return modelEndpoint{provider: builtinModel + " " + encoder.Revision(), model: local.Model,
		dimension: local.Dimensions, wanted: local.Dimensions,
		client: alwaysThere{},
		endpoint: &embed.Endpoint{Embedder: countedEmbedder{local.NewTexts(encoder, v.threads()), "texts", counts},
			Queries: embed.NewRecent(countedEmbedder{local.NewQueries(encoder), "query", counts}, embed.RecentTexts),
			Log:     log,
			Weight:  embed.BuiltinWeight, Name: "the built-in model", RefusesByNature: true, JobTexts: jobTexts,
			Jobs:       v.threads() + 1, // one is read or stored meanwhile
			Configured: embed.Space{Model: local.Model, Dimension: local.Dimensions}}}, nil
}

// alwaysThere is the prober of the built-in model.
type alwaysThere struct{}

// Probe implements prober.
func (alwaysThere) Probe(context.Context) (int, error) { return local.Dimensions, nil }

// examineBuiltin lets the built-in model embed a question.
func examineBuiltin(ctx context.Context, of string) db.Finding {
	if !local.Fast() {
		return db.MakeFinding(of, db.Advice, errNoKernel.Error(), "set LOCI_EMBEDDING_BASE_URL, or LOCI_EMBEDDING=off to be "+
			"told no more")
	}
	encoder, err := local.Open()
	if err != nil {
		return broken(of, err, "")
	}
	queries := local.NewQueries(encoder)
	var took time.Duration
	for range 2 { // the first takes memory
		began := time.Now()
		if _, err := queries.Embed(ctx, []embed.Item{{Text: "Where do we keep the spare keys of the office?"}}); err != nil {
			return broken(of, err, "")
		}
		took = time.Since(began)
	}
	return db.Finding{Of: of, State: db.Well, Text: fmt.Sprintf("the built-in model %s gives vectors of %d numbers with "+
		"%s, that of a question in %.1f ms", local.Model, local.Dimensions, encoder.Kernel(), float64(took)/1e6)}
}

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"time"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/embed/endpoint"
	"github.com/loci-memory/loci/embed/local"
	"github.com/loci-memory/loci/embed/rank"
	"github.com/loci-memory/loci/server/metrics"
)

// The values of LOCI_EMBEDDING. LOCI_EMBEDDING_NEXT accepts the first three.
const (
	builtinModel   = "builtin"
	directoryModel = "directory"
	endpointModel  = "endpoint"
	noModel        = "off"
)

// vectors says what makes vectors: the built-in model, a model in a directory, or an endpoint.
type vectors struct {
	Model   string  `name:"embedding" env:"LOCI_EMBEDDING" help:"Vectors of: builtin (default), directory, endpoint, off."`
	Next    string  `name:"embedding-next" env:"LOCI_EMBEDDING_NEXT" help:"Next: builtin, directory or endpoint."`
	Dir     string  `name:"embedding-model-dir" env:"LOCI_EMBEDDING_MODEL_DIR" help:"A directory with a model of yours."`
	NextDir string  `name:"embedding-next-model-dir" env:"LOCI_EMBEDDING_NEXT_MODEL_DIR" help:"That of the next model."`
	Threads int     `name:"embedding-threads" env:"LOCI_EMBEDDING_THREADS" help:"Of the model (default: half the cores)."`
	Weight  float64 `name:"embedding-weight" env:"LOCI_EMBEDDING_WEIGHT" help:"Of meaning in searches, from 0.05 to 2."`
	Similar float64 `name:"similar-passages" env:"LOCI_SIMILAR_PASSAGES" help:"Named from this on (default 0.8; 2: none)."`
}

// chosen returns what makes vectors now, and what makes the vectors that 'loci reembed' switches to; the latter may be
// empty. Without LOCI_EMBEDDING, it is the directory or the endpoint, if one is set.
func (v vectors) chosen(now, next embedding) (kind, nextKind string, err error) {
	kind, nextKind = cmp.Or(v.Model, implied(v.Dir, now), builtinModel), cmp.Or(v.Next, implied(v.NextDir, next))
	if err = v.checkValues(); err == nil {
		err = v.checkSources(kind, nextKind, now, next)
	}
	if err != nil {
		return "", "", settingError{err}
	}
	return kind, nextKind, nil
}

// implied returns the kind of model that settings imply. It returns ambiguousModel if both a directory and an endpoint
// are set.
func implied(dir string, e embedding) string {
	switch {
	case dir == "" && e == embedding{}:
		return ""
	case dir == "":
		return endpointModel
	case e == embedding{}:
		return directoryModel
	}
	return ambiguousModel
}

// ambiguousModel means that both a directory and an endpoint are set.
const ambiguousModel = "directory and endpoint"

// checkValues checks each setting on its own.
func (v vectors) checkValues() error {
	inside := []string{builtinModel, directoryModel, endpointModel}
	switch {
	case v.Model != "" && v.Model != noModel && !slices.Contains(inside, v.Model):
		return fmt.Errorf("LOCI_EMBEDDING is '%s'; it must be builtin, directory, endpoint or off", v.Model)
	case v.Next != "" && !slices.Contains(inside, v.Next):
		return fmt.Errorf("LOCI_EMBEDDING_NEXT is '%s'; it must be builtin, directory or endpoint", v.Next)
	case v.Threads < 0:
		return fmt.Errorf("LOCI_EMBEDDING_THREADS is %d; it must be at least 1, or unset for half of the cores", v.Threads)
	case v.Weight != 0 && !(v.Weight >= 0.05 && v.Weight <= 2):
		return fmt.Errorf("LOCI_EMBEDDING_WEIGHT is %v; it must be from 0.05 to 2, or unset", v.Weight)
	case v.Similar != 0 && !(v.Similar > 0 && v.Similar <= 2):
		return fmt.Errorf("LOCI_SIMILAR_PASSAGES is %v; it must be above 0 and at most 1, 2 for none, or unset", v.Similar)
	}
	return nil
}

// checkSources checks that the chosen models are named, and that they differ.
func (v vectors) checkSources(kind, nextKind string, now, next embedding) (err error) {
	switch {
	case kind == ambiguousModel:
		err = errors.New("LOCI_EMBEDDING_MODEL_DIR and LOCI_EMBEDDING_BASE_URL are both set: say with LOCI_EMBEDDING, " +
			"directory or endpoint, which is used")
	case nextKind == ambiguousModel:
		err = errors.New("LOCI_EMBEDDING_NEXT_MODEL_DIR and LOCI_EMBEDDING_NEXT_BASE_URL are both set: leave one out")
	case kind == directoryModel && v.Dir == "":
		err = errors.New("LOCI_EMBEDDING is directory, and LOCI_EMBEDDING_MODEL_DIR names none: set it")
	case nextKind == directoryModel && v.NextDir == "":
		err = errors.New("LOCI_EMBEDDING_NEXT is directory, and LOCI_EMBEDDING_NEXT_MODEL_DIR names none: set it")
	case kind == endpointModel && now == (embedding{}):
		err = errors.New("LOCI_EMBEDDING is endpoint, and LOCI_EMBEDDING_BASE_URL names none: set it, or leave both out " +
			"for the built-in model")
	case nextKind == endpointModel && next == (embedding{}):
		err = errors.New("LOCI_EMBEDDING_NEXT is endpoint, and LOCI_EMBEDDING_NEXT_BASE_URL names none: set it, or leave " +
			"both out")
	case nextKind != "" && kind == noModel:
		err = errors.New("LOCI_EMBEDDING_NEXT is set, and LOCI_EMBEDDING is off: without vectors there is nothing to " +
			"switch from; set the new model as LOCI_EMBEDDING")
	case nextKind == builtinModel && kind == builtinModel:
		err = errors.New("LOCI_EMBEDDING_NEXT is builtin, which is in use: leave it out, or set LOCI_EMBEDDING_NEXT_BASE_URL")
	case nextKind == directoryModel && kind == directoryModel && v.NextDir == v.Dir:
		err = errors.New("LOCI_EMBEDDING_NEXT_MODEL_DIR is the directory that is in use: name another one")
	}
	return err
}

// threads returns how many threads a model inside the program may use in the background.
func (v vectors) threads() int {
	if v.Threads > 0 {
		return v.Threads
	}
	return max(1, runtime.NumCPU()/2)
}

// errNoKernel says why no model inside the program can be used.
var errNoKernel = errors.New("this processor lacks the instructions that embedding models in the program need (AVX2 " +
	"with FMA, or arm64), so texts get no vectors and search ranks by words; LOCI_EMBEDDING_BASE_URL names an " +
	"endpoint instead")

// jobTexts is how many texts a job embeds with the built-in model. A slow processor can embed the texts of all parallel
// jobs within the time limit of a job. Jobs embed fewer texts with a larger model.
const jobTexts = 16

// inside is a model that runs inside the program.
type inside struct {
	*local.Encoder
	kind, name string // kind is builtinModel or directoryModel; name is for sentences
	weight     float64
}

// openInside opens the built-in model, or the model in dir if that is not empty. errNoKernel if this processor is too
// slow for it.
func openInside(dir string) (m inside, err error) {
	m = inside{kind: builtinModel, name: "the built-in model", weight: rank.BuiltinWeight}
	switch {
	case dir == "" && !local.Fast():
		return m, errNoKernel
	case dir == "":
		m.Encoder, err = local.Open()
		return m, err
	}
	if m.Encoder, err = local.OpenDirectory(dir); err != nil {
		return m, err
	}
	if !m.Static() && !local.Fast() {
		return m, errNoKernel
	}
	allowMemory(m.Bytes())
	return inside{m.Encoder, directoryModel, "the model " + m.Name(), 0}, nil
}

// endpoint returns the model as a modelEndpoint.
func (m inside) endpoint(v vectors, log *slog.Logger, counts *metrics.Metrics) modelEndpoint {
	space := endpoint.Space{Model: m.Name(), Dimension: m.Dimensions()}
	return modelEndpoint{provider: m.kind + " " + m.Revision(), model: space.Model,
		dimension: space.Dimension, wanted: space.Dimension,
		client: alwaysThere{space.Dimension},
		endpoint: &endpoint.Endpoint{Embedder: countedEmbedder{local.NewTexts(m.Encoder, v.threads()), "texts", counts},
			Queries: endpoint.NewRecent(countedEmbedder{local.NewQueries(m.Encoder), "query", counts}, endpoint.RecentTexts),
			Log:     log,
			Weight:  m.weight, Name: m.name, RefusesByNature: true, JobTexts: max(1, int(jobTexts/max(1, m.Work()))),
			Jobs:       v.threads() + 1, // one more, for a job that reads or stores meanwhile
			Configured: space}}
}

// alwaysThere is the prober for a model inside the program.
type alwaysThere struct{ dimensions int }

// Probe implements prober.
func (a alwaysThere) Probe(context.Context) (int, error) { return a.dimensions, nil }

// examineInside examines the built-in model, or the model in dir, by embedding a question.
func examineInside(ctx context.Context, subject, dir string) db.Finding {
	m, err := openInside(dir)
	switch {
	case err == errNoKernel: //nolint:errorlint // the error is returned unwrapped
		return db.MakeFinding(subject, db.Advice, err.Error(), "set LOCI_EMBEDDING_BASE_URL, or LOCI_EMBEDDING=off to be "+
			"told no more")
	case err != nil:
		return broken(subject, err, "until then the server does not start")
	}
	queries := local.NewQueries(m.Encoder)
	var duration time.Duration
	for range 2 { // the first run allocates memory
		start := time.Now()
		_, err := queries.Embed(ctx, []embed.Item{{Text: "Where do we keep the spare keys of the office?"}})
		if _, refused := errors.AsType[*endpoint.RefusedError](err); err != nil && !refused { // the model may know no English
			return broken(subject, err, "")
		}
		duration = time.Since(start)
	}
	name := m.name
	if dir == "" {
		name += " " + m.Name()
	}
	return db.Finding{Of: subject, State: db.Well, Text: fmt.Sprintf("%s gives vectors of %d numbers with %s, that of a "+
		"question in %.1f ms", name, m.Dimensions(), m.Kernel(), float64(duration)/1e6)}
}

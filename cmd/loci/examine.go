package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/compaction/llm"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/cluster"
	"github.com/loci-memory/loci/db/local"
	"github.com/loci-memory/loci/embed/endpoint"
	"github.com/loci-memory/loci/files/sandbox"
	"github.com/loci-memory/loci/tenant/apikey"
)

// doctorTimeout bounds each single examination.
const doctorTimeout = 15 * time.Second

// examine examines what a server with these settings needs. loopback says that only this machine can reach the server.
// open opens the server's database.
func (c *serving) examine(ctx context.Context, loopback bool, open func(context.Context) (opened, error)) []db.Finding {
	parts := []func() []db.Finding{
		func() []db.Finding { return c.examineDatabase(ctx, loopback, open) },
		c.examineDisk,
		examineSandbox,
		func() []db.Finding { return []db.Finding{c.examineEmbeddings(ctx)} },
		func() []db.Finding { return c.examineNextEmbeddings(ctx) },
		func() []db.Finding { return c.reranking.examine(ctx) },
		func() []db.Finding { return []db.Finding{c.language.examine(ctx)} },
	}
	findings := make([][]db.Finding, len(parts))
	var all sync.WaitGroup
	for i, part := range parts { // in parallel, because each may take doctorTimeout
		all.Go(func() { findings[i] = part() })
	}
	all.Wait()
	return slices.Concat(findings...)
}

func (c *serving) examineDatabase(ctx context.Context, loopback bool, open func(context.Context) (opened, error)) (
	list []db.Finding) {
	ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
	defer cancel()
	pg, err := open(ctx)
	if errors.Is(err, errNotStarted) {
		return []db.Finding{db.MakeFinding("postgres", db.Advice, err.Error(),
			"'loci doctor --own-settings' starts it and looks")}
	}
	// These errors say what to do.
	if _, explained := errors.AsType[settingError](err); explained || errors.Is(err, local.ErrInUse) {
		return []db.Finding{broken("postgres", err, "")}
	} else if err != nil {
		return []db.Finding{broken("postgres", err,
			"name the server's database by LOCI_HOME or LOCI_DATABASE_URL, or start 'loci serve'")}
	}
	defer pg.close() //nolint:errcheck // its error is no finding
	if c.OwnerURL != "" {
		list = append(list, db.ExamineOwner(ctx, pg.urls))
	}
	conn, err := db.Dial(ctx, cmp.Or(pg.urls.Server, pg.urls.Owner))
	if err != nil {
		return append(list, broken("postgres", err, db.ReachRemedy(err, "LOCI_DATABASE_URL")))
	}
	defer conn.Close(context.WithoutCancel(ctx))
	list = append(list, db.Examine(ctx, conn)...)
	if db.CheckSchema(ctx, conn) == nil {
		list = append(list, cluster.Examine(ctx, conn)...)
		list = append(list, agent.ExamineUsers(ctx, conn)...)
		list = append(list, c.examineKeys(ctx, &apikey.Store{DB: conn}, loopback)...)
	}
	return list
}

// examineKeys says whether the state of the API keys would prevent a server from starting.
func (c *serving) examineKeys(ctx context.Context, keys *apikey.Store, loopback bool) []db.Finding {
	var err error
	if c.APIKey == "" {
		err = c.checkReachable(ctx, keys, loopback)
	} else if err = keys.CheckRegistered(ctx, string(c.APIKey)); err != nil {
		err = fmt.Errorf("LOCI_API_KEY: %w", err)
	}
	if err != nil {
		return []db.Finding{broken("keys", err, "")}
	}
	return nil
}

// minFree is the free space in bytes below which an operator should make room.
const minFree = 2 << 30

// noRoom is the free space in bytes below which Postgres may not be able to add a log file of 16 MiB.
const noRoom = 32 << 20

// examineDisk reports the free space of a private Postgres.
func (c *serving) examineDisk() []db.Finding {
	home, err := c.home()
	if c.external() || err != nil {
		return nil
	}
	var disk syscall.Statfs_t
	if err := syscall.Statfs(home, &disk); err != nil {
		return []db.Finding{broken("disk", err, "see that LOCI_HOME names a directory")}
	}
	free := disk.Bavail * uint64(disk.Bsize) //nolint:gosec // a block has a size
	return []db.Finding{diskFinding(home, free)}
}

// diskFinding judges the free space on a private Postgres' disk.
func diskFinding(home string, free uint64) db.Finding {
	const remedy = "make room: without any, changes are refused with status 503 (no_room)"
	text := fmt.Sprintf("%s has %.1f GiB free", home, float64(free)/(1<<30))
	switch {
	case free < noRoom:
		return db.Finding{Of: "disk", State: db.Broken, Remedy: remedy,
			Text: fmt.Sprintf("%s has %.1f MiB free", home, float64(free)/(1<<20))}
	case free < minFree:
		return db.MakeFinding("disk", db.Advice, text, remedy)
	}
	return db.MakeFinding("disk", db.Advice, text, "")
}

// examineSandbox reports what the kernel would let the processes do that read documents and run jq.
func examineSandbox() []db.Finding { return sandboxFindings(sandbox.Unconfined()) }

func sandboxFindings(lacks string) []db.Finding {
	if lacks == "" {
		return nil
	}
	return []db.Finding{db.MakeFinding("sandbox", db.Advice, "a hostile document or jq expression could "+lacks,
		"use Linux 5.13 or newer, and a container runtime whose filter allows landlock and seccomp")}
}

// examineEmbeddings asks the embedding model for a vector.
func (c *serving) examineEmbeddings(ctx context.Context) db.Finding {
	const of = "embeddings"
	ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
	defer cancel()
	kind, _, err := c.chosen(c.embedding, embedding(c.nextEmbedding))
	switch {
	case err != nil:
		return broken(of, err, "correct the setting that it names")
	case kind == builtinModel || kind == directoryModel:
		return examineInside(ctx, of, dirOf(kind, c.Dir))
	case kind == noModel:
		return db.Finding{Of: of, State: db.Well, Text: "LOCI_EMBEDDING is off; search ranks by words"}
	}
	return c.embedding.examine(ctx, of)
}

// examineNextEmbeddings asks the next embedding model for a vector, if there is such a model.
func (c *serving) examineNextEmbeddings(ctx context.Context) []db.Finding {
	const of = "next embeddings"
	ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
	defer cancel()
	_, willBe, err := c.chosen(c.embedding, embedding(c.nextEmbedding))
	switch {
	case err != nil || willBe == "": // another finding names the error
		return nil
	case willBe == builtinModel || willBe == directoryModel:
		return []db.Finding{examineInside(ctx, of, dirOf(willBe, c.NextDir))}
	}
	return []db.Finding{embedding(c.nextEmbedding).examine(ctx, of)}
}

// examine asks the embeddings endpoint for a vector.
func (e embedding) examine(ctx context.Context, subject string) db.Finding {
	client, err := endpoint.NewOpenAI(endpoint.Config{BaseURL: e.BaseURL, APIKey: string(e.APIKey), Model: e.Model,
		Dimensions: e.Dimensions})
	if err != nil {
		return broken(subject, err, "correct the setting that it names")
	}
	start := time.Now()
	dimension, err := client.Probe(ctx)
	if err != nil {
		return broken(subject, err, "until it answers texts wait for their vectors, and search ranks by words")
	}
	return db.Finding{Of: subject, State: db.Well, Text: fmt.Sprintf("%s gives vectors of %d numbers, one in %s",
		cmp.Or(e.Model, "the endpoint's model"), dimension, time.Since(start).Round(time.Millisecond))}
}

// examine asks the language model's endpoint for its models.
func (l language) examine(ctx context.Context) db.Finding {
	const of = "model"
	ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
	defer cancel()
	if l.BaseURL == "" {
		return db.Finding{Of: of, State: db.Well, Text: "none is configured; summaries are extracted, and agents need a " +
			"loop of their own"}
	}
	client, err := llm.New(llm.Config{BaseURL: l.BaseURL, APIKey: string(l.Key), Model: l.Model, Window: l.Window})
	if err != nil {
		return broken(of, err, "correct the setting that it names")
	}
	models, err := client.ListModels(ctx)
	if err != nil {
		return broken(of, err, "until it answers agents get no answers, and summaries are extracted")
	}
	remedy, text := "", fmt.Sprintf("the endpoint has %d models; agents that name none use %s", len(models),
		cmp.Or(client.Model(), "none"))
	switch {
	case len(models) == 0:
		text, remedy = "the endpoint lists no models", "see that LOCI_LLM_BASE_URL and LOCI_LLM_API_KEY are right, and that "+
			"it runs; some endpoints list none and answer all the same"
	case client.Model() != "" && !slices.Contains(models, client.Model()):
		remedy = "LOCI_LLM_MODEL is not among them: " + strings.Join(models[:min(len(models), 10)], ", ")
	}
	return db.MakeFinding(of, db.Advice, text, remedy)
}

package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	smallTenants  = 100
	tenantClients = 2  // of all small tenants together
	floodClients  = 24 // of the tenant that floods
)

// tenant is an organization with an agent that has a folder.
type tenant struct {
	client
	agent, folder string
}

// tenants measures how long small tenants wait for an append, a prompt and a search, alone and while another one
// floods the server with appends, uploads and searches.
func (b *bench) tenants(ctx context.Context) (err error) {
	home := filepath.Join(b.work, "tenants")
	s, _, err := b.serve(ctx, home)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop(), os.RemoveAll(home)) }()
	documents, err := b.corpus.write(filepath.Join(b.work, "documents"), b.IngestBytes/4, 13)
	if err != nil {
		return err
	}
	all, err := s.tenants(ctx, smallTenants+1)
	if err != nil {
		return err
	}
	small, flood := all[1:], all[0]
	rows := map[string]*Row{}
	for _, what := range tenantWork {
		rows[what.name] = &Row{What: fmt.Sprintf("%s of %d small tenants while one floods: p50", what.name, smallTenants),
			Unit: "ms", Versus: "the same without the flood", AtMost: 1.5}
	}
	for range b.Rounds {
		if err := b.tenantRound(ctx, small, &flooding{tenant: flood, documents: documents}, rows); err != nil {
			return err
		}
	}
	for _, what := range tenantWork {
		row := rows[what.name]
		row.settle(median)
		b.report.add(*row)
	}
	return nil
}

// tenantWork is what small tenants do.
var tenantWork = []struct {
	name string
	do   func(ctx context.Context, t tenant, n int) error
}{
	{"append", func(ctx context.Context, t tenant, n int) error {
		return t.say(ctx, fmt.Sprintf("The ferry number %d leaves at noon.", n))
	}},
	{"prompt", func(ctx context.Context, t tenant, _ int) error {
		return t.call(ctx, http.MethodGet, "/v1/agents/"+t.agent+"/prompt", nil, nil)
	}},
	{"search", func(ctx context.Context, t tenant, _ int) error {
		_, err := t.tool(ctx, t.agent, "conversation_search", map[string]any{"query": "when does the ferry leave"})
		return err
	}},
}

// tenantRound measures each kind of work without the flood and with it, one after the other.
func (b *bench) tenantRound(ctx context.Context, small []tenant, flood *flooding, rows map[string]*Row) error {
	for _, what := range tenantWork {
		measure := func() (latencies, error) {
			return repeat(ctx, tenantClients, b.SearchFor, func(client, n int) error {
				return what.do(ctx, small[(client*len(small)/tenantClients+n)%len(small)], n)
			})
		}
		alone, err := measure()
		if err != nil {
			return fmt.Errorf("%s, alone: %w", what.name, err)
		}
		stop := flood.start(ctx)
		err = pause(ctx, time.Second)
		flooded, failed := measure()
		done, broken := stop()
		if err = errors.Join(err, failed, broken); err != nil {
			return fmt.Errorf("%s, flooded: %w", what.name, err)
		}
		row := rows[what.name]
		row.measured(flooded.p50()*1e3, alone.p50()*1e3)
		row.Note = fmt.Sprintf("%d clients; the flood's %d do %.0f/s", tenantClients, floodClients, done)
		say("%s: alone %.2f ms, flooded %.2f ms (%s)", row.What, last(row.Against.Raw), last(row.Loci.Raw), row.Note)
	}
	return nil
}

// flooding is a tenant whose clients append, search and upload.
type flooding struct {
	tenant
	documents []Document
	uploaded  atomic.Int64
}

// start floods until stop is called, which returns how much was done in a second. Refusals for now are no errors.
func (f *flooding) start(ctx context.Context) (stop func() (rate float64, err error)) {
	ctx, cancel := context.WithCancel(ctx)
	var clients sync.WaitGroup
	var done atomic.Int64
	var mu sync.Mutex
	var failed error
	began := time.Now()
	for i := range floodClients {
		clients.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				err := f.once(ctx, i, n)
				if _, later := errors.AsType[*laterError](err); err != nil && !later && ctx.Err() == nil {
					mu.Lock()
					failed = errors.Join(failed, err)
					mu.Unlock()
					return
				}
				done.Add(1)
			}
		})
	}
	return func() (float64, error) {
		rate := float64(done.Load()) / time.Since(began).Seconds()
		cancel()
		clients.Wait()
		return rate, failed
	}
}

func (f *flooding) once(ctx context.Context, client, n int) error {
	switch client % 3 {
	case 0:
		return f.say(ctx, fmt.Sprintf("Client %d says for the time %d that the harbour is full.", client, n))
	case 1:
		return f.uploadOne(ctx, f.folder, f.documents[int(f.uploaded.Add(1))%len(f.documents)])
	}
	_, err := f.tool(ctx, f.agent, "conversation_search", map[string]any{"query": "is the harbour full of ferries"})
	return err
}

// say appends a message of the user and one of the agent.
func (t tenant) say(ctx context.Context, text string) error {
	return t.call(ctx, http.MethodPost, "/v1/agents/"+t.agent+"/messages/capture", map[string]any{
		"messages": []map[string]string{{"role": "user", "content": text}, {"role": "assistant", "content": "Yes."}}}, nil)
}

// tenants makes organizations with a key, an agent, a folder and ten messages each.
func (s *instance) tenants(ctx context.Context, number int) ([]tenant, error) {
	url, err := s.postgres()
	if err != nil {
		return nil, err
	}
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	list := make([]tenant, number)
	for i := range list {
		list[i].client = s.client
		list[i].key = fmt.Sprintf("loci_benchmark_of_tenant_%d", i)
		sum := sha256.Sum256([]byte(list[i].key))
		if _, err := conn.Exec(ctx, `
			WITH o AS (
				INSERT INTO organizations (name) VALUES ($1) RETURNING org
			), required AS (
				INSERT INTO keys_required SELECT true ON CONFLICT DO NOTHING
			)
			INSERT INTO api_keys (org, name, prefix, sha256) SELECT org, 'bench', 'loci_', $2 FROM o`,
			fmt.Sprintf("tenant %d", i), sum[:]); err != nil {
			return nil, err
		}
		if list[i].folder, list[i].agent, err = list[i].client.folder(ctx, "harbour"); err != nil {
			return nil, err
		}
		for n := range 5 {
			if err := list[i].say(ctx, fmt.Sprintf("Ship number %d is in the harbour.", n)); err != nil {
				return nil, err
			}
		}
	}
	return list, nil
}

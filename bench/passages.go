package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Sizes of the archives.
const (
	smallArchive = 100    // passages in each of many archives
	batchRows    = 10_000 // passages in a call
)

// passages measures archival memory: batches, and searches in one large archive and in many small ones, by words, and
// by words and meaning.
func (b *bench) passages(ctx context.Context) error {
	home := filepath.Join(b.work, "passages")
	defer os.RemoveAll(home)
	l := &librarian{bench: b, talk: b.newTalk(), asked: map[string][]string{}}
	if err := b.during(ctx, home, func(s *instance, pool *pgxpool.Pool) error {
		return l.write(ctx, s,
			pool)
	}); err != nil {
		return err
	}
	if b.tool("pgbench") == "" {
		b.report.skip("pgbench is not installed", l.rows("words")...)
		return nil
	}
	if err := b.during(ctx, home, func(s *instance, _ *pgxpool.Pool) error {
		return l.search(ctx, s,
			"words")
	}); err != nil {
		return err
	}
	endpoint := newEmbedder()
	defer endpoint.Close()
	settings := []string{"LOCI_EMBEDDING_BASE_URL=" + endpoint.URL + "/v1", "LOCI_EMBEDDING_MODEL=fake"}
	if err := b.during(ctx, home, func(_ *instance, pool *pgxpool.Pool) error { return l.embedded(ctx, pool) },
		settings...); err != nil {
		return err
	}
	return b.during(ctx, home, func(s *instance, _ *pgxpool.Pool) error { return l.search(ctx, s, "words and vectors") },
		settings...)
}

// librarian writes archives, and searches them.
type librarian struct {
	*bench
	*talk
	one   string              // agent with a single archive, which has all passages
	many  string              // agent with as many passages in small archives
	asked map[string][]string // by agent: questions about some of its passages
}

func (l *librarian) write(ctx context.Context, s *instance, pool *pgxpool.Pool) (err error) {
	batch := Row{What: fmt.Sprintf("inserting %d passages, %d a call", l.Passages, min(batchRows, l.Passages)), Unit: "/s"}
	start := time.Now()
	if l.one, err = l.agent(ctx, s, 1, l.Passages); err != nil {
		return err
	}
	batch.measured(float64(l.Passages)/time.Since(start).Seconds(), 0)
	batch.Against = Side{}
	if memory, ok := s.resident(); ok {
		batch.Note = fmt.Sprintf("the server's memory was %.0f MB at most", memory.peak/1e6)
	}
	batch.settle(median)
	say("%s: %.0f/s; %s", batch.What, batch.Loci.Value, batch.Note)
	l.report.add(batch)
	if l.many, err = l.agent(ctx, s, l.Passages/smallArchive, smallArchive); err != nil {
		return err
	}
	return tidy(ctx, pool)
}

// agent creates an agent with a number of archives, each with a number of passages.
func (l *librarian) agent(ctx context.Context, s *instance, archives, passages int) (string, error) {
	var a named
	if err := s.call(ctx, http.MethodPost, "/v1/agents/", agentNamed(fmt.Sprint("reader of ", archives)),
		&a); err != nil {
		return "", err
	}
	for i := range archives {
		var c named
		if err := s.call(ctx, http.MethodPost, "/v1/archives/", map[string]string{"name": fmt.Sprint("archive ", i)},
			&c); err != nil {
			return "", err
		}
		for n := 0; n < passages; n += batchRows {
			list := make([]map[string]any, min(batchRows, passages-n))
			for k := range list {
				sentence := l.sentence()
				list[k] = map[string]any{"text": fmt.Sprintf("%s %d", sentence, n+k),
					"created_at": day((n+k)%passageTags) + "T12:00:00Z",
					"tags":       []string{fmt.Sprint("tag ", (n+k)%passageTags)},
					"metadata":   described(n + k)}
				if asked := l.asked[a.ID]; len(asked) < l.Queries {
					words := strings.Fields(sentence)
					l.asked[a.ID] = append(asked, "what was said about "+words[1]+" and "+words[len(words)-1])
				}
			}
			if err := s.call(ctx, http.MethodPost, "/v1/archives/"+c.ID+"/passages/batch", map[string]any{"passages": list},
				nil); err != nil {
				return "", err
			}
		}
		if err := s.call(ctx, http.MethodPatch, "/v1/agents/"+a.ID+"/archives/attach/"+c.ID, nil, nil); err != nil {
			return "", err
		}
	}
	return a.ID, nil
}

// tidy vacuums and analyzes the tables, as if they had grown over time.
func tidy(ctx context.Context, pool *pgxpool.Pool) error {
	for _, sql := range []string{`VACUUM ANALYZE passages`, `VACUUM ANALYZE passage_vectors`,
		`VACUUM ANALYZE unembedded_passages`, `VACUUM ANALYZE archives`,
		`VACUUM ANALYZE agent_archives`, `CHECKPOINT`} {
		if _, err := pool.Exec(ctx, sql); err != nil {
			return err
		}
	}
	syscall.Sync()
	return nil
}

// embedded waits until all passages have vectors, and until the vectors are indexed if there are enough of them.
func (l *librarian) embedded(ctx context.Context, pool *pgxpool.Pool) error {
	start := time.Now()
	err := poll(ctx, 500*time.Millisecond, func() (done bool, err error) {
		err = pool.QueryRow(ctx, `
			SELECT NOT EXISTS (SELECT FROM archives WHERE org = $2 AND embedded_space IS NULL)
			   AND NOT EXISTS (SELECT FROM unembedded_passages WHERE org = $2)
			   AND ((SELECT count(*) FROM passage_vectors WHERE org = $2) < $1 OR EXISTS (
			       SELECT FROM pg_index
			       WHERE indisvalid AND indexrelid::regclass::text LIKE 'passage_vectors_space_%'))`,
			vectorIndexRows, benchOrg).Scan(&done)
		return done, err
	})
	if err != nil {
		return err
	}
	say("%d passages have their vectors, indexed if they are many, after %.0f s", 2*l.Passages,
		time.Since(start).Seconds())
	return tidy(ctx, pool)
}

// rows are the rows about searches. ranked says how they rank.
func (l *librarian) rows(ranked string) (all []Row) {
	for _, place := range []string{"in one archive", fmt.Sprintf("in %d archives", l.Passages/smallArchive)} {
		name := fmt.Sprintf("archival_memory_search of %d passages %s, %s: ", l.Passages, place, ranked)
		const versus = "its ranking SQL by pgbench -M prepared"
		all = append(all, Row{What: name + "p50 of 1 client", Unit: "ms", AtMost: 2, Versus: versus},
			Row{What: fmt.Sprintf("the same: throughput of %d clients", manyClients), Unit: "/s", Versus: versus})
	}
	return all
}

func (l *librarian) search(ctx context.Context, s *instance, ranked string) error {
	rows := l.rows(ranked)
	for i, agent := range []string{l.one, l.many} {
		in := searched{
			queries: l.asked[agent],
			once: func(ctx context.Context, s *instance, query string) error {
				_, err := s.tool(ctx, agent, "archival_memory_search", map[string]any{"query": query})
				return err
			},
			ranks: func(sql string) bool {
				return strings.Contains(sql, "r.lex <#>") || strings.Contains(sql, "passage_vectors v") ||
					strings.Contains(sql, "AS hit (key, score")
			},
			last: "AS hit (key, score",
		}
		if err := l.searchRounds(ctx, s, in, &rows[2*i], &rows[2*i+1]); err != nil {
			return err
		}
	}
	for i := range rows {
		rows[i].settle(median)
	}
	l.report.add(rows...)
	return l.filtered(ctx, s, filteredSearch{
		what:    fmt.Sprintf("archival_memory_search of %d passages, %s", l.Passages, ranked),
		queries: l.asked[l.one],
		once: func(ctx context.Context, arguments map[string]any) error {
			_, err := s.tool(ctx, l.one, "archival_memory_search", arguments)
			return err
		},
		filters: passageFilters(),
	})
}

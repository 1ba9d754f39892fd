// Command fts5 searches texts with SQLite's FTS5, as a yardstick for the benchmarks. It reads JSON values from standard
// input: first texts, each a string, and then questions, each an Asked. It answers each question with an Answered, on a
// line of standard output.
package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	_ "modernc.org/sqlite"
)

// Asked holds queries to search for repeatedly, with a number of concurrent clients.
type Asked struct {
	Queries []string `json:"queries"`
	Clients int      `json:"clients"`
	Seconds float64  `json:"seconds"`
}

// Answered says how long a search took (the median), and how many searches were answered.
type Answered struct {
	Median float64 `json:"median_seconds"`
	Rate   float64 `json:"searches_per_second"`
	Hits   int     `json:"hits"` // of all searches
	Rows   int     `json:"rows"` // in the table
}

func main() {
	log.SetFlags(0)
	if err := run(context.Background()); err != nil {
		log.Fatal("fts5: ", err)
	}
}

func run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "fts5")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "texts.db")+
		"?_pragma=journal_mode(wal)&_pragma=synchronous(off)&_pragma=mmap_size(1073741824)&_pragma=cache_size(-200000)")
	if err != nil {
		return err
	}
	defer db.Close()
	const create = `CREATE VIRTUAL TABLE texts USING fts5(body, tokenize = 'porter unicode61')`
	if _, err := db.ExecContext(ctx, create); err != nil {
		return err
	}
	input := json.NewDecoder(os.Stdin)
	rows, asked, err := load(ctx, db, input)
	out := json.NewEncoder(os.Stdout)
	for err == nil {
		var answer Answered
		if answer, err = ask(ctx, db, asked); err != nil {
			return err
		}
		answer.Rows = rows
		if err = out.Encode(answer); err == nil {
			asked = Asked{}
			err = input.Decode(&asked)
		}
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// load stores the texts, and returns the first question after them.
func load(ctx context.Context, db *sql.DB, input *json.Decoder) (rows int, first Asked, err error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return 0, first, err
	}
	defer tx.Rollback() // does nothing after a commit
	insert, err := tx.PrepareContext(ctx, `INSERT INTO texts (body) VALUES (?)`)
	if err != nil {
		return 0, first, err
	}
	for {
		var value json.RawMessage
		if err := input.Decode(&value); err != nil {
			return rows, first, fmt.Errorf("no question follows %d texts: %w", rows, err)
		}
		var text string
		if json.Unmarshal(value, &text) != nil {
			if err := json.Unmarshal(value, &first); err != nil {
				return rows, first, err
			}
			break
		}
		if _, err := insert.ExecContext(ctx, text); err != nil {
			return rows, first, err
		}
		rows++
	}
	if err := tx.Commit(); err != nil {
		return rows, first, err
	}
	_, err = db.ExecContext(ctx, `INSERT INTO texts (texts) VALUES ('optimize')`)
	return rows, first, err
}

// ask searches for each query once, to warm up, and then repeatedly for the requested time.
func ask(ctx context.Context, db *sql.DB, q Asked) (a Answered, err error) {
	search, err := db.PrepareContext(ctx, `SELECT rowid, rank FROM texts WHERE texts MATCH ? ORDER BY rank LIMIT 10`)
	if err != nil {
		return a, err
	}
	defer search.Close()
	for _, query := range q.Queries {
		if _, err := hits(ctx, search, query); err != nil {
			return a, err
		}
	}
	var mu sync.Mutex
	var seconds []float64
	var clients sync.WaitGroup
	start := time.Now()
	for client := range max(q.Clients, 1) {
		clients.Go(func() {
			for n := client; time.Since(start).Seconds() < q.Seconds; n++ {
				queryStart := time.Now()
				found, failed := hits(ctx, search, q.Queries[n%len(q.Queries)])
				mu.Lock()
				seconds, err = append(seconds, time.Since(queryStart).Seconds()), errors.Join(err, failed)
				a.Hits += found
				mu.Unlock()
			}
		})
	}
	clients.Wait()
	if err != nil || len(seconds) == 0 {
		return a, errors.Join(err, errors.New("nothing was asked"))
	}
	a.Rate = float64(len(seconds)) / time.Since(start).Seconds()
	slices.Sort(seconds)
	a.Median = seconds[len(seconds)/2]
	return a, nil
}

// hits reads the ten best rows that contain any of the query's words.
func hits(ctx context.Context, search *sql.Stmt, query string) (n int, err error) {
	words := strings.FieldsFunc(query, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	for i, word := range words {
		words[i] = `"` + word + `"`
	}
	rows, err := search.QueryContext(ctx, strings.Join(words, " OR "))
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		var rank float64
		if err := rows.Scan(&id, &rank); err != nil {
			return n, err
		}
		n++
	}
	return n, rows.Err()
}

package main

import (
	"context"
	"strings"
	"time"
)

// searched is a way of searching, and what to search for.
type searched struct {
	queries []string
	once    func(ctx context.Context, s *instance, query string) error
	ranks   func(sql string) bool // whether a statement ranks
	last    string                // of the last such statement, a part
}

// inFiles searches the files of an agent.
func inFiles(agent string, queries []string) searched {
	return searched{
		queries: queries,
		once: func(ctx context.Context, s *instance, query string) error {
			_, err := s.tool(ctx, agent, "semantic_search_files", map[string]any{"query": query})
			return err
		},
		ranks: func(sql string) bool {
			return strings.Contains(sql, "chunks") && strings.Contains(sql, "lex") || strings.Contains(sql, "chunk_vectors") ||
				strings.Contains(sql, "c.heading")
		},
		last: "c.heading",
	}
}

// searchFor searches for a duration; each client starts at another of the queries.
func searchFor(ctx context.Context, s *instance, in searched, clients int, d time.Duration) (latencies, error) {
	queries := in.queries
	for _, q := range queries { // as pgbench prepares its statements, so the server its caches
		if err := in.once(ctx, s, q); err != nil {
			return latencies{}, err
		}
	}
	return repeat(ctx, clients, d, func(client, n int) error {
		return in.once(ctx, s, queries[(client*len(queries)/clients+n)%len(queries)])
	})
}

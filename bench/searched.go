package main

import (
	"context"
	"strings"
	"time"
)

// searched is a way of searching, with queries.
type searched struct {
	queries []string
	once    func(ctx context.Context, s *instance, query string) error
	ranks   func(sql string) bool // reports whether a statement ranks
	last    string                // a part of the last ranking statement
}

// inFiles searches an agent's files.
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

// searchFor searches for a duration. Each client starts with a different query.
func searchFor(ctx context.Context, s *instance, search searched, clients int, d time.Duration) (latencies, error) {
	queries := search.queries
	for _, q := range queries { // warms the server's caches, as pgbench prepares its statements
		if err := search.once(ctx, s, q); err != nil {
			return latencies{}, err
		}
	}
	return repeat(ctx, clients, d, func(client, n int) error {
		return search.once(ctx, s, queries[(client*len(queries)/clients+n)%len(queries)])
	})
}

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const mcpCalls = 500 // for each side

// mcp measures a tool call over MCP, compared with the same call over REST, in turns and with one client: in a short
// log, and in an empty log, where the protocol's share of the cost is largest.
func (b *bench) mcp(ctx context.Context) (err error) {
	home := filepath.Join(b.work, "mcp")
	s, _, err := b.serve(ctx, home)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop(), os.RemoveAll(home)) }()
	_, agent, err := s.folder(ctx, "mcp")
	if err != nil {
		return err
	}
	empty := Row{What: "conversation_search in an empty log over MCP", Unit: "ms", Versus: "the same over REST",
		AtMost: 1.2}
	if err := s.mcpCalls(ctx, &empty, agent, []string{"the moon over the port"}); err != nil {
		return err
	}
	talk, messages, queries := b.newTalk(), make([]map[string]string, shortHistory), make([]string, shortHistory)
	for i := range messages {
		text := talk.sentence()
		messages[i] = map[string]string{"role": []string{"user", "assistant"}[i%2], "content": text}
		queries[i] = strings.Join(strings.Fields(text)[:3], " ")
	}
	if err := s.call(ctx, http.MethodPost, "/v1/agents/"+agent+"/messages/capture", map[string]any{"messages": messages},
		nil); err != nil {
		return err
	}
	short := Row{What: fmt.Sprintf("conversation_search in a log of %d messages over MCP", shortHistory), Unit: "ms",
		Versus: "the same over REST", AtMost: 1.2}
	if err := s.mcpCalls(ctx, &short, agent, queries); err != nil {
		return err
	}
	b.report.add(short, empty)
	return nil
}

// mcpCalls measures calls of both sides, query after query.
func (s *instance) mcpCalls(ctx context.Context, row *Row, agent string, queries []string) error {
	session, err := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil).Connect(ctx,
		&mcp.StreamableClientTransport{Endpoint: s.base + "/mcp/agents/" + agent}, nil)
	if err != nil {
		return err
	}
	defer session.Close()
	const name = "conversation_search"
	for i := range mcpCalls {
		args := map[string]any{"query": queries[i%len(queries)]}
		overMCP := func() error {
			got, err := session.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: args})
			if err == nil && got.IsError {
				err = fmt.Errorf("the tool failed over MCP: %v", got.Content)
			}
			return err
		}
		overREST := func() error {
			_, err := s.tool(ctx, agent, name, args)
			return err
		}
		if err := overREST(); err != nil { // first, so that neither side is the first with a query
			return err
		}
		if err := row.timed(overMCP, overREST); err != nil {
			return err
		}
	}
	row.settle(median)
	row.thin()
	row.Note = fmt.Sprintf("median of %d calls of each, one after the other", mcpCalls)
	say("%s: %.2f ms, over REST %.2f ms", row.What, row.Loci.Value, row.Against.Value)
	return nil
}

// timed measures how many milliseconds two calls take.
func (r *Row) timed(loci, other func() error) error {
	start := time.Now()
	err := loci()
	middle := time.Now()
	err = errors.Join(err, other())
	r.measured(middle.Sub(start).Seconds()*1e3, time.Since(middle).Seconds()*1e3)
	return err
}

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const mcpCalls = 500 // of each side

// mcp measures a call of a tool over the Model Context Protocol against the same call over REST, in turns, with one
// client.
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
	args := map[string]any{"query": "the moon over the port"}
	row := Row{What: "a call of search in an empty log over MCP", Unit: "ms", Versus: "the same over REST", AtMost: 1.2,
		Note: fmt.Sprintf("median of %d calls of each, one after the other", mcpCalls)}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil).Connect(ctx,
		&mcp.StreamableClientTransport{Endpoint: s.base + "/mcp/agents/" + agent}, nil)
	if err != nil {
		return err
	}
	defer session.Close()
	for range mcpCalls {
		began := time.Now()
		got, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "conversation_search", Arguments: args})
		over := time.Since(began)
		if err != nil {
			return err
		}
		if got.IsError {
			return fmt.Errorf("the tool failed over MCP: %v", got.Content)
		}
		began = time.Now()
		if _, err := s.tool(ctx, agent, "conversation_search", args); err != nil {
			return err
		}
		row.measured(over.Seconds()*1e3, time.Since(began).Seconds()*1e3)
	}
	row.settle(median)
	say("mcp: %.2f ms over MCP, %.2f ms over REST", row.Loci.Value, row.Against.Value)
	b.report.add(row)
	return nil
}

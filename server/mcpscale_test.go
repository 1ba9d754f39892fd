package server_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loci-memory/loci/db/dbtest/scale"
)

// Many sessions work at the same time, and are told of a change. At the largest scale there are 1,000 sessions, and 500
// clients without one.
func TestManySessionsOverMCP(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent, web := c.mcpAgent()
	const atOnce = 20
	sessions := scale.Of(99, 300)
	turns := make(chan struct{}, atOnce)
	notified := make(chan int, 100*sessions)
	errs := make(chan error, sessions)
	var clients sync.WaitGroup
	for i := range sessions {
		clients.Go(func() {
			turns <- struct{}{}
			session, err := c.dial(web, mcpTo{path: "/mcp/agents/" + agent, version: versions[i%len(versions)],
				options: &sdk.ClientOptions{ResourceListChangedHandler: func(context.Context,
					*sdk.ResourceListChangedRequest) {
					notified <- i
				}}})
			<-turns
			if err != nil {
				errs <- fmt.Errorf("client %d: %w", i, err)
				return
			}
			turns <- struct{}{}
			got, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "grep_files",
				Arguments: map[string]any{"pattern": "moon"}})
			<-turns
			if err != nil || got.IsError {
				errs <- fmt.Errorf("client %d: %v, %w", i, got, err)
			}
		})
	}
	clients.Wait()
	close(errs)
	for err := range errs {
		t.Error(err)
	}
	c.must("PATCH", "/v1/agents/"+agent+"/folders/attach/"+c.made("/v1/folders", `{"name":"news"}`), "")
	clientsTold := map[int]bool{}
	for deadline := time.After(patience); len(clientsTold) < sessions; {
		select {
		case i := <-notified:
			clientsTold[i] = true
		case <-deadline:
			t.Fatalf("%d of %d clients are told of a change", len(clientsTold), sessions)
		}
	}
}

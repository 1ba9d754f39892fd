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

// Many sessions at once each work, and are told of a change: with the largest scale there are 1,000, beside 500 clients
// without one.
func TestManySessionsOverMCP(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent, web := c.mcpAgent()
	const atOnce = 20
	most := scale.Of(99, 300)
	turns := make(chan struct{}, atOnce)
	told := make(chan int, 100*most)
	errs := make(chan error, most)
	var clients sync.WaitGroup
	for i := range most {
		clients.Go(func() {
			turns <- struct{}{}
			session, err := c.dial(web, mcpTo{path: "/mcp/agents/" + agent, version: versions[i%len(versions)],
				options: &sdk.ClientOptions{ResourceListChangedHandler: func(context.Context,
					*sdk.ResourceListChangedRequest) {
					told <- i
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
	for end := time.After(patience); len(clientsTold) < most; {
		select {
		case i := <-told:
			clientsTold[i] = true
		case <-end:
			t.Fatalf("%d of %d clients are told of a change", len(clientsTold), most)
		}
	}
}

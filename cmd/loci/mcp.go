package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loci-memory/loci/server/mcp"
	"github.com/loci-memory/loci/server/rest"
)

// mcpCmd serves an agent's memory over MCP on standard input and output: the memory of a running server or, with
// --home, of a server that it starts.
type mcpCmd struct {
	remote
	Agent string `type:"agent" env:"LOCI_AGENT" help:"Name or ID of the agent; not needed with a key for one, or --home."`
	Tools string `help:"The tools to show: names and groups, with commas; all of the agent's if it is left out."`
	Home  string `help:"Serve the private Postgres in this directory; no server may be running on it."`
}

func (c mcpCmd) Run(ctx context.Context, s streams) error {
	if c.Home == "" {
		return c.forward(ctx, s)
	}
	return c.withServer(ctx, s, func(ctx context.Context, addr string) error {
		local := c
		local.Addr = addr
		if local.Agent == "" {
			agent, err := local.ownAgent(ctx)
			if err != nil {
				return err
			}
			local.Agent = agent
		}
		return local.forward(ctx, s)
	})
}

// forward serves the client with the answers of the server.
func (c mcpCmd) forward(ctx context.Context, s streams) error {
	if err := c.check(); err != nil {
		return err
	}
	endpoint := serverURL(c.Addr) + "/mcp"
	if c.Agent != "" {
		agent, err := c.agentID(ctx, c.Agent)
		if err != nil {
			return err
		}
		endpoint += "/agents/" + url.PathEscape(agent)
	}
	if c.Tools != "" {
		endpoint += "?tools=" + url.QueryEscape(c.Tools)
	}
	r := mcp.Remote{URL: endpoint, Client: &http.Client{Transport: withKey{string(c.APIKey)}}, Version: version()}
	client := mcp.NewLines(s.in, s.out, rest.Fault)
	err := r.Forward(ctx, &sdk.IOTransport{Reader: client, Writer: client})
	if errors.Is(err, io.EOF) || errors.Is(err, context.Canceled) {
		err = nil // the client is gone, or a signal came
	}
	return err
}

// withKey sends a key with each request. It turns refusals into errors with the server's sentence.
type withKey struct{ key string }

// RoundTrip implements http.RoundTripper.
func (k withKey) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if k.key != "" {
		r.Header.Set("Authorization", "Bearer "+k.key)
	}
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil || res.StatusCode < http.StatusBadRequest ||
		res.StatusCode == http.StatusNotFound && r.Header.Get("Mcp-Session-Id") != "" {
		return res, err
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err = errors.Join(err, res.Body.Close()); err != nil {
		return nil, err
	}
	if strings.Contains(string(text), `"jsonrpc"`) || r.Method != http.MethodPost {
		res.Body = io.NopCloser(bytes.NewReader(text))
		return res, nil
	}
	return nil, refusal(res.StatusCode, text)
}

// ownAgent returns the server's only agent. It creates one if there is none.
func (c mcpCmd) ownAgent(ctx context.Context) (string, error) {
	var list []struct{ ID string }
	if err := c.get(ctx, "/v1/agents?limit=2", &list); err != nil {
		return "", err
	}
	switch len(list) {
	case 1:
		return list[0].ID, nil
	case 0:
		var created struct{ ID string }
		err := c.call(ctx, "/v1/agents", strings.NewReader(`{"name":"memory","tool_set":"all",
			"memory_blocks":[{"label":"human","value":""},{"label":"persona","value":""}]}`), "application/json", &created)
		return created.ID, err
	}
	return "", errors.New("there are several agents: name one with --agent")
}

// withServer runs a server on the private Postgres in c.Home while use works with it. The server logs to standard
// error.
func (c mcpCmd) withServer(ctx context.Context, s streams, use func(ctx context.Context, addr string) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	output, writer := io.Pipe()
	exited := make(chan error, 1)
	go func() {
		code := run(ctx, []string{"serve", "--home", c.Home, "--addr", "127.0.0.1:0", "--log-level", "warn",
			"--database-url", "", "--database-owner-url", "", "--metrics-addr", "", "--api-key", ""}, writer, s.err)
		_ = writer.Close() // the error is always nil
		if code != 0 {
			exited <- fmt.Errorf("the server of %s ended with the status %d; what it said is above", c.Home, code)
		}
		close(exited)
	}()
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		return errors.Join(<-exited, ctx.Err())
	}
	_, addr, _ := strings.Cut(strings.TrimSpace(line), " serves ")
	err = use(ctx, addr)
	stop()
	return errors.Join(err, <-exited)
}

package mcp

import (
	"context"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// MaxBodyBytes limits a message of a client.
const MaxBodyBytes = 4 << 20

// private lets no cache keep an answer.
func private(_ context.Context, _ sdk.Request, c *sdk.Cacheable) {
	c.TTLMs, c.CacheScope = 0, "private"
}

// The headers of MCP's HTTP transport.
const (
	sessionHeader = "Mcp-Session-Id"
	versionHeader = "Mcp-Protocol-Version"
	MethodHeader  = "Mcp-Method"
	nameHeader    = "Mcp-Name"

	lastEventHeader = "Last-Event-ID"
)

// Listen is the method of a message that waits for changes.
const Listen = "subscriptions/listen"

// firstStateless is the first version of the protocol without sessions.
const firstStateless = "2026-07-28"

// cancelled is the method of a notification that cancels a request.
const cancelled = "notifications/cancelled"

// callHeader is a header that the server adds: the names of the requests in the body. A client's own is dropped.
const callHeader = "Loci-Call"

// callTool is the method that calls a tool, and argumentsPlace where its message has the arguments.
const (
	callTool       = "tools/call"
	argumentsPlace = "params.arguments"
)

// uncached lets no cache keep an answer, which is one agent's and may change at any time.
var uncached = sdk.Cacheable{CacheScope: "private"}

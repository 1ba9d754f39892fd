package mcp

import (
	"context"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// MaxBodyBytes bounds the body of a client's message.
const MaxBodyBytes = 4 << 20

// private forbids caches to keep an answer.
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

// firstStateless is the first protocol version without sessions.
const firstStateless = "2026-07-28"

// cancelled is the method of the notification that cancels a request.
const cancelled = "notifications/cancelled"

// callHeader is a header that the server itself adds: the names of the requests in the body. A client's header of that
// name is dropped.
const callHeader = "Loci-Call"

// callTool is the method for tool calls; argumentsPlace is where such a message holds the arguments.
const (
	callTool       = "tools/call"
	argumentsPlace = "params.arguments"
)

// uncached forbids caches to keep an answer: it belongs to one agent, and may change at any time.
var uncached = sdk.Cacheable{CacheScope: "private"}

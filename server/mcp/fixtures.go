package mcp

import (
	"context"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Fixtures replace an agent's memory in the protocol's conformance suite.
type Fixtures struct {
	Capabilities *sdk.ServerCapabilities
	Register     func(*sdk.Server)
	Complete     func(context.Context, *sdk.CompleteRequest) (*sdk.CompleteResult, error)
}

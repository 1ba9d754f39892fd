package mcp

import (
	"context"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Fixtures are what the protocol's conformance suite asks a server for, in place of an agent's memory.
type Fixtures struct {
	Capabilities *sdk.ServerCapabilities
	Register     func(*sdk.Server)
	Complete     func(context.Context, *sdk.CompleteRequest) (*sdk.CompleteResult, error)
}

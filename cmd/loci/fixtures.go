//go:build !conformance

package main

import "github.com/loci-memory/loci/server/mcp"

// fixtures returns nil. Only the build for MCP's conformance suite has fixtures.
func fixtures() *mcp.Fixtures { return nil }

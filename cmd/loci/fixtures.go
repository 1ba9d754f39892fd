//go:build !conformance

package main

import "github.com/loci-memory/loci/server/mcp"

// fixtures are none: only the build for MCP's conformance suite has some.
func fixtures() *mcp.Fixtures { return nil }

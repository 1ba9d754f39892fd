package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/loci-memory/loci/db"
)

// problem returns the error that a client sees for err.
func (s *Server) problem(ctx context.Context, err error) error {
	if known, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return known
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return errCancelled
	}
	status, sentence := s.Explain(ctx, err)
	code := int64(jsonrpc.CodeInvalidParams)
	if status >= http.StatusInternalServerError {
		code = jsonrpc.CodeInternalError
	}
	return &jsonrpc.Error{Code: code, Message: sentence}
}

// notFound returns the error for a resource that cannot be read. If it does not exist, or the URI names another agent,
// the client sees that there is no such resource.
func (s *Server) notFound(ctx context.Context, uri string, err error) error {
	if errors.Is(err, db.ErrNotFound) || errors.Is(err, db.ErrInvalid) {
		return noResource(ctx, uri)
	}
	return s.problem(ctx, err)
}

// maxURIBytes is the longest URI that an error repeats.
const maxURIBytes = 2_000

// codeNoResource is the error code for an unknown resource in protocol versions before firstStateless.
const codeNoResource = -32002

// noResource is the error for an unknown resource, with the code of the message's protocol version. The SDK's own error
// contains broken JSON for some URIs.
func noResource(ctx context.Context, uri string) error {
	code := int64(codeNoResource)
	if callerOf(ctx).version >= firstStateless {
		code = jsonrpc.CodeInvalidParams
	}
	data, err := json.Marshal(map[string]string{"uri": uri})
	if err != nil || len(uri) > maxURIBytes {
		data = nil
	}
	return &jsonrpc.Error{Code: code, Message: "Resource not found", Data: data}
}

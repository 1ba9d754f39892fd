package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/loci-memory/loci/db"
)

// problem returns an error as a client sees it.
func (s *Server) problem(ctx context.Context, err error) error {
	if shown, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return shown
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

// notFound returns the error of a resource, also of one whose URI says that it is another agent's.
func (s *Server) notFound(ctx context.Context, uri string, err error) error {
	if errors.Is(err, db.ErrNotFound) || errors.Is(err, db.ErrInvalid) {
		return noResource(ctx, uri)
	}
	return s.problem(ctx, err)
}

// maxURIBytes bounds the URIs that an error repeats.
const maxURIBytes = 2_000

// codeNoResource is the error code of an unknown resource in the versions of the protocol before firstStateless.
const codeNoResource = -32002

// noResource is the error of an unknown resource, with the code of the message's version. The SDK's own breaks the JSON
// of some URIs.
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

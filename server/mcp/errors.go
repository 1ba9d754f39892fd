package mcp

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

func wrong(format string, args ...any) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf(format, args...)}
}

// isRefusal reports whether an error is that of a resource that cannot be followed.
func isRefusal(err error) bool {
	of, ok := errors.AsType[*jsonrpc.Error](err)
	return ok && of.Code != jsonrpc.CodeInternalError && of.Message != tooManyFollowed
}

// errCancelled is the error of a request that its client cancelled. It is not sent: a client that cancels a request
// wants no answer.
var errCancelled = &jsonrpc.Error{Code: -32800, Message: "the request was cancelled"}

// cancelledMarks are in the answers to cancelled requests, and in no text of another: there the quotes are escaped. The
// SDK has no code for a request that was cancelled before it came to us.
var cancelledMarks = [][]byte{[]byte(`"error":{"code":-32800,`),
	[]byte(`"error":{"code":0,"message":"context canceled"}`)}

// isCancelled reports whether an answer is that to a cancelled request.
func isCancelled(answer []byte) bool {
	return slices.ContainsFunc(cancelledMarks, func(mark []byte) bool { return bytes.Contains(answer, mark) })
}

// maxFollowed bounds the resources that the sessions of a hub follow.
const maxFollowed = 1000

// tooManyFollowed is the error of a subscription beyond maxFollowed.
const tooManyFollowed = "the clients of a key follow at most 1,000 resources of an agent; unsubscribe from some, or " +
	"name fewer"

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

// isRefusal reports whether an error says that a resource cannot be followed.
func isRefusal(err error) bool {
	of, ok := errors.AsType[*jsonrpc.Error](err)
	return ok && of.Code != jsonrpc.CodeInternalError && of.Message != tooManyFollowed
}

// errCancelled is the error of a request that its client cancelled. It is never sent, because such a client wants no
// answer.
var errCancelled = &jsonrpc.Error{Code: -32800, Message: "the request was cancelled"}

// cancelledMarks occur in answers to cancelled requests, and in no other answer: inside of texts the quotes are
// escaped. The SDK gives no code to a request that was cancelled before it reached us.
var cancelledMarks = [][]byte{[]byte(`"error":{"code":-32800,`),
	[]byte(`"error":{"code":0,"message":"context canceled"}`)}

// isCancelled reports whether an answer belongs to a cancelled request.
func isCancelled(answer []byte) bool {
	return slices.ContainsFunc(cancelledMarks, func(mark []byte) bool { return bytes.Contains(answer, mark) })
}

// maxFollowed bounds how many resources the sessions of a hub follow.
const maxFollowed = 1000

// tooManyFollowed is the error of a subscription beyond maxFollowed.
const tooManyFollowed = "the clients of a key follow at most 1,000 resources of an agent; unsubscribe from some, or " +
	"name fewer"

package mcp

import (
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// pageSize is the most items of a page of a list.
const pageSize = 100

// cursor is a place in the lists of an agent: one of several, and the item after which a page begins.
type cursor struct {
	list  int
	after string
}

// cursorScope is what a cursor is for: a list of an agent.
func cursorScope(c caller, list string) string { return list + " " + c.AgentID }

// sumBytes is how much of a digest a cursor begins with, by which others than the server gave are known.
const sumBytes = 8

// in returns the cursor as a client is given it.
func (c cursor) in(scope string) string {
	text := strconv.Itoa(c.list) + " " + c.after
	sum := sha256.Sum256([]byte(scope + " " + text))
	return base64.RawURLEncoding.EncodeToString(append(sum[:sumBytes], text...))
}

// parseCursor reads a cursor of a scope with a number of lists; the first place if it is empty.
func parseCursor(text, scope string, lists int) (c cursor, err error) {
	if text == "" {
		return c, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil && len(raw) > sumBytes {
		var list string
		list, c.after, _ = strings.Cut(string(raw[sumBytes:]), " ")
		c.list, err = strconv.Atoi(list)
	}
	if err != nil || c.list < 0 || c.list >= lists || c.in(scope) != text {
		return cursor{}, errCursor
	}
	return c, nil
}

var errCursor = &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams,
	Message: "cursor: it is none that this server gave; begin the list again without it"}

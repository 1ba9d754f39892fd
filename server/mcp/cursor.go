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

// cursor is a place in several lists of an agent: the number of a list, and the item after which the next page begins.
type cursor struct {
	list  int
	after string
}

// cursorScope names what a cursor belongs to: one agent and its list.
func cursorScope(c caller, list string) string { return list + " " + c.AgentID }

// sumBytes is how many bytes of a digest begin a cursor. They prove that this server made the cursor.
const sumBytes = 8

// in encodes the cursor for a client.
func (c cursor) in(scope string) string {
	text := strconv.Itoa(c.list) + " " + c.after
	sum := sha256.Sum256([]byte(scope + " " + text))
	return base64.RawURLEncoding.EncodeToString(append(sum[:sumBytes], text...))
}

// parseCursor decodes a cursor. lists is the number of lists in the scope. An empty text means the first place.
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

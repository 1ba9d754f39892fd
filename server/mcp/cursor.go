package mcp

import (
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

func (c cursor) String() string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.Itoa(c.list) + " " + c.after))
}

// parseCursor reads a cursor of a number of lists; the first place if it is empty.
func parseCursor(text string, lists int) (c cursor, err error) {
	if text == "" {
		return c, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		var list string
		list, c.after, _ = strings.Cut(string(raw), " ")
		c.list, err = strconv.Atoi(list)
	}
	if err != nil || c.list < 0 || c.list >= lists {
		return c, errCursor
	}
	return c, nil
}

var errCursor = &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams,
	Message: "cursor: it is none that this server gave; begin the list again without it"}

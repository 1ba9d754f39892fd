package tool

import (
	"encoding/json"

	"github.com/loci-memory/loci/files"
)

// What the tests of this package see of it beside its API: the pure halves of the tools, from arguments to queries and from results to
// words.
var (
	OpenText   = openText
	GrepText   = grepText
	SearchText = searchText
	CloseText  = closeText
	Capped     = capped
)

// Arguments are the names of a tool's arguments, from its struct.
func (t Tool) Arguments() []string { return t.arguments }

// RequestArguments are those of an item of file_requests.
func RequestArguments() []string { return argumentsOf[fileRequest]() }

// Opens is what open_files understands of arguments.
type Opens struct {
	Requests                 []files.OpenRequest
	CloseOthers, WithContent bool
}

func ReadOpen(args string) (Opens, error) {
	var a openArgs
	if err := decode("open_files", json.RawMessage(args), &a); err != nil {
		return Opens{}, err
	}
	requests, err := openRequests(a.FileRequests)
	return Opens{requests, bool(a.CloseAllOthers), bool(a.IncludeContent)}, err
}

func ReadGrep(args string) (files.GrepQuery, error) {
	var a grepArgs
	if err := decode("grep_files", json.RawMessage(args), &a); err != nil {
		return files.GrepQuery{}, err
	}
	return a.query()
}

func ReadSearch(args string) (files.Query, error) {
	var a searchArgs
	if err := decode("semantic_search_files", json.RawMessage(args), &a); err != nil {
		return files.Query{}, err
	}
	return a.query()
}

func ReadClose(args string) (names []string, all bool, err error) {
	var a closeArgs
	err = decode("close_files", json.RawMessage(args), &a)
	return plain(a.FileNames), bool(a.All), err
}

// ListText shows a listing for the query of its arguments.
func ListText(pattern, folder string, offset, limit int, l files.Listing) string {
	return listText(listQuery{pattern, folder, offset, limit}, l)
}

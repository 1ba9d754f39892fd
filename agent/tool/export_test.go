package tool

import (
	"encoding/json"
	"time"

	"github.com/loci-memory/loci/archival"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/recall"
)

// Parts of this package that only its tests use: functions that turn arguments into queries and results into text.
var (
	CloseText = closeText
	Capped    = capped
)

// OpenText is openText without the bounds of a policy.
func OpenText(o files.Opening, content bool) string { return openText(o, content, nil, MaxChars) }

// GrepText and SearchText write results for a model that has every tool.
func GrepText(q files.GrepQuery, r files.GrepResult) string {
	return grepText(q, r, nil, nil, MaxChars)
}

func SearchText(q files.Query, r files.Results) string { return searchText(q, r, nil, MaxChars) }

// ExpandText writes a part of a text, or the lines that match a pattern.
func ExpandText(pattern string, limit int, e recall.Expansion) string {
	return expandText(pattern, limit, e, MaxChars)
}

// Arguments returns the names of a tool's arguments, read from its struct.
func (t Tool) Arguments() []string { return t.arguments }

// RequestArguments returns the names of the arguments of one item of file_requests.
func RequestArguments() []string { return argumentsOf[fileRequest]() }

// Opens is what open_files reads from its arguments.
type Opens struct {
	Requests                 []files.OpenRequest
	CloseOthers, WithContent bool
}

func ReadOpen(args string) (Opens, error) {
	var a openArgs
	if err := decode("open_files", json.RawMessage(args), &a); err != nil {
		return Opens{}, err
	}
	requests, err := openRequests(a.requested(), true)
	return Opens{requests, bool(a.CloseAllOthers), bool(deref(a.IncludeContent, false))}, err
}

func ReadGrep(args string) (files.GrepQuery, error) {
	var a grepArgs
	if err := decode("grep_files", json.RawMessage(args), &a); err != nil {
		return files.GrepQuery{}, err
	}
	return a.query(unmarked(string(a.Pattern))), nil
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

// ListText writes a listing for the query that the arguments ask for.
func ListText(pattern, folder string, offset, limit int, l files.Listing) string {
	q := files.ListQuery{Include: pattern, Folder: folder, Offset: offset, Limit: limit}
	return listText(listQuery{q}, l, MaxChars)
}

// ReadMessages returns the query that conversation_search reads from its arguments.
func ReadMessages(args string, zone *time.Location) (recall.Query, error) {
	var a conversationArgs
	if err := decode("conversation_search", json.RawMessage(args), &a); err != nil {
		return recall.Query{}, err
	}
	return a.query(zone)
}

// MessagesText writes what a search with these arguments found, as read at the given time in its zone.
func MessagesText(args string, r recall.Results, now time.Time) (string, error) {
	var a conversationArgs
	if err := decode("conversation_search", json.RawMessage(args), &a); err != nil {
		return "", err
	}
	q, err := a.query(now.Location())
	return messagesText(q, a, r, clock{now, now.Location()}, MaxChars), err
}

// AroundText writes the messages around a message, as read at the given time in its zone.
func AroundText(before, after int, s recall.Neighbors, now time.Time) string {
	return aroundText(nearby{before, after, clock{now, now.Location()}, nil}, s, MaxChars)
}

// PassagesText writes what archival_memory_search found with these arguments, as read at the given time in its zone.
func PassagesText(args string, r archival.Results, now time.Time) (string, error) {
	var a archivalSearchArgs
	if err := decode("archival_memory_search", json.RawMessage(args), &a); err != nil {
		return "", err
	}
	at := clock{now, now.Location()}
	q, err := a.query(at)
	return passagesText(q, r, at, MaxChars), err
}

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/loci-memory/loci/server/rest"
)

// asked says how a command prints what it was asked for.
type asked struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// printJSON prints a value as JSON.
func printJSON(s streams, value any) error {
	e := json.NewEncoder(s.out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(value)
}

// printTable prints rows below their titles. Characters that would move a terminal's cursor are replaced: the texts may
// be anyone's.
func printTable(s streams, titles string, rows [][]string) error {
	w := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, strings.Join(strings.Split(titles, " | "), "\t"))
	for _, row := range rows {
		shown := make([]string, len(row))
		for i, cell := range row {
			shown[i] = dash(printable(cell))
		}
		fmt.Fprintln(w, strings.Join(shown, "\t"))
	}
	return w.Flush()
}

// printable returns a text in which what cannot be printed in one line is replaced.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, text)
}

// listed is an item of a list over REST: what the server sent, and what is shown of it.
type listed[T any] struct {
	raw   json.RawMessage
	shown T
}

// listAll returns all items of a list of a running server, the oldest first.
func listAll[T any](ctx context.Context, r remote, path string, filter url.Values) (all []listed[T], err error) {
	filter.Set("order", rest.OldestFirst)
	filter.Set("limit", fmt.Sprint(rest.MaxPage))
	for {
		var page []json.RawMessage
		if err := r.get(ctx, path+"?"+filter.Encode(), &page); err != nil {
			return nil, err
		}
		var last struct{ ID string }
		for _, raw := range page {
			item := listed[T]{raw: raw}
			if err := cmp.Or(decode(raw, &last), decode(raw, &item.shown)); err != nil {
				return nil, err
			}
			all = append(all, item)
		}
		if len(page) < rest.MaxPage {
			return all, nil
		}
		filter.Set("after", last.ID)
	}
}

// printList prints a list as JSON, as the server sent it, or as a table.
func printList[T any](s streams, a asked, all []listed[T], titles string, row func(T) []string) error {
	if a.JSON {
		items := make([]json.RawMessage, len(all))
		for i, item := range all {
			items[i] = item.raw
		}
		return printJSON(s, items)
	}
	rows := make([][]string, len(all))
	for i, item := range all {
		rows[i] = row(item.shown)
	}
	return printTable(s, titles, rows)
}

// printFields prints an object of numbers as JSON, or as a table with a row for each field, "none" for null.
func printFields(s streams, a asked, titles string, object any) error {
	if a.JSON {
		return printJSON(s, object)
	}
	text, err := json.Marshal(object)
	if err != nil {
		return err
	}
	var fields map[string]*json.Number
	if err := json.Unmarshal(text, &fields); err != nil {
		return err
	}
	var rows [][]string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		shown := "none"
		if n := fields[name]; n != nil {
			shown = n.String()
		}
		rows = append(rows, []string{name, shown})
	}
	return printTable(s, titles, rows)
}

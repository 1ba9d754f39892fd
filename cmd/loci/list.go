package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
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

// listAll returns all items of a list of a running server, the oldest first unless the filter has another order. Each
// page begins after the last item of the page before. If that item is gone meanwhile the page is empty, or not found,
// and the list goes on after the newest of those before it that is still there.
func listAll[T any](ctx context.Context, r remote, path string, filter url.Values) (all []listed[T], err error) {
	filter.Set("order", cmp.Or(filter.Get("order"), rest.OldestFirst))
	filter.Set("limit", fmt.Sprint(rest.MaxPage))
	seen, places := map[string]bool{}, []string{""} // the page after the last of these is next
	for len(places) > 0 {
		var page []json.RawMessage
		filter.Set("after", places[len(places)-1])
		err := r.get(ctx, path+"?"+filter.Encode(), &page)
		no, answered := errors.AsType[*refusedRequest](err)
		isGone := answered && no.status == http.StatusNotFound && filter.Get("after") != ""
		if err != nil && !isGone {
			return nil, err
		}
		if len(page) == 0 {
			places = places[:len(places)-1]
		}
		var last struct{ ID string }
		known := len(all)
		for _, raw := range page {
			item := listed[T]{raw: raw}
			if err := cmp.Or(decode(raw, &last), decode(raw, &item.shown)); err != nil {
				return nil, err
			}
			if !seen[last.ID] {
				seen[last.ID] = true
				places, all = append(places, last.ID), append(all, item)
			}
		}
		if len(page) > 0 && (len(page) < rest.MaxPage || len(all) == known) {
			break
		}
	}
	return all, nil
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

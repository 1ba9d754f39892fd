package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/loci-memory/loci/server/rest"
)

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

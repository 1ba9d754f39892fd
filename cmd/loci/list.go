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

// listed is an item of a list over REST: as the server sent it, and decoded.
type listed[T any] struct {
	raw   json.RawMessage
	shown T
}

// listAll returns all items of a list of a running server, the oldest first unless the filter orders otherwise. Each
// page begins after the last item of the page before. If that item was deleted meanwhile, the next page is empty or not
// found; then listAll continues after the newest earlier item that still exists.
func listAll[T any](ctx context.Context, r remote, path string, filter url.Values) (all []listed[T], err error) {
	filter.Set("order", cmp.Or(filter.Get("order"), rest.OldestFirst))
	filter.Set("limit", fmt.Sprint(rest.MaxPage))
	ids, places := map[string]bool{}, []string{""} // the next page begins after the last of these
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
		before := len(all)
		for _, raw := range page {
			item := listed[T]{raw: raw}
			if err := cmp.Or(decode(raw, &last), decode(raw, &item.shown)); err != nil {
				return nil, err
			}
			if !ids[last.ID] {
				ids[last.ID] = true
				places, all = append(places, last.ID), append(all, item)
			}
		}
		if len(page) > 0 && (len(page) < rest.MaxPage || len(all) == before) {
			break
		}
	}
	return all, nil
}

// printList prints a list as a table, or with --json as the server sent it.
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

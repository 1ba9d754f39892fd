package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/tenant/erase"
)

// eraseCmd erases texts, or the text of a message, from everything that an organization stores.
type eraseCmd struct {
	remote
	asked
	Texts   string `arg:"" optional:"" help:"File with a text on each line; - is the standard input. All spellings count."`
	Message string `help:"ID of a message to erase, in place of texts."`
	Whole   bool   `name:"whole-words" help:"An occurrence begins and ends with a word: Ann is not in Annex."`
	Reason  string `help:"Why; it is kept without the texts."`
	Yes     bool   `help:"Erase without asking."`
	Dry     bool   `name:"dry-run" help:"Only count the occurrences. After an erasure it is the check that none is left."`
}

// errLeft says that not everything was erased.
var errLeft = errors.New("not everything could be erased; the report names what is left")

// Run waits until the erasure has ended.
func (c eraseCmd) Run(ctx context.Context, s streams) error {
	if c.Texts == "" && c.Message == "" {
		return settingError{errors.New("there is nothing to erase: name a file of texts, - for the standard input, or give " +
			"--message")}
	}
	body, err := c.body(ctx, s)
	if err != nil {
		return err
	}
	if c.Dry {
		return c.preview(ctx, s, body)
	}
	if !c.Yes {
		if err := confirm(s, c.what()); err != nil {
			return err
		}
	}
	e, err := c.erase(ctx, body)
	if err != nil {
		return err
	}
	return printErasure(s, c.asked, e)
}

// preview prints how often the texts occur.
func (c eraseCmd) preview(ctx context.Context, s streams, body []byte) error {
	var raw json.RawMessage
	var r erase.Report
	err := c.call(ctx, "/v1/erasures/preview", bytes.NewReader(body), "application/json", &raw)
	if err = cmp.Or(err, decode(raw, &r)); err != nil {
		return err
	}
	if c.JSON {
		return printJSON(s, raw)
	}
	return printReport(s.out, r)
}

// what describes what is erased.
func (c eraseCmd) what() string {
	if c.Message != "" {
		return "the text of message " + c.Message + " from all that the organization stores"
	}
	return "the texts in " + c.Texts + " from all that the organization stores"
}

// erase begins an erasure, waits for its end, and returns the result.
func (c eraseCmd) erase(ctx context.Context, body []byte) (e listed[erase.Erasure], err error) {
	err = c.call(ctx, "/v1/erasures", bytes.NewReader(body), "application/json", &e.raw)
	if err = cmp.Or(err, decode(e.raw, &e.shown)); err != nil {
		return e, err
	}
	return c.ended(ctx, e)
}

// body returns the body of the request. Texts come from a file, so that they do not end up in a shell's history.
func (c eraseCmd) body(ctx context.Context, s streams) ([]byte, error) {
	request := map[string]any{"whole_words": c.Whole}
	if c.Message != "" {
		request["message_id"] = c.Message
	}
	if c.Reason != "" && !c.Dry {
		request["reason"] = c.Reason
	}
	if c.Texts != "" {
		raw, err := readAll(ctx, s, c.Texts)
		if err != nil {
			return nil, err
		}
		texts := slices.DeleteFunc(strings.Split(string(raw), "\n"),
			func(t string) bool { return strings.TrimSpace(t) == "" })
		request["texts"] = texts
	}
	return json.Marshal(request)
}

func printReport(out io.Writer, r erase.Report) error {
	for _, table := range slices.Sorted(maps.Keys(r.Found)) {
		fmt.Fprintf(out, "%6d in %s\n", r.Found[table], table)
	}
	for _, column := range slices.Sorted(maps.Keys(r.Left)) {
		fmt.Fprintf(out, "%6d left in %s\n", r.Left[column], column)
	}
	for _, p := range r.Places {
		fmt.Fprintf(out, "       %s: %s\n", p.Where, cmp.Or(p.Of, "a job"))
	}
	for _, kind := range slices.Sorted(maps.Keys(r.AtWork)) {
		if kind == "stopped_servers" {
			fmt.Fprintln(out, "       the server that worked on it has stopped: another one goes on soon")
			continue
		}
		if r.AtWork[kind] == 1 {
			fmt.Fprintf(out, "     1 %s began before and still works: it may write it again\n", strings.TrimSuffix(kind, "s"))
			continue
		}
		fmt.Fprintf(out, "%6d %s began before and still work: they may write it again\n", r.AtWork[kind], kind)
	}
	for _, id := range r.Converted {
		fmt.Fprintf(out, "%s keeps its text only; its original bytes are deleted\n", id)
	}
	for _, id := range r.UnreadIDs {
		fmt.Fprintf(out, "%s has no text that could be searched: look at it, and delete it if it must go\n", id)
	}
	for _, sentence := range r.Remains {
		fmt.Fprintln(out, sentence)
	}
	_, err := fmt.Fprintf(out, "%d summaries made again, %d stored prompts deleted, %d files without a text\n",
		r.Summaries,
		r.Prompts, r.Unread)
	return err
}

// ended waits for the end of an erasure.
func (r remote) ended(ctx context.Context, e listed[erase.Erasure]) (listed[erase.Erasure], error) {
	for e.shown.Status == erase.Running {
		if !db.Pause(ctx, time.Second) {
			return e, ctx.Err()
		}
		var latest listed[erase.Erasure] // a new value, so that nothing of an earlier report remains
		err := r.get(ctx, "/v1/erasures/"+url.PathEscape(e.shown.ID), &latest.raw)
		if err = cmp.Or(err, decode(latest.raw, &latest.shown)); err != nil {
			return e, err
		}
		e = latest
	}
	return e, nil
}

// printErasure prints an erasure with its report. errLeft if it is incomplete.
func printErasure(s streams, a asked, e listed[erase.Erasure]) error {
	if a.JSON {
		if err := printJSON(s, e.raw); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(s.out, "%s: %s\n", e.shown.ID, e.shown.Status)
		if err := printReport(s.out, e.shown.Report); err != nil {
			return err
		}
	}
	if e.shown.Status == erase.Incomplete {
		return errLeft
	}
	return nil
}

package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
)

// streams are where a command writes.
type streams struct {
	out, err io.Writer
	in       io.Reader
}

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

// shownTime shows a time of a list to the second, in UTC; a dash for nil.
func shownTime(t *time.Time) string {
	if t == nil {
		return dash("")
	}
	return t.UTC().Format(time.DateTime)
}

func dash(text string) string { return cmp.Or(text, "-") }

// textOf returns a text that may be absent.
func textOf(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

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

// streams are the streams that a command reads and writes.
type streams struct {
	out, err io.Writer
	in       io.Reader
}

// asked holds the flag that selects the form of a command's output.
type asked struct {
	JSON bool `name:"json" help:"Print JSON."`
}

func printJSON(s streams, value any) error {
	e := json.NewEncoder(s.out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(value)
}

// printTable prints rows below their titles. It replaces characters that could move a terminal's cursor, because the
// texts may come from anyone.
func printTable(s streams, titles string, rows [][]string) error {
	w := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, strings.Join(strings.Split(titles, " | "), "\t"))
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = dash(printable(cell))
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	return w.Flush()
}

// printable returns a text with all characters replaced that cannot be printed on one line.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, text)
}

// printFields prints an object of numbers as JSON, or as a table with one row for each field; null is "none".
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
		value := "none"
		if n := fields[name]; n != nil {
			value = n.String()
		}
		rows = append(rows, []string{name, value})
	}
	return printTable(s, titles, rows)
}

// shownTime formats a time to the second, in UTC; a dash for nil.
func shownTime(t *time.Time) string {
	if t == nil {
		return dash("")
	}
	return t.UTC().Format(time.DateTime)
}

func dash(text string) string { return cmp.Or(text, "-") }

// textOf returns a text; "" if it is absent.
func textOf(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

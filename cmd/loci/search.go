package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/loci-memory/loci/embed/rank"
	memorysearch "github.com/loci-memory/loci/memory/search"
	"github.com/loci-memory/loci/server"
)

// searchCmd searches all memories of an agent.
type searchCmd struct {
	remote
	Query   string   `arg:"" help:"Words or a question."`
	Agent   string   `required:"" type:"agent" env:"LOCI_AGENT" help:"Name or ID of the agent."`
	Kinds   []string `name:"kind" help:"Memories to search, such as block or message; else all."`
	Limit   int      `default:"10" help:"The most hits, from 1 to 50."`
	Explain bool     `help:"Print how the hits were ranked."`
	JSON    bool     `name:"json" help:"Print the server's answer."`
}

func (c searchCmd) Run(ctx context.Context, s streams) error {
	values := url.Values{"query": {c.Query}, "limit": {strconv.Itoa(c.Limit)}, "kinds": c.Kinds}
	if c.Explain {
		values.Set("explain", "true")
	}
	agent, err := c.agentID(ctx, c.Agent)
	if err != nil {
		return err
	}
	var answer json.RawMessage
	target := fmt.Sprintf("/v1/agents/%s/memory-search?%s", url.PathEscape(agent), values.Encode())
	if err := c.get(ctx, target, &answer); err != nil {
		return err
	}
	var result server.MemorySearch
	if err := decode(answer, &result); err != nil {
		return err
	}
	if c.JSON {
		return printJSON(s, answer)
	}
	printFound(s.out, result)
	return printExplanations(s.out, result.Explanations)
}

// printFound prints hits, the best first.
func printFound(out io.Writer, result server.MemorySearch) {
	if len(result.Hits) == 0 {
		fmt.Fprintln(out, "Nothing was found.")
	}
	if result.SearchedFor != "" {
		fmt.Fprintf(out, "Searched for '%s'.\n", printable(result.SearchedFor))
	}
	for i, h := range result.Hits {
		head := fmt.Sprintf("%d. %.2f %s %s", i+1, h.Score, h.Kind, foundAt(h.Place))
		if h.Context {
			head += " (context)"
		}
		fmt.Fprintln(out, printable(head))
		for line := range strings.Lines(h.Text) {
			fmt.Fprintln(out, "   "+printable(strings.ReplaceAll(strings.TrimRight(line, "\r\n"), "\t", "    ")))
		}
		if h.Explanation != nil {
			fmt.Fprintln(out, "   "+explained(*h.Explanation))
		}
	}
	if result.Note != "" {
		fmt.Fprintln(out, result.Note)
	}
}

// foundAt says where a hit stands.
func foundAt(p memorysearch.FoundPlace) string {
	place := p.ID
	for _, name := range []string{p.Path, p.Label, p.Field} {
		if name != "" {
			place = name
		}
	}
	if p.FirstLine > 0 {
		place += fmt.Sprintf(" lines %d-%d", p.FirstLine, p.LastLine)
	}
	if p.Seq > 0 {
		place += fmt.Sprintf(" seq %d", p.Seq)
	}
	return place
}

// explained says in one line how a hit was ranked.
func explained(e rank.HitExplanation) string {
	var line strings.Builder
	fmt.Fprintf(&line, "words %.2f, meaning %.2f", e.Words, e.Meaning)
	for _, b := range e.Boosts {
		fmt.Fprintf(&line, ", %s %.2f", b.Name, b.Value)
	}
	if e.Rerank != nil {
		fmt.Fprintf(&line, ", reranker %.2f", *e.Rerank)
	}
	return line.String() + ", has " + strings.Join(e.Terms, " ")
}

// printExplanations prints how each memory ranked.
func printExplanations(out io.Writer, all map[memorysearch.Kind]*rank.Explanation) error {
	if len(all) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nMEMORY\tARM\tROWS\tBEST\tMILLISECONDS\tTERMS")
	for _, kind := range slices.Sorted(maps.Keys(all)) {
		e := all[kind]
		terms := make([]string, len(e.Terms))
		for i, t := range e.Terms {
			terms[i] = fmt.Sprintf("%s %.2f", t.Term, t.Weight)
		}
		for _, a := range e.Arms {
			fmt.Fprintf(w, "%s\t%s\t%d\t%.3f\t%.3f\t%s\n", kind, a.Arm, a.Rows, a.Best, a.Milliseconds,
				strings.Join(terms, ", "))
		}
		if r := e.Rerank; r != nil {
			fmt.Fprintf(w, "%s\treranker\t%d\t\t%.3f\t%s\n", kind, r.Rows, r.Milliseconds, cmp.Or(r.Note, r.Model))
		}
	}
	return w.Flush()
}

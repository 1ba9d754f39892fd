package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
)

// memoryCmd works on memory files of a running server.
type memoryCmd struct {
	List     memoryListCmd     `cmd:"" help:"List memory files."`
	Read     memoryReadCmd     `cmd:"" help:"Print the text of a memory file."`
	Write    memoryWriteCmd    `cmd:"" help:"Write a memory file."`
	Delete   memoryDeleteCmd   `cmd:"" help:"Delete a memory file, or a directory with all that is in it."`
	Compress memoryCompressCmd `cmd:"" help:"Turn a grown index into pointers and files: show the change, ask, apply it."`
}

type memoryCompressCmd struct {
	memoryTree
	Index string `type:"existingfile" help:"File whose text is compressed into the tree, in place of the tree's index."`
	Yes   bool   `help:"Apply the change without a question."`
}

// proposedFile is a file of a proposal.
type proposedFile struct {
	Path     string  `json:"path"`
	Content  string  `json:"content"`
	Expected *string `json:"expected_sha256"`
	Diff     string  `json:"diff,omitempty"`
}

func (c memoryCompressCmd) Run(ctx context.Context, s streams) error {
	tree, err := c.path(ctx)
	if err != nil {
		return err
	}
	request := map[string]string{}
	if c.Index != "" {
		text, err := readAll(ctx, s, c.Index)
		if err != nil {
			return err
		}
		request["content"] = string(text)
	}
	var p struct {
		How        string         `json:"how"`
		Why        string         `json:"why,omitempty"`
		CharsNow   int            `json:"chars_now"`
		CharsThen  int            `json:"chars_then"`
		LinesMoved int            `json:"lines_moved"`
		Files      []proposedFile `json:"files"`
	}
	if err := c.send(ctx, http.MethodPost, tree+"/compress", request, &p); err != nil {
		return err
	}
	shows := s.out
	if c.JSON {
		shows = s.err
	}
	for i, f := range p.Files {
		fmt.Fprintln(shows, f.Diff)
		p.Files[i].Diff = ""
	}
	if p.Why != "" {
		fmt.Fprintf(s.err, "No model sorted the lines: %s.\n", p.Why)
	}
	fmt.Fprintf(s.err, "%d lines move to files, by the %s; the index goes from %d to %d characters.\n", p.LinesMoved,
		p.How, p.CharsNow, p.CharsThen)
	if !c.Yes && !confirmed(s, "Apply this change?") {
		return errors.New("nothing was changed")
	}
	var result struct{ Paths, Notes []string }
	if err := c.send(ctx, http.MethodPut, tree+"/files", map[string]any{"files": p.Files}, &result); err != nil {
		return err
	}
	for _, note := range result.Notes {
		fmt.Fprintln(s.err, note)
	}
	fmt.Fprintf(s.err, "Wrote %d files.\n", len(result.Paths))
	if c.JSON {
		return printJSON(s, p)
	}
	return nil
}

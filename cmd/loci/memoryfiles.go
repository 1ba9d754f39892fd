package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/loci-memory/loci/memory/file"
)

// memoryTree holds the settings of commands on a memory tree.
type memoryTree struct {
	remote
	asked
	Of string `arg:"" type:"agent-or-tree" help:"Name or ID of the memory tree, or of an agent that has one."`
}

const memoriesRoot = "/memories"

// path returns the API path of the tree. *noTree if it is an agent's, which has none.
func (t memoryTree) path(ctx context.Context) (string, error) {
	id, err := t.agentOrTreeID(ctx, t.Of)
	if err != nil {
		return "", err
	}
	if agentForm.MatchString(id) {
		agent := "/v1/agents/" + url.PathEscape(id)
		if err := t.get(ctx, agent, new(named)); err != nil {
			return "", err
		}
		var attached named
		err := t.get(ctx, agent+"/memory-tree", &attached)
		if refused, ok := errors.AsType[*refusedRequest](err); ok && refused.status == http.StatusNotFound {
			return "", &noTree{agent, refused}
		}
		if err != nil {
			return "", err
		}
		id = attached.ID
	}
	return "/v1/memory-trees/" + url.PathEscape(id), nil
}

// noTree is the error for an agent without memory files.
type noTree struct {
	agent string // API path of the agent
	*refusedRequest
}

// pathOrNew is path, but gives an agent without a tree a new one.
func (t memoryTree) pathOrNew(ctx context.Context) (string, error) {
	path, err := t.path(ctx)
	lacking, ok := errors.AsType[*noTree](err)
	if !ok {
		return path, err
	}
	var tree named
	body := map[string]string{"name": t.Of + "'s memory files"}
	if err := t.send(ctx, http.MethodPost, "/v1/memory-trees", body, &tree); err != nil {
		return "", err
	}
	attach := lacking.agent + "/memory-trees/attach/" + url.PathEscape(tree.ID)
	return "/v1/memory-trees/" + url.PathEscape(tree.ID), t.send(ctx, http.MethodPatch, attach, nil, nil)
}

// ofFile returns the API path of a file's operations.
func (t memoryTree) ofFile(ctx context.Context, path string) (string, error) {
	tree, err := t.path(ctx)
	return tree + "/file?" + url.Values{"path": {memoryPath(path)}}.Encode(), err
}

// memoryPath returns the path of a memory file below /memories, which the command line may leave out.
func memoryPath(path string) string {
	if path == memoriesRoot || strings.HasPrefix(path, memoriesRoot+"/") {
		return path
	}
	return memoriesRoot + "/" + strings.TrimPrefix(path, "/")
}

type memoryListCmd struct{ memoryTree }

func (c memoryListCmd) Run(ctx context.Context, s streams) error {
	raw, all := json.RawMessage("[]"), []file.Entry{}
	tree, err := c.path(ctx)
	if _, none := errors.AsType[*noTree](err); !none {
		if err == nil {
			err = c.get(ctx, tree+"/files", &raw)
		}
		if err = cmp.Or(err, decode(raw, &all)); err != nil {
			return err
		}
	}
	if c.JSON {
		return printJSON(s, raw)
	}
	rows := make([][]string, len(all))
	for i, f := range all {
		rows[i] = []string{f.Path, fmt.Sprint(f.SizeBytes), shownTime(&f.UpdatedAt)}
	}
	return printTable(s, "PATH | BYTES | CHANGED", rows)
}

type memoryReadCmd struct {
	memoryTree
	Path string `arg:"" help:"Path of the file; /memories/ may be left out."`
}

func (c memoryReadCmd) Run(ctx context.Context, s streams) error {
	at, err := c.ofFile(ctx, c.Path)
	if err != nil {
		return err
	}
	var raw json.RawMessage
	var f file.File
	err = c.get(ctx, at, &raw)
	if err = cmp.Or(err, decode(raw, &f)); err != nil {
		return err
	}
	if c.JSON {
		return printJSON(s, raw)
	}
	_, err = fmt.Fprint(s.out, f.Content)
	return err
}

type memoryWriteCmd struct {
	memoryTree
	Path string `arg:"" help:"Path of the memory file; /memories/ may be left out."`
	From string `arg:"" optional:"" default:"-" help:"File with the text; - is the standard input."`
	SHA  string `name:"expected-sha256" help:"Write only if the memory file still has the text with this SHA-256."`
}

func (c memoryWriteCmd) Run(ctx context.Context, s streams) error {
	text, err := readAll(ctx, s, c.From)
	if err != nil {
		return err
	}
	tree, err := c.pathOrNew(ctx)
	if err != nil {
		return err
	}
	request := map[string]any{"path": memoryPath(c.Path), "content": string(text)}
	if c.SHA != "" {
		request["expected_sha256"] = c.SHA
	}
	var raw json.RawMessage
	var changed struct {
		Path  string   `json:"path"`
		Notes []string `json:"notes"`
	}
	err = c.send(ctx, http.MethodPut, tree+"/file", request, &raw)
	if err = cmp.Or(err, decode(raw, &changed)); err != nil {
		return err
	}
	for _, note := range changed.Notes {
		fmt.Fprintln(s.err, note)
	}
	if c.JSON {
		return printJSON(s, raw)
	}
	_, err = fmt.Fprintln(s.out, changed.Path)
	return err
}

type memoryDeleteCmd struct {
	memoryTree
	Path string `arg:"" help:"Path of the file or directory; /memories/ may be left out."`
	Yes  bool   `help:"Delete it without asking."`
}

func (c memoryDeleteCmd) Run(ctx context.Context, s streams) error {
	at, err := c.ofFile(ctx, c.Path)
	if err != nil {
		return err
	}
	if !c.Yes {
		if err := confirm(s, memoryPath(c.Path)); err != nil {
			return err
		}
	}
	var deleted struct {
		Paths []string `json:"paths"`
		Notes []string `json:"notes"`
	}
	if err := c.send(ctx, http.MethodDelete, at, nil, &deleted); err != nil {
		return err
	}
	if c.JSON {
		return printJSON(s, deleted)
	}
	var failed error
	for _, path := range deleted.Paths {
		_, err := fmt.Fprintln(s.out, path)
		failed = errors.Join(failed, err)
	}
	return failed
}

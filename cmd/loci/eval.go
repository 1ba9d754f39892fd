package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/loci-memory/loci/files"
	memorysearch "github.com/loci-memory/loci/memory/search"
	"github.com/loci-memory/loci/server"
)

// evalCmd measures how well a running server's searches find the answers to questions.
type evalCmd struct {
	remote
	asked
	Questions string `arg:"" help:"File of questions, a JSON object a line; - is the standard input."`
	Folder    string `xor:"searched" required:"" help:"Name or ID of the folder to search."`
	Archive   string `xor:"searched" required:"" help:"Name or ID of the archive to search."`
	Agent     string `xor:"searched" required:"" help:"Name or ID of the agent; all of its memories are searched."`
}

func (c evalCmd) Run(ctx context.Context, s streams) error {
	text, err := readAll(ctx, s, c.Questions)
	if err != nil {
		return err
	}
	questions, err := readQuestions(text)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Questions, err)
	}
	search, err := c.scope(ctx, questions)
	if err != nil {
		return err
	}
	result, err := evaluate(ctx, questions, search)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(s, result)
	}
	return result.print(s)
}

// scope returns a search in the folder, archive or agent that the command names. An error names a question that this
// search cannot answer.
func (c evalCmd) scope(ctx context.Context, questions []expected) (searcher, error) {
	for _, q := range questions {
		switch {
		case c.Folder != "" && q.Passage != "":
			return nil, fmt.Errorf("line %d: a folder has no passages: give file or text", q.line)
		case c.Archive != "" && q.File != "":
			return nil, fmt.Errorf("line %d: an archive has no files: give passage or text", q.line)
		}
	}
	switch {
	case c.Folder != "":
		return c.folderSearch(ctx, questions)
	case c.Archive != "":
		return c.archiveSearch(ctx)
	default:
		return c.agentSearch(ctx)
	}
}

func (c evalCmd) folderSearch(ctx context.Context, questions []expected) (searcher, error) {
	f, err := c.findFolder(ctx, c.Folder)
	if err != nil {
		return nil, err
	}
	all, err := listAll[files.File](ctx, c.remote, "/v1/folders/"+f.ID+"/files", url.Values{})
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, file := range all {
		names[file.shown.ID], names[file.shown.Name], names[f.Name+"/"+file.shown.Name] = true, true, true
	}
	for _, q := range questions {
		if q.File != "" && !names[q.File] {
			return nil, fmt.Errorf("line %d: the folder %q has no file %q: 'loci files list' shows them", q.line, f.Name,
				q.File)
		}
	}
	return func(ctx context.Context, question string, w way) (hits []foundText, meaning bool, err error) {
		var list []struct {
			FileID      string `json:"file_id"`
			FileName    string `json:"file_name"`
			Text        string `json:"text"`
			MeaningRank int    `json:"vector_rank"`
		}
		err = c.get(ctx, "/v1/folders/"+f.ID+"/search?"+w.values(question).Encode(), &list)
		for _, h := range list {
			_, name, _ := strings.Cut(h.FileName, "/")
			hits = append(hits, foundText{names: []string{h.FileID, h.FileName, name}, text: h.Text})
			meaning = meaning || h.MeaningRank > 0
		}
		return hits, meaning, err
	}, nil
}

func (c evalCmd) archiveSearch(ctx context.Context) (searcher, error) {
	id, err := c.archiveID(ctx, c.Archive)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, question string, w way) (hits []foundText, meaning bool, err error) {
		var list []struct {
			Passage  struct{ ID, Text string }
			Metadata struct {
				MeaningRank int `json:"vector_rank"`
			}
		}
		body := map[string]any{"query": question, "archive_id": id, "limit": evalDepth, "search_mode": w.mode}
		err = c.send(ctx, http.MethodPost, "/v1/passages/search?"+w.parameters().Encode(), body, &list)
		for _, h := range list {
			hits = append(hits, foundText{id: h.Passage.ID, text: h.Passage.Text})
			meaning = meaning || h.Metadata.MeaningRank > 0
		}
		return hits, meaning, err
	}, nil
}

func (c evalCmd) agentSearch(ctx context.Context) (searcher, error) {
	id, err := c.agentID(ctx, c.Agent)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, question string, w way) (hits []foundText, meaning bool, err error) {
		var result server.MemorySearch
		target := "/v1/agents/" + url.PathEscape(id) + "/memory-search?" + w.values(question).Encode()
		err = c.get(ctx, target, &result)
		for _, h := range result.Hits {
			hit := foundText{text: h.Text}
			switch h.Kind {
			case memorysearch.Passage:
				hit.id = h.Place.ID
			case memorysearch.File, memorysearch.MemoryFile:
				_, name, _ := strings.Cut(h.Place.Path, "/")
				hit.names = []string{h.Place.ID, h.Place.Path, name}
			}
			hits = append(hits, hit)
		}
		return hits, result.Ranking != "words", err
	}, nil
}

// archiveID returns the ID of an archive that is given by name or ID. It is an error if no archive or several archives
// have the name.
func (r remote) archiveID(ctx context.Context, nameOrID string) (string, error) {
	if archiveForm.MatchString(nameOrID) {
		return nameOrID, nil
	}
	var list []named
	query := url.Values{"name": {nameOrID}, "limit": {fmt.Sprint(maxNamesakes + 1)}}
	if err := r.get(ctx, "/v1/archives/?"+query.Encode(), &list); err != nil {
		return "", err
	}
	ids := make([]string, len(list))
	for i, a := range list {
		ids[i] = a.ID
	}
	return onlyOne(kind{"archive", "archives", "GET /v1/archives lists them"}, nameOrID, ids)
}

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/files/document"
	"github.com/loci-memory/loci/server"
)

// filesCmd works on the files of a running server.
type filesCmd struct {
	List    filesListCmd    `cmd:"" help:"List the files of a folder, or of all."`
	Text    filesTextCmd    `cmd:"" help:"Print the text of a file, as agents read it."`
	Retry   filesRetryCmd   `cmd:"" help:"Work again on a file that failed."`
	Reparse filesReparseCmd `cmd:"" help:"Parse a file again, or all files of a folder."`
	Delete  filesDeleteCmd  `cmd:"" help:"Delete a file."`
}

type filesListCmd struct {
	remote
	asked
	Folder string `arg:"" optional:"" help:"Name or ID of the folder; all folders without it."`
	Status string `enum:",pending,parsing,embedding,completed,error" default:"" help:"Files at this stage only: ${enum}."`
}

func (c filesListCmd) Run(ctx context.Context, s streams) error {
	path := "/v1/files"
	if c.Folder != "" {
		f, err := c.findFolder(ctx, c.Folder)
		if err != nil {
			return err
		}
		path = "/v1/folders/" + f.ID + "/files"
	}
	filter := url.Values{}
	if c.Status != "" {
		filter.Set("status", c.Status)
	}
	all, err := listAll[files.File](ctx, c.remote, path, filter)
	if err != nil {
		return err
	}
	const columns = "ID | FOLDER | NAME | STATUS | PROGRESS | BYTES | LINES | CHUNKS | UPLOADED | " +
		"ENCODING | LEFT OUT | READ BY | ERROR"
	if err := printList(s, c.asked, all, columns,
		func(f files.File) []string {
			return []string{f.ID, f.FolderID, f.Name, string(f.Status), progressOf(f), fmt.Sprint(f.SizeBytes),
				fmt.Sprint(f.Lines), fmt.Sprint(f.TotalChunks), shownTime(&f.CreatedAt), encodingOf(f),
				document.ListOmissions(f.Omitted),
				document.ListReadBy(f.ReadBy), textOf(f.ErrorMessage)}
		}); err != nil || c.JSON {
		return err
	}
	return c.printBacklog(ctx, s)
}

// printBacklog prints how many passages wait for their vectors, if any do.
func (r remote) printBacklog(ctx context.Context, s streams) error {
	var p server.EmbeddingProgress
	err := r.get(ctx, "/v1/embeddings/progress", &p)
	if errors.Is(err, errNotLoci) || err == nil && p.Waiting == 0 {
		return nil // errNotLoci also means an older server, which lacks the route
	} else if err != nil {
		return err
	}
	_, err = fmt.Fprintln(s.err, backlogText(p))
	return err
}

func backlogText(p server.EmbeddingProgress) string {
	text := fmt.Sprintf("%d texts of all memories wait for their vectors, and are found by their words", p.Waiting)
	if p.SecondsLeft != nil {
		text += fmt.Sprintf("; that takes about %s", time.Duration(*p.SecondsLeft)*time.Second)
	}
	return text + "."
}

// oneFile names a file.
type oneFile struct {
	remote
	asked
	Folder string `arg:"" help:"Name or ID of the folder."`
	File   string `arg:"" help:"Name or ID of the file."`
}

// find returns the API path of the file's folder, and the file's ID.
func (c oneFile) find(ctx context.Context) (folder, fileID string, err error) {
	found, err := c.findFolder(ctx, c.Folder)
	if err != nil {
		return "", "", err
	}
	folder = "/v1/folders/" + found.ID
	if idPattern.MatchString(c.File) {
		return folder, c.File, nil
	}
	all, err := listAll[files.File](ctx, c.remote, folder+"/files", url.Values{})
	if err != nil {
		return "", "", err
	}
	for _, f := range all {
		if f.shown.Name == c.File {
			return folder, f.shown.ID, nil
		}
	}
	return "", "", fmt.Errorf("the folder %q has no file %q: 'loci files list %s' shows them", found.Name, c.File,
		found.ID)
}

type filesTextCmd struct{ oneFile }

func (c filesTextCmd) Run(ctx context.Context, s streams) error {
	folder, fileID, err := c.find(ctx)
	if err != nil {
		return err
	}
	var f files.File
	if err := c.get(ctx, folder+"/files/"+fileID+"?include_content=true", &f); err != nil {
		return err
	}
	if f.Content == nil {
		return fmt.Errorf("%s has no text yet: it is %s", f.Name, f.Status)
	}
	if c.JSON {
		return printJSON(s, f)
	}
	_, err = io.WriteString(s.out, *f.Content)
	return err
}

type filesRetryCmd struct{ oneFile }

func (c filesRetryCmd) Run(ctx context.Context, s streams) error {
	folder, fileID, err := c.find(ctx)
	if err != nil {
		return err
	}
	return c.post(ctx, s, folder+"/files/"+fileID+"/retry", c.asked)
}

type filesReparseCmd struct {
	remote
	asked
	Folder string `arg:"" help:"Name or ID of the folder."`
	File   string `arg:"" optional:"" help:"Name or ID of the file; all files of the folder without it."`
}

func (c filesReparseCmd) Run(ctx context.Context, s streams) error {
	if c.File == "" {
		f, err := c.findFolder(ctx, c.Folder)
		if err != nil {
			return err
		}
		return c.post(ctx, s, "/v1/folders/"+f.ID+"/reparse", c.asked)
	}
	folder, fileID, err := oneFile(c).find(ctx)
	if err != nil {
		return err
	}
	return c.post(ctx, s, folder+"/files/"+fileID+"/reparse", c.asked)
}

// post sends a POST request without a body. With --json it prints the answer.
func (r remote) post(ctx context.Context, s streams, path string, a asked) error {
	var answer json.RawMessage
	if err := r.send(ctx, http.MethodPost, path, nil, &answer); err != nil || !a.JSON {
		return err
	}
	return printJSON(s, answer)
}

type filesDeleteCmd struct {
	oneFile
	Yes bool `help:"Delete it without asking."`
}

func (c filesDeleteCmd) Run(ctx context.Context, s streams) error {
	folder, fileID, err := c.find(ctx)
	if err != nil {
		return err
	}
	if !c.Yes {
		if err := confirm(s, fmt.Sprintf("the file %q (%s)", c.File, fileID)); err != nil {
			return err
		}
	}
	if err := c.send(ctx, http.MethodDelete, folder+"/"+fileID, nil, nil); err != nil || !c.JSON {
		return err
	}
	return printJSON(s, map[string]string{"id": fileID})
}

// progressOf says how far the work on a file has come; "" if that is not known.
func progressOf(f files.File) string {
	switch {
	case f.Status == files.Parsing && f.PagesRead != nil && f.TotalPages != nil:
		return fmt.Sprintf("%d of %d pages", *f.PagesRead, *f.TotalPages)
	case f.Status == files.Embedding && f.TotalChunks > 0:
		return fmt.Sprintf("%d of %d vectors", f.ChunksEmbedded, f.TotalChunks)
	}
	return ""
}

// encodingOf returns the encoding in which a plain text was read, and how sure it is if it is a guess.
func encodingOf(f files.File) string {
	return cmp.Or(document.GuessedEncoding(f.Encoding, f.Confidence), textOf(f.Encoding))
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/loci-memory/loci/files"
)

// remote holds the settings of a command that calls a running server.
type remote struct {
	Addr   string `env:"LOCI_ADDR" default:"127.0.0.1:8283" help:"Address or URL of the server."`
	APIKey secret `name:"api-key" env:"LOCI_API_KEY" help:"API key, if the server asks for one."`
}

const callTimeout = 10 * time.Second

// get reads the answer to a GET request into out.
func (r remote) get(ctx context.Context, path string, out any) error {
	return r.call(ctx, path, nil, "", out)
}

// call sends a GET request or, if there is a body, a POST request, and reads the answer into out. A status of 400 or
// more is an error with the server's sentence.
func (r remote) call(ctx context.Context, path string, body io.Reader, mediaType string, out any) error {
	method := http.MethodGet
	if body != nil {
		method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(ctx, method, serverURL(r.Addr)+path, body)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", mediaType)
	if r.APIKey != "" {
		req.Header.Set("Authorization", "Bearer "+string(r.APIKey))
	}
	res, err := http.DefaultClient.Do(req) //nolint:gosec // the operator names the server
	if err != nil {
		return fmt.Errorf("reach the server (LOCI_ADDR): %w", err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, 16<<20))
	if err != nil {
		return err
	}
	if res.StatusCode >= http.StatusBadRequest {
		var answer struct {
			Detail string `json:"detail"`
		}
		if json.Unmarshal(text, &answer) != nil || answer.Detail == "" {
			answer.Detail = string(text)
		}
		return fmt.Errorf("%s (status %d)", answer.Detail, res.StatusCode)
	}
	return json.Unmarshal(text, out)
}

// healthCmd asks a server for its health.
type healthCmd struct{ remote }

// Run implements the command.
func (c healthCmd) Run(ctx context.Context, s streams) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var health struct{ Status, Version string }
	if err := c.get(ctx, "/v1/ready/", &health); err != nil {
		return err
	}
	_, err := fmt.Fprintf(s.out, "%s, version %s\n", health.Status, health.Version)
	return err
}

// uploadCmd uploads files and waits for them.
type uploadCmd struct {
	remote
	Folder     string   `arg:"" help:"Name of the folder; it is created if it is new."`
	Files      []string `arg:"" type:"existingfile" help:"Files to upload."`
	Duplicates string   `enum:"suffix,skip,error,replace" default:"suffix" help:"For a name that the folder has."`
}

// Run implements the command.
func (c uploadCmd) Run(ctx context.Context, s streams) error {
	folder, err := c.folder(ctx)
	if err != nil {
		return err
	}
	failed := 0
	var waiting []files.File
	for _, path := range c.Files {
		f, err := c.upload(ctx, folder, path)
		if err != nil {
			failed++
			fmt.Fprintf(s.err, "%s: %v\n", path, err)
			continue
		}
		waiting = append(waiting, f)
	}
	for _, f := range waiting {
		if f, err = c.await(ctx, folder, f); err != nil {
			return err
		}
		if f.Status == files.Failed {
			failed++
			fmt.Fprintf(s.err, "%s: %s\n", f.Name, *f.ErrorMessage)
			continue
		}
		fmt.Fprintf(s.out, "%s: %d lines, %d chunks\n", f.Name, f.Lines, f.TotalChunks)
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d files failed", failed, len(c.Files))
	}
	return nil
}

// folder returns the id of the folder, which it creates if it is new.
func (c uploadCmd) folder(ctx context.Context) (string, error) {
	var list []files.Folder
	if err := c.get(ctx, "/v1/folders/?limit=1000&name="+url.QueryEscape(c.Folder), &list); err != nil {
		return "", err
	}
	for _, f := range list {
		if f.Name == c.Folder {
			return f.ID, nil
		}
	}
	body, err := json.Marshal(map[string]string{"name": c.Folder})
	if err != nil {
		return "", err
	}
	var made files.Folder
	err = c.call(ctx, "/v1/folders/", bytes.NewReader(body), "application/json", &made)
	return made.ID, err
}

// upload streams one file.
func (c uploadCmd) upload(ctx context.Context, folder, path string) (f files.File, err error) {
	in, err := os.Open(path)
	if err != nil {
		return f, err
	}
	defer in.Close()
	body, out := io.Pipe()
	form := multipart.NewWriter(out)
	sent := make(chan error, 1)
	go func() {
		part, err := form.CreateFormFile("file", filepath.Base(path))
		if err == nil {
			_, err = io.Copy(part, in)
		}
		if err == nil {
			err = form.Close()
		}
		if errors.Is(err, io.ErrClosedPipe) { // the server refused the rest: its answer says why
			err = nil
		}
		sent <- errors.Join(err, out.CloseWithError(err))
	}()
	target := "/v1/folders/" + folder + "/upload?duplicate_handling=" + c.Duplicates
	err = c.call(ctx, target, body, form.FormDataContentType(), &f)
	return f, errors.Join(err, body.Close(), <-sent)
}

// await polls a file until it is completed or has failed.
func (c uploadCmd) await(ctx context.Context, folder string, f files.File) (files.File, error) {
	for f.Status != files.Completed && f.Status != files.Failed {
		if !wait(ctx, 100*time.Millisecond) {
			return f, ctx.Err()
		}
		if err := c.get(ctx, "/v1/folders/"+folder+"/files/"+f.ID, &f); err != nil {
			return f, err
		}
	}
	return f, nil
}

package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
	"golang.org/x/sync/errgroup"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files"
)

// uploadCmd uploads files, and waits until they are processed.
type uploadCmd struct {
	remote
	asked
	Folder     string   `arg:"" help:"Name of the folder; it is created if it is new."`
	Files      []string `arg:"" help:"Files, directories, and patterns such as 'docs/**/*.md'."`
	Duplicates string   `enum:"suffix,skip,error,replace" default:"suffix" help:"For a name with other content: ${enum}."`
	Encoding   string   `help:"Encoding of the files, such as windows-1250, in place of the one found. Implies --again."`
	Again      bool     `help:"Upload files too that the folder has under the same name with the same content."`
	NoWait     bool     `help:"Do not wait until the files are searchable."`
	Parallel   int      `default:"4" help:"How many files are sent at the same time."`
}

const uploadPage = 1000 // files of a folder in a page of a list

// localFile is a file to upload, with its name in the folder.
type localFile struct {
	path, name string
	mediaType  string // empty: unknown
}

// failure is a file that failed: its path if it was not stored, otherwise its name.
type failure struct {
	Name  string `json:"name"`
	Error string `json:"error"`
}

// upload is the state of one run of the command.
type upload struct {
	uploadCmd
	streams
	folder   string
	existing map[string][]files.File // by name; a numbered copy also by its original's name

	mu               sync.Mutex
	total, unchanged int
	sent             []files.File // in their current state
	failures         []failure
	searchable       int
	shown            bool // the terminal shows the progress
}

func (c uploadCmd) Run(ctx context.Context, s streams) error {
	if c.Parallel < 1 {
		return settingError{fmt.Errorf("--parallel is %d; send at least 1 file at a time", c.Parallel)}
	}
	if err := sendable(c.Folder); err != nil {
		return settingError{errors.New("the folder's name has control characters, or is not UTF-8")}
	}
	c.Again = c.Again || c.Encoding != ""
	u := &upload{uploadCmd: c, streams: s, shown: isTerminal(s.err), sent: []files.File{}, failures: []failure{}}
	var local []localFile
	for _, path := range c.Files {
		found, err := u.find(path)
		if err != nil {
			u.fail(path, err.Error())
		}
		local = append(local, found...)
	}
	if u.total = len(local) + len(u.failures); len(local) == 0 {
		return errors.New("there is no file to upload")
	}
	if err := u.open(ctx); err != nil {
		return err
	}
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(c.Parallel)
	for _, f := range local {
		group.Go(func() error { return u.one(groupCtx, f) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if !c.NoWait {
		if err := u.await(ctx); err != nil {
			return err
		}
	}
	u.clear()
	if err := u.print(); err != nil {
		return err
	}
	if n := len(u.failures); n > 0 {
		return fmt.Errorf("%d of %d files failed", n, u.total)
	}
	return nil
}

// print prints the results.
func (u *upload) print() error {
	if u.JSON {
		return printJSON(u.streams, map[string]any{"folder_id": u.folder, "total": u.total, "uploaded": u.sent,
			"unchanged": u.unchanged, "failed": u.failures})
	}
	noun := "files"
	if u.total == 1 {
		noun = "file"
	}
	_, err := fmt.Fprintf(u.out, "%d %s: %d uploaded, %d unchanged, %d failed\n", u.total, noun, len(u.sent), u.unchanged,
		len(u.failures))
	return err
}

// find returns the files at a path. Files in a directory or of a pattern are named relative to it. find leaves out
// hidden files and links to directories. It skips pipes, devices and sockets, and prints their names.
func (u *upload) find(path string) (all []localFile, err error) {
	base, pattern, empty := path, "**", "the directory has no files"
	info, err := os.Stat(path)
	switch {
	case err == nil && !info.IsDir() && !info.Mode().IsRegular():
		return nil, errors.New("it is " + kindOf(info.Mode()) + ": upload a regular file")
	case err == nil && !info.IsDir():
		return []localFile{{path: path, name: filepath.Base(path)}}, nil
	case err != nil && !strings.ContainsAny(path, "*?[{"):
		return nil, withoutPath(err)
	case err != nil:
		base, pattern = doublestar.SplitPattern(filepath.ToSlash(path))
		empty = "no file matches the pattern"
	}
	names, err := doublestar.Glob(os.DirFS(base), pattern, doublestar.WithFilesOnly(), doublestar.WithNoHidden(),
		doublestar.WithNoFollow(), doublestar.WithFailOnIOErrors())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("find its files: %w", err)
	}
	for _, name := range names {
		path := filepath.Join(base, filepath.FromSlash(name))
		info, err := os.Stat(path)
		switch {
		case err != nil || info.Mode().IsRegular():
			all = append(all, localFile{path: path, name: name})
		case !info.IsDir():
			fmt.Fprintf(u.err, "%s: left out, because it is %s\n", printable(path), kindOf(info.Mode()))
		}
	}
	if len(all) == 0 {
		return nil, errors.New(empty)
	}
	return all, nil
}

// kindOf names the kind of a file that is neither regular nor a directory.
func kindOf(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeNamedPipe != 0:
		return "a pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	}
	return "a device"
}

// withoutPath returns the cause of an error about a path, for errors that name the path anyway.
func withoutPath(err error) error {
	if pathError, ok := errors.AsType[*fs.PathError](err); ok {
		return pathError.Err
	}
	return err
}

// open finds or creates the folder, and lists its files.
func (u *upload) open(ctx context.Context) error {
	u.existing = map[string][]files.File{}
	f, err := u.findFolder(ctx, u.Folder)
	if _, unknown := errors.AsType[unknownFolder](err); unknown {
		f, err = u.createFolder(ctx, u.Folder, nil)
		u.folder = f.ID
		return err
	}
	if err != nil {
		return err
	}
	u.folder = f.ID
	return u.list(ctx)
}

// list reads the names of the folder's files, unless all files are to be uploaded again.
func (u *upload) list(ctx context.Context) error {
	for cursor := ""; !u.Again; {
		var page []files.File
		path := fmt.Sprintf("/v1/folders/%s/files?limit=%d&order=asc&after=%s", u.folder, uploadPage, cursor)
		if err := u.get(ctx, path, &page); err != nil {
			return err
		}
		for _, f := range page {
			u.existing[f.Name] = append(u.existing[f.Name], f)
			if original := numberedCopy.ReplaceAllString(f.Name, "$1$2"); original != f.Name && u.Duplicates == "suffix" {
				u.existing[original] = append(u.existing[original], f)
			}
		}
		if len(page) < uploadPage {
			return nil
		}
		cursor = page[len(page)-1].ID
	}
	return nil
}

// one uploads a file, unless the folder has it already. It prints and counts a failure of this file. It returns an
// error only if ctx has ended, which ends all uploads.
func (u *upload) one(ctx context.Context, local localFile) error {
	var stored *files.File
	var uploaded files.File
	err := sendable(local.name)
	if err == nil {
		stored, err = u.has(ctx, local)
	}
	if err == nil && stored == nil {
		uploaded, err = u.send(ctx, local)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	switch {
	case err != nil:
		u.fail(local.path, withoutPath(err).Error())
	case stored != nil && stored.Status == files.Failed:
		u.fail(local.path, fmt.Sprintf("it is not stored again, because it failed before: %s. 'loci files retry %s %s' "+
			"tries again", strings.TrimSuffix(textOf(stored.ErrorMessage), "."), u.folder, stored.ID))
	case stored != nil:
		u.update(func() { u.unchanged++ })
	default:
		u.update(func() { u.sent = append(u.sent, uploaded) })
	}
	return nil
}

// sendable returns an error for a name that the server would change or refuse.
func sendable(name string) error {
	if !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
		return errors.New("its name has control characters, or is not UTF-8: rename it")
	}
	return nil
}

// numberedCopy matches the name that the server gives a file if the file's own name is taken.
var numberedCopy = regexp.MustCompile(`^(.*)_\(\d+\)(\.[^./]*)?$`)

// has returns a file of the folder with this name, or a numbered copy of it, and with this content; nil if there is
// none. It prefers a file that did not fail.
func (u *upload) has(ctx context.Context, local localFile) (stored *files.File, err error) {
	candidates := u.existing[local.name]
	if len(candidates) == 0 {
		return nil, nil
	}
	file, err := openFile(ctx, local.path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	sum := sha256.New()
	size, err := io.Copy(sum, file)
	for _, f := range candidates {
		if err != nil || f.SizeBytes != size || stored != nil && f.Status == files.Failed {
			continue
		}
		var hash string
		if hash, err = u.hash(ctx, f); hash != hex.EncodeToString(sum.Sum(nil)) {
			continue
		}
		if stored = &f; f.Status != files.Failed {
			return stored, err
		}
	}
	return stored, err
}

// hash returns the SHA-256 of a file's original, in hexadecimal.
func (u *upload) hash(ctx context.Context, f files.File) (string, error) {
	req, err := u.request(ctx, http.MethodHead, "/v1/folders/"+u.folder+"/files/"+f.ID+"/original", nil)
	if err != nil {
		return "", err
	}
	res, err := http.DefaultClient.Do(req) //nolint:gosec // the operator names the server
	if err != nil {
		return "", unanswered(req, err)
	}
	return strings.Trim(res.Header.Get("ETag"), `"`), res.Body.Close()
}

// send streams one file to the server.
func (u *upload) send(ctx context.Context, local localFile) (f files.File, err error) {
	file, err := openFile(ctx, local.path)
	if err != nil {
		return f, err
	}
	defer file.Close()
	body, out := io.Pipe()
	form := multipart.NewWriter(out)
	written := make(chan error, 1)
	go func() {
		part, err := form.CreatePart(textproto.MIMEHeader{
			"Content-Disposition": {multipart.FileContentDisposition("file", filepath.Base(local.path))},
			"Content-Type":        {cmp.Or(local.mediaType, "application/octet-stream")}})
		if err == nil {
			_, err = io.Copy(part, file)
		}
		if err == nil {
			err = form.Close()
		}
		if errors.Is(err, io.ErrClosedPipe) { // the server refused the rest, and its answer says why
			err = nil
		}
		written <- errors.Join(err, out.CloseWithError(err))
	}()
	target := "/v1/folders/" + u.folder + "/upload?duplicate_handling=" + u.Duplicates +
		"&name=" + url.QueryEscape(local.name) + "&encoding=" + url.QueryEscape(u.Encoding)
	err = u.call(ctx, target, body, form.FormDataContentType(), &f)
	return f, errors.Join(err, body.Close(), <-written)
}

// await polls the files in the order in which they were sent, until each is completed or has failed.
func (u *upload) await(ctx context.Context) error {
	for i, f := range u.sent {
		for f.Status != files.Completed && f.Status != files.Failed {
			previous := f.Status
			if err := u.get(ctx, "/v1/folders/"+u.folder+"/files/"+f.ID, &f); err != nil {
				return err
			}
			if f.Status == previous && !db.Pause(ctx, 100*time.Millisecond) {
				return ctx.Err()
			}
		}
		u.update(func() { u.sent[i] = f })
		if f.Status == files.Failed {
			u.fail(f.Name, *f.ErrorMessage)
			continue
		}
		u.clear()
		if !u.JSON {
			fmt.Fprintf(u.out, "%s: %d lines, %d chunks\n", f.Name, f.Lines, f.TotalChunks)
		}
		u.update(func() { u.searchable++ })
	}
	return nil
}

// fail prints and counts a file that failed.
func (u *upload) fail(name, why string) {
	u.update(func() {
		u.failures = append(u.failures, failure{name, why})
		u.clear()
		fmt.Fprintf(u.err, "%s: %s\n", printable(name), why)
	})
}

// update changes the counts, and shows them on a terminal.
func (u *upload) update(change func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	change()
	if u.shown {
		fmt.Fprintf(rawTerminal(u.err), "\r\x1b[K%d of %d files sent, %d searchable, %d failed", len(u.sent)+u.unchanged,
			u.total, u.unchanged+u.searchable, len(u.failures))
	}
}

// clear removes the progress from a terminal.
func (u *upload) clear() {
	if u.shown {
		fmt.Fprint(rawTerminal(u.err), "\r\x1b[K")
	}
}

package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/loci-memory/loci/cmd/loci/web"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files"
)

// urlsFlags are the flags of a folder that follows a list of URLs.
type urlsFlags struct {
	URLs     string        `name:"urls" placeholder:"FILE" help:"URLs to mirror: a file with one a line, a sitemap in a file or at a URL, or - for the standard input."` //nolint:lll // a tag is one line
	Allow    []string      `env:"LOCI_SYNC_ALLOW" help:"Hosts (docs.example.com, *.example.com), addresses and networks that --urls may read; nothing else is read."`    //nolint:lll // a tag is one line
	MaxBytes int64         `default:"52428800" help:"Largest page of --urls, in bytes."`
	Every    time.Duration `default:"1h" help:"With --urls and --watch: how long to wait before looking again."`
}

// maxFetched bounds what one look at a list stores on disk, in bytes.
const maxFetched = 4 << 30

// followURLs makes the folder hold what a list of URLs holds.
func (c syncCmd) followURLs(ctx context.Context, s streams) error {
	allowed, err := web.NewAllowed(c.Allow)
	switch {
	case err != nil:
		return settingError{fmt.Errorf("--allow (LOCI_SYNC_ALLOW): %w", err)}
	case allowed.IsEmpty():
		return settingError{errors.New("--urls reads only what --allow (LOCI_SYNC_ALLOW) names: hosts such as " +
			"docs.example.com or *.example.com, addresses, networks")}
	case c.MaxBytes < 1:
		return settingError{fmt.Errorf("--max-bytes is %d; a page has at least 1 byte", c.MaxBytes)}
	case c.Every <= 0:
		return settingError{fmt.Errorf("--every is %s; wait for some time", c.Every)}
	case c.Watch && c.URLs == "-":
		return settingError{errors.New("the standard input cannot be read again: name a file to --watch")}
	}
	for {
		err := c.lookAtURLs(ctx, s, allowed)
		if !c.Watch {
			return err
		}
		if err != nil && ctx.Err() == nil {
			fmt.Fprintln(s.err, "loci:", err)
		}
		if !db.Pause(ctx, c.Every) {
			return nil // Ctrl-C is how watching ends
		}
	}
}

// lookAtURLs does so once.
func (c syncCmd) lookAtURLs(ctx context.Context, s streams, allowed web.Allowed) error {
	dir, err := os.MkdirTemp("", "loci-sync-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	y := &syncing{syncCmd: c, streams: s}
	return y.follow(ctx, func(ctx context.Context, stored []files.File) (*tree, error) {
		p := &pages{tree: &tree{kept: map[string]bool{}}, noted: map[string]files.File{}, urls: map[string]bool{},
			names: map[string]string{}, dir: dir,
			Reader: &web.Reader{Allowed: allowed, Agent: "loci/" + version(), MaxBytes: c.MaxBytes, Pause: db.Pause}}
		p.Open()
		return p.readAll(ctx, c.URLs, stored)
	})
}

// pages are the pages of a list while they are read.
type pages struct {
	*tree
	*web.Reader
	dir     string                // where they are read into
	noted   map[string]files.File // by the URLs of their pages
	urls    map[string]bool       // of pages that were read, where they are for good
	names   map[string]string     // their URLs, by name
	fetched int64                 // bytes
}

// readAll reads the pages of a list. stored are the files of the folder.
func (p *pages) readAll(ctx context.Context, from string, stored []files.File) (*tree, error) {
	list, err := p.list(ctx, from)
	if err != nil {
		return nil, errors.New(advised(err))
	}
	newest := map[string]string{} // IDs by name
	for _, f := range stored {
		newest[f.Name] = f.ID
	}
	for _, f := range stored {
		if note := noteOf(f); note.URL != "" && newest[f.Name] == f.ID {
			p.noted[note.URL] = f
			if note.Listed != "" {
				p.noted[note.Listed] = f
			}
		}
	}
	for i, address := range list {
		if err := p.read(ctx, address, filepath.Join(p.dir, strconv.Itoa(i))); err != nil {
			p.fault(address, err)
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	return p.tree, nil
}

// list reads the list.
func (p *pages) list(ctx context.Context, from string) ([]string, error) {
	if strings.HasPrefix(from, "http://") || strings.HasPrefix(from, "https://") {
		return p.FetchList(ctx, from)
	}
	in := io.ReadCloser(os.Stdin)
	if from != "-" {
		var err error
		if in, err = openFile(ctx, from); err != nil {
			return nil, fmt.Errorf("%s: %w", from, withoutPath(err))
		}
	}
	defer in.Close()
	urls, err := p.ReadList(ctx, in)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", from, err)
	}
	return urls, nil
}

// read reads a page into a file.
func (p *pages) read(ctx context.Context, address, path string) error {
	if p.urls[address] { // another URL led to it
		return nil
	}
	if p.fetched >= maxFetched {
		return fmt.Errorf("more than %d bytes were read: sync again for the rest", int64(maxFetched))
	}
	old := p.noted[address]
	note := noteOf(old)
	if old.Status == files.Failed {
		note.Validators = web.Validators{}
	}
	f, err := p.fetch(ctx, address, note.Validators, path)
	if err == nil && f.page.isUnchanged {
		f.page.hash, f.page.MediaType, f.page.Validators = old.SHA256, note.MediaType, note.Validators
		if name, _ := files.CleanPath(pageName(f.page.URL, note.MediaType)); name != old.Name { // it may be uploaded again
			f, err = p.fetch(ctx, address, web.Validators{}, path)
		}
	}
	if err != nil {
		return err
	}
	if p.urls[f.page.URL] {
		return os.Remove(path)
	}
	f.page.from = old.ID
	if f.name, err = files.CleanPath(pageName(f.page.URL, f.page.MediaType)); err != nil {
		return err
	}
	if other, taken := p.names[f.name]; taken {
		return fmt.Errorf("its file would be named %s, as that of %s", f.name, other)
	}
	p.urls[f.page.URL], p.names[f.name] = true, f.page.URL
	p.files = append(p.files, f)
	return nil
}

// fetch reads a page into a file, unless it did not change.
func (p *pages) fetch(ctx context.Context, address string, have web.Validators, path string) (f treeFile, err error) {
	file, err := os.Create(path) // #nosec G304 -- a number in a directory of this command
	if err != nil {
		return f, err
	}
	sum := sha256.New()
	page, err := p.Fetch(ctx, address, have, io.MultiWriter(file, sum))
	size, _ := file.Seek(0, io.SeekCurrent)
	p.fetched += size
	if err := errors.Join(err, file.Close()); err != nil {
		return f, err
	}
	note := pageNote{URL: page.URL, MediaType: page.MediaType, Validators: page.Validators}
	if page.URL != address {
		note.Listed = address
	}
	return treeFile{localFile: localFile{path: path, mediaType: page.MediaType}, size: size,
		page: &webPage{pageNote: note, hash: hex.EncodeToString(sum.Sum(nil)), isUnchanged: page.Unchanged}}, nil
}

// fault notes a page that was not read. Its file stays, unless the page does not exist any more.
func (p *pages) fault(address string, err error) {
	fault := failure{address, advised(err)}
	status, isStatus := errors.AsType[*web.StatusError](err)
	if isStatus && status.IsGone() {
		p.missing = append(p.missing, fault)
		return
	}
	if f, ok := p.noted[address]; ok {
		p.kept[f.Name] = true
	}
	if errors.Is(err, web.ErrRobots) {
		p.missing = append(p.missing, fault)
		return
	}
	p.faults = append(p.faults, fault)
}

// advised returns the text of an error about a page, with what to set if an address was refused.
func advised(err error) string {
	text := err.Error()
	if refused, ok := errors.AsType[*web.RefusedError](err); ok {
		text += ": name " + refused.Entry + " in --allow (LOCI_SYNC_ALLOW) if it may be read"
	}
	return text
}

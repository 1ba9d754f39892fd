package web

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// Bounds of lists. The first two are those of sitemaps (https://www.sitemaps.org/protocol.html).
const (
	MaxURLs     = 50_000 // in a list with all that it leads to
	maxList     = 50 << 20
	maxNested   = 3 // lists of lists
	maxSitemaps = 1000
)

// ReadList returns the URLs of a list: one a line, where # begins a comment, or a sitemap, or an index of sitemaps,
// which it fetches. Each may be compressed with gzip. A URL stands in it once, in the form of Parse unless that fails.
func (r *Reader) ReadList(ctx context.Context, list io.Reader) ([]string, error) {
	l := &listing{Reader: r, seen: map[string]bool{}}
	err := l.read(ctx, list, 0)
	return l.urls, err
}

// FetchList is ReadList for a list at a URL.
func (r *Reader) FetchList(ctx context.Context, address string) ([]string, error) {
	l := &listing{Reader: r, seen: map[string]bool{}}
	err := l.fetch(ctx, address, 0)
	return l.urls, err
}

// listing is a list that is read.
type listing struct {
	*Reader
	urls     []string
	seen     map[string]bool
	sitemaps int
}

// sitemap is a sitemap, or an index of sitemaps.
type sitemap struct {
	XMLName xml.Name
	Pages   []string `xml:"url>loc"`
	Lists   []string `xml:"sitemap>loc"`
}

func (l *listing) fetch(ctx context.Context, address string, depth int) error {
	u, err := Parse(address)
	if err != nil {
		return fmt.Errorf("%s: %w", address, err)
	}
	if l.sitemaps++; l.sitemaps > maxSitemaps {
		return fmt.Errorf("it leads to more than %d sitemaps", maxSitemaps)
	}
	var body bytes.Buffer
	_, err = l.follow(ctx, u, Validators{}, func(context.Context, *url.URL) error { return nil },
		func(res *http.Response) error {
			_, err := io.Copy(&body, io.LimitReader(res.Body, maxList+1))
			return err
		})
	if err == nil {
		err = l.read(ctx, &body, depth)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", u.Redacted(), err)
	}
	return nil
}

func (l *listing) read(ctx context.Context, list io.Reader, depth int) error {
	text, err := plain(list)
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(bytes.TrimSpace(text), []byte("<")) {
		return l.lines(text)
	}
	var m sitemap
	if err := xml.Unmarshal(text, &m); err != nil {
		return fmt.Errorf("it is no sitemap: %w", err)
	}
	if m.XMLName.Local != "urlset" && m.XMLName.Local != "sitemapindex" {
		return fmt.Errorf("it is no sitemap, but begins with <%s>", m.XMLName.Local)
	}
	for _, page := range m.Pages {
		if err := l.add(page); err != nil {
			return err
		}
	}
	if len(m.Lists) > 0 && depth == maxNested {
		return fmt.Errorf("its sitemaps lead to others more than %d times", maxNested)
	}
	for _, address := range m.Lists {
		if err := l.fetch(ctx, address, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// plain reads a list, which may be compressed.
func plain(list io.Reader) ([]byte, error) {
	in := bufio.NewReader(list)
	list = in
	if head, _ := in.Peek(2); bytes.Equal(head, []byte{0x1f, 0x8b}) {
		packed, err := gzip.NewReader(in)
		if err != nil {
			return nil, err
		}
		list = packed
	}
	text, err := io.ReadAll(io.LimitReader(list, maxList+1))
	if err == nil && len(text) > maxList {
		err = fmt.Errorf("it has more than %d bytes", maxList)
	}
	return bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")), err
}

func (l *listing) lines(text []byte) error {
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			if err := l.add(line); err != nil {
				return err
			}
		}
	}
	return nil
}

// add adds a URL. One that is none stays as it is, for an error about it.
func (l *listing) add(address string) error {
	address = strings.TrimSpace(address)
	if u, err := Parse(address); err == nil {
		address = u.String()
	}
	if !l.seen[address] {
		l.seen[address] = true
		l.urls = append(l.urls, address)
	}
	if len(l.urls) > MaxURLs {
		return fmt.Errorf("it lists more than %d URLs: split it, and give each part a folder", MaxURLs)
	}
	return nil
}
